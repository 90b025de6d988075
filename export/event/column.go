package event

import "strings"

// A Column is one field of a format: where it stands, and what it holds.
type Column struct {
	Path   []string // names of objects within each other; of CEF and LEEF one key
	Type   AttributeType
	Source string // what fills it, as the mapping tables call it
	Limit  int    // of its text, in bytes; 0 is none
}

// Columns returns the fields of a format, in their order; none of a format that
// is not there. A format's events have no others, but within the record of our
// own JSON.
func Columns(f Format) []Column {
	var columns []Column
	for _, field := range fieldsOf(f) {
		c := Column{Path: strings.Split(field.path, "."), Source: field.says, Limit: max(field.limit, 0)}
		if f == CEF || f == LEEF {
			c.Path = []string{field.path}
		}
		switch field.typ {
		case numberValue:
			c.Type = IntAttribute
		case truthValue:
			c.Type = BoolAttribute
		case listValue:
			c.Type = TextsAttribute
		}
		columns = append(columns, c)
		if field.label != "" {
			columns = append(columns, Column{Path: []string{field.path + "Label"}, Source: "`\"" + field.label + "\"`", Limit: field.limit})
		}
	}
	return columns
}

func fieldsOf(f Format) []field {
	switch f {
	case JSON:
		return native.fields
	case OCSF18:
		return ocsf18.fields
	case OCSF13:
		return ocsf13.fields
	case ECS:
		return ecs.fields
	case CEF:
		return append(cef[:len(cef):len(cef)], lineCut)
	case LEEF:
		return append(leef[:len(leef):len(leef)], lineCut)
	}
	return nil
}

// A Value is what an event has in one of the [Columns] of a JSON format: of the
// column's type, or null.
type Value struct {
	Valid bool
	Text  string
	Int   int64
	Bool  bool
	Texts []string
}

// Values returns what an event has in each of the [Columns] of the encoder's
// format, which is one of JSON. Objects of a producer are texts. The slice is
// good until the next call.
func (e *Encoder) Values(ev *Event) []Value {
	t, v := tables[e.format], &e.view
	v.set(&e.o, ev)
	e.values = e.values[:0]
	for i := range t.fields {
		x := t.fields[i].get(v)
		if x.typ == none {
			e.values = append(e.values, Value{})
			continue
		}
		t.bound(&t.fields[i], &x, v)
		a := attribute(&t.fields[i], &x, false)
		e.values = append(e.values, Value{true, a.Text, a.Int, a.Bool, a.Texts})
	}
	return e.values
}

var tables = map[Format]*table{JSON: native, OCSF18: ocsf18, OCSF13: ocsf13, ECS: ecs}
