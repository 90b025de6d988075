package parquet

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ledgerlake/ledgerlake/chain"
)

// A Match says which rows are meant: those for which every condition holds. One
// without conditions means every row.
//
// By the first condition rows are looked up, the others are then asked of the
// rows that were read: the condition that fewest rows fulfil belongs in front.
type Match []Cond

// A Cond is a condition on the value that a row has in a column. A null fulfils
// none but [Null].
type Cond struct {
	name   string
	column *column // nil: no such one
	texts  []string
	ints   []interval // ascending, and apart
	null   bool
}

// An interval is a stretch of numbers, both ends included.
type interval struct{ first, last int64 }

// Is is a condition on a column of text, which is one of the values.
func Is(column string, values ...string) Cond {
	c := condOn(column)
	if c.column != nil && c.column.text == nil {
		c.column = nil
	}
	c.texts = values
	return c
}

// Between is a condition on a column of numbers, or of times in microseconds:
// first ≤ value ≤ last.
func Between(column string, first, last int64) Cond {
	return numbers(column, interval{first, last})
}

// OneOf is a condition on a column of numbers, which is one of the values.
func OneOf(column string, values ...int64) Cond {
	all := make([]interval, len(values))
	for i, v := range values {
		all[i] = interval{v, v}
	}
	return numbers(column, all...)
}

// Null is a condition on a column of text or numbers, which is null.
func Null(column string) Cond {
	c := condOn(column)
	c.null = true
	return c
}

func numbers(column string, all ...interval) Cond {
	c := condOn(column)
	if c.column != nil && c.column.num == nil {
		c.column = nil
	}
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.first, b.first) })
	for _, i := range all {
		if i.first <= i.last {
			c.ints = append(c.ints, i)
		}
	}
	return c
}

func condOn(name string) Cond {
	c := Cond{name: name}
	if i, ok := columnByName[name]; ok && (columns[i].text != nil || columns[i].num != nil) {
		c.column = &columns[i]
	}
	return c
}

// check returns an error where the condition can be asked of no row.
func (c *Cond) check() error {
	if c.column == nil {
		return fmt.Errorf("no condition of this kind on a column %q", c.name)
	}
	return nil
}

// holds reports whether a row fulfils the condition.
func (c *Cond) holds(r *chain.Row) bool {
	if c.column.text != nil {
		t := c.column.text(r)
		return t.Valid && slices.Contains(c.texts, t.S) || !t.Valid && c.null
	}
	n := c.column.num(r)
	if !n.Valid {
		return c.null
	}
	at, ok := slices.BinarySearchFunc(c.ints, n.N, func(i interval, n int64) int { return cmp.Compare(i.first, n) })
	return ok || at > 0 && n.N <= c.ints[at-1].last
}

func (m Match) holds(r *chain.Row) bool {
	for i := range m {
		if !m[i].holds(r) {
			return false
		}
	}
	return true
}

// mayLie reports whether a value between two bounds, as they stand in a footer or
// an index, can fulfil the condition.
func (c *Cond) mayLie(low, high []byte) bool {
	if c.null {
		return false
	}
	if c.column.text != nil {
		return slices.ContainsFunc(c.texts, func(v string) bool {
			return bytes.Compare(low, []byte(v)) <= 0 && bytes.Compare([]byte(v), high) <= 0
		})
	}
	first, ok := c.column.number(low)
	last, fine := c.column.number(high)
	if !ok || !fine {
		return true // they are no bounds
	}
	return slices.ContainsFunc(c.ints, func(i interval) bool { return first <= i.last && i.first <= last })
}

// number reads a bound of a column of numbers.
func (c *column) number(b []byte) (n int64, ok bool) {
	switch {
	case len(b) != c.kind.size():
		return 0, false
	case c.kind == kindInt32:
		return int64(int32(binary.LittleEndian.Uint32(b))), true
	default:
		return int64(binary.LittleEndian.Uint64(b)), true
	}
}
