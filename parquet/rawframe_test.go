package parquet

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// A frame that is not compressed is read by everybody: it has its content, and
// says how long that is.
func TestRawFrames(t *testing.T) {
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, n := range []int{0, 1, 17, 255, 256, 257, 65_791, 65_792, 65_793, maxRawBlock - 1, maxRawBlock, maxRawBlock + 1, 3 * maxRawBlock, 1 << 20} {
		content := make([]byte, n)
		for i := range content {
			content[i] = byte(i * 7 >> 3)
		}
		frame := appendRawFrame([]byte("before"), content)[len("before"):]
		got, err := d.DecodeAll(frame, nil)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes: %d came back, %v", n, len(got), err)
		}
		if size, ok := frameSize(frame); !ok || size != uint64(n) {
			t.Errorf("%d bytes: the frame says %d, %v", n, size, ok)
		}
		if len(frame) > n+13+3*(n/maxRawBlock) {
			t.Errorf("%d bytes take %d", n, len(frame))
		}
	}
}
