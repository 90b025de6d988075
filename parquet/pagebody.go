package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
)

// A pageBody is a data page of version 1 or a dictionary, decoded as far as
// chunks of the format need it: levels, and values that are PLAIN or indexes into
// a dictionary. Its memory is used again for the next page.
//
//	data page  = [ repetition levels ] [ definition levels ] ( values | width, indexes )
//	levels     = length, hybrid            hybrid: RLE / bit-packing
//	dictionary = values
type pageBody struct {
	codec *zstd.Codec
	b     []byte // not compressed

	n       int    // values, with nulls
	reps    []byte // nil where the column has none
	defs    []byte // nil where no value can be null
	present int    // values without nulls
	values  []byte // PLAIN; nil where there are indexes
	index   []int32
	indexed bool

	repBuf, defBuf []byte
}

// smallFrame is the content of the least frame that must say how long it is, in
// bytes. What a shorter one can become is bounded by its own length.
const smallFrame = 256

// frameOver is what a frame may take beyond a content that does not compress.
const frameOver = 32

// foreign reports whether a page is of a kind that a pageBody does not decode:
// only other writers make such.
func (h *pageHeader) foreign(stored []byte, codec format.CompressionCodec, l *leaf) bool {
	if _, ok := frameSize(stored); codec == format.Zstd && !ok && (h.size >= smallFrame || len(stored) > smallFrame+frameOver) {
		return true
	}
	indexed := h.encoding == format.RLEDictionary || h.encoding == plainDictionary
	if h.kind == format.DictionaryPage {
		return h.encoding != format.Plain && !indexed
	}
	return h.encoding != format.Plain && !indexed || l.maxDef > 0 && h.defs != format.RLE || l.maxRep > 0 && h.reps != format.RLE
}

// inflate decompresses a page, and takes no more memory than its header says.
func (p *pageBody) inflate(h *pageHeader, stored []byte, codec format.CompressionCodec) (err error) {
	if codec == format.Uncompressed {
		if len(stored) != int(h.size) {
			return fmt.Errorf("page of %d bytes in %d", h.size, len(stored))
		}
		p.b = append(p.b[:0], stored...) // for the next page goes into the same memory
		return nil
	}
	if size, ok := frameSize(stored); ok && size != uint64(h.size) {
		return fmt.Errorf("page of %d bytes in a frame of %d", h.size, size)
	}
	if cap(p.b) < int(h.size) {
		p.b = make([]byte, 0, h.size)
	}
	if p.b, err = p.codec.Decode(p.b[:0], stored); err == nil && len(p.b) != int(h.size) {
		err = fmt.Errorf("page of %d bytes, its header says %d", len(p.b), h.size)
	}
	return err
}

// data decodes a data page of a leaf, which is not foreign.
func (p *pageBody) data(h *pageHeader, stored []byte, codec format.CompressionCodec, l *leaf) (err error) {
	p.indexed = h.encoding == format.RLEDictionary || h.encoding == plainDictionary
	if err := p.inflate(h, stored, codec); err != nil {
		return err
	}
	p.n, p.present = int(h.values), int(h.values)
	rest := p.b
	p.reps, p.defs = nil, nil
	if l.maxRep > 0 {
		if p.repBuf, rest, err = readLevels(p.repBuf, rest, l.maxRep, p.n); err != nil {
			return err
		}
		p.reps = p.repBuf
	}
	if l.maxDef > 0 {
		if p.defBuf, rest, err = readLevels(p.defBuf, rest, l.maxDef, p.n); err != nil {
			return err
		}
		p.defs, p.present = p.defBuf, countLevel(p.defBuf, l.maxDef)
	}
	if !p.indexed {
		p.values = rest
		return nil
	}
	p.values = nil
	return p.indexes(rest)
}

// indexes reads the width of the indexes, and these.
func (p *pageBody) indexes(b []byte) (err error) {
	p.index = p.index[:0]
	if p.present == 0 {
		return nil
	}
	if len(b) == 0 || b[0] > 31 {
		return errors.New("indexes of no width")
	}
	p.index, err = readHybrid(p.index, b[1:], uint(b[0]), p.present)
	return err
}

func countLevel(levels []byte, level byte) (n int) {
	for _, l := range levels {
		if l == level {
			n++
		}
	}
	return n
}

// readLevels reads n levels, none above the highest.
func readLevels(levels, b []byte, highest byte, n int) (_, rest []byte, err error) {
	if len(b) < 4 || uint64(len(b)-4) < uint64(binary.LittleEndian.Uint32(b)) {
		return nil, nil, errors.New("levels end early")
	}
	size := binary.LittleEndian.Uint32(b)
	levels, err = readHybrid(levels[:0], b[4:4+size], uint(bits.Len8(highest)), n)
	if err == nil && n > 0 && slices.Max(levels) > highest {
		err = fmt.Errorf("level above %d", highest)
	}
	return levels, b[4+size:], err
}

// readHybrid appends n values of so many bits each, in runs of one value and in
// packs of eight. What the last pack has beyond n is nothing.
// Source: https://parquet.apache.org/docs/file-format/data-pages/encodings/#RLE
func readHybrid[T byte | int32](dst []T, b []byte, width uint, n int) ([]T, error) {
	dst = slices.Grow(dst, n)
	for n > 0 {
		head, size := binary.Uvarint(b)
		if size <= 0 || head>>1 == 0 {
			return nil, errors.New("levels or indexes end early")
		}
		b = b[size:]
		if head&1 == 1 {
			packed := min(n, int(min(head>>1, 1<<28))*8)
			if uint64(len(b)) < (uint64(packed)*uint64(width)+7)/8 {
				return nil, errors.New("packed levels or indexes end early")
			}
			dst = unpack(dst, b, width, packed)
			b = b[min(uint64(len(b)), (head>>1)*uint64(width)):]
			n -= packed
			continue
		}
		wide := int(width+7) / 8
		if len(b) < wide {
			return nil, errors.New("run of levels or indexes ends early")
		}
		v := T(0)
		for i := range wide {
			v |= T(uint32(b[i]) << (8 * i))
		}
		run := int(min(uint64(n), head>>1))
		for range run {
			dst = append(dst, v)
		}
		b, n = b[wide:], n-run
	}
	return dst, nil
}

// unpack appends n values of so many bits each, the lowest bit first. b is long
// enough.
func unpack[T byte | int32](dst []T, b []byte, width uint, n int) []T {
	mask := uint64(1)<<width - 1
	acc, have, at := uint64(0), uint(0), 0
	for range n {
		for have < width {
			acc |= uint64(b[at]) << have
			at, have = at+1, have+8
		}
		dst = append(dst, T(acc&mask))
		acc, have = acc>>width, have-width
	}
	return dst
}

// nextBytes returns the value of text or bytes that b begins with, and what
// follows it.
func nextBytes(b []byte) (v, rest []byte, err error) {
	if len(b) < 4 || uint64(len(b)-4) < uint64(binary.LittleEndian.Uint32(b)) {
		return nil, nil, errors.New("value ends early")
	}
	n := 4 + int(binary.LittleEndian.Uint32(b))
	return b[4:n:n], b[n:], nil
}
