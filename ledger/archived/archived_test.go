package archived_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/ledger"
	"github.com/ledgerlake/ledgerlake/ledger/archived"
	"github.com/ledgerlake/ledgerlake/ledger/ledgertest"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A world is an archive that grows: what is recorded and ordered is in it after
// settle, as ingest would have it. With compact, segments become data files too.
type world struct {
	compact bool

	mu      sync.Mutex
	archive *prooftest.Archive
	calls   *prooftest.Line
	control *prooftest.Line
	bucket  archive.Ranger
	rows    []audit.Record
	orders  []audit.Message
	seen    map[audit.Fingerprint]bool
	sent    int
	refuses error // of Send
}

func newWorld(compact bool) *world {
	w := &world{compact: compact, archive: prooftest.New(), seen: map[audit.Fingerprint]bool{}}
	w.calls, w.control = w.archive.Line("audit.calls", 0), w.archive.Line(audit.ControlTopic, 0)
	w.calls.Segment(func(b *prooftest.Batch) {
		b.Call("somebody")
		b.Reject(ledgertest.Tenant, audit.ReasonInvalidJSON, []byte(`{`))
	})
	w.control.Segment(func(b *prooftest.Batch) { b.Call("somebody") })
	w.settle()
	return w
}

// RecordCall takes a call as ingest does: a repeat, or another one at the same
// coordinates, is no row.
func (w *world) RecordCall(_ context.Context, c *ledger.Call) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var r audit.Record
	m := audit.Message{Key: []byte(c.Tenant()), Value: c.AppendJSON(nil)}
	if reject := new(audit.Decoder).Decode(&r, &m); reject != nil {
		return nil // it would be a rejected row
	}
	at, _ := r.Coordinates()
	if !w.seen[at] {
		w.seen[at] = true
		w.rows = append(w.rows, r)
	}
	return nil
}

// send takes an order, as Kafka does.
func (w *world) send(_ context.Context, m audit.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuses != nil {
		return w.refuses
	}
	w.sent++
	w.orders = append(w.orders, m)
	return nil
}

func (w *world) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rows) > 0 {
		w.calls.Segment(func(b *prooftest.Batch) {
			for _, r := range w.rows {
				b.Row(r.TenantID.S, func(into *audit.Record) { place(into, r) })
			}
		})
	}
	if len(w.orders) > 0 {
		w.control.Segment(func(b *prooftest.Batch) {
			for _, m := range w.orders {
				b.Row(string(m.Key), func(into *audit.Record) { placeOrder(into, m) })
			}
		})
	}
	w.rows, w.orders = nil, nil
	w.calls.Anchor()
	w.control.Anchor()
	if w.compact {
		w.calls.Compact(prooftest.Compaction{Watermark: int64(len(w.calls.Segments))})
	}
	w.bucket = prooftest.Bucket(w.archive.Objects())
}

// place puts a record into the place of a row.
func place(into *audit.Record, r audit.Record) {
	r.Topic, r.Partition, r.KafkaOffset, r.KafkaTimestamp = into.Topic, into.Partition, into.KafkaOffset, into.KafkaTimestamp
	r.Seq, r.ArchivedAt, r.TopicID, r.Epoch = into.Seq, into.ArchivedAt, into.TopicID, into.Epoch
	*into = r
}

func placeOrder(into *audit.Record, m audit.Message) {
	var r audit.Record
	if reject := (&audit.Decoder{Control: true}).Decode(&r, &m); reject != nil {
		panic(reject.Detail)
	}
	place(into, r)
}

func (w *world) now() archive.Ranger {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bucket
}

func (w *world) Get(ctx context.Context, key string) ([]byte, error) { return w.now().Get(ctx, key) }

func (w *world) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	return w.now().GetTail(ctx, key, n)
}

func (w *world) GetRange(ctx context.Context, key string, offset, n int64) ([]byte, error) {
	return w.now().GetRange(ctx, key, offset, n)
}

func (w *world) List(ctx context.Context, prefix, after string) iter.Seq2[archive.Object, error] {
	return w.now().List(ctx, prefix, after)
}

// open returns the ledger of a world, which looks at the archive each time.
func (w *world) open(t *testing.T, o archived.Options) *archived.Ledger {
	t.Helper()
	a, err := export.Open(t.Context(), w, export.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o.MaxAge = -1
	return archived.New(a, o)
}

// The archive keeps what every form must keep, compacted or not.
func TestArchived(t *testing.T) {
	for name, compact := range map[string]bool{"segments": false, "data files": true} {
		t.Run(name, func(t *testing.T) {
			ledgertest.Run(t, func(t *testing.T) ledgertest.Form {
				w := newWorld(compact)
				l := w.open(t, archived.Options{Send: w.send})
				evidence, err := l.Evidence(t.Context(), "somebody", w.calls.Line)
				if err != nil {
					t.Fatal(err)
				}
				return ledgertest.Form{
					Ledger: w, Query: l, SoftDelete: l, Evidence: evidence, Settle: w.settle, Keeps: true, Deletes: true,
					Log: func(ctx context.Context, tenant string) ([]*ledger.Record, chain.Hash, error) {
						records, initial, err := l.Log(ctx, tenant, w.calls.Line, 0, 1000)
						if err != nil || len(records) == 0 {
							return nil, initial, err
						}
						if b := evidence.VerifySequence(records[:1], initial); b != nil { // the rejected row
							t.Errorf("broken: %+v", b)
						}
						return records[1:], records[0].Row.RowHash, nil
					},
				}
			})
		})
	}
}

// An order is sent once, with what was asked for, as ledgerlake-compact erase makes
// it; one that could not be sent is not taken for sent.
func TestOrderIsSentOnce(t *testing.T) {
	w := newWorld(false)
	l := w.open(t, archived.Options{Send: w.send})
	c := ledgertest.Call("t-1", 1)
	if err := w.RecordCall(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.refuses = errors.New("no broker")
	if _, err := l.SoftDelete(t.Context(), ledgertest.Tenant, c.RecordID, ledger.Request{}); !errors.Is(err, w.refuses) {
		t.Errorf("got %v", err)
	}
	w.refuses = nil
	first, err := l.SoftDelete(t.Context(), ledgertest.Tenant, strings.ToLower(c.RecordID), ledger.Request{Reason: "gdpr", RequestRef: "R-1", By: "dpo"})
	if err != nil || w.sent != 1 {
		t.Fatalf("%v, %d sent", err, w.sent)
	}
	var order struct {
		RecordID, TenantID, Reason, RequestRef, By string
		Slots                                      any
		Target                                     map[string]string
	}
	if err := json.Unmarshal(w.orders[0].Value, &order); err != nil {
		t.Fatal(err)
	}
	if order.RecordID != first.ID || order.TenantID != ledgertest.Tenant || order.Reason != "gdpr" || order.RequestRef != "R-1" || order.By != "dpo" ||
		order.Slots != "*" || len(order.Target) != 1 || order.Target["recordId"] != c.RecordID || string(w.orders[0].Key) != ledgertest.Tenant {
		t.Errorf("%s", w.orders[0].Value)
	}
	w.settle()
	other := w.open(t, archived.Options{Send: w.send}) // of another process, which sees what is archived
	again, err := other.SoftDelete(t.Context(), ledgertest.Tenant, c.RecordID, ledger.Request{Reason: "again"})
	if err != nil || again != first || w.sent != 1 {
		t.Errorf("%v, %v, %d sent", again, err, w.sent)
	}
	got, err := other.Turn(t.Context(), ledgertest.Tenant, "s-1", "t-1")
	if err != nil || len(got) != 1 || len(got[0].Gated) != 1 || got[0].Gated[0] != first.ID {
		t.Errorf("%v, %v", got, err)
	}
}

// Who asks for what another one is just ordering hears what came of that order, and
// orders it where it could not be sent: none is told of an order that is not there.
func TestWhoWaitsForAnOrder(t *testing.T) {
	w := newWorld(false)
	c := ledgertest.Call("t-1", 1)
	if err := w.RecordCall(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	w.settle()
	var mu sync.Mutex
	outcomes := []chan error{make(chan error), make(chan error)}
	begun, n := make(chan struct{}, 2), 0
	l := w.open(t, archived.Options{Send: func(_ context.Context, m audit.Message) error {
		mu.Lock()
		outcome := outcomes[n]
		n++
		mu.Unlock()
		begun <- struct{}{}
		if err := <-outcome; err != nil {
			return err
		}
		return w.send(t.Context(), m)
	}})
	type heard struct {
		s   chain.Sentinel
		err error
	}
	all := make(chan heard, 3)
	ask := func() {
		s, err := l.SoftDelete(t.Context(), ledgertest.Tenant, c.RecordID, ledger.Request{})
		all <- heard{s, err}
	}
	go ask()
	<-begun
	go ask()
	go ask()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.SoftDelete(gone, ledgertest.Tenant, c.RecordID, ledger.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("who does not wait: %v", err)
	}
	refused := errors.New("no broker")
	outcomes[0] <- refused
	if h := <-all; !errors.Is(h.err, refused) {
		t.Errorf("the first: %v", h.err)
	}
	<-begun // one of the others sends it now
	outcomes[1] <- nil
	a, b := <-all, <-all
	if a.err != nil || b.err != nil || a.s != b.s || a.s.ID == "" || w.sent != 1 {
		t.Errorf("%+v, %+v, %d sent", a, b, w.sent)
	}
}

// An order that was cancelled is none: who asks again has another one sent.
func TestCancelledIsOrderedAgain(t *testing.T) {
	w := newWorld(false)
	l := w.open(t, archived.Options{Send: w.send})
	c := ledgertest.Call("t-1", 1)
	if err := w.RecordCall(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	w.settle()
	first, err := l.SoftDelete(t.Context(), ledgertest.Tenant, c.RecordID, ledger.Request{Reason: "r", By: "b"})
	if err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.control.Segment(func(b *prooftest.Batch) {
		b.Order(ledgertest.Tenant, audit.KindRedactionCancelled, prooftest.OrderID(9), map[string]any{"redactionId": first.ID, "reason": "r", "by": "b"})
	})
	w.settle()
	again, err := l.SoftDelete(t.Context(), ledgertest.Tenant, c.RecordID, ledger.Request{Reason: "r", By: "b"})
	if err != nil || again.ID == first.ID || w.sent != 2 {
		t.Errorf("%v, %v, %d sent", again, err, w.sent)
	}
}

// Without Send there is no deletion, and none of many tenants at once is asked for.
func TestWhatIsRefused(t *testing.T) {
	w := newWorld(false)
	l := w.open(t, archived.Options{})
	if _, err := l.SoftDelete(t.Context(), ledgertest.Tenant, ledgertest.Call("t", 1).RecordID, ledger.Request{}); !errors.Is(err, ledger.ErrUnwired) {
		t.Errorf("SoftDelete: %v", err)
	}
	for _, err := range l.Range(t.Context(), "", ledger.Range{}) {
		if !errors.Is(err, audit.ErrTenant) {
			t.Errorf("Range: %v", err)
		}
	}
	if _, err := l.Turn(t.Context(), "", "s", "t"); !errors.Is(err, audit.ErrTenant) {
		t.Errorf("Turn: %v", err)
	}
	if _, err := l.Session(t.Context(), "_partition", "s", ledger.Page{}); !errors.Is(err, audit.ErrTenant) {
		t.Errorf("Session: %v", err)
	}
	if _, err := l.Evidence(t.Context(), "nobody", w.calls.Line); !errors.Is(err, archived.ErrNoLog) {
		t.Errorf("Evidence: %v", err)
	}
}

// A call that was sent twice, so far apart that ingest took both, comes once; and
// what else is in a turn (entries, rejects) does not come.
func TestRepeatsComeOnce(t *testing.T) {
	for name, compact := range map[string]bool{"segments": false, "data files": true} {
		w := newWorld(compact)
		l := w.open(t, archived.Options{})
		for range 2 {
			for n := range 3 {
				w.seen = map[audit.Fingerprint]bool{} // forgotten
				if err := w.RecordCall(t.Context(), ledgertest.Call("t-1", n)); err != nil {
					t.Fatal(err)
				}
			}
			w.settle()
		}
		turn, err := l.Turn(t.Context(), ledgertest.Tenant, "s-1", "t-1")
		session, err2 := l.Session(t.Context(), ledgertest.Tenant, "s-1", ledger.Page{})
		if len(turn) != 3 || len(session) != 3 || err != nil || err2 != nil {
			t.Errorf("%s: %d in the turn, %d in the session; %v, %v", name, len(turn), len(session), err, err2)
		}
	}
}

// A session is found behind pages of rows that are no calls.
func TestSessionAmongOtherRows(t *testing.T) {
	w := newWorld(false)
	l := w.open(t, archived.Options{})
	for n := range 3 {
		if err := w.RecordCall(t.Context(), ledgertest.Call("t-1", n)); err != nil {
			t.Fatal(err)
		}
	}
	for n := range int64(20) { // newer than the calls
		e := ledger.Entry{TenantID: ledgertest.Tenant, SessionID: "s-1", TraceID: "t-9", Seq: n, TS: ledgertest.Call("", 100+int(n)).CreatedAt, Kind: audit.KindToolCall}
		var r audit.Record
		if reject := new(audit.Decoder).Decode(&r, &audit.Message{Key: []byte(ledgertest.Tenant), Value: e.AppendJSON(nil)}); reject != nil {
			t.Fatal(reject.Detail)
		}
		w.rows = append(w.rows, r)
	}
	w.settle()
	got, err := l.Session(t.Context(), ledgertest.Tenant, "s-1", ledger.Page{Limit: 2})
	if err != nil || len(got) != 2 || got[0].SeqWithinTurn != 2 || got[1].SeqWithinTurn != 1 {
		t.Errorf("%v, %v", got, err)
	}
}
