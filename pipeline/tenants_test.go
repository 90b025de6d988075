package pipeline

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

// What a segment costs depends on its rows, and not on how many tenants the
// line has had before.
func TestASegmentCostsTheSameWithManyTenants(t *testing.T) {
	few, many := bytesOfASegment(t, 10), bytesOfASegment(t, 20_000)
	if many > few*5/4 {
		t.Errorf("a segment of 32 rows takes %d KiB of memory on a line of 20,000 tenants, %d KiB on one of 10", many>>10, few>>10)
	}
	t.Logf("%d KiB a segment with 20,000 tenants, %d KiB with 10", many>>10, few>>10)
}

// bytesOfASegment returns the bytes that are allocated for a segment of 32 rows
// on a line on which so many tenants have a log.
func bytesOfASegment(t *testing.T, tenants int) uint64 {
	t.Helper()
	records := benchRecords(3200)
	s := Settings{Archive: archive.NewMemory(), Root: archive.Root{ArchiveID: "01KBCDEFGHJKMNPQRSTVWXYZ01"}, Batch: Batch{Rows: 32, Age: time.Hour, Strict: true}, AnchorEvery: -1}.withDefaults()
	sh := newShared(s, Events{})
	st := archive.NewState(sh.Root.ArchiveID, archive.Line{Topic: "audit.calls", TopicID: "kTq2VqYJQ0mFvY8v2b3m0A"})
	st.NextOffset = 0
	for i := range tenants {
		name := fmt.Sprint("tenant-", i)
		st.Heads[name] = st.Head(name)
	}
	p := newPartition(context.Background(), sh, nil, st, newWindow(), nil)
	p.gate = gate{open: func() {}, close: func() {}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, r := range records {
		p.take(cost(r))
		p.mail.push(mail{record: r})
	}
	go p.finish(context.Background(), true)
	if err := p.run(); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / uint64(p.state.Ordinal)
}
