package pipeline

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What compressed batches may inflate to, in bytes of memory. A batch comes
// into memory as a whole, and a hostile or careless one inflates a thousandfold.
const (
	// inflateAnswer bounds what is inflated of one answer of a broker before
	// another batch is begun.
	inflateAnswer = 16 << 20
	// What the client keeps of a record, and of each of its headers, beside their
	// bytes, and this process with it.
	recordBytes = 256
	headerBytes = 96
)

// errLater: an answer has inflated far enough. What is left of it is fetched
// again.
var errLater = errors.New("an answer inflates far enough: the rest is fetched again")

// An inflater decompresses what brokers send, within bounds, so that memory is
// bounded by what it holds and not by what comes over the wire. A batch beyond
// its bound is an error that matches [kgo.ErrMaxDecompress], and its partition
// cannot go on. It must also be a hook of the client.
type inflater struct {
	kgo.Decompressor // with a bound of its own on the bytes of a batch
	most             int64
	inflated         atomic.Int64 // of the newest answer
}

var _ kgo.HookBrokerRead = (*inflater)(nil)

// forOneAnswer returns an inflater with the same bounds for one answer alone.
func (d *inflater) forOneAnswer() *inflater {
	return &inflater{Decompressor: d.Decompressor, most: d.most}
}

// newInflater returns one whose batches may become most bytes.
func newInflater(most int64) (*inflater, error) {
	// A decompressor that is bounded can be had from a client only.
	c, err := kgo.NewClient(kgo.MaxDecompressBatchBytes(int(min(most, math.MaxInt32))))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return &inflater{Decompressor: c.OptValue(kgo.WithDecompressor).(kgo.Decompressor), most: most}, nil
}

// OnBrokerRead implements [kgo.HookBrokerRead]: an answer to a fetch has come.
func (d *inflater) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if key == int16(kmsg.Fetch) {
		d.inflated.Store(0)
	}
}

// Decompress implements [kgo.Decompressor].
func (d *inflater) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	if codec == kgo.CodecNone {
		return src, nil
	}
	if d.inflated.Load() >= inflateAnswer {
		return nil, errLater
	}
	out, err := d.Decompressor.Decompress(src, codec)
	if err != nil {
		return nil, err
	}
	size := int64(len(out)) + besides(out)
	if size > d.most {
		return nil, fmt.Errorf("%w: %d bytes with what is kept of each record and header", kgo.ErrMaxDecompress, size)
	}
	d.inflated.Add(size)
	return out, nil
}

// besides returns what is kept of the records of a batch beside their bytes. Of
// a batch that is damaged it says something: the client says what is wrong.
func besides(b []byte) (n int64) {
	for len(b) > 0 {
		length, k := binary.Varint(b)
		if k <= 0 || length < 0 || length > int64(len(b)-k) {
			return n
		}
		n += recordBytes + headerBytes*countHeaders(b[k:int64(k)+length])
		b = b[int64(k)+length:]
	}
	return n
}

// countHeaders reads how many headers a record has: behind its attributes, two
// numbers, and the key and the value with their lengths.
func countHeaders(record []byte) int64 {
	b := record[min(1, len(record)):]
	for field := range 5 {
		n, k := binary.Varint(b)
		switch b = b[max(k, 0):]; {
		case k <= 0:
			return 0
		case field == 4:
			return min(max(n, 0), int64(len(b))) // each has two bytes at least
		case field >= 2 && n > 0:
			b = b[min(n, int64(len(b))):]
		}
	}
	return 0
}
