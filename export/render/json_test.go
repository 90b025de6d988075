package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
)

// No producer can write a member that is ours: names that begin with "$" have one
// more in front, whatever they are.
func TestNobodyForgesOurMembers(t *testing.T) {
	l := newLogbook(t)
	row := l.value(strings.Replace(call("m"), `{"recordId"`, `{"$ledgerlake":{"seq":9},"$redaction":{"redacted":true},"$$ledgerlake":1,"$prompts":2,"$alias":3,"\u0024key":4,"recordId"`, 1))
	var o map[string]json.RawMessage
	if err := json.Unmarshal(written(t, JSONL, Options{}, row), &o); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"$$ledgerlake": `{"seq":9}`, "$$redaction": `{"redacted":true}`, "$$$ledgerlake": "1", "$$prompts": "2", "$$alias": "3", "$$key": "4", "$redaction": ""} {
		if got := string(o[name]); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if !bytes.Contains(o["$ledgerlake"], []byte(`"seq":0,`)) {
		t.Errorf("$ledgerlake is %s", o["$ledgerlake"])
	}
	bare := written(t, JSONL, Options{Bare: true}, row)
	if err := json.Unmarshal(bare, &o); err != nil || string(o["$ledgerlake"]) != `{"seq":9}` {
		t.Errorf("bare: %s, %v", bare, err)
	}
}

// A line is a line for everything that splits lines, whatever is in it.
func TestOneLineARow(t *testing.T) {
	l := newLogbook(t)
	hostile := "a\r\n\u0085\u2028\u2029\x1b[2J\u009b2J\x7f\x00\v\f\x1c\u202e"
	rows := []*export.Row{l.value(strings.ReplaceAll(call(hostile), ",", ",\r\n")), l.value("\xff\n\x00"), l.value("[\n1]"), l.value(`"` + "\u2028" + `"`)}
	rows = append(rows, l.value(call("m"), audit.MessageHeader{Name: "x\u2028", Value: []byte(hostile)}))
	text := string(written(t, JSONL, Options{}, rows...))
	// What Python's str.splitlines takes for the end of a line.
	if n := len(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\r\n\v\f\x1c\x1d\x1e\u0085\u2028\u2029", r) })); n != len(rows) {
		t.Errorf("%d lines of %d rows:\n%q", n, len(rows), text)
	}
	if strings.ContainsAny(text, "\x1b\x7f\u009b\x00") {
		t.Errorf("a control character in %q", text)
	}
	var o struct {
		Call       struct{ Model string }
		LedgerLake struct {
			Headers [][]string
		} `json:"$ledgerlake"`
	}
	first, _, _ := strings.Cut(text, "\n")
	if err := json.Unmarshal([]byte(first), &o); err != nil || o.Call.Model != hostile {
		t.Errorf("the text comes back as %q, %v", o.Call.Model, err)
	}
	last := text[strings.LastIndex(strings.TrimSpace(text), "\n"):]
	if err := json.Unmarshal([]byte(last), &o); err != nil || o.LedgerLake.Headers[0][0] != "x\u2028" || o.LedgerLake.Headers[0][1] != hostile {
		t.Errorf("headers come back as %q, %v", o.LedgerLake, err)
	}
}

// What was erased is marked where it was, and what is left comes back.
func TestErasedRowsInJSON(t *testing.T) {
	l := newLogbook(t)
	row := l.value(call("m"))
	id := "01KRNR3ZG0RDER00000000000A"
	some := fmt.Sprintf(`{"redacted":true,"id":%q,"slots":["outcome_why","family_lock","plugin_payloads"],"user":true}`, id)
	for _, c := range []struct {
		name string
		s    chain.Sentinel
		want []string
		not  []string
	}{
		{"some slots and the user", chain.Sentinel{Slots: chain.SlotSetOf(audit.SlotOutcomeWhy, audit.SlotFamilyLock, audit.SlotPluginPayloads), User: true}, []string{
			`"outcome":{"latencyMs":-5,"why":` + some + `}`, `"pluginPayloads":` + some, `"principal":{"tenantId":"acme"}`, `"$redaction":` + some, `"later":{"x":[1.10]}`,
		}, []string{`"familyLock"`, "user-8841"}},
		{"all slots", chain.Sentinel{All: true}, []string{
			`"call":{"model":"m"}`, `"outcome":{"latencyMs":-5}`, `"userId":"user-8841"`, `"$redaction":{"redacted":true,"id":"` + id + `","slots":"*"}`,
		}, []string{`"decision"`, `"later"`, `"why"`}},
		{"hard", chain.Sentinel{All: true, User: true, Hard: true}, []string{
			`{"tenantId":"acme","$redaction":{"redacted":true,"id":"` + id + `","slots":"*","user":true,"hard":true},"$ledgerlake":{"tenant":"acme",`, `"seq":0,"kind":"call"`,
		}, []string{`"outcome"`, `"model"`}},
	} {
		got := written(t, JSONL, Options{}, l.erase(row, c.s))
		if !json.Valid(got) {
			t.Errorf("%s: %s", c.name, got)
		}
		for _, w := range c.want {
			if !bytes.Contains(got, []byte(w)) {
				t.Errorf("%s: no %s in %s", c.name, w, got)
			}
		}
		for _, n := range c.not {
			if bytes.Contains(got, []byte(n)) {
				t.Errorf("%s: %s in %s", c.name, n, got)
			}
		}
	}
}

// A row that restores to nothing is an error that names it, and no half line.
func TestARowThatIsNone(t *testing.T) {
	row := newLogbook(t).value(call("m"))
	row.Slots[audit.SlotExt] = []byte("{")
	dst, err := AppendJSON([]byte("x"), row, Options{})
	if err == nil || string(dst) != "x" || !strings.Contains(err.Error(), `"acme" in "audit.calls"/3, seq 0`) {
		t.Errorf("%q, %v", dst, err)
	}
}

// Bare lines are what was sent, value for value, for all that is not rejected.
func TestBareLinesAreWhatWasSent(t *testing.T) {
	rows, sent := generated(t, 2000)
	lines := bytes.Split(bytes.TrimSuffix(written(t, JSONL, Options{Bare: true}, rows...), []byte("\n")), []byte("\n"))
	if len(lines) != len(rows) {
		t.Fatalf("%d lines", len(lines))
	}
	rejected := 0
	for i, r := range rows {
		if r.Kind.S == audit.KindRejected {
			rejected++
			continue
		}
		if !reflect.DeepEqual(decode(t, lines[i]), decode(t, sent[i].Value)) {
			t.Fatalf("sent %s\ngot  %s", sent[i].Value, lines[i])
		}
	}
	if rejected == 0 || rejected > len(rows)/10 {
		t.Errorf("%d rejected", rejected)
	}
}

// decode returns a value without members that are null, numbers as exact
// fractions.
func decode(t testing.TB, text []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return dropNulls(v)
}

func dropNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if value == nil {
				delete(v, name)
			} else {
				v[name] = dropNulls(value)
			}
		}
	case []any:
		for i := range v {
			v[i] = dropNulls(v[i])
		}
	case json.Number:
		n, _ := new(big.Rat).SetString(string(v))
		return n.RatString()
	}
	return v
}

func BenchmarkJSONL(b *testing.B)   { benchmark(b, JSONL) }
func BenchmarkCSV(b *testing.B)     { benchmark(b, CSV) }
func BenchmarkChained(b *testing.B) { benchmark(b, Chained) }
func BenchmarkParquet(b *testing.B) { benchmark(b, Parquet) }

func benchmark(b *testing.B, f Format) {
	rows, _ := generated(b, 2000)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		written(b, f, Options{}, rows...)
		n += len(rows)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
}
