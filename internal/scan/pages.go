package scan

import (
	"bytes"
	"fmt"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// checkPages goes through the pages of a Parquet object by their headers. Each of
// them must be plain, or indexes into a dictionary, and either not compressed or
// one of the frames that were decoded. Other objects have no pages.
func checkPages(object []byte, decoded map[int]bool) error {
	if !bytes.HasPrefix(object, []byte("PAR1")) || !bytes.HasSuffix(object, []byte("PAR1")) {
		return nil
	}
	f, err := pq.OpenFile(bytes.NewReader(object), int64(len(object)), pq.SkipPageIndex(true), pq.SkipBloomFilters(true))
	if err != nil {
		return err
	}
	for _, g := range f.Metadata().RowGroups {
		for _, c := range g.Columns {
			if err := checkChunk(object, &c.MetaData, decoded); err != nil {
				return fmt.Errorf("column %s: %w", c.MetaData.PathInSchema[0], err)
			}
		}
	}
	return nil
}

func checkChunk(object []byte, c *format.ColumnMetaData, decoded map[int]bool) error {
	start := c.DataPageOffset
	if c.DictionaryPageOffset > 0 {
		start = min(start, c.DictionaryPageOffset)
	}
	end := start + c.TotalCompressedSize
	for at := start; at < end; {
		r := bytes.NewReader(object[at:end])
		var h format.PageHeader
		if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(r)).Decode(&h); err != nil {
			return fmt.Errorf("page header at %d: %w", at, err)
		}
		at = end - int64(r.Len())
		if err := checkPage(&h, c, decoded[int(at)]); err != nil {
			return fmt.Errorf("page at %d: %w", at, err)
		}
		at += int64(h.CompressedPageSize)
	}
	return nil
}

// checkPage requires that no value of text or bytes can hide in a page.
func checkPage(h *format.PageHeader, c *format.ColumnMetaData, decoded bool) error {
	encoding := format.Plain
	switch h.Type {
	case format.DataPage:
		encoding = h.DataPageHeader.V.Encoding
	case format.DictionaryPage:
		encoding = h.DictionaryPageHeader.V.Encoding
	default:
		return fmt.Errorf("kind %v cannot be read", h.Type)
	}
	bytes := c.Type == format.ByteArray || c.Type == format.FixedLenByteArray
	if bytes && encoding != format.Plain && encoding != format.RLEDictionary && encoding != plainDictionary {
		return fmt.Errorf("encoding %v cannot be read", encoding)
	}
	if c.Codec == format.Uncompressed || c.Codec == format.Zstd && (decoded || h.CompressedPageSize == 0) {
		return nil
	}
	return fmt.Errorf("codec %v cannot be read", c.Codec)
}

// plainDictionary is what older writers call RLE_DICTIONARY.
const plainDictionary format.Encoding = 2
