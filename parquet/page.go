package parquet

import (
	"encoding/binary"
	"fmt"

	"github.com/parquet-go/parquet-go/format"
)

// What a page may declare. A record has at most 16 MiB, and a page of other
// writers a row group of 32.
const (
	maxPageSize   = 256 << 20
	maxPageValues = 16 << 20
)

// A pageHeader is what stands before the body of a page.
type pageHeader struct {
	kind       format.PageType
	size       int32 // of the body, uncompressed
	compressed int32 // of the body as it is stored
	values     int32 // with nulls; for a dictionary, its entries
	encoding   format.Encoding
	defs, reps format.Encoding // of the levels of a data page
	stats      statistics
}

// statistics are what a page header tells about values.
type statistics struct {
	bounds   bool
	distinct bool
}

func (h *pageHeader) read(r *thriftReader) {
	h.kind = -1
	for t := (thriftField{}); r.next(&t); {
		switch t.id {
		case 1:
			h.kind = format.PageType(r.i32(t))
		case 2:
			h.size = r.i32(t)
		case 3:
			h.compressed = r.i32(t)
		case 4: // CRC
			r.i32(t)
		case 5, 7: // of a data page, of a dictionary
			r.want(t, thriftStruct)
			h.readOwn(r)
		default:
			r.stranger(t)
		}
	}
}

// readOwn reads the part of a header that a data page and a dictionary have in
// common, and the levels' encodings and the statistics of a data page.
func (h *pageHeader) readOwn(r *thriftReader) {
	for t := (thriftField{}); r.next(&t); {
		switch {
		case t.id == 1:
			h.values = r.i32(t)
		case t.id == 2:
			h.encoding = format.Encoding(r.i32(t))
		case t.id == 5 && h.kind == format.DataPage:
			r.want(t, thriftStruct)
			h.stats.read(r)
		case t.id == 3 && h.kind == format.DataPage:
			h.defs = format.Encoding(r.i32(t))
		case t.id == 4 && h.kind == format.DataPage:
			h.reps = format.Encoding(r.i32(t))
		case t.id == 3: // of a dictionary: sorted
			r.skip(t.typ, false, maxThriftDepth)
		default:
			r.stranger(t)
		}
	}
}

func (s *statistics) read(r *thriftReader) {
	for t := (thriftField{}); r.next(&t); {
		switch t.id {
		case 1, 2, 5, 6:
			s.bounds = true
		case 4:
			s.distinct = true
		}
		if t.id < 1 || t.id > 8 {
			r.stranger(t)
			continue
		}
		r.skip(t.typ, false, maxThriftDepth)
	}
}

// A pageWalk goes through the headers of the pages of one chunk.
type pageWalk struct {
	object  []byte
	at, end int64
	unknown int // fields of headers that nobody knows
}

func walk(object []byte, c *format.ColumnMetaData) pageWalk {
	start := chunkStart(c)
	return pageWalk{object: object, at: start, end: start + c.TotalCompressedSize}
}

func (w *pageWalk) more() bool { return w.at < w.end }

// next returns the header and the stored body of the next page.
func (w *pageWalk) next() (h pageHeader, body []byte, err error) {
	r := thriftReader{b: w.object[w.at:w.end]}
	h.read(&r)
	w.unknown += r.unknown
	switch left := len(r.b) - r.at; {
	case r.err != nil:
		return h, nil, r.err
	case h.kind != format.DataPage && h.kind != format.DictionaryPage:
		return h, nil, fmt.Errorf("page of kind %v", h.kind)
	case h.compressed < 0 || int(h.compressed) > left:
		return h, nil, fmt.Errorf("page of %d bytes in %d", h.compressed, left)
	case h.size < 0 || h.size > maxPageSize || h.values < 0 || h.values > maxPageValues:
		return h, nil, fmt.Errorf("page of %d values in %d bytes", h.values, h.size)
	}
	w.at += int64(r.at) + int64(h.compressed)
	return h, r.b[r.at:][:h.compressed], nil
}

// checkPages goes through the pages of a chunk before parquet-go does, which
// allocates what headers and frames say, and for some codecs without an end.
// foreign says that parquet-go must: a [pageBody] does not know all of them.
func checkPages(object []byte, c *format.ColumnMetaData, l *leaf) (foreign bool, err error) {
	if c.Codec != format.Zstd && c.Codec != format.Uncompressed {
		return false, fmt.Errorf("codec %v", c.Codec)
	}
	values, foreign, err := checkWalk(walk(object, c), c.Codec, l)
	if err == nil && values != c.NumValues {
		err = fmt.Errorf("%d values in pages, %d in the footer", values, c.NumValues)
	}
	return foreign, err
}

// checkWalk goes through pages, and returns how many values those of data have.
func checkWalk(w pageWalk, codec format.CompressionCodec, l *leaf) (values int64, foreign bool, err error) {
	for w.more() {
		h, body, err := w.next()
		if err != nil {
			return 0, false, err
		}
		if size, ok := frameSize(body); codec == format.Zstd && ok && size != uint64(h.size) {
			return 0, false, fmt.Errorf("page of %d bytes in a frame of %d", h.size, size)
		}
		if h.kind == format.DataPage {
			values += int64(h.values)
		}
		foreign = foreign || h.foreign(body, codec, l)
	}
	return values, foreign, nil
}

// frameSize returns the size of the content that a zstd frame declares, if it
// does. Source: RFC 8878, section 3.1.1.1.
func frameSize(b []byte) (size uint64, ok bool) {
	if len(b) < 18 {
		b = append(b[:len(b):len(b)], make([]byte, 18)...) // the longest header, so that none ends early
	}
	descriptor := b[4]
	single := descriptor>>5&1 == 1
	at := 5 + []int{0, 1, 2, 4}[descriptor&3]
	if !single {
		at++ // the window
	}
	switch field := b[at:]; descriptor >> 6 {
	case 0:
		return uint64(field[0]), single
	case 1:
		return uint64(binary.LittleEndian.Uint16(field)) + 256, true
	case 2:
		return uint64(binary.LittleEndian.Uint32(field)), true
	default:
		return binary.LittleEndian.Uint64(field), true
	}
}
