package parquet

import (
	"encoding/binary"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// maxBound is the longest text that is kept as a bound, in bytes. Bounds are
// paid for twice in each object, and are there to find ids and names by.
const maxBound = 64

// unbounded reports whether a column has no bounds: sealed ones must not, and
// in a list nobody looks for any.
func (c *column) unbounded() bool { return c.sealed || c.kind == kindList }

// seal returns a copy of an object that parquet-go has written, with another
// end. meta is its footer and is changed.
//
//	pages | column indexes        | offset indexes | footer
//	pages | those that are wanted | offset indexes | new footer
//
// parquet-go writes a column index for every column. Where it was told to skip
// the bounds there stand empty ones, and to a reader that means that no value
// of the page is greater than "": Spark 4.1 answers no row to user_id = 'x'. An
// index that is not there is not trusted.
func seal(object []byte, meta *format.FileMetaData, metadata []byte) ([]byte, error) {
	sealed := make([]byte, 0, len(object)+len(metadata))
	sealed = append(sealed, object[:pagesEnd(object, meta)]...)
	sealed = moveIndexes(sealed, object, meta)
	slim(meta)
	if metadata != nil {
		meta.KeyValueMetadata = []format.KeyValue{{Key: metadataKey, Value: string(metadata)}}
	}
	sealed, err := appendFooter(sealed, meta)
	detach(meta)
	return sealed, err
}

// detach takes the names of columns out of a footer that the writer's next Reset
// will clear in place: they are the writer's own, and without this every object
// but its first would have columns without a name.
func detach(meta *format.FileMetaData) {
	for i := range meta.RowGroups {
		for j := range meta.RowGroups[i].Columns {
			meta.RowGroups[i].Columns[j].MetaData.PathInSchema = nil
		}
	}
}

// pagesEnd returns where the last page ends: where the first index begins, or
// the footer of an object without rows.
func pagesEnd(object []byte, meta *format.FileMetaData) int64 {
	if len(meta.RowGroups) > 0 {
		return meta.RowGroups[0].Columns[0].ColumnIndexOffset
	}
	return int64(len(magic))
}

// moveIndexes appends the indexes and writes down where they are now.
func moveIndexes(sealed, object []byte, meta *format.FileMetaData) []byte {
	for i := range meta.RowGroups {
		for j := range meta.RowGroups[i].Columns {
			c := &meta.RowGroups[i].Columns[j]
			from, n := c.ColumnIndexOffset, int64(c.ColumnIndexLength)
			if columns[j].unbounded() {
				c.ColumnIndexOffset, c.ColumnIndexLength = 0, 0
				continue
			}
			c.ColumnIndexOffset = int64(len(sealed))
			sealed = append(sealed, object[from:from+n]...)
		}
	}
	for i := range meta.RowGroups {
		for j := range meta.RowGroups[i].Columns {
			c := &meta.RowGroups[i].Columns[j]
			from, n := c.OffsetIndexOffset, int64(c.OffsetIndexLength)
			c.OffsetIndexOffset = int64(len(sealed))
			sealed = append(sealed, object[from:from+n]...)
		}
	}
	return sealed
}

// slim takes out of a footer what no reader needs: it is paid for with every 32
// rows. Long bounds go too.
func slim(meta *format.FileMetaData) {
	for i := range meta.RowGroups {
		for j := range meta.RowGroups[i].Columns {
			c := &meta.RowGroups[i].Columns[j].MetaData
			c.SizeStatistics = format.SizeStatistics{}
			c.EncodingStats = nil
			if len(c.Statistics.MinValue) > maxBound || len(c.Statistics.MaxValue) > maxBound {
				c.Statistics.MinValue, c.Statistics.MaxValue = nil, nil
			}
		}
	}
}

func appendFooter(object []byte, meta *format.FileMetaData) ([]byte, error) {
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
	if err != nil {
		return nil, err
	}
	object = append(slices.Grow(object, len(footer)+trailerSize), footer...)
	object = binary.LittleEndian.AppendUint32(object, uint32(len(footer)))
	return append(object, magic...), nil
}
