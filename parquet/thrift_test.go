package parquet

import (
	"bytes"
	"strings"
	"testing"
)

// The reader refuses what cannot be, and says where.
func TestThriftRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		b     []byte
		words string
	}{
		"nothing":                     {nil, "unexpected end"},
		"no end":                      {[]byte{0x15, 2}, "unexpected end"},
		"bytes after the end":         {[]byte{0, 0}, "1 bytes after the end"},
		"a field twice":               {[]byte{0x15, 2, 0x05, 2, 2, 0}, "field 1 after 1"},
		"a field that goes back":      {[]byte{0x35, 2, 0x05, 2, 2, 0}, "field 1 after 3"},
		"a list beyond the bytes":     {[]byte{0x19, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 7}, "list of 2147483647 elements in 0 bytes"},
		"a length beyond 31 bits":     {[]byte{0x19, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 7}, "bad length"},
		"bytes beyond the bytes":      {[]byte{0x18, 5, 'a', 'b', 0}, "5 bytes wanted, 3 left"},
		"an integer without an end":   {[]byte{0x15, 0x80, 0x80}, "bad integer"},
		"an integer of eleven bytes":  {append(append([]byte{0x16}, bytes.Repeat([]byte{0xFF}, 10)...), 1, 0), "bad integer"},
		"a type that there is not":    {[]byte{0x1E, 0}, "unknown type 14"},
		"structs without an end":      {bytes.Repeat([]byte{0x1C}, 100), "nested too deep"},
		"lists without an end":        {append([]byte{0x19}, bytes.Repeat([]byte{0x19}, 100)...), "nested too deep"},
		"half a number with a point":  {[]byte{0x17, 0, 0, 0}, "unexpected end"},
		"a map beyond the bytes":      {[]byte{0x1B, 0xFF, 0xFF, 3, 0x55, 2, 2}, "bad integer"},
		"a map that ends in its type": {[]byte{0x1B, 5}, "unexpected end"},
	} {
		r := thriftReader{b: c.b}
		r.skip(thriftStruct, false, maxThriftDepth)
		if err := r.whole(); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v, want %q", name, err, c.words)
		}
	}
}

// What may be there is passed over, whatever its type.
func TestThriftSkips(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":           {0},
		"both booleans":     {0x11, 0x12, 0},
		"a byte":            {0x13, 0xFF, 0},
		"integers":          {0x14, 1, 0x15, 0x80, 1, 0x16, 3, 0},
		"a number":          {0x17, 1, 2, 3, 4, 5, 6, 7, 8, 0},
		"a UUID":            append(append([]byte{0x1D}, make([]byte, 16)...), 0),
		"bytes":             {0x18, 2, 0, 0, 0},
		"a list":            {0x19, 0x25, 1, 2, 0},
		"a set":             {0x1A, 0x25, 1, 2, 0},
		"a long list":       append([]byte{0x19, 0xF1, 20}, make([]byte, 21)...),
		"booleans in lists": {0x19, 0x21, 1, 2, 0},
		"a map":             {0x1B, 1, 0x58, 1, 1, 'a', 0},
		"an empty map":      {0x1B, 0, 0},
		"a struct":          {0x1C, 0x15, 2, 0, 0},
		"a far field":       {0x05, 0x80, 2, 1, 0},
	} {
		r := thriftReader{b: b}
		r.skip(thriftStruct, false, maxThriftDepth)
		if err := r.whole(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A frame says how large its content is in one of five ways. The bytes are of
// RFC 8878, section 3.1.1.1.
func TestFrameSize(t *testing.T) {
	head := []byte{0x28, 0xB5, 0x2F, 0xFD}
	for name, c := range map[string]struct {
		rest []byte
		size uint64
		ok   bool
	}{
		"one byte":                    {[]byte{0x20, 200}, 200, true},
		"two bytes":                   {[]byte{0x60, 0x01, 0x00}, 257, true},
		"two bytes, a window":         {[]byte{0x40, 0x58, 0x00, 0x01}, 512, true},
		"four bytes":                  {[]byte{0xA0, 0, 0, 1, 0}, 1 << 16, true},
		"eight bytes":                 {[]byte{0xE0, 0, 0, 0, 0, 0, 1, 0, 0}, 1 << 40, true},
		"one byte, a dictionary":      {[]byte{0x21, 9, 7}, 7, true},
		"one byte, a longer":          {[]byte{0x23, 9, 9, 9, 9, 7}, 7, true},
		"it does not":                 {[]byte{0x00, 0x58, 1, 2, 3}, 0, false},
		"nothing after the magic":     {nil, 0, false},
		"four bytes that are cut off": {[]byte{0xA0, 1}, 1, true},
	} {
		size, ok := frameSize(append(bytes.Clone(head), c.rest...))
		if ok != c.ok || ok && size != c.size {
			t.Errorf("%s: %d, %v, want %d, %v", name, size, ok, c.size, c.ok)
		}
	}
}
