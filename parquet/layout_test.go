package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// refuses requires that CheckLayout refuses an object, with some words.
func refuses(t *testing.T, object []byte, words string) {
	t.Helper()
	err := CheckLayout(object)
	if !errors.Is(err, ErrMalformed) {
		t.Fatalf("CheckLayout: %v, want ErrMalformed", err)
	}
	if !strings.Contains(err.Error(), words) {
		t.Errorf("CheckLayout: %v, want %q", err, words)
	}
}

func TestLayoutOfColumns(t *testing.T) {
	text, number := pq.Optional(pq.String()), pq.Optional(pq.Leaf(bare{pq.Int64Type}))
	for name, c := range map[string]struct {
		group pq.Group
		words string
	}{
		"one too many":               {with("password", text), "no column password"},
		"one too many, nested":       {with("a", pq.Group{"b": text}), "no column a.b"},
		"a slot is missing":          {with("prompts", nil), "no column prompts"},
		"a required one is missing":  {with("row_hash", nil), "no column row_hash"},
		"required where null may be": {with("turn_id", pq.String()), "REQUIRED, want OPTIONAL"},
		"null where it is required":  {with("seq", number), "OPTIONAL, want REQUIRED"},
		"text for a number":          {with("seq", pq.String()), "another type"},
		"wide for narrow":            {with("epoch", pq.Leaf(bare{pq.Int64Type})), "another type"},
		"unsigned":                   {with("latency_us", pq.Optional(pq.Uint(64))), "logical type"},
		"milliseconds":               {with("created_at", pq.Optional(pq.Timestamp(pq.Millisecond))), "logical type"},
		"local time":                 {with("created_at", pq.Optional(pq.TimestampAdjusted(pq.Microsecond, false))), "logical type"},
		"a plain number for a time":  {with("created_at", number), "logical type"},
		"binary for text":            {with("ext", pq.Optional(pq.Leaf(pq.ByteArrayType))), "logical type"},
		"JSON for text":              {with("ext", pq.Optional(pq.JSON())), "logical type"},
		"text for binary":            {with("raw", text), "logical type"},
		"a hash of 31 bytes":         {with("row_hash", pq.Leaf(pq.FixedLenByteArrayType(31))), "another type"},
		"a hash as binary":           {with("row_hash", pq.Leaf(pq.ByteArrayType)), "another type"},
		"one text for a list":        {with("fallback_chain", text), "another type"},
		"repeated for a list":        {with("fallback_chain", pq.Repeated(pq.String())), "another type"},
		"a required list":            {with("fallback_chain", pq.List(pq.Optional(pq.String()))), "levels"},
		"three levels, and no list":  {with("fallback_chain", pq.Optional(pq.Group{"list": pq.Repeated(pq.Group{"element": text})})), "not a list"},
		"a list of binary":           {with("fallback_chain", pq.Optional(pq.List(pq.Leaf(pq.ByteArrayType)))), "logical type"},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, foreign(t, nil, c.group), c.words) })
	}
}

// Sealed columns must not keep a value outside their pages, whoever wrote them.
func TestLayoutOfSealedColumns(t *testing.T) {
	rows, _ := tokenRows(4)
	for name, c := range map[string]struct {
		group   pq.Group
		options []pq.WriterOption
		words   string
	}{
		"bounds":                     {formatGroup(), nil, "sealed column in the footer"},
		"a dictionary on a slot":     {with("ext", pq.Optional(pq.Encoded(pq.String(), &pq.RLEDictionary))), sealing(), "dictionary of a sealed"},
		"a dictionary on user_id":    {with("user_id", pq.Optional(pq.Encoded(pq.String(), &pq.RLEDictionary))), sealing(), "dictionary of a sealed"},
		"a dictionary on a hash":     {with("prev_hash", pq.Encoded(pq.Leaf(pq.FixedLenByteArrayType(32)), &pq.RLEDictionary)), sealing(), "dictionary of a sealed"},
		"a bloom filter on a hash":   {formatGroup(), append(sealing(), pq.BloomFilters(pq.SplitBlockFilter(10, "row_hash"))), "bloom filter"},
		"a bloom filter on a slot":   {formatGroup(), append(sealing(), pq.BloomFilters(pq.SplitBlockFilter(10, "decision"))), "bloom filter"},
		"a bloom filter on residual": {formatGroup(), append(sealing(), pq.BloomFilters(pq.SplitBlockFilter(10, "residual"))), "bloom filter"},
		"delta lengths":              {with("turn_id", pq.Optional(pq.Encoded(pq.String(), &pq.DeltaLengthByteArray))), sealing(), "encoding DELTA_LENGTH_BYTE_ARRAY"},
		"delta texts in a slot":      {with("context", pq.Optional(pq.Encoded(pq.String(), &pq.DeltaByteArray))), sealing(), "encoding DELTA_BYTE_ARRAY"},
		"data pages of version 2":    {formatGroup(), append(sealing(), pq.DataPageVersion(2)), "DATA_PAGE_V2"},
		"snappy":                     {formatGroup(), append(sealing(), pq.Compression(&pq.Snappy)), "codec SNAPPY"},
		"a key of its own":           {formatGroup(), append(sealing(), pq.KeyValueMetadata("comment", "hello")), `key-value "comment"`},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, foreign(t, rows, c.group, c.options...), c.words) })
	}
}

// Bounds of one sealed column are found wherever they stand alone.
func TestLayoutFindsBoundsOfEachColumn(t *testing.T) {
	rows, _ := tokenRows(4)
	for i := range columns {
		c := &columns[i]
		if !c.sealed {
			continue
		}
		var options []pq.WriterOption
		for j := range columns {
			if columns[j].unbounded() && i != j {
				options = append(options, pq.SkipPageBounds(columns[j].path()...), pq.SkipPageStatistics(columns[j].path()...))
			}
		}
		object := foreign(t, rows, formatGroup(), options...)
		refuses(t, object, "column "+c.name+": statistics of a sealed column in the footer")

		// The same without the footer's, and then without the column index's.
		meta, before := footerOf(t, object)
		for j := range meta.RowGroups[0].Columns {
			meta.RowGroups[0].Columns[j].MetaData.Statistics = format.Statistics{}
		}
		refuses(t, reFooter(t, before, meta), "column "+c.name+": bounds of a sealed column in the column index")
	}
}

func TestLayoutFindsStatisticsInPageHeaders(t *testing.T) {
	rows, _ := tokenRows(4)
	var options []pq.WriterOption
	for i := range columns {
		if columns[i].unbounded() {
			options = append(options, pq.SkipPageBounds(columns[i].path()...))
		}
	}
	object := foreign(t, rows, formatGroup(), append(options, pq.DataPageStatistics(true))...)
	refuses(t, object, "sealed column in a page header")
}

// reFooter puts a footer behind the bytes of an object.
func reFooter(t testing.TB, before []byte, meta *format.FileMetaData) []byte {
	t.Helper()
	object, err := marshalFooter(bytes.Clone(before), meta)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// What lies between the parts, or in two of them, nobody has looked at.
func TestLayoutTiles(t *testing.T) {
	object := encode(t, turnRows(10_000), []byte("{}")) // seq has two pages, partition one
	if err := CheckLayout(object); err != nil {
		t.Fatal(err)
	}
	partition, seq := columnByName["partition"], columnByName["seq"]
	for name, c := range map[string]struct {
		change func(meta *format.FileMetaData, before []byte) []byte
		words  string
	}{
		"a byte before the footer": {func(_ *format.FileMetaData, b []byte) []byte { return append(b, 0) }, "parts end at"},
		"an index that is not listed": {func(m *format.FileMetaData, b []byte) []byte {
			c := &m.RowGroups[0].Columns[0]
			c.ColumnIndexOffset, c.ColumnIndexLength = 0, 0
			return b
		}, "was to follow"},
		"a chunk that begins late": {func(m *format.FileMetaData, b []byte) []byte {
			c := &m.RowGroups[0].Columns[3].MetaData
			h, _, err := (&pageWalk{object: b, at: c.DataPageOffset, end: c.DataPageOffset + c.TotalCompressedSize}).next()
			if err != nil {
				panic(err)
			}
			at := chunkPageEnd(b, c)
			c.NumValues -= int64(h.values)
			m.RowGroups[0].NumRows -= int64(h.values)
			m.NumRows -= int64(h.values)
			c.TotalCompressedSize -= at - c.DataPageOffset
			c.DataPageOffset = at
			return b
		}, "values in"},
		"two chunks in one place": {func(m *format.FileMetaData, b []byte) []byte {
			all := m.RowGroups[0].Columns
			a, c := &all[columnByName["prev_hash"]].MetaData, &all[columnByName["row_hash"]].MetaData
			c.DataPageOffset, c.TotalCompressedSize = a.DataPageOffset, a.TotalCompressedSize
			return b
		}, "offset index has page"},
		"a dictionary that is skipped": {func(m *format.FileMetaData, b []byte) []byte {
			c := &m.RowGroups[0].Columns[0].MetaData
			c.TotalCompressedSize -= c.DataPageOffset - c.DictionaryPageOffset
			c.DictionaryPageOffset = 0
			return b
		}, "was to follow"},
		"an offset index of more pages": {func(m *format.FileMetaData, b []byte) []byte {
			all := m.RowGroups[0].Columns
			all[partition].OffsetIndexOffset, all[partition].OffsetIndexLength = all[seq].OffsetIndexOffset, all[seq].OffsetIndexLength
			return b
		}, "offset index of 2 pages, there are 1"},
		"an offset index of fewer": {func(m *format.FileMetaData, b []byte) []byte {
			all := m.RowGroups[0].Columns
			all[seq].OffsetIndexOffset, all[seq].OffsetIndexLength = all[partition].OffsetIndexOffset, all[partition].OffsetIndexLength
			return b
		}, "offset index of 1 pages, there are 2"},
		"an offset index of other pages": {func(m *format.FileMetaData, b []byte) []byte {
			all := m.RowGroups[0].Columns
			all[seq].OffsetIndexOffset, all[seq].OffsetIndexLength = all[seq+1].OffsetIndexOffset, all[seq+1].OffsetIndexLength
			return b
		}, "offset index has page 0"},
		"a column index of more pages": {func(m *format.FileMetaData, b []byte) []byte {
			all := m.RowGroups[0].Columns
			all[partition].ColumnIndexOffset, all[partition].ColumnIndexLength = all[seq].ColumnIndexOffset, all[seq].ColumnIndexLength
			return b
		}, "column index of 2 pages, there are 1"},
		"a column index that is none": {func(m *format.FileMetaData, b []byte) []byte {
			m.RowGroups[0].Columns[seq].ColumnIndexLength--
			return b
		}, "column index: thrift"},
		"a column index beyond the end": {func(m *format.FileMetaData, b []byte) []byte {
			m.RowGroups[0].Columns[seq].ColumnIndexOffset = 1 << 40
			return b
		}, "column index: thrift"},
		"a dictionary in the middle": {func(m *format.FileMetaData, b []byte) []byte {
			all := m.RowGroups[0].Columns
			all[0].MetaData.TotalCompressedSize += all[1].MetaData.TotalCompressedSize
			return b
		}, "dictionary that is not the first page"},
		"key-values in a chunk": {func(m *format.FileMetaData, b []byte) []byte {
			m.RowGroups[0].Columns[5].MetaData.KeyValueMetadata = []format.KeyValue{{Key: "ledgerlake"}}
			return b
		}, "key-values of its own"},
		"a bloom filter that is not there": {func(m *format.FileMetaData, b []byte) []byte {
			m.RowGroups[0].Columns[columnByName["turn_id"]].MetaData.BloomFilterOffset = int64(len(b)) + 50
			return b
		}, "bloom filter"},
		"a distinct count": {func(m *format.FileMetaData, b []byte) []byte {
			m.RowGroups[0].Columns[columnByName["ext"]].MetaData.Statistics.DistinctCount = 3
			return b
		}, "statistics of a sealed"},
		"two documents": {func(m *format.FileMetaData, b []byte) []byte {
			m.KeyValueMetadata = append(m.KeyValueMetadata, m.KeyValueMetadata...)
			return b
		}, "twice"},
		"two of Arrow's": {func(m *format.FileMetaData, b []byte) []byte {
			m.KeyValueMetadata = []format.KeyValue{{Key: arrowSchemaKey}, {Key: arrowSchemaKey}}
			return b
		}, "key-value"},
		"a converted type that says otherwise": {func(m *format.FileMetaData, b []byte) []byte {
			m.Schema[1].ConvertedType.Set(deprecated.Json)
			return b
		}, "converted type"},
		"pages in another file": {func(m *format.FileMetaData, b []byte) []byte {
			m.RowGroups[0].Columns[0].FilePath = "elsewhere"
			return b
		}, "elsewhere"},
		"a chunk without a row": {func(m *format.FileMetaData, b []byte) []byte {
			m.RowGroups[0].NumRows--
			m.NumRows--
			return b
		}, "values in 9999 rows"},
	} {
		t.Run(name, func(t *testing.T) {
			meta, before := footerOf(t, object)
			before = c.change(meta, before)
			refuses(t, reFooter(t, before, meta), c.words)
		})
	}
}

// A bloom filter has the size that the footer says.
func TestLayoutOfBloomFilters(t *testing.T) {
	object := foreign(t, turnRows(50), formatGroup(), append(sealing(), pq.BloomFilters(pq.SplitBlockFilter(10, "turn_id")))...)
	for _, more := range []int32{-1, 1} {
		meta, before := footerOf(t, object)
		for j := range meta.RowGroups[0].Columns {
			if c := &meta.RowGroups[0].Columns[j].MetaData; c.BloomFilterOffset != 0 {
				c.BloomFilterLength += more
			}
		}
		refuses(t, reFooter(t, before, meta), "bloom filter of")
	}
}

// Page headers are what a reader allocates by, and where something could hide.
func TestLayoutOfPageHeaders(t *testing.T) {
	rows := turnRows(300)
	for i := range rows {
		rows[i].RepeatOf = audit.I64(int64(i)) // the last column: with 256 bytes and more, a frame says its size
	}
	object := goEncode(t, rows, nil) // whose page headers have the length that rePage makes
	if err := CheckLayout(rePage(t, object, func(*format.PageHeader) {}, nil)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*format.PageHeader)
		extra  []byte
		words  string
	}{
		"a field that nobody knows":     {extra: []byte{0x88, 4, 'h', 'i', 'd', 'e'}, words: "unknown field"},
		"another size than the frame's": {change: func(h *format.PageHeader) { h.UncompressedPageSize++ }, words: "in a frame of"},
		"a size beyond all":             {change: func(h *format.PageHeader) { h.UncompressedPageSize = math.MaxInt32 }, words: "page of 300 values in 2147483647 bytes"},
		"a negative size":               {change: func(h *format.PageHeader) { h.UncompressedPageSize = -1 }, words: "in -1 bytes"},
		"values beyond all":             {change: func(h *format.PageHeader) { h.DataPageHeader.V.NumValues = math.MaxInt32 }, words: "page of 2147483647 values"},
		"negative values":               {change: func(h *format.PageHeader) { h.DataPageHeader.V.NumValues = -3 }, words: "page of -3 values"},
		"fewer values":                  {change: func(h *format.PageHeader) { h.DataPageHeader.V.NumValues-- }, words: "299 values in pages, 300 in the footer"},
		"a body beyond the chunk":       {change: func(h *format.PageHeader) { h.CompressedPageSize += 9 }, words: "page of"},
		"a negative body":               {change: func(h *format.PageHeader) { h.CompressedPageSize = -1 }, words: "page of -1 bytes"},
		"an index page":                 {change: func(h *format.PageHeader) { h.Type = format.IndexPage }, words: "page of kind INDEX_PAGE"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := rePage(t, object, c.change, c.extra)
			refuses(t, changed, c.words)
			f, err := Open(changed)
			if err != nil {
				t.Fatal(err)
			}
			if err := lastError(f); c.extra == nil && !errors.Is(err, ErrMalformed) {
				t.Errorf("Rows: %v, want ErrMalformed", err)
			}
		})
	}
}

// rePage changes the header of the last page of an object, and puts extra bytes
// behind its last field. All that follows moves, but for what the chunk's own
// offset index says of the page.
func rePage(t *testing.T, object []byte, change func(*format.PageHeader), extra []byte) []byte {
	t.Helper()
	meta, before := footerOf(t, object)
	all := meta.RowGroups[0].Columns
	c := &all[len(all)-1].MetaData
	r := thrift.CompactProtocol{}
	reader := r.NewReaderFromBytes(before[c.DataPageOffset:])
	var h format.PageHeader
	if err := thrift.NewDecoder(reader).Decode(&h); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&h)
	}
	header, err := thrift.Marshal(&r, &h)
	if err != nil {
		t.Fatal(err)
	}
	header = slices.Concat(header[:len(header)-1], extra, []byte{thriftStop})
	more := int64(len(header) - reader.BytesRead())
	c.TotalCompressedSize += more
	for j := range all {
		if all[j].ColumnIndexOffset != 0 {
			all[j].ColumnIndexOffset += more
		}
		all[j].OffsetIndexOffset += more
	}
	return reFooter(t, slices.Concat(before[:c.DataPageOffset], header, before[c.DataPageOffset+int64(reader.BytesRead()):]), meta)
}

// chunkPageEnd returns where the first data page of a chunk ends.
func chunkPageEnd(object []byte, c *format.ColumnMetaData) int64 {
	w := pageWalk{object: object, at: c.DataPageOffset, end: c.DataPageOffset + c.TotalCompressedSize}
	if _, _, err := w.next(); err != nil {
		panic(err)
	}
	return w.at
}

// A footer that ends before its length says hides what comes after.
func TestLayoutOfTheFooter(t *testing.T) {
	object := encode(t, turnRows(3), nil)
	raw, err := splitFooter(object, int64(len(object)))
	if err != nil {
		t.Fatal(err)
	}
	longer := append(bytes.Clone(object[:len(object)-trailerSize]), "hidden"...)
	longer = binary.LittleEndian.AppendUint32(longer, uint32(len(raw)+6))
	refuses(t, append(longer, magic...), "after the end")

	refuses(t, append(bytes.Clone(object), 0), "no magic")
	refuses(t, object[1:], "no magic")
	refuses(t, nil, "no magic")
	refuses(t, []byte("PAR1PAR1"), "cannot be an object")
	refuses(t, []byte("PAR1\xff\xff\xff\xffPAR1"), "footer of")
}

// What the format leaves to the writer is no fault.
func TestLayoutLeavesAChoice(t *testing.T) {
	rows := newRowMaker(2).rows(300)
	for name, object := range layoutChoices(t, rows) {
		if err := CheckLayout(object); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := readAll(t, object); len(got) == len(rows) {
			sameRows(t, got, rows)
		}
	}
}

// layoutChoices are objects as the format lets them be, most of them of these rows.
func layoutChoices(t *testing.T, rows []chain.Row) map[string][]byte {
	dict := func(n pq.Node) pq.Node { return pq.Encoded(n, &pq.RLEDictionary) }
	return map[string][]byte{
		"columns in another order":           foreign(t, rows, formatGroup(), sealing()...),
		"dictionaries on numbers":            foreign(t, rows, with("seq", dict(pq.Leaf(bare{pq.Int64Type}))), sealing()...),
		"an integer that says it is one":     foreign(t, rows, with("seq", pq.Int(64)), sealing()...),
		"a narrow one that does":             foreign(t, rows, with("epoch", pq.Int(32)), sealing()...),
		"deltas on numbers":                  foreign(t, rows, with("seq", pq.Encoded(pq.Leaf(bare{pq.Int64Type}), &pq.DeltaBinaryPacked)), sealing()...),
		"split streams on hashes":            foreign(t, rows, with("row_hash", pq.Encoded(pq.Leaf(pq.FixedLenByteArrayType(32)), &pq.ByteStreamSplit)), sealing()...),
		"elements that cannot be null":       foreign(t, nil, with("fallback_chain", pq.Optional(pq.List(pq.String())))),
		"bloom filters on ids":               foreign(t, rows, formatGroup(), append(sealing(), pq.BloomFilters(pq.SplitBlockFilter(10, "turn_id"), pq.SplitBlockFilter(10, "user_id")))...),
		"statistics in other page headers":   foreign(t, rows, formatGroup(), append(sealing(), pq.DataPageStatistics(true))...),
		"a key-value of Arrow":               foreign(t, rows, formatGroup(), append(sealing(), pq.KeyValueMetadata(arrowSchemaKey, "base64"))...),
		"no rows":                            foreign(t, nil, formatGroup()),
		"pages of one row":                   foreign(t, rows, formatGroup(), append(sealing(), pq.PageBufferSize(1))...),
		"nothing compressed":                 foreign(t, rows, formatGroup(), append(sealing(), pq.Compression(&pq.Uncompressed))...),
		"row groups of other sizes, by us":   encode(t, largeRows(), nil),
		"rows of an archive, written anew":   encode(t, readAll(t, readGolden(t, "segment.parquet")), []byte("{}")),
		"no document":                        encode(t, rows, nil),
		"a document that is not even JSON":   encode(t, rows, []byte{0xFF, 0}),
		"an empty document":                  encode(t, nil, []byte{}),
		"one row with nothing but what must": encode(t, turnRows(1)[:1], nil),
	}
}

// largeRows makes rows of more than one row group.
func largeRows() []chain.Row {
	rows := turnRows(5)
	for i := range rows {
		rows[i].Slots[audit.SlotContext] = bytes.Repeat([]byte("x"), maxGroupBytes/2)
	}
	return rows
}
