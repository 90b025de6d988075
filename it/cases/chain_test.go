//go:build it

package cases

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/it/oracle"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// A hash over anything but the stored bytes (nanoseconds that a column cuts
// off, a number in another form, members in another order) never verifies
// again. So records come in every form that JSON allows, and a checker in
// another language recomputes all of it from the files.
func TestHashesAreOfWhatIsStored(t *testing.T) {
	const created = "2026-11-20T10:00:00.000Z"
	s := newStage(t, faults3.Options{}, topic)
	s.produce(topic, "acme",
		call("acme", 0, created, "2026-05-15T12:00:00.123456789Z"),
		call("acme", 1, created, "2026-05-15T12:00:00.123456789012Z"),
		call("acme", 2, created, "2026-05-15T14:00:00+02:00"),
		call("acme", 3, `{"x":1}`, `{"x":1.10,"y":1e2,"z":-0,"w":1E+2}`),
		call("acme", 4, `"latencyMs":812`, `"latencyMs":812.0005`),
		call("acme", 5, `"latencyMs":812`, `"latencyMs":8.12e2`),
		call("acme", 6, `{"x":1}`, "{ \"z\" : [ ] ,\r\n\t\"a\":{ } }"),
		call("acme", 7, `"turnId":"t-7",`, ``, `{"auditRecordVersion":19,`, ` { "turnId" : "t-7" , "auditRecordVersion" : 19 ,`),
		call("acme", 8, `"model":"claude-x"`, `"model":"\u0063laude\u002dx\/\u00e9"`),
		call("acme", 9, `"auditRecordVersion":19`, `"auditRecordVersion":31,"newMember":{"of":["a","later","version"]}`),
	)
	a := s.settle(oracle.Proved)
	s.wantFates(a, topic, slices.Repeat([]string{"row"}, 10)...)
	rows, err := a.CheckChain()
	s.must(err)
	if rows != 10 {
		t.Errorf("the hashes of %d rows are right, want 10", rows)
	}
	s.wantRows(a, `select epoch_us(created_at), ext->>'createdAt' from {rows} where turn_id in ('t-0', 't-1', 't-2') order by seq`,
		[]any{"1778846400123456", "2026-05-15T12:00:00.123456789Z"}, []any{"1778846400123456", "2026-05-15T12:00:00.123456789012Z"},
		[]any{"1778846400000000", "2026-05-15T14:00:00+02:00"})
	s.wantRows(a, `select latency_us, ext::json->'outcome'->>'latencyMs' is null from {rows} where turn_id in ('t-4', 't-5') order by seq`,
		[]any{"812000", "True"}, []any{"812000", "True"})
}

// Every row is found by its hash, with the filters of the reader at work.
func TestRowsAreFoundByHash(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	s.produce(topic, "acme", calls("acme", 0, 64)...)
	a := s.settle(oracle.Proved)
	s.wantRows(a, `select count(*), count(distinct row_hash) from {rows}`, []any{"64", "64"})
	for _, row := range s.query(a, `select row_hash, prev_hash, record_id from {rows} where seq % 21 = 0 and seq > 0`) {
		for column, literal := range map[string]string{
			"row_hash":  fmt.Sprintf("unhex('%s')", row[0]),
			"prev_hash": fmt.Sprintf("unhex('%s')", row[1]),
			"record_id": fmt.Sprintf("'%s'", row[2]),
		} {
			s.wantRows(a, fmt.Sprintf("select count(*) from {rows} where %s = %s", column, literal), []any{"1"})
		}
	}
	s.wantRows(a, `select count(*) from {rows} a join {rows} b on a.prev_hash = b.row_hash`, []any{"63"})
}

// Where fields are merely joined, a text may slide from one to the next and
// the hash stays. Each row's fields are put in the place of its neighbour's,
// and verify must name that row.
func TestFieldsDoNotSlide(t *testing.T) {
	type fields struct{ user, finish string } // JSON
	pairs := [][2]fields{
		{{`"a|b"`, `"c"`}, {`"a"`, `"b|c"`}},
		{{`"ab"`, `"c"`}, {`"a"`, `"bc"`}},
		{{`"a\u001fb"`, `"c"`}, {`"a"`, `"b\u001fc"`}},
		{{`"a\nb"`, `"c"`}, {`"a"`, `"b\nc"`}},
		{{`"s1:a,"`, `"b"`}, {`"s1:a"`, `",b"`}},
		{{`null`, `""`}, {`""`, `null`}},
		{{`"null"`, `null`}, {`null`, `"null"`}},
	}
	s := newStage(t, faults3.Options{}, topic)
	for i, pair := range pairs {
		for j, f := range pair {
			s.produce(topic, "acme", call("acme", 2*i+j, `"u-1"`, f.user, `"stop"`, f.finish))
		}
	}
	a := s.settle(oracle.Proved, "--batch.age", "5s")
	s.wantFates(a, topic, slices.Repeat([]string{"row"}, 2*len(pairs))...)
	for _, key := range s.store.Keys("log/") {
		good, _ := s.store.Object(key)
		for i := range s.segment(good).Rows {
			o := s.segment(good)
			row := &o.Rows[i]
			other := pairs[row.Seq.N/2][1-row.Seq.N%2]
			row.UserID, row.FinishReason = textOf(other.user), textOf(other.finish)
			s.store.Set(key, s.encode(o))
			s.verify(oracle.Tampered)
			s.store.Set(key, good)
		}
	}
}

// One digit of a stored number is changed, beyond what a float64 holds.
func TestADigitThatChanges(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	s.produce(topic, "acme", call("acme", 0, `{"x":1}`, `{"x":9007199254740993}`, `"inputTokens":100`, `"inputTokens":9007199254740993`))
	s.settle(oracle.Proved)
	key := s.store.Keys("log/")[0]
	good, _ := s.store.Object(key)
	for name, change := range map[string]func(*chain.Row){
		"column": func(r *chain.Row) { r.InputTokens = audit.I64(9007199254740992) },
		"slot": func(r *chain.Row) {
			slot := slices.Clone(r.Slots[audit.SlotPluginPayloads])
			r.Slots[audit.SlotPluginPayloads] = slot
			slot[slices.Index(slot, '3')] = '2'
		},
	} {
		o := s.segment(good)
		change(&o.Rows[0])
		s.store.Set(key, s.encode(o))
		if s.verify(oracle.Tampered); t.Failed() {
			t.Fatal(name)
		}
	}
}

func (s *stage) segment(body []byte) *archive.SegmentObject {
	s.Helper()
	o, err := archive.ReadSegment(body, nil)
	s.must(err)
	return o
}

func (s *stage) encode(o *archive.SegmentObject) []byte {
	s.Helper()
	meta, err := archive.EncodeSegment(o.Segment)
	s.must(err)
	body, err := parquet.NewEncoder().Encode(o.Rows, meta)
	s.must(err)
	return slices.Clone(body)
}

// textOf returns the column of a JSON string or null.
func textOf(text string) audit.Text {
	var s *string
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(err) // a text of the table
	}
	if s == nil {
		return audit.Text{}
	}
	return audit.Str(*s)
}
