package compaction

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A meter is a store that counts its calls, and what is on its way at once.
type meter struct {
	archive.Store
	mu          sync.Mutex
	calls       map[string]int
	gets, puts  int
	bytes       int64 // of objects on their way to the store
	mostGets    int
	mostPuts    int
	mostBytes   int64
	largestBody int64
}

func (m *meter) count(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls == nil {
		m.calls = map[string]int{}
	}
	m.calls[name]++
}

func (m *meter) under(gets, puts int, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gets, m.puts, m.bytes = m.gets+gets, m.puts+puts, m.bytes+bytes
	m.mostGets, m.mostPuts, m.mostBytes = max(m.mostGets, m.gets), max(m.mostPuts, m.puts), max(m.mostBytes, m.bytes)
	m.largestBody = max(m.largestBody, bytes)
}

func (m *meter) Get(ctx context.Context, key string) ([]byte, error) {
	m.count("get")
	m.under(1, 0, 0)
	defer m.under(-1, 0, 0)
	return m.Store.Get(ctx, key)
}

func (m *meter) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	m.count("tail")
	return m.Store.GetTail(ctx, key, n)
}

func (m *meter) GetRange(ctx context.Context, key string, offset, n int64) ([]byte, error) {
	m.count("range")
	return m.Store.GetRange(ctx, key, offset, n)
}

func (m *meter) List(ctx context.Context, prefix, after string) iter.Seq2[archive.Object, error] {
	m.count("list")
	return m.Store.List(ctx, prefix, after)
}

func (m *meter) Versions(ctx context.Context, prefix string) iter.Seq2[archive.Version, error] {
	m.count("versions")
	return m.Store.Versions(ctx, prefix)
}

func (m *meter) Create(ctx context.Context, key string, body []byte) (time.Time, error) {
	m.count("put")
	m.under(0, 1, int64(len(body)))
	defer m.under(0, -1, -int64(len(body)))
	time.Sleep(time.Millisecond) // so that writes meet, where they may
	return m.Store.Create(ctx, key, body)
}

func (m *meter) Delete(ctx context.Context, versions []archive.Version) []archive.Kept {
	m.count("delete")
	return m.Store.Delete(ctx, versions)
}

// take returns the counts, and begins anew.
func (m *meter) take() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := ""
	for _, name := range sortedKeys(m.calls) {
		text += fmt.Sprintf("%s %d, ", name, m.calls[name])
	}
	m.calls = nil
	return text
}

// What a pass asks of the store: one GET a segment, one PUT a file, a part and a
// version each; a few calls more, however many segments there are.
func TestWhatAPassCosts(t *testing.T) {
	w := newWorld(t)
	m := &meter{Store: w.store}
	w.settings.Archive, w.settings.Once, w.settings.MinSegments = m, false, 1
	for range 100 {
		w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("globex") })
	}
	w.calls.Anchor()
	w.land()
	e := New(w.settings)
	step := func(what, want string) {
		t.Helper()
		if _, err := e.Pass(context.Background(), w.calls.Line, nil); err != nil {
			t.Fatal(err)
		}
		if got := m.take(); got != want {
			t.Errorf("%s: %swant %s", what, got, want)
		}
	}
	step("100 segments", "get 101, list 2, put 4, tail 3, ")
	step("nothing to do, and a sweep", "get 2, list 2, tail 2, versions 2, ")
	step("nothing to do", "get 2, list 2, tail 2, ")
	for range 2 {
		w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	}
	w.calls.Anchor()
	w.land()
	step("two segments", "get 5, list 2, put 3, tail 4, ")
	w.later(2 * time.Hour)
	step("102 segments and a part to be deleted", "delete 1, get 3, list 2, put 1, tail 2, versions 6, ")
}

// A pass keeps within its memory: rows of a window, objects on their way, and
// reads at once are bounded, whatever lies in the line.
func TestAPassKeepsWithinItsMemory(t *testing.T) {
	w := newWorld(t)
	m := &meter{Store: w.store}
	w.settings.Archive, w.settings.Memory = m, 4<<20
	for i := range 40 {
		w.calls.Segment(func(b *prooftest.Batch) {
			for j := range 50 {
				b.Row(fmt.Sprintf("tenant-%d", (i+j)%10), func(r *audit.Record) {
					r.Kind, r.RedactionPolicy = audit.Str(audit.KindToolCall), audit.Str(audit.PolicyNone)
					r.Slots[audit.SlotContext] = fmt.Appendf(nil, `{"n":%d,"said":"%02000d"}`, j, i)
				})
			}
		})
	}
	w.calls.Anchor()
	w.land()
	e := New(w.settings)
	p := &pass{e: e, ctx: context.Background(), l: w.calls.Line, d: &Duties{}, m: e.memo(w.calls.Line), res: &Result{}}
	var err error
	if p.s, err = e.look(p.ctx, p.l, p.m, p.d); err != nil {
		t.Fatal(err)
	}
	p.begins()
	window, err := p.readWindow(p.s.entries())
	if err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	for _, l := range window.logs {
		for _, row := range l.rows {
			size += rowBytes + int64(len(row.Slots[audit.SlotContext]))
		}
	}
	if size > e.Memory/4 || window.to >= 40 {
		t.Errorf("a window of %d bytes, up to segment %d", size, window.to)
	}
	w.passes(e, w.calls.Line, nil)
	if m.mostGets > segmentsParallel+1 || m.mostPuts > putsParallel || m.mostPuts < 2 || m.mostBytes > max(e.Memory/8, m.largestBody)+e.TargetBytes {
		t.Errorf("%d reads and %d writes at once, of %d bytes", m.mostGets, m.mostPuts, m.mostBytes)
	}
	w.wantExit(0)
}
