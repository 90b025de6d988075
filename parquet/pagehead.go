package parquet

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go/format"
)

// The tags of the fields of a page header, in Thrift's compact protocol: by how
// much the id grows, and the type.
const (
	tagI32        = 1<<4 | thriftI32
	tagDataHeader = 2<<4 | thriftStruct // 5, after 3
	tagDictHeader = 4<<4 | thriftStruct // 7, after 3
)

// append appends the header of a data page of version 1 or of a dictionary. It
// has no statistics and no checksum: objects are known by their hashes.
func (h *pageHeader) append(b []byte) []byte {
	b = appendI32s(b, int32(h.kind), h.size, h.compressed)
	if h.kind == format.DictionaryPage {
		b = append(b, tagDictHeader)
		b = appendI32s(b, h.values, int32(h.encoding))
	} else {
		b = append(b, tagDataHeader)
		b = appendI32s(b, h.values, int32(h.encoding), int32(format.RLE), int32(format.RLE))
	}
	return append(b, thriftStop, thriftStop)
}

// appendI32s appends fields 1, 2, … of a struct.
func appendI32s(b []byte, all ...int32) []byte {
	for _, n := range all {
		b = binary.AppendVarint(append(b, tagI32), int64(n))
	}
	return b
}
