package stream_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/compaction"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/stream"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

var key = prooftest.Signer("anchors.example")

// A world is an archive that grows by hand, in a store that fails as it is told.
// It lives in a bubble of testing/synctest.
type world struct {
	*prooftest.Archive
	t              testing.TB
	calls, control *prooftest.Line
	store          *store
	landed         map[string]bool
	root           archive.Root
	ring           *sign.Ring
	ids            int

	mu      sync.Mutex
	changes []string
	stopped map[string]error // by tenant
	dropped []string
	waits   []stream.Wait
	dead    []stream.Letter
	lost    int
}

// forgetDecoders empties parquet-go's pool of zstd decoders: one that was made
// in a bubble must not be used in another.
func forgetDecoders() { pq.Zstd = zstd.Codec{Level: pq.Zstd.Level} }

func newWorld(t testing.TB) *world {
	forgetDecoders()
	a := prooftest.New()
	a.Signers = []*sign.Signer{key}
	w := &world{Archive: a, t: t, calls: a.Line("audit.calls", 0), control: a.Line(audit.ControlTopic, 0), landed: map[string]bool{}, stopped: map[string]error{}}
	w.store = &store{Memory: archive.NewMemory()}
	w.ring = &sign.Ring{}
	var err error
	if w.root, err = archive.DecodeRoot(a.Root); err == nil {
		err = w.ring.Add(key.VKey(), sign.AllRoles, "test")
	}
	if err != nil {
		t.Fatal(err)
	}
	w.land()
	return w
}

// land writes what was built to the store: each object once.
func (w *world) land() {
	w.t.Helper()
	objects := w.Objects()
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		if w.landed[key] {
			continue
		}
		w.landed[key] = true
		if _, err := w.store.Memory.Create(context.Background(), key, objects[key]); err != nil {
			w.t.Fatal(err)
		}
	}
}

// rows archives a segment of calls of tenants, in that order.
func (w *world) rows(tenants ...string) {
	w.t.Helper()
	w.calls.Segment(func(b *prooftest.Batch) {
		for _, tenant := range tenants {
			b.Call(tenant)
		}
	})
	w.land()
}

// compact compacts a line, as far as its anchors go.
func (w *world) compact(l archive.Line) {
	w.t.Helper()
	// Time in the archive is its own.
	now := time.UnixMicro(prooftest.Start).UTC().Add(400 * 24 * time.Hour)
	e := compaction.New(compaction.Settings{
		Archive: w.store.Memory, Root: w.root, Keys: w.ring, Once: true, Now: func() time.Time { return now }, RepeatFiles: -1,
		Signers: func(time.Time) []note.Signer { return []note.Signer{key} }, Rand: rand.NewChaCha8([32]byte{1}),
	})
	for range 20 {
		r, err := e.Pass(context.Background(), l, w.duties(l))
		if err != nil {
			w.t.Fatal(err)
		}
		if !r.More && !r.Wrote {
			return
		}
	}
}

// duties returns what governs a line now, all of it due at once.
func (w *world) duties(l archive.Line) *compaction.Duties {
	w.t.Helper()
	g, err := control.Read(context.Background(), w.store.Memory, control.ReadOptions{Root: w.root, Keys: w.ring})
	if err != nil {
		w.t.Fatal(err)
	}
	d := &compaction.Duties{Cuts: map[string]*control.Row{}}
	for _, name := range g.Tenants() {
		if cut := g.Tenant(name).LastCut(l); cut != nil {
			d.Cuts[name] = cut
		}
		for o := range g.Tenant(name).Orders() {
			d.Orders = append(d.Orders, compaction.Duty{Row: o.Row, Due: true, DueAt: time.UnixMicro(o.ArchivedAt).UTC()})
		}
	}
	return d
}

// order archives a control record of a tenant, and an anchor that covers it.
func (w *world) order(tenant, kind, id string, members map[string]any) {
	w.control.Segment(func(b *prooftest.Batch) { b.Order(tenant, kind, id, members) })
	w.control.Anchor()
	w.land()
}

// settings are those of an exporter of its own.
func (w *world) settings() stream.Settings {
	w.ids++
	return stream.Settings{
		Archive: w.store, Root: w.root, Keys: w.ring, ID: fmt.Sprintf("exporter-%d", w.ids), Now: time.Now,
		Events: stream.Events{
			Changed: func(s stream.State) {
				w.note(func() { w.changes = append(w.changes, fmt.Sprint(s.Name, " ", s.Count, " ", s.Change)) })
			},
			Stopped: func(_ string, _ archive.Line, tenant string, err error) { w.note(func() { w.stopped[tenant] = err }) },
			Dropped: func(_ string, _ archive.Line, tenant string, from, to int64) {
				w.note(func() { w.dropped = append(w.dropped, fmt.Sprint(tenant, " ", from, "-", to)) })
			},
			Retry:     func(_ string, _ archive.Line, r stream.Wait) { w.note(func() { w.waits = append(w.waits, r) }) },
			Dead:      func(_ string, _ archive.Line, l stream.Letter) { w.note(func() { w.dead = append(w.dead, l) }) },
			Repeating: func(string, archive.Line, error) { w.note(func() { w.lost++ }) },
			Warn: func(d, what string, err error) {
				if testing.Verbose() {
					w.t.Logf("%s: %s: %v", d, what, err)
				}
			},
		},
	}
}

func (w *world) note(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// export runs an exporter for a while, and then stops it.
func (w *world) export(d time.Duration, destinations ...stream.Destination) {
	w.t.Helper()
	stop := w.start(w.settings(), destinations...)
	time.Sleep(d)
	stop()
}

// start starts an exporter; the func that it returns stops it.
func (w *world) start(s stream.Settings, destinations ...stream.Destination) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- stream.New(s, destinations).Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			w.t.Errorf("Run: %v", err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// A receiver is a destination that remembers what it was given, and answers as it
// is told.
type receiver struct {
	limits sink.Limits
	answer func(batch []sink.Message) sink.Result // nil: all is delivered

	mu       sync.Mutex
	got      []*event.Event
	attempts int
	closed   bool
}

// tries returns how many attempts there were.
func (r *receiver) tries() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.attempts
}

func (r *receiver) Limits() sink.Limits { return r.limits }

func (r *receiver) Close(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return nil
}

func (r *receiver) Deliver(_ context.Context, batch []sink.Message) sink.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts++
	result := sink.All(len(batch), sink.Verdict{Outcome: sink.Delivered})
	if r.answer != nil {
		result = r.answer(batch)
	}
	for i, v := range result.Verdicts {
		if v.Outcome == sink.Delivered {
			r.got = append(r.got, batch[i].Event)
		}
	}
	return result
}

// destination returns a destination of the receiver.
func (r *receiver) destination(change ...func(*stream.Destination)) stream.Destination {
	d := stream.Destination{Name: "siem", Type: "test", Spec: "type: test", Sink: r, Format: event.JSON}
	for _, f := range change {
		f(&d)
	}
	return d
}

// events returns what arrived, without what is no row where rows is set.
func (r *receiver) events(kinds ...event.Kind) (all []*event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ev := range r.got {
		if len(kinds) == 0 || slices.Contains(kinds, ev.Kind) {
			all = append(all, ev)
		}
	}
	return all
}

// places returns the rows that arrived as "tenant seq", in their order.
func (r *receiver) places() (all []string) {
	for _, ev := range r.events(event.KindRecord, event.KindPointer) {
		all = append(all, fmt.Sprint(ev.Tenant, " ", ev.Seq))
	}
	return all
}

// check requires that every row of the calls arrived, in the order of its log, and
// returns how many came more than once.
func (w *world) check(r *receiver) (repeats int) {
	w.t.Helper()
	return w.checkRows(r, func(*prooftest.Log) bool { return true })
}

func (w *world) checkRows(r *receiver, want func(*prooftest.Log) bool) (repeats int) {
	w.t.Helper()
	next := map[string]int64{}
	hash := map[string]string{}
	for _, ev := range r.events(event.KindRecord, event.KindPointer) {
		at := ev.Line.Topic + "/" + ev.Tenant
		switch {
		case ev.Seq < next[at]:
			repeats++
		case ev.Seq > next[at]:
			w.t.Fatalf("%s: seq %d arrived where %d belongs", at, ev.Seq, next[at])
		default:
			next[at]++
			if ev.Seq > 0 && hash[at] != ev.Row.PrevHash.String() {
				w.t.Fatalf("%s: seq %d does not follow the row before it", at, ev.Seq)
			}
			hash[at] = ev.ID
		}
	}
	for tenant, log := range w.calls.Logs {
		if got := next["audit.calls/"+tenant]; want(log) && got != log.Tree.Size {
			w.t.Fatalf("%s: %d rows arrived, and %d are archived", tenant, got, log.Tree.Size)
		}
	}
	return repeats
}

// A store is a bucket that fails where it is told, and counts.
type store struct {
	*archive.Memory
	mu     sync.Mutex
	before func(op, key string) error // what happens instead of a call
	after  func(op, key string) error // what is said though the call went well
	count  map[string]int
}

func (s *store) call(op, key string, do func() error) error {
	s.mu.Lock()
	if s.count == nil {
		s.count = map[string]int{}
	}
	s.count[op]++
	s.count[op+" "+folderOf(key)]++
	before, after := s.before, s.after
	s.mu.Unlock()
	if before != nil {
		if err := before(op, key); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if after != nil {
		return after(op, key)
	}
	return nil
}

func (s *store) counted(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[op]
}

// countedOf returns how many calls there were of keys that begin so, whole folders.
func (s *store) countedOf(op, prefix string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for what, count := range s.count {
		if strings.HasPrefix(what, op+" "+prefix) {
			n += count
		}
	}
	return n
}

// forget begins to count anew.
func (s *store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count = nil
}

func folderOf(key string) string { return key[:strings.LastIndex(key, "/")+1] }

func (s *store) GetTail(ctx context.Context, key string, n int64) (body []byte, size int64, err error) {
	err = s.call("tail", key, func() (err error) { body, size, err = s.Memory.GetTail(ctx, key, n); return err })
	return body, size, err
}

func (s *store) Get(ctx context.Context, key string) (body []byte, err error) {
	err = s.call("get", key, func() (err error) { body, err = s.Memory.Get(ctx, key); return err })
	return body, err
}

func (s *store) Swap(ctx context.Context, key string, body []byte, tag string) (newTag string, err error) {
	err = s.call("swap", key, func() (err error) { newTag, err = s.Memory.Swap(ctx, key, body, tag); return err })
	return newTag, err
}

func (s *store) Create(ctx context.Context, key string, body []byte) (at time.Time, err error) {
	err = s.call("create", key, func() (err error) { at, err = s.Memory.Create(ctx, key, body); return err })
	return at, err
}

// keys returns the keys that exporters made, of a kind.
func (w *world) keys(part string) (keys []string) {
	for o, err := range w.store.List(context.Background(), stream.Prefix, "") {
		if err != nil {
			w.t.Fatal(err)
		}
		if strings.Contains(o.Key, part) {
			keys = append(keys, o.Key)
		}
	}
	return keys
}
