package emit

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/ledger"
)

const (
	batch  = 32                    // records that go without waiting for more
	linger = 50 * time.Millisecond // how long fewer wait
	// tellEvery is how often losses are told, but for the last time.
	tellEvery = time.Second
)

// A sender takes records from the queue to Kafka.
type sender struct {
	queue   *queue
	to      carrier
	topic   string
	id      string // of this life of the emitter
	newID   func() string
	trouble func(about string, err error)

	seq      int64 // of the next record that tells a loss
	lastTold time.Time
	taken    []entry
}

// run sends until the queue is gone.
func (s *sender) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := s.send(time.Now())
		timer.Reset(wait)
		select {
		case <-s.queue.gone:
			return
		case <-s.queue.wake:
		case <-timer.C:
		}
	}
}

// window is how many records may be with the client: half of the queue, so that
// there is always one that can be dropped.
func (s *sender) window() int { return max(min(s.queue.max/2, 5000), 1) }

// send sends what is to go now, and returns how long to wait for more.
func (s *sender) send(now time.Time) time.Duration {
	wait := s.tellLosses(now)
	taken, sooner := s.queue.take(s.taken[:0], s.window(), now)
	for i := range taken {
		s.produce(taken[i])
	}
	clear(taken)
	s.taken = taken
	if sooner > 0 {
		wait = min(wait, sooner)
	}
	return wait
}

// produce hands one record to the client.
func (s *sender) produce(n entry) {
	r := &kgo.Record{Topic: s.topic, Key: []byte(n.tenant), Value: n.value, Headers: n.headers, Timestamp: n.at}
	s.to.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
		s.queue.settle(&n, err)
		if err != nil {
			s.trouble(aboutFails, fmt.Errorf("a record of %d bytes for topic %s: %w", len(n.value), s.topic, err))
		}
		if n.done != nil {
			n.done(err)
		}
	})
}

// tellLosses sends the counts of what was lost, and returns how long to wait for
// the next time.
func (s *sender) tellLosses(now time.Time) time.Duration {
	some, atOnce := s.queue.tellsLosses()
	if !some {
		return time.Hour
	}
	if rest := tellEvery - now.Sub(s.lastTold); rest > 0 && !atOnce {
		return rest
	}
	s.lastTold = now
	for _, n := range s.queue.takeLosses() {
		s.to.Produce(context.Background(), s.lossRecord(n, now), func(_ *kgo.Record, err error) { s.queue.settleLoss(n, err) })
	}
	return tellEvery
}

// lossRecord is a record of kind queue-dropped: an entry of the log that this life
// of the emitter is. traceId is the emitter's own id, and count is how many of the
// tenant's records it has lost since it began, so that the greatest count of each
// traceId is what is missing.
func (s *sender) lossRecord(n lossNote, now time.Time) *kgo.Record {
	e := ledger.Entry{
		TenantID: n.tenant, RecordID: s.newID(), TraceID: s.id, Seq: s.seq, TS: now.Truncate(time.Millisecond), Kind: audit.KindQueueDropped,
		Actor: "system", SourceTag: sourceTag,
		ResultDetail: fmt.Appendf(nil, `{"reason":%q,"count":%d}`, n.reason(), n.count()),
	}
	s.seq++
	return &kgo.Record{Topic: s.topic, Key: []byte(n.tenant), Value: e.AppendJSON(nil), Headers: headersOf(audit.KindQueueDropped, false, ""), Timestamp: now}
}

func (l *loss) reason() string {
	switch {
	case l.refused == 0:
		return "queue-full"
	case l.full == 0:
		return "refused by brokers"
	}
	return "queue-full, refused by brokers"
}

// sourceTag says in records that the emitter itself makes who made them.
const sourceTag = "ledgerlake/emit"
