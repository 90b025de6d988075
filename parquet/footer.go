package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const magic = "PAR1"

// trailerSize is the size of what follows a footer: its length and the magic.
const trailerSize = 8

// maxFooter bounds a footer: one of ours has about 10 KiB for each row group. It is
// read into memory before anything is known of the object.
const maxFooter = 64 << 20

// splitFooter returns the bytes of the footer of an object of size bytes, of
// which tail are the last ones.
func splitFooter(tail []byte, size int64) ([]byte, error) {
	if size < int64(len(magic))+trailerSize || int64(len(tail)) > size {
		return nil, fmt.Errorf("%d bytes cannot be an object", size)
	}
	if len(tail) < trailerSize {
		return nil, &ShortTailError{Need: trailerSize}
	}
	trailer := tail[len(tail)-trailerSize:]
	if string(trailer[4:]) != magic {
		return nil, errors.New("no magic at the end")
	}
	need := int64(binary.LittleEndian.Uint32(trailer)) + trailerSize
	if need > maxFooter {
		return nil, fmt.Errorf("footer of %d bytes: more than %d", need-trailerSize, maxFooter)
	}
	if need+int64(len(magic)) > size {
		return nil, fmt.Errorf("footer of %d bytes in an object of %d", need-trailerSize, size)
	}
	if int64(len(tail)) < need {
		return nil, &ShortTailError{Need: need}
	}
	return tail[int64(len(tail))-need : len(tail)-trailerSize], nil
}

// readFooter decodes a footer, which must fill b.
func readFooter(b []byte) (*format.FileMetaData, error) {
	// parquet-go allocates what the length of a list says. After this scan no
	// list is longer than the bytes that are there.
	r := thriftReader{b: b}
	r.skip(thriftStruct, false, maxThriftDepth)
	if err := r.whole(); err != nil {
		return nil, fmt.Errorf("footer: %w", err)
	}
	meta, own := readOwn(b)
	if !own {
		var err error
		if meta, err = reflectFooter(b); err != nil {
			return nil, fmt.Errorf("footer: %w", err)
		}
	}
	if meta.NumRows < 0 {
		return nil, fmt.Errorf("%d rows", meta.NumRows)
	}
	return meta, nil
}

// reflectFooter decodes any footer.
func reflectFooter(b []byte) (*format.FileMetaData, error) {
	meta := new(format.FileMetaData)
	return meta, thrift.Unmarshal(new(thrift.CompactProtocol), b, meta)
}

// document returns the value of our key, and whether it is there. Two of them
// are a fault, for two readers could take one each.
func document(meta *format.FileMetaData) (value string, ok bool, err error) {
	for _, kv := range meta.KeyValueMetadata {
		if kv.Key != metadataKey {
			continue
		}
		if ok {
			return "", false, fmt.Errorf("key %q is there twice", metadataKey)
		}
		value, ok = kv.Value, true
	}
	return value, ok, nil
}

// chunkStart returns where a chunk begins. Some writers leave the place of a
// dictionary behind that is not the chunk's.
func chunkStart(c *format.ColumnMetaData) int64 {
	if c.DictionaryPageOffset > 0 && c.DictionaryPageOffset < c.DataPageOffset {
		return c.DictionaryPageOffset
	}
	return c.DataPageOffset
}
