package workload

import (
	"encoding/binary"
	"math/rand/v2"
	"time"
)

// ulids makes record ids: 48 bits of milliseconds and 80 bits of randomness,
// the latter counted up within a millisecond, so that ids sort as they were
// made. The project's decoder uses oklog/ulid; this one draws from the
// generator's own randomness and appends without allocating.
type ulids struct {
	ms     int64
	hi, lo uint64 // the 80 bits: 16 and 64
}

// append appends the next id, 26 characters.
func (u *ulids) append(b []byte, at time.Time, rng *rand.Rand) []byte {
	if ms := at.UnixMilli(); ms > u.ms {
		// The top bit stays clear: a burst cannot count past the end.
		u.ms, u.hi, u.lo = ms, rng.Uint64()&0x7fff, rng.Uint64()
	} else if u.lo++; u.lo == 0 {
		u.hi++
	}
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], uint64(u.ms)<<16|u.hi)
	binary.BigEndian.PutUint64(id[8:], u.lo)
	return appendCrockford(b, id)
}

// appendCrockford appends 128 bits in groups of 5, the first group of 3.
func appendCrockford(b []byte, id [16]byte) []byte {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	hi, lo := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	for shift := 125; shift >= 0; shift -= 5 {
		var v uint64
		switch {
		case shift >= 64:
			v = hi >> (shift - 64)
		case shift > 59:
			v = hi<<(64-shift) | lo>>shift
		default:
			v = lo >> shift
		}
		b = append(b, digits[v&31])
	}
	return b
}
