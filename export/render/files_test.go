package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/parquet"
	"github.com/ledgerlake/ledgerlake/proof"
)

// A shelf has the files of a set.
type shelf struct {
	t     *testing.T
	files []*bytes.Buffer
	open  bool
}

func (s *shelf) create(n int) (io.WriteCloser, error) {
	if s.open || n != len(s.files)+1 {
		s.t.Errorf("file %d is begun behind %d, one is open: %v", n, len(s.files), s.open)
	}
	s.open = true
	s.files = append(s.files, new(bytes.Buffer))
	return shelved{s.files[n-1], s}, nil
}

type shelved struct {
	io.Writer
	s *shelf
}

func (f shelved) Close() error { f.s.open = false; return nil }

func set(t *testing.T, f Format, o Options, rows ...*export.Row) *shelf {
	t.Helper()
	s := &shelf{t: t}
	w, err := NewSet(f, s.create, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || s.open {
		t.Fatal(err, s.open)
	}
	return s
}

// Chained files are one chain, and each is one alone; whoever drops, swaps or
// changes a line, or takes a file away, is found by the check that knows nothing of
// exports.
func TestChainedFiles(t *testing.T) {
	rows, _ := generated(t, 1500)
	for _, key := range [][]byte{nil, []byte("of the files")} {
		for _, bare := range []bool{false, true} {
			s := set(t, Chained, Options{Key: key, Bare: bare, FileBytes: 200_000}, rows...)
			var checked []*proof.JSONLFile
			lines := int64(0)
			for i, f := range s.files {
				if f.Len() > 200_000 {
					t.Errorf("file %d has %d bytes", i+1, f.Len())
				}
				c := checkFile(t, f.Bytes(), key)
				if !c.OK {
					t.Fatalf("file %d: %s", i+1, *c.Error)
				}
				lines += c.LineCount
				checked = append(checked, c)
			}
			if want := int64(len(rows) + 2*(len(s.files)-1)); lines != want || len(s.files) < 3 {
				t.Errorf("%d lines in %d files, want %d", lines, len(s.files), want)
			}
			resets := int64(0)
			for _, r := range rows {
				if r.Kind.S == audit.KindSourceChainReset {
					resets++
				}
			}
			if set := proof.CheckJSONLSet(checked, key != nil); !set.Set.OK || set.Set.ChainResetCount != resets || (set.Exit != 0) != (resets > 0) {
				t.Errorf("set: %+v, exit %d, looks %q", set.Set, set.Exit, set.Looks)
			}
			if set := proof.CheckJSONLSet(append(checked[:1:1], checked[2:]...), key != nil); set.Set.OK {
				t.Error("a file is missing, and the set is whole")
			}
			text := s.files[1].Bytes()
			if c := checkFile(t, text, append([]byte("not "), key...)); c.OK {
				t.Error("another key is good")
			}
			for name, change := range map[string]func(l []string) []string{
				"dropped": func(l []string) []string { return append(l[:9:9], l[10:]...) },
				"swapped": func(l []string) []string { l[9], l[10] = l[10], l[9]; return l },
				"changed": func(l []string) []string { l[9] = strings.Replace(l[9], `{"`, `{"x":1,"`, 1); return l },
			} {
				changed := strings.Join(change(strings.SplitAfter(string(text), "\n")), "")
				if c := checkFile(t, []byte(changed), key); c.OK || !strings.Contains(*c.Error, "line 10:") {
					t.Errorf("%s: %+v", name, c.JSONLReport)
				}
			}
		}
	}
}

func checkFile(t *testing.T, text, key []byte) *proof.JSONLFile {
	t.Helper()
	c, err := proof.CheckJSONL("x", bytes.NewReader(text), key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A line that is longer than a file may be has a file for itself.
func TestALineLongerThanAFile(t *testing.T) {
	l := newLogbook(t)
	long := l.value(call(strings.Repeat("x", 5000)))
	s := set(t, Chained, Options{FileBytes: 4000}, l.value(call("m")), long, long, l.value(call("m")))
	var checked []*proof.JSONLFile
	for i, want := range []int64{2, 3, 3, 2} {
		if i >= len(s.files) {
			t.Fatalf("%d files", len(s.files))
		}
		c := checkFile(t, s.files[i].Bytes(), nil)
		if !c.OK || c.LineCount != want {
			t.Errorf("file %d: %+v", i+1, c.JSONLReport)
		}
		checked = append(checked, c)
	}
	if set := proof.CheckJSONLSet(checked, false); len(s.files) != 4 || set.Exit != 0 {
		t.Errorf("%d files, exit %d", len(s.files), set.Exit)
	}
}

// What links an entry in the log that it comes from is kept beside the new link,
// and its own rotations do not end our files.
func TestChainedEntries(t *testing.T) {
	l := newLogbook(t)
	entry := func(kind, rest string) *export.Row {
		return l.value(`{"seq":7,"ts":"2026-05-15T12:00:00.000Z","kind":"` + kind + `","traceId":"t","prevHash":"aa","hash":"bb","$x":1` + rest + `}`)
	}
	rows := []*export.Row{entry("RotationAnchor", ""), entry("LlmRequest", `,"args":{"hash":"cc"}`), entry(`Rotation\u004darker`, ""), l.erase(entry("ToolCall", ""), chain.Sentinel{All: true}), entry("RotationMarker", "")}
	text := written(t, Chained, Options{}, rows...)
	c := checkFile(t, text, nil)
	if s := proof.CheckJSONLSet([]*proof.JSONLFile{c}, false); s.Exit != 0 || len(c.Notes) > 0 || c.LineCount != 5 {
		t.Errorf("exit %d, %q, %+v\n%s", s.Exit, c.Notes, c.JSONLReport, text)
	}
	lines := strings.Split(string(text), "\n")
	for i, want := range []string{`"source":{"kind":"RotationAnchor","prevHash":"aa","hash":"bb"}}`, `"kind":"LlmRequest"`, `"source":{"kind":"Rotation\u004darker","prevHash":"aa","hash":"bb"}}`, `"$redaction":{"redacted":true`} {
		if !strings.Contains(lines[i], want) || strings.Count(lines[i], `"prevHash"`) > 3 {
			t.Errorf("no %s in %s", want, lines[i])
		}
	}
	if !strings.Contains(lines[1], `"args":{"hash":"cc"},"$$x":1,"$ledgerlake"`) && !strings.Contains(lines[1], `"$$x":1,"args":{"hash":"cc"},"$ledgerlake"`) {
		t.Errorf("members: %s", lines[1])
	}
	var o map[string]json.RawMessage
	if err := json.Unmarshal([]byte(lines[2]), &o); err != nil || string(o["kind"]) != `"source-rotation"` {
		t.Errorf("%v, kind %s", err, o["kind"])
	}
	if bare := string(written(t, Chained, Options{Bare: true}, rows...)); strings.Contains(bare, "$$") || strings.Contains(bare, `"aa"`) || strings.Contains(bare, "$ledgerlake") {
		t.Errorf("bare: %s", bare)
	}
}

// Lines are sealed as the check's own function seals them.
func TestChainedLinesAreSealed(t *testing.T) {
	rows, _ := generated(t, 20)
	for _, key := range [][]byte{nil, {1, 2}} {
		for line := range strings.Lines(string(written(t, Chained, Options{Key: key}, rows...))) {
			line = strings.TrimSuffix(line, "\n")
			at := strings.LastIndex(line, `"hash":"`) + len(`"hash":"`)
			sealed, err := proof.SealJSONL([]byte(line[:at]+`"}`), key)
			if err != nil || string(sealed) != line {
				t.Fatalf("%v\n%s\n%s", err, sealed, line)
			}
		}
	}
}

// Parquet files have the rows as data files would: they decode to the same rows,
// and their hashes are right.
func TestParquetFiles(t *testing.T) {
	rows, _ := generated(t, 3000)
	s := set(t, Parquet, Options{FileBytes: 300_000}, rows...)
	if len(s.files) < 2 {
		t.Errorf("%d files", len(s.files))
	}
	h, n := chain.NewHasher(nil), 0
	for _, f := range s.files {
		if err := parquet.CheckLayout(f.Bytes()); err != nil {
			t.Error(err)
		}
		for _, got := range decodeParquet(t, f.Bytes()) {
			if d := audit.FirstDifference(&got.Record, &rows[n].Record); d != "" || got.RowHash != rows[n].RowHash || h.Check(got) != nil {
				t.Fatalf("row %d differs in %q, %v", n, d, h.Check(got))
			}
			n++
		}
	}
	if n != len(rows) {
		t.Errorf("%d rows of %d", n, len(rows))
	}
	if s = set(t, Parquet, Options{}); len(s.files) != 1 || len(decodeParquet(t, s.files[0].Bytes())) != 0 {
		t.Errorf("without rows there are %d files", len(s.files))
	}
}

func decodeParquet(t *testing.T, object []byte) (rows []*chain.Row) {
	t.Helper()
	f, err := parquet.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	for row, err := range f.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		r := *row
		rows = append(rows, &r)
	}
	return rows
}

// An answer without rows is a good file in every format, and a writer that fails
// is not passed over in silence.
func TestNoRowsAndBadWriters(t *testing.T) {
	for _, f := range Formats {
		if s := set(t, f, Options{}); len(s.files) != 1 {
			t.Errorf("%s: %d files", f, len(s.files))
		}
		row := newLogbook(t).value(call("m"))
		w, err := New(f, failing{}, Options{})
		if err == nil {
			err = errors.Join(w.Write(row), w.Close())
		}
		if !errors.Is(err, io.ErrShortBuffer) {
			t.Errorf("%s: %v", f, err)
		}
		w, err = NewSet(f, func(int) (io.WriteCloser, error) { return nil, io.ErrShortBuffer }, Options{})
		if err == nil {
			err = errors.Join(w.Write(row), w.Close())
		}
		if !errors.Is(err, io.ErrShortBuffer) {
			t.Errorf("%s without a file: %v", f, err)
		}
	}
	if FileName("a/rows.parquet", 1) != "a/rows.parquet" || FileName("a/rows.parquet", 2) != "a/rows.2.parquet" || FileName("rows", 3) != "rows.3" {
		t.Error("names of files")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortBuffer }

// The largest records that ingest takes, made of what needs the most escapes, are
// lines that both checks read.
func TestTheLargestRecords(t *testing.T) {
	l := newLogbook(t)
	full := strings.Replace(call("m"), `"later":{"x":[1.10]}`, `"later":"`, 1)
	full = full[:len(full)-1] + strings.Repeat("\u009b", (audit.MaxValueBytes-len(full)-2)/2) + `"}`
	newlines := strings.Replace(call("m"), `"userId":"user-8841"`, `"userId":"`+strings.Repeat(`\n`, 1<<20)+`"`, 1)
	header := audit.MessageHeader{Name: "x", Value: bytes.Repeat([]byte{1}, audit.MaxValueBytes-64)}
	rows := []*export.Row{l.value(full, header), l.value(newlines), l.value(strings.Repeat("\x01", audit.MaxValueBytes)), l.value(strings.Repeat("\xff", 1<<20))}
	for i, want := range []string{audit.KindCall, audit.KindCall, audit.KindRejected, audit.KindRejected} {
		if rows[i].Kind.S != want {
			t.Fatalf("row %d is %s: %s", i, rows[i].Kind.S, rows[i].Slots[audit.SlotContext])
		}
	}
	text := written(t, Chained, Options{}, rows...)
	if c := checkFile(t, text, nil); !c.OK || c.LineCount != 4 {
		t.Errorf("%+v", *c.Error)
	}
	if r := checkLines(t, CheckOptions{}, []string{string(text)}); !r.OK {
		t.Errorf("%v", r.Faults[0])
	}
	for line := range bytes.Lines(text) {
		if len(line) > MaxLine || !json.Valid(line) {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}
