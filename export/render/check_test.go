package render

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
)

func checkLines(t *testing.T, o CheckOptions, files ...[]string) *LinesReport {
	t.Helper()
	c := NewLineChecker(o)
	for i, lines := range files {
		if err := c.Read(fmt.Sprintf("rows.%d.jsonl", i+1), strings.NewReader(strings.Join(lines, ""))); err != nil {
			t.Fatal(err)
		}
	}
	return c.Report()
}

// linesOf returns the exported lines of n calls of one tenant.
func linesOf(t *testing.T, n int) []string {
	l := newLogbook(t)
	var rows []*export.Row
	for i := range n {
		rows = append(rows, l.value(strings.Replace(call(fmt.Sprint("m", i)), `"seqWithinTurn":3`, fmt.Sprintf(`"seqWithinTurn":%d`, i), 1)))
	}
	return strings.SplitAfter(strings.TrimSuffix(string(written(t, JSONL, Options{}, rows...)), "\n"), "\n")
}

// Whoever deletes a row of an export, swaps two, puts one in or changes one is
// found by the lines alone, and so is where.
func TestTheCheckNamesWhatWasDone(t *testing.T) {
	const n = 100
	for _, c := range []struct {
		name string
		do   func(lines []string) []string
		want []string // of each fault: what it says, in order
	}{
		{"nothing", func(l []string) []string { return l }, nil},
		{"row 50 deleted", func(l []string) []string { return slices.Delete(l, 50, 51) }, []string{`line 51: "acme" in "audit.calls"/3, seq 51: seq 50, in front of it, is missing`}},
		{"row 50 to 52 deleted", func(l []string) []string { return slices.Delete(l, 50, 53) }, []string{`line 51: "acme" in "audit.calls"/3, seq 53: seq 50 to 52, in front of it, are missing`}},
		{"rows 60 and 61 swapped", func(l []string) []string { l[60], l[61] = l[61], l[60]; return l }, []string{`line 62: "acme" in "audit.calls"/3, seq 60: it stands behind seq 61: it is out of order`}},
		{"row 50 deleted, 60 and 61 swapped", func(l []string) []string {
			l[60], l[61] = l[61], l[60]
			return slices.Delete(l, 50, 51)
		}, []string{`seq 50, in front of it, is missing`, `seq 60: it stands behind seq 61`}},
		{"rows 60 and 61 swapped, 60 another", func(l []string) []string {
			i := strings.Index(l[60], `"rowHash":"`) + len(`"rowHash":"`)
			l[60] = l[60][:i] + strings.Repeat("1", 64) + l[60][i+64:]
			l[60], l[61] = l[61], l[60]
			return l
		}, []string{`seq 60: it stands behind seq 61: it is out of order, and does not fit between its neighbours`, `seq 60: rowHash is`}},
		{"row 7 doubled later", func(l []string) []string { return slices.Insert(l, 20, l[7]) }, []string{`line 21: "acme" in "audit.calls"/3, seq 7: it stands behind seq 19`}},
		{"row 7 doubled", func(l []string) []string { return slices.Insert(l, 8, l[7]) }, nil},
		{"status changed", func(l []string) []string {
			l[9] = strings.Replace(l[9], `"latencyMs":-5`, `"latencyMs":5`, 1)
			return l
		}, []string{`line 10: "acme" in "audit.calls"/3, seq 9: rowHash is`}},
		{"seq and hash made up", func(l []string) []string {
			l[9] = strings.Replace(l[9], `"seq":9,`, `"seq":10,`, 1)
			return slices.Delete(l, 10, 11)
		}, []string{"rowHash is", "seq 9, in front of it, is missing", "prevHash is"}},
		{"member taken away", func(l []string) []string { l[9] = strings.Replace(l[9], `"turnId":"t",`, "", 1); return l }, []string{"what it says is no record: missing_field"}},
		{"line cut", func(l []string) []string { l[n-1] = l[n-1][:len(l[n-1])-5]; return l }, []string{"line 100: it does not end in a line feed"}},
		{"no JSON", func(l []string) []string { l[3] = l[3][:100] + "\n"; return l }, []string{"line 4: it is no exported row", "seq 3, in front of it, is missing"}},
		{"another $ledgerlake in front", func(l []string) []string {
			l[9] = strings.Replace(l[9], `"$ledgerlake":`, `"$ledgerlake":{"tenant":"evil"},"$ledgerlake":`, 1)
			return l
		}, []string{`line 10: "acme" in "audit.calls"/3, seq 9: it says "$ledgerlake" in two ways`}},
		{"$ledgerlake in other letters", func(l []string) []string {
			l[9] = strings.Replace(l[9], `"$ledgerlake":`, `"$\u017fource":1,"$\u212aey":1,"$ledgerLa\u212ae":`, 1)
			return l
		}, []string{"in two ways"}},
		{"another tenant in front", func(l []string) []string {
			l[9] = strings.Replace(l[9], `"tenant":`, `"Tenant":"evil","tenant":`, 1)
			return l
		}, []string{`it says "tenant" in two ways`}},
		{"$redaction twice", func(l []string) []string {
			l[9] = strings.Replace(l[9], `"$ledgerlake":`, `"$redaction":{},"$redaction":null,"$ledgerlake":`, 1)
			return l
		}, []string{`it says "$redaction" in two ways`}},
		{"bare", func(l []string) []string { return []string{"{\"recordId\":\"x\"}\n"} }, []string{"line 1: it has no $ledgerlake"}},
	} {
		lines := linesOf(t, n)
		lines[n-1] += "\n"
		r := checkLines(t, CheckOptions{}, c.do(lines))
		var got []string
		for _, f := range r.Faults {
			got = append(got, f.String())
		}
		if r.OK != (len(c.want) == 0) || int(r.FaultCount) != len(c.want) || len(got) != len(c.want) {
			t.Errorf("%s: ok %v, %q", c.name, r.OK, got)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], c.want[i]) {
				t.Errorf("%s: %s, want %s", c.name, got[i], c.want[i])
			}
		}
	}
}

// A part of a log is checked as far as it goes, and files are read one behind the
// other.
func TestPartsAndFiles(t *testing.T) {
	lines := linesOf(t, 20)
	lines[19] += "\n"
	part := append(slices.Clone(lines[3:7]), lines[12:]...)
	if r := checkLines(t, CheckOptions{}, part); r.FaultCount != 1 || r.Logs[0].Rows != 12 {
		t.Errorf("a part as a whole: %+v", r)
	}
	if r := checkLines(t, CheckOptions{Partial: true}, part); !r.OK || r.Logs[0].First != 3 || r.Logs[0].Last != 19 || r.Recomputed != 12 {
		t.Errorf("a part: %+v", r)
	}
	if r := checkLines(t, CheckOptions{}, lines[:8], lines[8:]); !r.OK || r.Lines != 20 || r.Recomputed != 20 {
		t.Errorf("two files: %+v", r)
	}
	part[2] = strings.Replace(part[2], `"latencyMs":-5`, `"latencyMs":6`, 1)
	if r := checkLines(t, CheckOptions{Partial: true}, part); r.FaultCount != 1 {
		t.Errorf("a part that was changed: %+v", r)
	}
}

// What ingest and governance make of records of all kinds passes, and of all that
// is whole the hash is recomputed.
func TestTheCheckAcceptsWhatIsExported(t *testing.T) {
	rows, _ := generated(t, 3000)
	l := newLogbook(t)
	l.head, l.size, l.next = heads(rows)
	var made export.Row
	audit.Gap(&made.Record, 5, 9, "log start")
	made.Checked = true
	rows = append(rows, l.stamp(&made))
	r := checkLines(t, CheckOptions{}, []string{string(written(t, JSONL, Options{ArchiveID: archiveID}, rows...))})
	if !r.OK || r.Recomputed != int64(len(rows)) {
		t.Errorf("%d of %d recomputed, %d faults, first %v", r.Recomputed, len(rows), r.FaultCount, r.Faults[:min(3, len(r.Faults))])
	}
	rows[5] = l.erase(rows[5], chain.Sentinel{All: true})
	rows[6] = l.erase(rows[6], chain.Sentinel{All: true, User: true, Hard: true})
	rows[7] = l.erase(rows[7], chain.Sentinel{Slots: chain.AllSlots})
	r = checkLines(t, CheckOptions{}, []string{string(written(t, JSONL, Options{}, rows...))})
	if !r.OK || r.Recomputed != int64(len(rows)-3) || r.Not["erased"] != 3 || len(r.Not) != 1 {
		t.Errorf("with erased rows: %+v", r.Faults)
	}
	chained := written(t, Chained, Options{}, rows...)
	if r = checkLines(t, CheckOptions{}, []string{string(chained)}); !r.OK {
		t.Errorf("as chained JSONL: %+v", r.Faults[0])
	}
	if bytes.Contains(chained, []byte("user-8841")) {
		t.Error("a test of nothing")
	}
}

// Of a log whose key is not at hand only the links are checked; with it, all is.
func TestKeyedLogs(t *testing.T) {
	id := chain.Log{ArchiveID: archiveID, Tenant: "acme", Topic: line.Topic, TopicID: line.TopicID, Partition: line.Partition}
	key := chain.LogKey(bytes.Repeat([]byte{7}, 32), id)
	l := newLogbook(t)
	l.h = chain.NewHasher(key)
	row := l.value(call("m"))
	row.Scheme, row.RedactionPolicy = chain.SchemeHMACv1, audit.Str(audit.PolicyNone)
	lines := []string{string(written(t, JSONL, Options{ArchiveID: archiveID}, row))}
	if r := checkLines(t, CheckOptions{}, lines); !r.OK || r.Recomputed != 0 || r.Not["keyed"] != 1 {
		t.Errorf("without the key: %+v", r)
	}
	keys := func(l chain.Log) ([]byte, bool) { return key, l == id }
	if r := checkLines(t, CheckOptions{Keys: keys}, lines); !r.OK || r.Recomputed != 1 {
		t.Errorf("with the key: %+v", r)
	}
	lines[0] = strings.Replace(lines[0], `"latencyMs":-5`, `"latencyMs":6`, 1)
	if r := checkLines(t, CheckOptions{Keys: keys}, lines); r.FaultCount != 1 {
		t.Errorf("changed: %+v", r)
	}
}

// The time that a check takes grows with its lines, in whatever order they come.
func TestManyHoles(t *testing.T) {
	const n = 40_000
	lines := make([]string, 0, n)
	add := func(seq int) {
		lines = append(lines, fmt.Sprintf(`{"$redaction":{},"$ledgerlake":{"tenant":"a","topic":"t","topicId":"i","seq":%d,"kind":"call","prevHash":"%064x","rowHash":"%064x"}}`+"\n", seq, seq+1, seq+2))
	}
	for seq := 0; seq < n; seq += 2 {
		add(seq)
	}
	for seq := 1; seq < n-2; seq += 2 {
		add(seq)
	}
	r := checkLines(t, CheckOptions{}, lines)
	if r.FaultCount != n/2-1 || r.Logs[0].Rows != n-1 || r.Logs[0].Last != n-2 {
		t.Errorf("%d faults, %+v, first %v", r.FaultCount, r.Logs, r.Faults[0])
	}
}

func heads(rows []*export.Row) (head map[string]chain.Hash, size map[string]int64, next int64) {
	head, size = map[string]chain.Hash{}, map[string]int64{}
	for _, r := range rows {
		head[r.TenantID.S], size[r.TenantID.S] = r.RowHash, r.Seq.N+1
	}
	return head, size, int64(len(rows))
}

func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"$ledgerlake":{"tenant":"a","topic":"t","topicId":"i","partition":0,"seq":1,"kind":"call","prevHash":"","rowHash":""}}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := NewLineChecker(CheckOptions{})
		if err := c.Read("x", bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		if r := c.Report(); r.OK && r.Lines > 0 && len(r.Logs) == 0 && !bytes.Contains(text, []byte("Rotation")) {
			t.Fatalf("nothing was checked of %q", text)
		}
	})
}
