package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/knadh/koanf/v2"
)

// Whatever bytes stand in the file: it gives values of settings that exist, or
// an error of one line that names the file.
func FuzzFile(f *testing.F) {
	for _, s := range []string{
		"batch: {rows: 32}", "topics: [a, b]", "a: &x b\nc: *x", "? [a]\n: b", "---\n---\n", "<<: {group: a}", "group: !!binary aGk=",
		"batch:\n  rows: 1\n  rows: 2", "group: |\n  a\n  b\n", "\xff", "kafka: {sasl: {password: x}}", "# nothing", "group: ~",
	} {
		f.Add([]byte(s))
	}
	var s Ingest
	l := loader{merged: koanf.New("."), settings: WithSecretFiles(flatten(s.Sections()))}
	f.Fuzz(func(t *testing.T, body []byte) {
		k := koanf.New(".")
		err := k.Load(&file{path: "l.yaml", body: body, loader: &l}, nil)
		if err != nil {
			var fault *Error
			if !errors.As(err, &fault) || !strings.Contains(err.Error(), "file l.yaml") || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %q", err)
			}
			return
		}
		for name, value := range k.All() {
			if _, empty := value.(map[string]any); empty {
				continue
			}
			if _, known := l.find(name); !known {
				t.Errorf("%q is no setting", name)
			}
			if _, ok := value.(given); !ok {
				t.Errorf("%q holds a %T", name, value)
			}
		}
	})
}

// The nearest name is the one that is fewest edits away, and none where a
// third of the letters would have to change.
func TestNearest(t *testing.T) {
	names := []string{"batch.rows", "batch.age", "brokers", "group"}
	for misspelt, want := range map[string]string{
		"batch.row": "batch.rows", "batchrows": "batch.rows", "brokers ": "brokers", "broker": "brokers", "batch.aeg": "batch.age", "zzzz": "", "": "",
	} {
		if got, _ := nearest(misspelt, names); got != want {
			t.Errorf("nearest(%q) = %q, want %q", misspelt, got, want)
		}
	}
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"abc", "abc", 0}} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
