package render

import (
	"bytes"
	gocsv "encoding/csv"
	"errors"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/export"
)

// hostile are texts of cells that spreadsheets, or readers that split lines, take
// for something else.
var hostile = []string{
	"=cmd|' /C calc'!A0", "+1", "-5", "@x", "\t=1", "\r=1", "\n=1", `say "hi"`, "two\nlines", "two\r\nlines", "a\u2028b", "a;b", "a,b", " =1", "'=1", "''", "＝1+1", "", `""`, `"`, "plain ", "é", "\x00", "-", "NULL",
}

// No cell of text can be taken for a formula, each comes back once the guard is
// taken away, a record is a row whatever is in it, and numbers are as they were.
func TestCSVIsSafeAndReversible(t *testing.T) {
	l := newLogbook(t)
	var rows []*export.Row
	for _, text := range hostile {
		rows = append(rows, l.value(call(text)))
	}
	records := readCSV(t, written(t, CSV, Options{}, rows...))
	if len(records) != len(rows)+1 {
		t.Fatalf("%d records of %d rows", len(records), len(rows))
	}
	at := map[string]int{}
	for i, name := range records[0] {
		at[name] = i
	}
	for i, text := range hostile {
		cell := records[i+1][at["model_id"]]
		if strings.IndexAny(cell, "=+-@\t\r\n＝") == 0 {
			t.Errorf("%q is the cell %q", text, cell)
		}
		// encoding/csv reads CR LF within quotes as LF.
		if got := strings.TrimPrefix(cell, "'"); got != strings.ReplaceAll(text, "\r\n", "\n") {
			t.Errorf("%q comes back as %q", text, got)
		}
		for name, want := range map[string]string{"latency_us": "-5000", "latency_ms": "-5", "created_at": "2026-05-15T12:00:00.123Z", "decision": `{"requestedModel":"m"}`, "requested_model": "m", "seq": string(rune('0' + i%10)), "tool_name": "", "verified": "true"} {
			if got := records[i+1][at[name]]; got != want && (name != "seq" || !strings.HasSuffix(got, want)) {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	}
}

// A line of CSV, byte for byte.
func TestCSVBytes(t *testing.T) {
	l := newLogbook(t)
	row := l.value(call("=1\r\n\"x\""))
	row.Gated = []string{"A", "B"}
	empty := l.value(call(""))
	got := string(written(t, CSV, Options{Columns: []string{"seq", "model_id", "tool_name", "latency_us", "outcome_why", "gated"}}, row, empty))
	const want = "seq,model_id,tool_name,latency_us,outcome_why,gated\r\n" + `0,"'=1` + "\r\n" + `""x""",,-5000,"{""a"":1}",A B` + "\r\n" + `1,"",,-5000,"{""a"":1}",` + "\r\n"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := string(written(t, CSV, Options{Columns: []string{"raw"}}, l.value("\xff"), l.value("=x"))); got != "raw\r\n\"{\"\"base64\"\":\"\"/w==\"\"}\"\r\n'=x\r\n" {
		t.Errorf("raw: %q", got)
	}
}

// Columns are those of the format, without salts, and names that are none are
// refused before anything is written.
func TestColumns(t *testing.T) {
	names := Columns()
	for _, c := range audit.Header {
		if indexOf(c.Name) < 0 {
			t.Errorf("no column %s", c.Name)
		}
	}
	for _, name := range names {
		if strings.Contains(name, "salt") || name == "residual" {
			t.Errorf("a column %s", name)
		}
	}
	for _, bad := range [][]string{{}, {"nothing"}, {"seq", "seq"}, {""}, {"row_salt"}} {
		for _, f := range []Format{CSV, Table} {
			var b bytes.Buffer
			if _, err := New(f, &b, Options{Columns: bad}); !errors.Is(err, ErrColumn) || b.Len() > 0 {
				t.Errorf("%s of %q: %v, %q", f, bad, err, b.Bytes())
			}
		}
	}
	if _, err := New("xlsx", nil, Options{}); !errors.Is(err, ErrFormat) {
		t.Error(err)
	}
}

func readCSV(t *testing.T, text []byte) [][]string {
	t.Helper()
	r := gocsv.NewReader(bytes.NewReader(text))
	records, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func FuzzCSV(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := &csv{}
		value := []byte(text)
		if guarded(value) {
			value = append([]byte{guard}, value...)
		}
		c.cell(0, []byte("x"), true)
		c.cell(1, value, true)
		c.cell(2, nil, false)
		records := readCSV(t, append(c.buf, "\r\n"...))
		if len(records) != 1 || len(records[0]) != 3 || strings.TrimPrefix(records[0][1], "'") != strings.ReplaceAll(text, "\r\n", "\n") {
			t.Fatalf("%q is %q", text, records)
		}
	})
}
