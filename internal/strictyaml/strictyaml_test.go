package strictyaml_test

import (
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/internal/strictyaml"
)

// read reads a file of one list, of members with texts.
func read(text string) error {
	top, some, err := strictyaml.Document([]byte(text))
	if err != nil || !some {
		return err
	}
	members, err := top.Members("all")
	if err != nil {
		return err
	}
	list, err := members[0].Value.List("things")
	if err != nil {
		return err
	}
	for _, n := range list {
		of, err := n.Members()
		if err != nil {
			return err
		}
		for _, m := range of {
			if _, err := m.Value.Text("a text"); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestWhatIsPlainIsRead(t *testing.T) {
	for _, text := range []string{"", "# nothing", "null", "all: []", "all: [{a: x}]", "all:\n- a: 010\n  b: 1e3\n- c: true"} {
		if err := read(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// An error says where.
func TestAllElseIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"{":                        "not YAML",
		"all: []\n---\nall: []":    "more than one document",
		"- 1":                      "the file (line 1): want members",
		"\nother: []":              "other (line 2): no such member: want all",
		"all: []\nall: []":         "all",
		"all: x":                   "all (line 1): want a list of things",
		"all: !!seq []":            "all (line 1): want a list",
		"all: &a []":               "all (line 1): want a list",
		"all:\n- x":                "all.1 (line 2): want members",
		"all:\n- {a: x}\n- {a: }":  "all.2.a (line 3): no value: want a text",
		"all:\n- {a: ''}":          "all.1.a (line 2): no value",
		"all:\n- {a: !!str 1}":     "all.1.a (line 2): no value",
		"all:\n- {a: &x 1, b: *x}": "all.1.a (line 2): no value",
		"all:\n- {1: x}":           `all.1 (line 2): "1" is no name`,
		"all:\n- {a: x, a: y}":     "a",
	} {
		if err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
}
