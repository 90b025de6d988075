package compaction

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A watched store calls f before each call.
type watched struct {
	archive.Store
	f func()
}

func (s *watched) Get(ctx context.Context, key string) ([]byte, error) {
	s.f()
	return s.Store.Get(ctx, key)
}

func (s *watched) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	s.f()
	return s.Store.GetTail(ctx, key, n)
}

func (s *watched) List(ctx context.Context, prefix, after string) iter.Seq2[archive.Object, error] {
	s.f()
	return s.Store.List(ctx, prefix, after)
}

func (s *watched) Create(ctx context.Context, key string, body []byte) (time.Time, error) {
	s.f()
	return s.Store.Create(ctx, key, body)
}

func (s *watched) Delete(ctx context.Context, versions []archive.Version) []archive.Kept {
	var kept []archive.Kept
	for i := range versions { // one by one, for a reader may come between
		s.f()
		kept = append(kept, s.Store.Delete(ctx, versions[i:i+1])...)
	}
	return kept
}

// rowsAndRoots reads every row of a line by a snapshot, and takes another one
// where something is gone. A line says a log's rows, and the root of its tree.
func rowsAndRoots(src archive.Source, l archive.Line) ([]string, error) {
	for {
		logs, err := readRows(src, l)
		if errors.Is(err, archive.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var all []string
		for _, tenant := range slices.Sorted(maps.Keys(logs)) {
			var tree chain.Tree
			for i, r := range logs[tenant] {
				if r.Seq.N != int64(i) {
					return nil, fmt.Errorf("%s: seq %d in the place of %d", tenant, r.Seq.N, i)
				}
				tree.Append(r.RowHash)
			}
			all = append(all, fmt.Sprint(tenant, " ", tree.Size, " ", tree.Root()))
		}
		return all, nil
	}
}

func readRows(src archive.Source, l archive.Line) (map[string][]*chain.Row, error) {
	ctx, logs := context.Background(), map[string][]*chain.Row{}
	s, err := archive.ReadSnapshot(ctx, src, l, nil)
	if err != nil {
		return nil, err
	}
	take := func(rows iter.Seq2[*chain.Row, error]) error {
		for row, err := range rows {
			if err != nil {
				return err
			}
			copied := *row
			logs[row.TenantID.S] = append(logs[row.TenantID.S], &copied)
		}
		return nil
	}
	for i := range s.Files {
		body, err := src.Get(ctx, s.Files[i].Key)
		if err != nil {
			return nil, err
		}
		f, _, err := archive.OpenDataFile(body, &s.Files[i])
		if err == nil {
			err = take(f.Rows())
		}
		if err != nil {
			return nil, err
		}
	}
	var segments []*archive.SegmentObject
	void := map[int64]bool{}
	for i := range s.Segments {
		seg, err := archive.GetSegment(ctx, src, l, s.Watermark()+int64(i), nil)
		if err != nil {
			return nil, err
		}
		segments = append(segments, seg)
		for _, v := range seg.Voided {
			void[v.Ordinal] = true
		}
	}
	for _, seg := range segments {
		if void[seg.Ordinal] {
			continue
		}
		for i := range seg.Rows {
			logs[seg.Rows[i].TenantID.S] = append(logs[seg.Rows[i].TenantID.S], &seg.Rows[i])
		}
	}
	return logs, nil
}

// A reader that comes before any call of a compactor, also between two deletes,
// finds all rows of the line, and the same roots.
func TestReadersBetweenAllStepsOfACompactor(t *testing.T) {
	w := newHistory(t)
	want, err := rowsAndRoots(w.store, w.calls.Line)
	if err != nil {
		t.Fatal(err)
	}
	reads := 0
	w.settings.Memory = 40_000
	w.settings.Archive = &watched{w.store, func() {
		reads++
		got, err := rowsAndRoots(w.store, w.calls.Line)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("before call %d: %v\n%q\nwant\n%q", reads, err, got, want)
		}
	}}
	e := New(w.settings)
	for range 4 {
		w.passes(e, w.calls.Line, nil)
		w.later(2 * time.Hour)
	}
	if left := w.keys("log/"); len(left) != 1 || reads < 100 {
		t.Errorf("segments %q are left after %d reads", left, reads)
	}
}

// Whatever a compactor does between two calls of a reader, for hours and with all
// its deletes, the reader finds all rows, and the same roots.
func TestACompactorBetweenAllStepsOfAReader(t *testing.T) {
	met := true
	for at := 1; met; at++ {
		w := newHistory(t)
		want, err := rowsAndRoots(w.store, w.calls.Line)
		if err != nil {
			t.Fatal(err)
		}
		e := New(w.settings)
		w.settings.Memory = 40_000
		small := New(w.settings)
		if at%2 == 0 { // one that was compacted in part
			if _, err := small.Pass(t.Context(), w.calls.Line, nil); err != nil {
				t.Fatal(err)
			}
		}
		calls := 0
		met = false
		src := &watched{w.store, func() {
			if calls++; calls == at || calls == at+7 {
				met = true
				for range 3 {
					w.passes(e, w.calls.Line, nil)
					w.later(2 * time.Hour)
				}
			}
		}}
		got, err := rowsAndRoots(src, w.calls.Line)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("at call %d: %v\n%q\nwant\n%q", at, err, got, want)
		}
	}
}
