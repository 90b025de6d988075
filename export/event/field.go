package event

import (
	"fmt"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
)

// A source is where a field gets its value from, and what the mapping tables
// call that.
type source struct {
	says string
	get  func(v *view) value
}

// A field is one row of a format's mapping table.
type field struct {
	path string // of a member, names joined by "."; or a key
	source
	typ   valueType // numberValue, truthValue, listValue; none is a text
	limit int       // of its text, in bytes; 0 is the format's
	label string    // of a custom field of CEF
}

// refLimit is the length of the longest reference and name that is no row's, in
// bytes of JSON: a notice of one range is never longer than MaxPointer.
const refLimit = 256

// unlimited is the limit of a text that is never cut.
const unlimited = -1

// A table is the fields of a JSON format, in their order. Fields of one object
// stand together.
type table struct {
	fields []field
	parts  [][]string // of each path
	limit  int        // of every text, in bytes; 0 is none
	cut    string     // the path of the list of what was cut
}

// pointerLimit bounds every text of a pointer but the tenant's id, in bytes of
// JSON, so that the whole stays below MaxPointer.
const pointerLimit = 96

// MaxPointer is the length of the longest pointer in any format, in bytes,
// whatever its row has.
const MaxPointer = 7680

func newTable(limit int, cut string, fields []field) *table {
	t := &table{fields: fields, limit: limit, cut: cut}
	t.fields = append(t.fields, field{path: cut, source: cutSource, typ: listValue})
	for _, f := range t.fields {
		t.parts = append(t.parts, strings.Split(f.path, "."))
	}
	return t
}

// append appends an event by the table, as one JSON object.
func (t *table) append(dst []byte, v *view) []byte {
	o := object{dst: dst}
	o.open()
	var open []string // of the objects that we are in
	for i := range t.fields {
		x := t.fields[i].get(v)
		if x.typ == none {
			continue
		}
		t.bound(&t.fields[i], &x, v)
		parts := t.parts[i]
		in := parts[:len(parts)-1]
		same := 0
		for same < len(open) && same < len(in) && open[same] == in[same] {
			same++
		}
		for range open[same:] {
			o.close()
		}
		for _, name := range in[same:] {
			o.object(name)
		}
		open = in
		o.name(parts[len(parts)-1])
		o.dst = x.appendJSON(o.dst)
	}
	for range open {
		o.close()
	}
	o.close()
	return o.dst
}

// bound cuts a text that is longer than it may be, and notes that.
func (t *table) bound(f *field, x *value, v *view) {
	var was bool
	switch {
	case x.typ != textValue || f.limit == unlimited:
	case v.ev.Kind == KindPointer:
		x.s, was = fit(x.s, pointerLimit, appendInside)
	case f.limit > 0:
		x.s, was = fit(x.s, f.limit, appendInside)
	case t.limit > 0:
		x.s, was = cut(x.s, t.limit)
	}
	if was {
		v.cut = append(v.cut, f.path)
	}
}

var cutSource = source{"paths of the fields that were too long and are there in part", func(v *view) value {
	if len(v.cut) == 0 {
		return value{}
	}
	return listOf(v.cut...)
}}

// constant is a source that always says the same.
func constant(s string) source {
	return source{fmt.Sprintf("`%q`", s), func(*view) value { return textOf(s) }}
}

func constantNumber(n int64) source {
	return source{fmt.Sprintf("`%d`", n), func(*view) value { return numberOf(n) }}
}

// column is a header column, or user_id, as it is.
func column(name string) source {
	says := "`" + name + "`"
	if name == "user_id" {
		return source{says, func(v *view) value { return text(v.r.UserID) }}
	}
	for i := range audit.Header {
		c := &audit.Header[i]
		switch {
		case c.Name != name:
		case c.Text != nil:
			return source{says, func(v *view) value { return text(*c.Text(v.r)) }}
		default:
			return source{says, func(v *view) value { return number(*c.Int(v.r)) }}
		}
	}
	panic("event: no column " + name)
}

// scaled is a number, times or divided.
func scaled(s source, says string, f func(n int64) int64) source {
	return source{s.says + says, func(v *view) value {
		x := s.get(v)
		if x.typ == numberValue {
			x.n = f(x.n)
		}
		return x
	}}
}

// millis is a time or a duration in milliseconds, rounded down.
func millis(s source) source {
	return scaled(s, ", in milliseconds", func(n int64) int64 { return floor(n, 1000) })
}

func floor(n, by int64) int64 {
	if n < 0 {
		return -((-n + by - 1) / by)
	}
	return n / by
}

// nanos is a duration in nanoseconds; one that has no number there is left out.
func nanos(s source) source {
	return source{s.says + ", in nanoseconds", func(v *view) value {
		x := s.get(v)
		const most = 1<<63 - 1
		if x.typ != numberValue || x.n > most/1000 || x.n < -most/1000 {
			return value{}
		}
		return numberOf(x.n * 1000)
	}}
}

// date is a time column as RFC 3339 has it.
func date(s source) source {
	return source{s.says + ", RFC 3339", func(v *view) value {
		x := s.get(v)
		if x.typ != numberValue {
			return x
		}
		return moment(time.UnixMicro(x.n).UTC())
	}}
}

// slot is the content of a slot, as JSON.
func slot(s audit.Slot) source {
	return source{"slot `" + s.String() + "`, as it is", func(v *view) value {
		content := v.r.Slots[s]
		if content == nil || v.ev.Kind != KindRecord {
			return value{}
		}
		return value{typ: jsonValue, raw: appendRaw(nil, content)}
	}}
}

// asText is JSON as a string: what a producer wrote cannot become members there.
func asText(s source) source {
	return source{s.says + ", as a string", func(v *view) value {
		x := s.get(v)
		if x.typ != jsonValue {
			return x
		}
		return textOf(string(x.raw))
	}}
}

// within is a text that is left out where it is longer than a field may be.
func within(limit int, s source) source {
	return source{fmt.Sprintf("%s; left out where it has more than %d bytes", s.says, limit), func(v *view) value {
		x := s.get(v)
		if x.typ == textValue && len(x.s) > limit {
			return value{}
		}
		return x
	}}
}
