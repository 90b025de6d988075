package pipeline

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A record of a batch, as Kafka lays it out: nothing but a key, a value and so
// many empty headers.
func record(key, value string, headers int) []byte {
	b := []byte{0}                 // attributes
	b = binary.AppendVarint(b, 17) // timestamp
	b = binary.AppendVarint(b, 3)  // offset
	for _, s := range []string{key, value} {
		b = append(binary.AppendVarint(b, int64(len(s))), s...)
	}
	b = binary.AppendVarint(b, int64(headers))
	b = append(b, make([]byte, 2*headers)...) // names and values of no bytes
	return append(binary.AppendVarint(nil, int64(len(b))), b...)
}

// What a batch costs beside its bytes is that of its records and headers, also
// where these have no bytes at all. A damaged batch costs no more than it has.
func TestBesides(t *testing.T) {
	null := []byte{12, 0, 0, 0, 1, 1, 0} // key and value null
	for _, c := range []struct {
		name string
		b    []byte
		want int64
	}{
		{"nothing", nil, 0},
		{"a record", record("k", "v", 0), recordBytes},
		{"two records", append(record("", "", 1), record("key", "value", 2)...), 2*recordBytes + 3*headerBytes},
		{"a million headers", record("", "v", 1_000_000), recordBytes + 1_000_000*headerBytes},
		{"null key and value", null, recordBytes},
		{"cut", record("key", "value", 9)[:5], 0},
		{"a length below zero", []byte{1}, 0},
		{"no fields", []byte{2, 0}, recordBytes},
		{"a key beyond the record", []byte{8, 0, 0, 0, 126}, recordBytes},
	} {
		if got := besides(c.b); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// plain is a decompressor that gives what it gets.
type plain struct{}

func (plain) Decompress(src []byte, _ kgo.CompressionCodecType) ([]byte, error) { return src, nil }

// A batch of nothing but headers is too large like one of bytes; an answer that
// has inflated far enough inflates no further batch; the next answer does.
func TestInflaterBounds(t *testing.T) {
	d := &inflater{Decompressor: plain{}, most: 64 << 20}
	if _, err := d.Decompress(record("", "", 1_000_000), kgo.CodecGzip); !errors.Is(err, kgo.ErrMaxDecompress) {
		t.Errorf("a million headers: %v", err)
	}
	large := record("", string(make([]byte, inflateAnswer)), 0)
	if _, err := d.Decompress(large, kgo.CodecGzip); err != nil {
		t.Errorf("the first batch: %v", err)
	}
	if _, err := d.Decompress(record("", "", 0), kgo.CodecGzip); !errors.Is(err, errLater) {
		t.Errorf("another one of the answer: %v", err)
	}
	if _, err := d.forOneAnswer().Decompress(large, kgo.CodecGzip); err != nil {
		t.Errorf("another answer: %v", err)
	}
}

func FuzzBesides(f *testing.F) {
	f.Add(record("key", "value", 2))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := besides(b); n < 0 {
			t.Errorf("%d", n)
		}
	})
}
