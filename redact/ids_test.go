package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/redact"
)

// strictest finds the most that can be found without a word beside it.
var strictest = "name: all\nrules:\n- {rule: ssn-us}\n- {rule: luhn}\n- {rule: us-dl, states: [" + strings.Join(redact.States(), ",") + "]}\n"

// An idKind is a kind of identifier or number that records are full of.
type idKind struct {
	name string
	make func(rng *rand.Rand) string
}

// digitsOf returns so many random digits, the first of which is not 0.
func digitsOf(rng *rand.Rand, n int) string {
	b := []byte{byte('1' + rng.IntN(9))}
	for len(b) < n {
		b = append(b, byte('0'+rng.IntN(10)))
	}
	return string(b)
}

func bytesOf(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// moment returns a random time of the years 2001 to 2033.
func moment(rng *rand.Rand) time.Time { return time.UnixMicro(rng.Int64N(1e15) + 1e15).UTC() }

func uuidOf(b []byte, version byte) string {
	b[6], b[8] = b[6]&0x0F|version<<4, b[8]&0x3F|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

var idKinds = []idKind{
	{"ULID", func(rng *rand.Rand) string {
		var id ulid.ULID
		copy(id[:], bytesOf(rng, 16))
		if err := id.SetTime(uint64(moment(rng).UnixMilli())); err != nil {
			panic(err)
		}
		return id.String()
	}},
	{"UUID v4", func(rng *rand.Rand) string { return uuidOf(bytesOf(rng, 16), 4) }},
	{"UUID v7", func(rng *rand.Rand) string {
		b := bytesOf(rng, 16)
		ms := moment(rng).UnixMilli()
		for i := range 6 {
			b[i] = byte(ms >> (40 - 8*i))
		}
		return strings.ToUpper(uuidOf(b, 7))
	}},
	{"epoch in s", func(rng *rand.Rand) string { return strconv.FormatInt(moment(rng).Unix(), 10) }},
	{"epoch in ms", func(rng *rand.Rand) string { return strconv.FormatInt(moment(rng).UnixMilli(), 10) }},
	{"epoch in µs", func(rng *rand.Rand) string { return strconv.FormatInt(moment(rng).UnixMicro(), 10) }},
	{"epoch in ns", func(rng *rand.Rand) string { return strconv.FormatInt(moment(rng).UnixNano(), 10) }},
	{"epoch in s, with a fraction", func(rng *rand.Rand) string { return fmt.Sprintf("%d.%06d", moment(rng).Unix(), rng.IntN(1e6)) }},
	{"RFC 3339", func(rng *rand.Rand) string { return moment(rng).Format(time.RFC3339Nano) }},
	{"MD5", func(rng *rand.Rand) string { return hex.EncodeToString(bytesOf(rng, 16)) }},
	{"SHA-1", func(rng *rand.Rand) string { return hex.EncodeToString(bytesOf(rng, 20)) }},
	{"SHA-256", func(rng *rand.Rand) string { return hex.EncodeToString(bytesOf(rng, 32)) }},
	{"trace and span", func(rng *rand.Rand) string {
		return fmt.Sprintf("00-%x-%x-01", bytesOf(rng, 16), bytesOf(rng, 8))
	}},
	{"base64", func(rng *rand.Rand) string { return base64.StdEncoding.EncodeToString(bytesOf(rng, 24)) }},
	{"base64url", func(rng *rand.Rand) string { return base64.RawURLEncoding.EncodeToString(bytesOf(rng, 16)) }},
	{"serial number", func(rng *rand.Rand) string { return digitsOf(rng, 1+rng.IntN(12)) }},
	{"snowflake", func(rng *rand.Rand) string {
		const since = 1_420_070_400_000 // as some count from
		return strconv.FormatInt((moment(rng).UnixMilli()%(1<<38)+since-1_400_000_000_000)<<22|rng.Int64N(1<<22), 10)
	}},
	{"float", func(rng *rand.Rand) string { return strconv.FormatFloat(rng.Float64(), 'g', -1, 64) }},
	{"host and port", func(rng *rand.Rand) string {
		return fmt.Sprintf("10.%d.%d.%d:%d", rng.IntN(256), rng.IntN(256), rng.IntN(256), rng.IntN(1<<16))
	}},
	{"AWS account and resource", func(rng *rand.Rand) string {
		return fmt.Sprintf("arn:aws:kms:eu-west-1:%s:key/%s", digitsOf(rng, 12), uuidOf(bytesOf(rng, 16), 4))
	}},
}

// touched returns how many of n identifiers the rules take something from.
func touched(t *testing.T, p *redact.Policy, kind *idKind, rng *rand.Rand, n int) int {
	t.Helper()
	const each = 1000
	count := 0
	for range n / each {
		text := []byte{'['}
		for range each {
			text = append(append(append(text, '"'), kind.make(rng)...), `",`...)
		}
		text[len(text)-1] = ']'
		r := audit.Record{Kind: audit.Str(audit.KindCall), RedactionPolicy: audit.Str(audit.PolicyNone)}
		r.Slots[audit.SlotPluginPayloads] = text
		if err := p.Scrub(&r); err != nil {
			t.Fatal(err)
		}
		count += strings.Count(string(r.Slots[audit.SlotPluginPayloads]), "[redacted:")
	}
	return count
}

// Of a million identifiers, times and hashes, each in a string of its own, at most
// 0.05 % are touched, and of no kind more.
func TestIdentifiersAreLeftAlone(t *testing.T) {
	const all = 1_000_000
	p, rng := parse(t, strictest), rand.New(rand.NewPCG(6, 7))
	sum := 0
	for i := range idKinds {
		k := &idKinds[i]
		n := all / len(idKinds)
		got := touched(t, p, k, rng, n)
		if sum += got; got > n/2000 {
			t.Errorf("%s: %d of %d are touched", k.name, got, n)
		}
	}
	if sum > all/2000 {
		t.Errorf("%d of %d are touched", sum, all)
	}
	t.Logf("%d of %d are touched", sum, all)
}

// Random numbers as long as those of cards cannot be told from them but by the
// first digits and the last: docs/scrubbing.md says how often that fails.
func TestNumbersAsLongAsCards(t *testing.T) {
	const n = 200_000
	p, rng := parse(t, strictest), rand.New(rand.NewPCG(6, 8))
	for length, most := range map[int]float64{13: 0, 14: 0.0045, 15: 0.0025, 16: 0.027, 17: 0, 18: 0, 19: 0} {
		k := &idKind{make: func(rng *rand.Rand) string { return digitsOf(rng, length) }}
		if got := float64(touched(t, p, k, rng, n)) / n; got > most {
			t.Errorf("%d digits: %.3f %% are touched, want at most %.3f %%", length, 100*got, 100*most)
		} else {
			t.Logf("%d digits: %.3f %%", length, 100*got)
		}
	}
}
