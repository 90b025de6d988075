package chain

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A Hash is one SHA-256 (or HMAC-SHA256) value, or one salt: 32 bytes. Its
// text, also in JSON, is 64 lower-case hex digits.
type Hash [32]byte

// A NullHash is a nullable hash column. The zero NullHash is null.
type NullHash struct {
	Hash  Hash
	Valid bool // false: null
}

// ErrHash: a text is not the one that [Hash.String] gives.
var ErrHash = errors.New("not 64 lower-case hex digits")

// String returns h as 64 lower-case hex digits.
func (h Hash) String() string { return string(appendHex(nil, &h)) }

// MarshalText returns what [Hash.String] does.
func (h Hash) MarshalText() ([]byte, error) { return appendHex(nil, &h), nil }

// UnmarshalText is the inverse of [Hash.MarshalText], as strict as [ParseHash].
func (h *Hash) UnmarshalText(text []byte) error {
	parsed, err := ParseHash(string(text))
	if err != nil {
		return err
	}
	*h = parsed
	return nil
}

// ParseHash is the inverse of [Hash.String]. It accepts nothing else: an error
// matches [ErrHash].
func ParseHash(text string) (Hash, error) {
	var h Hash
	if len(text) != 2*len(h) {
		return h, fmt.Errorf("hash of %d characters: %w", len(text), ErrHash)
	}
	for i := range h {
		hi, lo := fromHex(text[2*i]), fromHex(text[2*i+1])
		if hi > 15 || lo > 15 {
			return Hash{}, fmt.Errorf("hash %q: %w", text, ErrHash)
		}
		h[i] = hi<<4 | lo
	}
	return h, nil
}

// fromHex returns the value of one lower-case hex digit, 255 for anything else.
func fromHex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}

// appendHex appends h as 64 lower-case hex digits. A row takes some twenty of
// them: two digits at a time halve what encoding/hex costs.
func appendHex(b []byte, h *Hash) []byte {
	n := len(b)
	b = append(b, zeroDigits...)
	out := (*[2 * len(h)]byte)(b[n:])
	for i, c := range h {
		binary.LittleEndian.PutUint16(out[2*i:], hexPairs[c])
	}
	return b
}

const zeroDigits = "0000000000000000000000000000000000000000000000000000000000000000"

// hexPairs has the two digits of each byte, the first one in the low byte.
var hexPairs = func() (pairs [256]uint16) {
	const digits = "0123456789abcdef"
	for c := range pairs {
		pairs[c] = uint16(digits[c>>4]) | uint16(digits[c&15])<<8
	}
	return pairs
}()
