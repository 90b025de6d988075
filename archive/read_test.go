package archive_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// A segment whose tree is not the one that its rows give follows no state,
// though all of its hashes and links hold: whoever built on it would sign a root
// of other rows.
func TestFollowsComparesTrees(t *testing.T) {
	st := newLine()
	advance(t, st, segment(t, st, 2, "acme"))
	o, err := archive.ReadForeignSegment(segment(t, st, 3, "acme", "globex"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Follows(o); err != nil {
		t.Fatalf("an honest segment: %v", err)
	}
	for i := range o.Logs {
		honest := o.Logs[i].Frontier
		o.Logs[i].Frontier = append([]chain.Hash(nil), honest...)
		o.Logs[i].Frontier[0][31] ^= 1
		if err := st.Follows(o); !errors.Is(err, archive.ErrBreaks) {
			t.Errorf("another frontier of log %d: %v", i, err)
		}
		if err := st.Continues(o.Segment); err != nil {
			t.Errorf("the metadata alone cannot tell: %v", err)
		}
		o.Logs[i].Frontier = honest
	}
}

// An object that is small and would be millions of rows in memory is refused
// before a page of it is decoded.
func TestTooManyRowsAreRefused(t *testing.T) {
	st := newLine()
	o, err := archive.ReadSegment(segment(t, st, 1, "acme"), nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]*chain.Row, archive.MaxSegmentRows+1)
	for i := range rows {
		rows[i] = &o.Rows[0]
	}
	seg := *o.Segment
	seg.Rows, seg.NextOffset = int64(len(rows)), seg.FirstOffset+int64(len(rows))
	seg.Logs[0].Rows = seg.Rows
	meta, err := archive.EncodeSegment(&seg)
	if err != nil {
		t.Fatal(err)
	}
	body, err := parquet.NewEncoder().EncodeRefs(rows, meta)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := archive.ReadForeignSegment(body, nil); err == nil || !strings.Contains(err.Error(), "65537 rows") {
		t.Errorf("%d rows in %d KiB: %v", len(rows), len(body)>>10, err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 10*uint64(len(body)) {
		t.Errorf("refusing %d KiB took %d KiB", len(body)>>10, took>>10)
	}
}
