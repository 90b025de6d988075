//go:build it

package schemas

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/sink/securitylake"
	"github.com/ledgerlake/ledgerlake/export/sink/securitylake/laketest"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// lake returns a folder with what a Security Lake got of events, and the events.
func lake(t *testing.T) (string, []*event.Event) {
	t.Helper()
	bucket := &laketest.Bucket{}
	s, err := securitylake.New(securitylake.Options{Bucket: bucket, Source: "ledgerlake", Region: "eu-central-1", Account: "123456789012"})
	if err != nil {
		t.Fatal(err)
	}
	events := eventtest.Events(8, count)
	var batch []sink.Message
	for i, ev := range events {
		moved := *ev
		moved.Time = events[0].Time.Add(time.Duration(i) * time.Minute)
		events[i] = &moved
		batch = append(batch, sink.Message{Event: &moved})
	}
	for len(batch) > 0 {
		n := min(1000, len(batch))
		if result := s.Deliver(context.Background(), batch[:n]); !result.Done() {
			t.Fatalf("%+v", result.Verdicts[0])
		}
		batch = batch[n:]
	}
	folder := t.TempDir()
	for key, body := range bucket.Objects() {
		name := filepath.Join(folder, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder, events
}

// DuckDB finds every row of a lake by its partitions, with the chain that a
// receiver checks gaps by; pyarrow reads every row, and each is what the schema
// of OCSF 1.3 allows.
func TestLakeIsReadByOthers(t *testing.T) {
	folder, events := lake(t)
	rows, seqs, verified := 0, int64(0), 0
	for _, ev := range events {
		if ev.IsRow() {
			rows++
			seqs += ev.Seq
			if ev.Verified {
				verified++
			}
		}
	}
	want := fmt.Sprint([][]any{{fmt.Sprint(len(events)), fmt.Sprint(rows), fmt.Sprint(seqs), fmt.Sprint(verified), "eu-central-1", "123456789012"}})
	sql := fmt.Sprintf(`select count(*), count(metadata.sequence), sum(metadata.sequence), count(*) filter (unmapped.verified),
		any_value(region), any_value(accountId) from read_parquet('%s/ext/ledgerlake/**/*.parquet', hive_partitioning = true, hive_types = {'accountId': varchar, 'eventDay': varchar})
		where strftime(make_timestamp(time * 1000), '%%Y%%m%%d') = eventDay`, folder)
	for _, d := range parts.DuckDBs() {
		got, err := d.Query(sql)
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("DuckDB %s: %v, %v, want %s", d.Version, got, err, want)
		}
	}
	done := run(t, parts.Python("LEDGERLAKE_IT_SCHEMAS", "schemas"), filepath.Join(parts.Root(), "it", "python", "lake.py"), folder)
	if done["rows"] != len(events) || done["days"] < 3 {
		t.Errorf("pyarrow: %v of %d events", done, len(events))
	}
}
