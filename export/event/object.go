package event

import (
	"strconv"

	"github.com/ledgerlake/ledgerlake/audit"
)

// An object appends the members of JSON objects, one by one, within each other.
type object struct {
	dst   []byte
	first bool // no member of the innermost object was written yet
}

func (o *object) open() {
	o.dst = append(o.dst, '{')
	o.first = true
}

func (o *object) close() {
	o.dst = append(o.dst, '}')
	o.first = false
}

// name begins a member. Names are our own, and plain.
func (o *object) name(name string) {
	if !o.first {
		o.dst = append(o.dst, ',')
	}
	o.first = false
	o.dst = append(append(append(o.dst, '"'), name...), '"', ':')
}

func (o *object) object(name string) {
	o.name(name)
	o.open()
}

func (o *object) str(name, s string) {
	o.name(name)
	o.dst = appendString(o.dst, s)
}

func (o *object) int(name string, n int64) {
	o.name(name)
	o.dst = strconv.AppendInt(o.dst, n, 10)
}

// raw appends a member whose value is JSON of a producer.
func (o *object) raw(name string, text []byte) {
	o.name(name)
	o.dst = appendRaw(o.dst, text)
}

// text appends a member unless t is null.
func (o *object) text(name string, t audit.Text) {
	if t.Valid {
		o.str(name, t.S)
	}
}

// number appends a member unless n is null.
func (o *object) number(name string, n audit.Int) {
	if n.Valid {
		o.int(name, n.N)
	}
}
