package event_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
)

// Values are what the JSON of the event has, column by column, each of the type
// that its column says: who writes columns writes the same as who writes JSON.
func TestValuesAreThoseOfTheJSON(t *testing.T) {
	events := eventtest.Events(9, 800)
	for _, f := range []event.Format{event.JSON, event.OCSF18, event.OCSF13, event.ECS} {
		e, columns, filled := encoder(t, f), event.Columns(f), map[int]bool{}
		for _, ev := range events {
			body, err := e.Append(nil, ev)
			if err != nil {
				t.Fatal(err)
			}
			d := json.NewDecoder(bytes.NewReader(body))
			d.UseNumber()
			var all any
			if err := d.Decode(&all); err != nil {
				t.Fatal(err)
			}
			values := e.Values(ev)
			if len(values) != len(columns) {
				t.Fatalf("%s: %d values of %d columns", f, len(values), len(columns))
			}
			for i, c := range columns {
				in, there := find(all, c.Path)
				if there != values[i].Valid || there && !same(in, &values[i], c.Type) {
					t.Fatalf("%s: %v of a %s is %.200v in JSON, and %.300v", f, c.Path, ev.Kind, in, values[i])
				}
				filled[i] = filled[i] || there
			}
		}
		for i, c := range columns {
			if !filled[i] {
				t.Errorf("%s: no event has %v", f, c.Path)
			}
		}
	}
}

func find(in any, path []string) (any, bool) {
	for _, name := range path {
		object, _ := in.(map[string]any)
		var ok bool
		if in, ok = object[name]; !ok {
			return nil, false
		}
	}
	return in, true
}

func same(in any, v *event.Value, typ event.AttributeType) bool {
	switch in := in.(type) {
	case json.Number:
		return typ == event.IntAttribute && in.String() == fmt.Sprint(v.Int)
	case bool:
		return typ == event.BoolAttribute && in == v.Bool
	case string:
		return typ == event.TextAttribute && in == string([]rune(v.Text))
	case []any:
		if typ == event.TextAttribute { // a list of a producer's, as JSON
			return json.Valid([]byte(v.Text))
		}
		texts := make([]any, 0, len(v.Texts))
		for _, s := range v.Texts {
			texts = append(texts, string([]rune(s)))
		}
		return typ == event.TextsAttribute && fmt.Sprint(in) == fmt.Sprint(texts)
	default:
		return typ == event.TextAttribute && json.Valid([]byte(v.Text))
	}
}
