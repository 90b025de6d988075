//go:build it

package main

import (
	"strconv"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/internal/workload"
)

// A scene is six offsets of one partition: two good records, a repeat of the
// first, a broken one, and a transaction's marker behind a good one. What an
// ingest makes of them is right, until a case changes it.
type scene struct {
	segments  []archive.Segment
	rows      [][]any
	delivered []bool
	unsure    bool
}

func right() *scene {
	return &scene{
		segments: []archive.Segment{
			{Ordinal: 1, FirstOffset: 4, NextOffset: 6, Gaps: []archive.Gap{{From: 5, To: 6, Cause: archive.GapControl}}},
			{Ordinal: 0, FirstOffset: 0, NextOffset: 4, Duplicates: []archive.Duplicate{{Offset: 2}}},
		},
		rows:      [][]any{row(0, "call", "a"), row(1, "call", "b"), row(3, "rejected", nil), row(4, "call", "c")},
		delivered: []bool{true, true, true, true, true, false},
	}
}

func row(offset int, kind string, coord any) []any {
	return []any{"0", strconv.Itoa(offset), kind, coord}
}

// judge returns what a ledger counts of a scene, and what it says.
func judge(s *scene) (counts, []string) {
	l := newLedger(nil, "", "", 1)
	l.unsure.Store(s.unsure)
	for offset, class := range []workload.Class{workload.Good, workload.Good, workload.Repeat, workload.Broken, workload.Good} {
		l.expect(0, int64(offset), class)
	}
	var c counts
	l.takeSegments(s.segments, &c)
	l.takeRows(s.rows, &c)
	c.add(l.hold([][]bool{s.delivered}))
	return c, l.faults
}

// A run is worth as much as what its ledger would have seen: each way in which
// an archive can be wrong is counted, and named.
func TestTheLedgerSeesWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*scene)
		want   counts
	}{
		"nothing": {func(*scene) {}, counts{rows: 3, rejects: 1, duplicates: 1}},
		"a record has no fate": {func(s *scene) {
			s.rows = s.rows[1:]
		}, counts{rows: 2, rejects: 1, duplicates: 1, lost: 1}},
		"a record is called a gap": {func(s *scene) {
			s.rows, s.segments[0].Gaps = s.rows[:3], []archive.Gap{{From: 4, To: 6, Cause: archive.GapCompacted}}
		}, counts{rows: 2, rejects: 1, duplicates: 1, lost: 1}},
		"a good record is called a duplicate": {func(s *scene) {
			s.rows, s.segments[0].Duplicates = s.rows[:3], []archive.Duplicate{{Offset: 4}}
		}, counts{rows: 2, rejects: 1, duplicates: 2, lost: 1}},
		"a good record is rejected": {func(s *scene) {
			s.rows[0] = row(0, "rejected", nil)
		}, counts{rows: 2, rejects: 2, duplicates: 1, other: 1}},
		"an offset is two rows": {func(s *scene) {
			s.rows = append(s.rows, row(1, "call", "d"))
		}, counts{rows: 3, rejects: 1, duplicates: 1, repeats: 1}},
		"an offset is a row and a duplicate": {func(s *scene) {
			s.rows = append(s.rows, row(2, "call", "d"))
		}, counts{rows: 3, rejects: 1, duplicates: 1, repeats: 1}},
		"a repeat is a row": {func(s *scene) {
			s.rows, s.segments[1].Duplicates = append(s.rows, row(2, "call", "a")), nil
		}, counts{rows: 4, rejects: 1, repeats: 1, other: 1}},
		"a marker is a row": {func(s *scene) {
			s.rows, s.segments[0].Gaps = append(s.rows, row(5, "call", "d")), nil
		}, counts{rows: 4, rejects: 1, duplicates: 1, other: 1}},
		"a row is beyond the segments": {func(s *scene) {
			s.rows = append(s.rows, row(6, "call", "d"))
		}, counts{rows: 3, rejects: 1, duplicates: 1, other: 1}},
		"a segment is missing": {func(s *scene) {
			s.segments[0].Ordinal = 2
		}, counts{rows: 3, rejects: 1, duplicates: 1, other: 1}},
		"a segment begins too late": {func(s *scene) {
			s.segments[1].NextOffset, s.rows = 3, append(s.rows[:2:2], s.rows[3])
		}, counts{rows: 3, duplicates: 1, lost: 1, other: 1}},
		"what a repeat repeats is not known": {func(s *scene) {
			s.unsure, s.rows, s.segments[1].Duplicates = true, append(s.rows, row(2, "call", "d")), nil
		}, counts{rows: 4, rejects: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := right()
			c.change(s)
			got, faults := judge(s)
			if got != c.want {
				t.Errorf("counts %+v, want %+v: %q", got, c.want, faults)
			}
			if got.right() != (len(faults) == 0) {
				t.Errorf("right: %v, and it says %q", got.right(), faults)
			}
		})
	}
}

// A stretch is held against Kafka once, however often it is looked at.
func TestTheLedgerCountsOnce(t *testing.T) {
	l := newLedger(nil, "", "", 1)
	s := right()
	var c counts
	l.takeSegments(s.segments[1:], &c)
	l.takeRows(s.rows[:2], &c)
	first := l.hold([][]bool{s.delivered[:4]})
	if first.lost != 1 { // offset 3, which has no row yet
		t.Errorf("counts %+v", first)
	}
	if again := l.hold([][]bool{s.delivered[:4]}); again != (counts{}) {
		t.Errorf("counts %+v once more", again)
	}
}

// What a reader gets is held against the fates of all offsets: a row that it
// does not get is lost, one that it gets twice is a repeat, and neither a
// duplicate nor a reject is a row.
func TestTheLedgerKnowsWhatAReaderGets(t *testing.T) {
	read := func(offset, rejects, n int) []any {
		return []any{"0", strconv.Itoa(offset), strconv.Itoa(rejects), strconv.Itoa(n)}
	}
	all := [][]any{read(0, 0, 1), read(1, 0, 1), read(3, 1, 1), read(4, 0, 1)}
	for name, c := range map[string]struct {
		rows [][]any
		want counts
	}{
		"all of it":            {all, counts{}},
		"newer ones as well":   {append(all[:4:4], read(6, 0, 1)), counts{}},
		"one is missing":       {all[1:], counts{lost: 1}},
		"the reject, too":      {all[:2], counts{lost: 2}},
		"one twice":            {append(all[1:4:4], read(0, 0, 2)), counts{repeats: 1}},
		"a duplicate":          {append(all[:4:4], read(2, 0, 1)), counts{other: 1}},
		"a reject that is not": {append(all[1:4:4], read(0, 1, 1)), counts{other: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(nil, "", "", 1)
			s := right()
			var c0 counts
			l.takeSegments(s.segments, &c0)
			l.takeRows(s.rows, &c0)
			if got := l.compare(c.rows, l.ends()); got != c.want {
				t.Errorf("counts %+v, want %+v: %q", got, c.want, l.faults)
			}
		})
	}
}
