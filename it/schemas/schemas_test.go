//go:build it

// Package schemas has packages that are not ours check what goes to SIEMs:
// OCSF by its JSON schemas, ECS by its fields, CEF by a parser and a dictionary,
// OTLP by the names of the semantic conventions.
package schemas

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// count is how many events are checked, of every kind.
const count = 3000

// A fact says what an event is about, for who reads it in another form.
type fact struct {
	ID      string `json:"id"`
	Tenant  string `json:"tenant"`
	Seq     *int64 `json:"seq,omitempty"`
	RowHash string `json:"rowHash,omitempty"`
	User    string `json:"user,omitempty"`
}

// written returns a folder with events in every format, a line each, and
// facts.jsonl and keys.json beside them.
func written(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	events := eventtest.Events(7, count)
	put := func(name string, line func(ev *event.Event) any) {
		var b bytes.Buffer
		for _, ev := range events {
			body, ok := line(ev).([]byte)
			if !ok {
				body, _ = json.Marshal(line(ev))
			}
			b.Write(append(body, '\n'))
		}
		if err := os.WriteFile(filepath.Join(folder, name), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keys := map[event.Format][]string{}
	for _, f := range event.Formats {
		e, err := event.NewEncoder(f, event.EncoderOptions{ArchiveID: eventtest.ArchiveID, Version: "1.0"})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range event.Columns(f) {
			keys[f] = append(keys[f], strings.Join(c.Path, "."))
		}
		name := string(f) + ".jsonl"
		if e.IsText() {
			name = string(f) + ".txt"
		}
		put(name, func(ev *event.Event) any {
			body, err := e.Append(nil, ev)
			if err != nil {
				t.Fatal(err)
			}
			return body
		})
		if f == event.JSON {
			put("otlp.jsonl", func(ev *event.Event) any { return otlp(e.OTLP(ev)) })
		}
	}
	put("facts.jsonl", func(ev *event.Event) any {
		f := fact{ID: ev.ID, Tenant: ev.Tenant}
		if ev.Row != nil {
			f.Seq, f.RowHash = &ev.Seq, ev.ID
			f.User = string([]rune(ev.Row.UserID.S)) // each byte that is no UTF-8 is one U+FFFD
		}
		return f
	})
	body, _ := json.Marshal(keys)
	if err := os.WriteFile(filepath.Join(folder, "keys.json"), body, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

func otlp(l event.LogRecord) any {
	type attribute struct {
		Key string `json:"key"`
	}
	var record struct {
		Attributes []attribute `json:"attributes"`
	}
	for _, a := range l.Attributes {
		record.Attributes = append(record.Attributes, attribute{a.Key})
	}
	return record
}

// run runs a checker, which prints how much it checked.
func run(t *testing.T, program string, arguments ...string) map[string]int {
	t.Helper()
	cmd := exec.Command(program, arguments...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %.6000s", err, stderr.String())
	}
	var done map[string]int
	if err := json.Unmarshal(stdout.Bytes(), &done); err != nil {
		t.Fatalf("%v: %s", err, stdout.String())
	}
	return done
}

// Events of every kind, erased and hostile ones too, are what the schemas of
// OCSF, the dictionary and a parser of CEF, and the GenAI conventions allow.
func TestPublishedSchemasTakeEveryEvent(t *testing.T) {
	folder := written(t)
	done := run(t, parts.Python("LEDGERLAKE_IT_SCHEMAS", "schemas"), filepath.Join(parts.Root(), "it", "python", "schemas.py"), folder)
	for _, name := range []string{"ocsf-1.8", "ocsf-1.3", "cef"} {
		if done[name] < count {
			t.Errorf("%s: %d events were checked, %d were written", name, done[name], count)
		}
	}
	if done["otlp"] < 20 {
		t.Errorf("otlp: %d attributes", done["otlp"])
	}
}

// ECS has each field that stands outside of our own object, with the type and
// the values that it says; our own object has only the fields of the table.
func TestECSKnowsEveryField(t *testing.T) {
	folder := written(t)
	done := run(t, "node", filepath.Join(parts.Root(), "it", "schemas", "ecs.js"), filepath.Join(parts.Build(), "ecs"), folder)
	if done["ecs"] < count || done["fields"] < 30 {
		t.Errorf("%v of %d events were checked", done, count)
	}
}
