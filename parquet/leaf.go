package parquet

import (
	"errors"
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go/format"
)

// A leaf is a column of an object as its schema tells it.
type leaf struct {
	names  []string
	path   string // names joined by dots
	column int    // index into columns, or -1: not of this format
	node   format.SchemaElement
	around []format.SchemaElement // the groups around it, without the root
	maxDef byte
	maxRep byte
}

// leaves returns the leaves of a schema in order.
func leaves(schema []format.SchemaElement) ([]leaf, error) {
	if len(schema) == 0 || schema[0].Type.Valid {
		return nil, errors.New("schema without a root")
	}
	w := leafWalk{rest: schema[1:]}
	if err := w.children(schema[0].NumChildren.V, nil); err != nil {
		return nil, err
	}
	if len(w.rest) > 0 {
		return nil, fmt.Errorf("%d elements after the end of the schema", len(w.rest))
	}
	return w.found, nil
}

// A leafWalk goes through a schema, depth first.
type leafWalk struct {
	rest  []format.SchemaElement
	found []leaf
}

func (w *leafWalk) children(n int32, around []format.SchemaElement) error {
	if n < 0 || len(around) > maxThriftDepth {
		return fmt.Errorf("schema group of %d columns, %d deep", n, len(around))
	}
	for ; n > 0; n-- {
		if len(w.rest) == 0 {
			return errors.New("schema ends early")
		}
		node := w.rest[0]
		w.rest = w.rest[1:]
		if node.Type.Valid {
			w.found = append(w.found, newLeaf(node, around))
			continue
		}
		if err := w.children(node.NumChildren.V, append(around[:len(around):len(around)], node)); err != nil {
			return err
		}
	}
	return nil
}

func newLeaf(node format.SchemaElement, around []format.SchemaElement) leaf {
	l := leaf{node: node, around: around, column: -1}
	for _, e := range append(around[:len(around):len(around)], node) {
		l.names = append(l.names, e.Name)
		if e.RepetitionType.V != format.Required {
			l.maxDef++
		}
		if e.RepetitionType.V == format.Repeated {
			l.maxRep++
		}
	}
	l.path = strings.Join(l.names, ".")
	if i, ok := columnByName[l.names[0]]; ok && l.fits(&columns[i]) {
		l.column = i
	}
	return l
}

// known reports whether the leaf has the name of a column of the format.
func (l *leaf) known() bool {
	_, ok := columnByName[l.names[0]]
	return ok
}

// fits reports whether the leaf can be read as column c. It is the reader's
// tolerance; [CheckLayout] has none.
func (l *leaf) fits(c *column) bool {
	if l.node.Type.V != c.kind.physical() || c.kind == kindHash && l.node.TypeLength.V != hashSize {
		return false
	}
	if c.kind == kindList {
		return len(l.around) == 2 && l.maxRep == 1
	}
	return len(l.around) == 0 && l.maxRep == 0
}

func (k kind) physical() format.Type {
	switch k {
	case kindInt32:
		return format.Int32
	case kindInt64, kindTime:
		return format.Int64
	case kindHash:
		return format.FixedLenByteArray
	default:
		return format.ByteArray
	}
}
