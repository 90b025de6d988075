//go:build it

package it

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/internal/workload"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// How many good records go round, and how many of them are asked for one by one.
const (
	roundRecords = 100_000
	roundSample  = 200
)

// A place is where Kafka has a record.
type place struct {
	topic     string
	partition int32
	offset    int64
}

// A sentRecord is what a producer sent.
type sentRecord struct {
	value  []byte
	id     string // its recordId, "" if it has none
	broken bool
}

// What producers send comes back value for value, whatever its kind, from segments
// and from data files: through Kafka, ingest, the bucket and the binary that exports.
// Members that were null may be missing, and no others; numbers are compared as
// decimals, strings character by character. The prompts of all are retained.
func TestExportedRecordsAreWhatWasSent(t *testing.T) {
	s := embedded(t).newStream(t, "round")
	ingest := s.ingest(t, "--retain-prompts", "*", "--anchor-every", "2s")
	sent := s.sendRound(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := s.group.WaitDrained(ctx, func() error { return nil }, audit.ControlTopic); err != nil {
		t.Fatal(err)
	}
	s.finish(t, ingest)

	s.requireRound(t, sent)
	if out, err := s.run(t, "ledgerlake-compact", "once", "--brokers", s.brokers, "--bucket", s.url(), "--compact.assign", "all"); err != nil {
		t.Fatalf("compact: %v\n%s", err, tail(out))
	}
	if files, err := filepath.Glob(filepath.Join(s.archive().Dir, "data", "*", "*", "*.parquet")); len(files) < tenants || err != nil {
		t.Errorf("%d data files, %v", len(files), err)
	}
	s.requireRound(t, sent)
	s.requireSample(t, sent)
}

// run runs a binary to its end.
func (s *stream) run(t *testing.T, binary string, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), parts.Binary(binary), args...)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// sendRound sends records of all kinds, and returns them by their places.
func (s *stream) sendRound(t *testing.T) map[place]*sentRecord {
	t.Helper()
	sent := make(map[place]*sentRecord, roundRecords+roundRecords/50)
	var first error
	produce := func(topic string, r workload.Record) {
		out := &kgo.Record{Topic: topic, Key: r.Key, Value: r.Value, Timestamp: r.Time}
		for _, h := range r.Headers {
			out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
		}
		s.client.Produce(t.Context(), out, func(k *kgo.Record, err error) {
			if err != nil {
				first = err // promises run one after the other
			}
			var id struct{ RecordID string }
			if r.Class != workload.Broken {
				first = cmpErr(first, json.Unmarshal(r.Value, &id))
			}
			sent[place{k.Topic, k.Partition, k.Offset}] = &sentRecord{r.Value, id.RecordID, r.Class == workload.Broken}
		})
	}
	g := workload.New(11, tenants)
	g.Broken, g.Start = 0.01, time.Now().Add(-time.Hour)
	for good := 0; good < roundRecords; {
		r := g.Next()
		if r.Class != workload.Broken {
			good++
		}
		produce(s.topic, r)
	}
	for i, c := range controls {
		value := fmt.Sprintf(`{"recordId":"01KRNR3ZG0C0NTR0R%09d", "tenantId":"tenant-of-nobody","createdAt":"2026-05-15T12:00:00.000Z",%s}`, i, c.members)
		produce(audit.ControlTopic, workload.Record{Key: []byte("tenant-of-nobody"), Value: []byte(value), Time: time.Now(), Headers: []workload.Header{{Name: audit.HeaderKind, Value: []byte(c.kind)}}})
	}
	if err := s.client.Flush(t.Context()); err != nil || first != nil {
		t.Fatal(err, first)
	}
	return sent
}

func cmpErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// controls are control records of each kind, of a tenant that has nothing else.
var controls = []struct{ kind, members string }{
	{"redaction", `"target":{"turnId":"t"},"slots":"*","user":false,"hard":false,"reason":"é\u00e9","requestRef":null,"by":"dpo","more":[1.10, 1e2]`},
	{"redaction-cancelled", `"redactionId":"01KRNR3ZG0C0NTR0R000000000","reason":"no","by":"dpo"`},
	{"erasure-done", `"redactionId":"01KRNR3ZG0C0NTR0R000000009","slots":"*","user":false,"hard":false,"reason":"r","requestRef":null,"part":1,"parts":1,"erased":[],"deleted":[],"outOfReach":[]`},
	{"retention-cut", `"topic":"x","topicId":"AAAAAAAAAAAAAAAAAAAAAA","partition":0,"size":0,"head":"","frontier":[],"policy":"p"`},
	{"legal-hold", `"scope":{"tenant":true},"set":true,"reason":"case 7","by":"counsel"`},
}

// requireRound exports everything, and holds each row against what was sent.
func (s *stream) requireRound(t *testing.T, sent map[place]*sentRecord) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cmd := exec.CommandContext(ctx, parts.Binary("ledgerlake-export"), "range", "--from", "2000-01-01", s.url())
	cmd.Env = s.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	seen, kinds := map[place]bool{}, map[string]int{}
	lines := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		at, kind := requireLine(t, line, sent)
		if seen[at] {
			t.Fatalf("%v is there twice", at)
		}
		seen[at] = true
		kinds[kind]++
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("export: %v\n%s", err, tail(stderr.String()))
	}
	if len(seen) != len(sent) {
		t.Fatalf("%d rows of %d records", len(seen), len(sent))
	}
	t.Logf("%d rows in %.1fs: %v", len(seen), time.Since(began).Seconds(), kinds)
	if kinds["gap"] > 0 || len(kinds) != 16 {
		t.Errorf("kinds %v, want 10 of producers, 5 of control, and rejected", kinds)
	}
}

// requireLine holds one exported line against what was sent to its place.
func requireLine(t *testing.T, line []byte, sent map[place]*sentRecord) (at place, kind string) {
	t.Helper()
	got, _ := value(t, line).(map[string]any)
	l, _ := got["$ledgerlake"].(map[string]any)
	delete(got, "$ledgerlake")
	if l == nil || l["verified"] != true {
		t.Fatalf("not verified, or not ours: %.2000s", line)
	}
	at = place{l["topic"].(string), int32(whole(t, l["partition"])), whole(t, l["offset"])}
	kind = l["kind"].(string)
	want := sent[at]
	switch {
	case want == nil:
		t.Fatalf("nothing was sent to %v: %.2000s", at, line)
	case want.broken != (kind == "rejected"):
		t.Fatalf("%v is a row of kind %s: %.2000s", at, kind, want.value)
	case want.broken:
		if raw := rawOf(t, got["raw"]); !bytes.Equal(raw, want.value) {
			t.Fatalf("%v: raw is %.2000q, sent %.2000q", at, raw, want.value)
		}
		return at, kind
	}
	if diff := difference(value(t, want.value), got, ""); diff != "" {
		t.Fatalf("%v: %s\nsent %.4000s\ngot  %.4000s", at, diff, want.value, line)
	}
	return at, kind
}

func rawOf(t *testing.T, raw any) []byte {
	t.Helper()
	switch raw := raw.(type) {
	case string:
		return []byte(raw)
	case map[string]any:
		b, err := base64.StdEncoding.DecodeString(raw["base64"].(string))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	return nil
}

// requireSample asks for single records, by their ids and bare.
func (s *stream) requireSample(t *testing.T, sent map[place]*sentRecord) {
	t.Helper()
	var all []place
	for at, r := range sent {
		if r.id != "" && !r.broken {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, func(a, b place) int { return strings.Compare(sent[a].id, sent[b].id) })
	rng := rand.New(rand.NewPCG(5, 5))
	for range roundSample {
		r := sent[all[rng.IntN(len(all))]]
		cmd := exec.CommandContext(t.Context(), parts.Binary("ledgerlake-export"), "record", "--bare", strings.ToUpper(r.id), s.archive().Dir)
		cmd.Env = s.env
		var told strings.Builder
		cmd.Stderr = &told
		out, err := cmd.Output()
		if err != nil || bytes.Count(out, []byte("\n")) != 1 {
			t.Fatalf("record %s: %v\n%s%s", r.id, err, out, &told)
		}
		if diff := difference(value(t, r.value), value(t, out), ""); diff != "" {
			t.Fatalf("record %s: %s\nsent %s\ngot  %s", r.id, diff, r.value, out)
		}
	}
}

// value reads JSON; numbers are exact fractions.
func value(t *testing.T, text []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %.2000s", err, text)
	}
	return v
}

func whole(t *testing.T, v any) int64 {
	t.Helper()
	n, err := v.(json.Number).Int64()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// difference says where what came back is not what was sent: "" if it is, but for
// members that were null.
func difference(sent, got any, path string) string {
	switch want := sent.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is no object", path)
		}
		for name, v := range want {
			g, there := have[name]
			if !there && v == nil {
				continue
			}
			if !there {
				return fmt.Sprintf("%s.%s is missing", path, name)
			}
			if d := difference(v, g, path+"."+name); d != "" {
				return d
			}
		}
		for name := range have {
			if _, there := want[name]; !there {
				return fmt.Sprintf("%s.%s was not sent", path, name)
			}
		}
		return ""
	case []any:
		have, ok := got.([]any)
		if !ok || len(have) != len(want) {
			return fmt.Sprintf("%s has another length", path)
		}
		for i := range want {
			if d := difference(want[i], have[i], fmt.Sprintf("%s[%d]", path, i)); d != "" {
				return d
			}
		}
		return ""
	case json.Number:
		have, ok := got.(json.Number)
		if ok && sameNumber(string(want), string(have)) {
			return ""
		}
	default:
		if reflect.DeepEqual(sent, got) {
			return ""
		}
	}
	return fmt.Sprintf("%s is %v, sent %v", path, got, sent)
}

// sameNumber compares decimals exactly.
func sameNumber(a, b string) bool {
	x, ok := new(big.Rat).SetString(a)
	y, also := new(big.Rat).SetString(b)
	return ok && also && x.Cmp(y) == 0
}
