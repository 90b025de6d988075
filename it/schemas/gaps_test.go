//go:build it

package schemas

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/sink/securitylake"
	"github.com/ledgerlake/ledgerlake/export/sink/securitylake/laketest"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// wholeCopy returns what a receiver has of two logs of 100 rows and a head each.
func wholeCopy() []*event.Event {
	var events []*event.Event
	for _, tenant := range []string{"acme", "beta"} {
		prev, h := chain.Hash{}, chain.NewHasher(nil)
		for seq := range int64(100) {
			row := &chain.Row{}
			row.TenantID, row.Topic, row.TopicID, row.Partition = audit.Str(tenant), audit.Str(eventtest.Line.Topic), audit.Str(eventtest.Line.TopicID), audit.I64(3)
			row.Seq, row.Epoch, row.Kind, row.ArchivedAt = audit.I64(seq), audit.I64(0), audit.Str(audit.KindCall), audit.I64(1778846400000000+seq)
			h.Stamp(row, prev, chain.Hash{byte(seq)})
			prev = row.RowHash
			events = append(events, event.NewRecord(eventtest.Line, row, true))
		}
		events = append(events, event.NewHead(eventtest.Line, tenant, event.Head{Size: 100, Hash: prev, Time: events[0].Time}))
	}
	return events
}

// queries returns the SQL of docs/export-gaps.md, in order, reading from folder.
func queries(t *testing.T, folder string) []string {
	t.Helper()
	all, err := parts.GapQueries(folder)
	if err != nil || len(all) < 3 {
		t.Fatalf("%d queries: %v", len(all), err)
	}
	return all
}

// received writes what a receiver has: a file of our JSON and a lake's objects.
func received(t *testing.T, events []*event.Event) string {
	t.Helper()
	folder := t.TempDir()
	e, err := event.NewEncoder(event.JSON, event.EncoderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []byte
	var batch []sink.Message
	for _, ev := range events {
		if lines, err = e.Append(lines, ev); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, '\n')
		batch = append(batch, sink.Message{Event: ev})
	}
	files := map[string][]byte{"a.jsonl": lines}
	bucket := &laketest.Bucket{}
	s, err := securitylake.New(securitylake.Options{Bucket: bucket, Source: "ledgerlake", Region: "eu-central-1", Account: "external"})
	if err != nil {
		t.Fatal(err)
	}
	if result := s.Deliver(context.Background(), batch); !result.Done() {
		t.Fatalf("%+v", result.Verdicts[0])
	}
	for key, body := range bucket.Objects() {
		files[key] = body
	}
	for name, body := range files {
		name = filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// The queries of docs/export-gaps.md find nothing in a copy that is whole,
// repeats or not, and name the places where one row is missing, two are
// swapped, one is another, or the tail is not there.
func TestGapQueriesNameThePlaces(t *testing.T) {
	const acme = "acme kTq3mZ8fQ0ObW1hVZyJxXA 3 "
	for _, c := range []struct {
		name   string
		change func(all []*event.Event) []*event.Event
		places []string
		whole  bool // the newest head is reached
	}{
		{"whole", func(all []*event.Event) []*event.Event { return all }, nil, true},
		{"repeats", func(all []*event.Event) []*event.Event { return append(all, all[10:30]...) }, nil, true},
		{"pointer", func(all []*event.Event) []*event.Event { all[10] = all[10].Pointer(); return all }, nil, true},
		{"begins later", func(all []*event.Event) []*event.Event { return all[40:] }, nil, true},
		{"row 50 is missing", func(all []*event.Event) []*event.Event { return append(all[:50:50], all[51:]...) }, []string{acme + "51 1 missing before it"}, true},
		{"60 and 61 are swapped", func(all []*event.Event) []*event.Event {
			a, b := *all[60], *all[61]
			all[60], all[61] = moved(&a, 61), moved(&b, 60)
			return all
		}, []string{acme + "60 does not continue the row before", acme + "61 does not continue the row before", acme + "62 does not continue the row before"}, true},
		{"row 70 is another", func(all []*event.Event) []*event.Event {
			row := *all[70].Row
			row.RowHash[0] ^= 1
			all[70] = event.NewRecord(all[70].Line, &row, true)
			return all
		}, []string{acme + "71 does not continue the row before"}, true},
		{"two rows of one seq", func(all []*event.Event) []*event.Event {
			row := *all[70].Row
			row.RowHash[0] ^= 1
			return append(all, event.NewRecord(all[70].Line, &row, true))
		}, []string{acme + "70 two rows*"}, true},
		{"the tail is missing", func(all []*event.Event) []*event.Event { return append(all[:90:90], all[100:]...) }, nil, false},
	} {
		folder := received(t, c.change(wholeCopy()))
		sql := queries(t, folder)
		for _, d := range parts.DuckDBs() {
			for _, at := range []int{0, 2} {
				if got := ask(t, d, sql[at]); !fits(got, c.places) {
					t.Errorf("%s: DuckDB %s, query %d: %q, want %q", c.name, d.Version, at, got, c.places)
				}
			}
			heads := strings.Join(ask(t, d, sql[1]), "\n")
			if want := fmt.Sprintf("%s100 %s\nbeta kTq3mZ8fQ0ObW1hVZyJxXA 3 100 True", acme, map[bool]string{true: "True", false: "False"}[c.whole]); heads != want {
				t.Errorf("%s: DuckDB %s: heads %q, want %q", c.name, d.Version, heads, want)
			}
		}
	}
}

// moved returns an event of a row as if it were of another place.
func moved(ev *event.Event, seq int64) *event.Event {
	row := *ev.Row
	row.Seq = audit.I64(seq)
	return event.NewRecord(ev.Line, &row, true)
}

func ask(t *testing.T, d *parts.DuckDB, sql string) []string {
	t.Helper()
	rows, err := d.Query(sql)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, row := range rows {
		lines = append(lines, strings.TrimSuffix(fmt.Sprintln(row...), "\n"))
	}
	return lines
}

// fits reports whether what was found is what is wanted; a * stands for
// whatever is said of the place, which may then be said in any order.
func fits(got, want []string) bool {
	if len(want) > 0 && strings.HasSuffix(want[0], "*") {
		for _, w := range want {
			if !strings.Contains(strings.Join(got, "\n"), strings.TrimSuffix(w, "*")) {
				return false
			}
		}
		return true
	}
	return fmt.Sprint(got) == fmt.Sprint(want)
}
