package archive_test

import (
	"errors"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A segment whose tree is not the one that its rows give follows no state,
// though all of its hashes and links hold: whoever built on it would sign a root
// of other rows.
func TestFollowsComparesTrees(t *testing.T) {
	st := newLine()
	advance(t, st, segment(t, st, 2, "acme"))
	o, err := archive.ReadForeignSegment(segment(t, st, 3, "acme", "globex"))
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
