package parquet

import (
	"io"
	"slices"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// hashSize is the length of a hash in bytes.
const hashSize = 32

// schema is the schema that every object is written with.
var schema = pq.NewSchema("schema", newRecord())

// A record is the root of the schema. Unlike a parquet-go Group it keeps its
// columns in their order, which is the order that SELECT * shows.
type record struct {
	pq.Group
	fields []pq.Field
}

func newRecord() *record {
	r := &record{Group: pq.Group{}}
	for i := range columns {
		r.Group[columns[i].name] = columns[i].node()
	}
	r.fields = r.Group.Fields()
	slices.SortFunc(r.fields, func(a, b pq.Field) int { return columnByName[a.Name()] - columnByName[b.Name()] })
	return r
}

// Fields returns the columns in their order.
func (r *record) Fields() []pq.Field { return r.fields }

// node returns a column as parquet-go knows it.
func (c *column) node() pq.Node {
	n := c.kind.node()
	switch {
	case c.dict:
		n = pq.Encoded(n, &pq.RLEDictionary)
	case c.kind != kindList:
		n = pq.Encoded(n, &pq.Plain)
	}
	if !c.required {
		n = pq.Optional(n)
	}
	return n
}

func (k kind) node() pq.Node {
	switch k {
	case kindText:
		return pq.String()
	case kindBinary:
		return pq.Leaf(pq.ByteArrayType)
	case kindInt32:
		return pq.Leaf(bare{pq.Int32Type})
	case kindInt64:
		return pq.Leaf(bare{pq.Int64Type})
	case kindTime:
		return pq.Timestamp(pq.Microsecond)
	case kindHash:
		return pq.Leaf(pq.FixedLenByteArrayType(hashSize))
	default:
		return pq.List(pq.Optional(pq.Encoded(pq.String(), &pq.Plain)))
	}
}

// A bare type has no logical type: parquet-go would say of every integer that
// it is one.
type bare struct{ pq.Type }

// LogicalType returns nil.
func (bare) LogicalType() *format.LogicalType { return nil }

// ConvertedType returns nil.
func (bare) ConvertedType() *deprecated.ConvertedType { return nil }

// path returns the names that lead to a column's values.
func (c *column) path() []string {
	if c.kind == kindList {
		return []string{c.name, "list", "element"}
	}
	return []string{c.name}
}

// newWriter returns parquet-go's writer of the schema. This package writes pages
// itself; of parquet-go's objects it takes how the schema stands in a footer.
func newWriter(out io.Writer) *pq.GenericWriter[any] {
	return pq.NewGenericWriter[any](out, schema, pq.DataPageVersion(1), pq.DataPageStatistics(false))
}
