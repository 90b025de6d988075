package securitylake

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/ledgerlake/ledgerlake/export/event"
)

// pageBytes is the size of a page before it is compressed. The lake wants 1 MB,
// and row groups of at most 256 MB: an object has one.
const pageBytes = 1 << 20

// schema is the fields of OCSF 1.3 as columns: objects are structs, texts are
// strings, and so are objects of a producer. Every column may be null; structs
// never are.
var (
	columns = event.Columns(event.OCSF13)
	schema  = parquet.NewSchema("api_activity", group(columns, 0))
	places  = placesOf(schema)
)

// group returns the struct of columns that are all within one object, whose
// name is the part of their paths before depth.
func group(columns []event.Column, depth int) parquet.Group {
	g := parquet.Group{}
	for i := 0; i < len(columns); {
		name := columns[i].Path[depth]
		if len(columns[i].Path) == depth+1 {
			g[name] = leaf(columns[i].Type)
			i++
			continue
		}
		from := i
		for i < len(columns) && len(columns[i].Path) > depth+1 && columns[i].Path[depth] == name {
			i++
		}
		g[name] = group(columns[from:i], depth+1)
	}
	return g
}

func leaf(t event.AttributeType) parquet.Node {
	switch t {
	case event.IntAttribute:
		return parquet.Optional(parquet.Int(64))
	case event.BoolAttribute:
		return parquet.Optional(parquet.Leaf(parquet.BooleanType))
	case event.TextsAttribute:
		return parquet.Optional(parquet.List(parquet.String()))
	default:
		return parquet.Optional(parquet.String())
	}
}

// placesOf returns for each leaf of the schema, in its order, which of columns
// fills it.
func placesOf(s *parquet.Schema) []int {
	var places []int
	for _, path := range s.Columns() {
		name := strings.TrimSuffix(strings.Join(path, "."), ".list.element")
		at := slices.IndexFunc(columns, func(c event.Column) bool { return strings.Join(c.Path, ".") == name })
		if at < 0 {
			panic("securitylake: no column " + name)
		}
		places = append(places, at)
	}
	return places
}

// Encode returns events as one Parquet object, rows in the order of their times:
// one row group, compressed by zstd. Equal events give equal bytes.
func Encode(events []*event.Event, o event.EncoderOptions) ([]byte, error) {
	e, err := event.NewEncoder(event.OCSF13, o)
	if err != nil {
		return nil, err
	}
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b *event.Event) int { return a.Time.Compare(b.Time) })
	var b bytes.Buffer
	w := parquet.NewWriter(&b, schema, parquet.Compression(&parquet.Zstd), parquet.PageBufferSize(pageBytes),
		parquet.DataPageVersion(1), parquet.MaxRowsPerRowGroup(int64(len(events))+1), parquet.CreatedBy("ledgerlake", o.Version, ""))
	var row parquet.Row
	for _, ev := range events {
		row = appendRow(row[:0], e.Values(ev))
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			return nil, fmt.Errorf("event %s as Parquet: %w", ev.ID, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("as Parquet: %w", err)
	}
	return b.Bytes(), nil
}

// appendRow appends the values of one event in the order of the schema.
func appendRow(row parquet.Row, values []event.Value) parquet.Row {
	for column, at := range places {
		v := &values[at]
		switch {
		case !v.Valid:
			row = append(row, parquet.NullValue().Level(0, 0, column))
		case columns[at].Type == event.TextsAttribute:
			row = appendTexts(row, v.Texts, column)
		default:
			row = append(row, valueOf(v, columns[at].Type).Level(0, 1, column))
		}
	}
	return row
}

// appendTexts appends a list that is not null. An empty one ends one level
// before its elements.
func appendTexts(row parquet.Row, texts []string, column int) parquet.Row {
	if len(texts) == 0 {
		return append(row, parquet.NullValue().Level(0, 1, column))
	}
	for i, s := range texts {
		row = append(row, parquet.ByteArrayValue([]byte(strings.ToValidUTF8(s, "\ufffd"))).Level(min(i, 1), 2, column))
	}
	return row
}

func valueOf(v *event.Value, t event.AttributeType) parquet.Value {
	switch t {
	case event.IntAttribute:
		return parquet.Int64Value(v.Int)
	case event.BoolAttribute:
		return parquet.BooleanValue(v.Bool)
	default:
		return parquet.ByteArrayValue([]byte(strings.ToValidUTF8(v.Text, "\ufffd"))) // others refuse what is no UTF-8
	}
}
