package audit_test

import (
	"reflect"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
)

// A change of any one field of a record is a difference, and names a column of
// its own. Null and empty are different.
func TestFirstDifference(t *testing.T) {
	if d := audit.FirstDifference(&audit.Record{}, &audit.Record{}); d != "" {
		t.Fatalf("equal records differ in %s", d)
	}
	seen := map[string]bool{}
	expect := func(r *audit.Record, what string) {
		t.Helper()
		d := audit.FirstDifference(&audit.Record{}, r)
		if d == "" || seen[d] || audit.FirstDifference(r, &audit.Record{}) != d {
			t.Errorf("%s: difference %q", what, d)
		}
		seen[d] = true
	}
	change := func(v reflect.Value, r *audit.Record, name string) {
		switch x := v.Addr().Interface().(type) {
		case *audit.Text:
			x.Valid = true
		case *audit.Int:
			x.Valid = true
		case *[]string:
			*x = []string{}
		case *[]byte:
			*x = []byte{}
		default:
			t.Fatalf("%s: no way to change a %s", name, v.Type())
		}
		expect(r, name)
	}
	fields := reflect.TypeFor[audit.Record]()
	for i := range fields.NumField() {
		switch f := fields.Field(i); f.Name {
		case "Slots":
			for s := range audit.NumSlots {
				r := &audit.Record{}
				change(reflect.ValueOf(r).Elem().Field(i).Index(int(s)), r, s.String())
			}
		case "Derived":
			for j := range f.Type.NumField() {
				r := &audit.Record{}
				change(reflect.ValueOf(r).Elem().Field(i).Field(j), r, f.Type.Field(j).Name)
			}
		default:
			r := &audit.Record{}
			change(reflect.ValueOf(r).Elem().Field(i), r, f.Name)
		}
	}
}
