// Package emit sends records from a producer in Go to the topic that
// ledgerlake-ingest archives.
//
//	e, err := emit.New(emit.Options{Topic: "audit.calls", Kafka: []kgo.Opt{kgo.SeedBrokers("localhost:9092")}})
//	…
//	defer e.Close()
//	e.StartTurn(messageID, emit.Turn{Session: session, Principal: ledger.Principal{TenantID: "acme"}})
//	defer e.EndTurn(messageID)
//	e.RecordFamilyLockDecision(ctx, emit.Site{TurnKey: messageID, Provider: "anthropic"}, ledger.FamilyLock{…})
//
// A call that records something returns at once, whatever Kafka does, and never
// fails or panics into its caller: it makes the bytes of the record and puts them
// into a queue, which is all that it does. It does no I/O, and no lock that it
// takes is held during any. A goroutine of the emitter's takes the queue to
// Kafka, at the latest 50 ms or 32 records later, and at once when a turn ends.
//
// The queue is bounded, in records and in bytes. When it is full the oldest
// record goes, and is counted; the count itself is sent as a record of kind
// queue-dropped, so that the archive knows how many of a tenant's records it has
// never seen. What was acknowledged, what was dropped and what is still waiting
// add up to what was recorded: see [Stats].
//
// [Emitter.RecordSync] is for those to whom the audit is a step of the work: it
// returns once brokers have acknowledged the record, or says why not.
//
// # What the emitter fills in
//
//	recordId       a ULID, monotonic in the process
//	createdAt      the time of the call
//	seqWithinTurn  a counter of the turn: see [Turn]
//	sessionId, turnId, principal   those of the turn that the call names
//
// # What it does not do
//
// It keeps nothing on disk: what is in the queue when the process is killed is
// gone, and no count says so. Who cannot bear that uses RecordSync.
package emit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/ledger"
)

// What Options mean where they say nothing.
const (
	DefaultQueue        = 10_000
	DefaultQueueBytes   = 64 << 20
	DefaultTurns        = 100_000
	DefaultCloseTimeout = 2 * time.Second
)

// Options say where records go. Topic and Kafka are required; all else has a
// default.
type Options struct {
	Topic string
	// Kafka is how brokers are reached: kgo.SeedBrokers, and kgo.DialTLSConfig and
	// kgo.SASL where they are needed. Records are written once and acknowledged by
	// all replicas in sync: options that would change that are an error.
	Kafka []kgo.Opt
	// Queue is how many records may be on their way, those that brokers have not
	// acknowledged yet included, and QueueBytes how large their values may be
	// together. 0: [DefaultQueue], [DefaultQueueBytes].
	Queue      int
	QueueBytes int64
	// Turns is how many turns are known at a time; the oldest are forgotten.
	// 0: [DefaultTurns].
	Turns int
	// CloseTimeout is how long Close waits for brokers. 0: [DefaultCloseTimeout].
	CloseTimeout time.Duration
	// Redactor takes out of each call what must not leave the process: see package
	// ledger/scrub. It works in the caller's time. A call that it cannot take is not
	// sent. Decisions and entries go as they are. nil takes nothing out.
	Redactor ledger.Redactor
	// Traceparent returns the W3C trace context of a call's context, or "": it
	// becomes the header traceparent. It must not block. nil: there is none.
	Traceparent func(ctx context.Context) string
	// Trouble is told what went wrong: a broker that cannot be reached, a record that
	// was dropped or refused, a turn that nobody started. It is told one thing at a
	// time, of each kind one every ten seconds at most, and not all where many things
	// go wrong: it is for a log, and Stats count. It is called by a goroutine of its
	// own, so that it may block; a panic of it is swallowed. nil tells nobody.
	Trouble func(err error)
}

// Errors of an emitter.
var (
	// ErrClosed: the emitter is closed.
	ErrClosed = errors.New("the emitter is closed")
	// ErrUnknownTurn: no turn of that key was started, or it was forgotten.
	ErrUnknownTurn = errors.New("no such turn was started")
	// ErrDropped: the queue is full, and the oldest records go.
	ErrDropped = errors.New("the queue is full, and the oldest records go: do brokers answer?")
	// ErrOptions is matched by every error of [New].
	ErrOptions = errors.New("emit")
)

// An Emitter records calls, decisions and entries. It may be used by any number of
// goroutines at once. The nil Emitter records nothing: it is the form for
// applications that have turned auditing off.
type Emitter struct {
	o     Options
	to    carrier
	queue *queue
	turns *turns
	ids   *ids
	tell  chan trouble
	slots chan struct{} // of records that somebody waits for
	now   func() time.Time

	closing sync.Once
	closed  error
}

// A carrier is as much of a Kafka client as an emitter needs.
type carrier interface {
	// Produce may block. The promise is called once for each record.
	Produce(ctx context.Context, r *kgo.Record, promise func(*kgo.Record, error))
	Close()
}

// New returns an emitter. It reaches no broker yet: one that is away is waited for
// in the background.
func New(o Options) (*Emitter, error) {
	if o.Topic == "" {
		return nil, fmt.Errorf("%w: Topic is empty: name the topic that ledgerlake-ingest reads", ErrOptions)
	}
	e := made(o)
	client, err := kgo.NewClient(slices.Concat([]kgo.Opt{kgo.ClientID(clientID), kgo.RetryBackoffFn(backoff), kgo.MetadataMinAge(metadataAge)}, o.Kafka, []kgo.Opt{
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0),             // the queue does that
		kgo.MaxBufferedRecords(1 << 30),   // and bounds it
		kgo.UnknownTopicRetries(-1),       // a topic may come later than its producers
		kgo.RecordPartitioner(byTenant()), // whatever the defaults become
		kgo.WithHooks(connecting{e}),
	})...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if err := once(client); err != nil {
		client.Close()
		return nil, err
	}
	e.run(client)
	return e, nil
}

// connecting tells of brokers that cannot be reached.
type connecting struct{ e *Emitter }

// OnBrokerConnect is kgo.HookBrokerConnect.
func (c connecting) OnBrokerConnect(b kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil {
		at := net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
		c.e.trouble(at, fmt.Errorf("broker %s: %w", at, err))
	}
}

// clientID is what brokers know the emitter by, unless Options.Kafka says otherwise.
const clientID = "ledgerlake-emit"

// metadataAge is how long a look at the cluster holds at least: where brokers went
// away, and come back, the next one finds them.
const metadataAge = 500 * time.Millisecond

// backoff is how long to wait before a broker is tried again, unless Options.Kafka
// says otherwise. franz-go's own grows to 2.5 s, in which a full queue loses a lot.
func backoff(tries int) time.Duration {
	const most = 800 * time.Millisecond
	return min(50*time.Millisecond<<min(tries, 5), most)/2 + rand.N(most/4)
}

// byTenant spreads records by their key as all Kafka clients do, so that a tenant's
// go one way, whoever sends them.
func byTenant() kgo.Partitioner { return kgo.StickyKeyPartitioner(nil) }

// once refuses a client that could write a record twice, or give one up.
func once(client *kgo.Client) error {
	for _, c := range []struct {
		name  string
		value any
		good  func(any) bool
	}{
		{"DisableIdempotentWrite", client.OptValue(kgo.DisableIdempotentWrite), func(v any) bool { return v == false }},
		{"RecordDeliveryTimeout", client.OptValue(kgo.RecordDeliveryTimeout), func(v any) bool { return v == time.Duration(0) }},
		{"ManualFlushing", client.OptValue(kgo.ManualFlushing), func(v any) bool { return v == false }},
		{"TransactionalID", client.OptValue(kgo.TransactionalID), func(v any) bool { return v == "" || v == nil }},
	} {
		if !c.good(c.value) {
			return fmt.Errorf("%w: Kafka has kgo.%s: records are written once, by themselves, and waited for until the queue is full: leave it out", ErrOptions, c.name)
		}
	}
	return nil
}

// made returns an emitter that does not run yet.
func made(o Options) *Emitter {
	if o.Queue <= 0 {
		o.Queue = DefaultQueue
	}
	if o.QueueBytes <= 0 {
		o.QueueBytes = DefaultQueueBytes
	}
	if o.Turns <= 0 {
		o.Turns = DefaultTurns
	}
	if o.CloseTimeout <= 0 {
		o.CloseTimeout = DefaultCloseTimeout
	}
	return &Emitter{
		o: o, now: time.Now, ids: newIDs(), turns: newTurns(o.Turns), queue: newQueue(o.Queue, o.QueueBytes),
		tell: make(chan trouble, 1), slots: make(chan struct{}, maxSync),
	}
}

// run begins to send.
func (e *Emitter) run(to carrier) {
	e.to = to
	s := &sender{queue: e.queue, to: to, topic: e.o.Topic, id: e.ids.next(e.now()), newID: func() string { return e.ids.next(e.now()) }, trouble: e.trouble}
	go s.run()
	if e.o.Trouble != nil {
		go e.tellAll()
	}
}

// A trouble is something that went wrong. What is about the same is told once in a
// while.
type trouble struct {
	about string
	err   error
}

// What troubles are about, but for brokers, which are about their addresses.
const (
	aboutTurns  = "turns"
	aboutDrops  = "drops"
	aboutFails  = "fails"
	aboutPanics = "panics"
	aboutRedact = "redaction"
)

// trouble notes what went wrong, unless something is noted already.
func (e *Emitter) trouble(about string, err error) {
	if e.o.Trouble == nil {
		return
	}
	select {
	case e.tell <- trouble{about, err}:
	default:
	}
}

// again is how long trouble about the same is not told again.
const again = 10 * time.Second

// maxAbout is how many things are remembered that trouble was told about.
const maxAbout = 100

// tellAll tells what went wrong, until the emitter is closed.
func (e *Emitter) tellAll() {
	told := map[string]time.Time{}
	for {
		select {
		case t := <-e.tell:
			at := e.now()
			if last, ok := told[t.about]; ok && at.Sub(last) < again {
				continue
			}
			if len(told) >= maxAbout {
				clear(told)
			}
			told[t.about] = at
			e.tellOne(t.err)
		case <-e.queue.gone:
			return
		}
	}
}

// tellOne tells of one thing. A panic of whoever is told ends with it, and not the
// process.
func (e *Emitter) tellOne(err error) {
	defer func() { _ = recover() }()
	e.o.Trouble(err)
}

// Stats are counts since the emitter began. At every moment
//
//	Recorded = Acknowledged + Dropped + Failed + Waiting
//
// queue-dropped records are not among them.
type Stats struct {
	Recorded     int64 // records that were made and, but for RecordSync's, queued
	Acknowledged int64 // by all replicas in sync
	Dropped      int64 // because the queue was full
	Failed       int64 // brokers refused them, or Close gave them up; see [Emitter.Close]
	Waiting      int64 // in the queue, and on their way to brokers
	WaitingBytes int64 // their values

	Unattributed int64 // calls that named no known turn: no record was made
	Swallowed    int64 // calls that panicked, as a MarshalJSON of the application's did, or that Redactor could not take: no record was made
	Refused      int64 // calls after Close: no record was made
}

// Stats returns the counts.
func (e *Emitter) Stats() Stats {
	if e == nil {
		return Stats{}
	}
	return e.queue.stats()
}

// Flush sends what is waiting, and returns nil once all that was recorded before
// is acknowledged, dropped or failed. An error is that of ctx, or [ErrClosed] where Close
// gave some up.
func (e *Emitter) Flush(ctx context.Context) error {
	if e == nil {
		return nil
	}
	f := e.queue.settled()
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		e.queue.forsake(f)
		return ctx.Err()
	case <-e.queue.gone:
	}
	select {
	case <-f.done: // before it was closed
		return nil
	default:
		return ErrClosed
	}
}

// An Undelivered is the error of a Close that did not see everything acknowledged.
type Undelivered struct {
	// Records were waiting when the time was up, and are given up: brokers may
	// have some of them, without having said so.
	Records int64
	// Uncounted are records that were dropped or refused, and of which no
	// queue-dropped record has told: the archive does not know that they are
	// missing.
	Uncounted int64
}

func (u *Undelivered) Error() string {
	return fmt.Sprintf("emit: closed with %d records that brokers have not acknowledged, and %d dropped ones that no record tells of", u.Records, u.Uncounted)
}

// Close takes no more records, sends what is waiting and the counts of what was
// dropped, and closes the connections. It returns within [Options.CloseTimeout]
// and a moment: nil where everything was acknowledged, else an [*Undelivered]. A
// second Close returns what the first did.
func (e *Emitter) Close() error {
	if e == nil {
		return nil
	}
	e.closing.Do(func() { e.closed = e.close() })
	return e.closed
}

func (e *Emitter) close() error {
	timeout := time.NewTimer(e.o.CloseTimeout)
	defer timeout.Stop()
	select {
	case <-e.queue.drain():
	case <-timeout.C:
		timeout.Reset(0)
	}
	left := e.queue.end()
	closed := make(chan struct{})
	go func() {
		e.to.Close() // it fails what it still has, and may wait for brokers
		close(closed)
	}()
	select {
	case <-closed:
	case <-timeout.C:
	}
	if left != (Undelivered{}) {
		return &left
	}
	return nil
}
