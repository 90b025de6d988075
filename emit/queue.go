package emit

import (
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// An entry is a record on its way.
type entry struct {
	tenant  string
	value   []byte
	headers []kgo.RecordHeader // shared; not changed
	at      time.Time
	epoch   int64
	done    func(error) // of one that somebody waits for; nil of all others
}

// A queue holds records until brokers have acknowledged them. No method waits for
// anything but the lock, which nobody holds for longer than a method takes.
//
//	add, addUrgent ──▶ waiting ── take ──▶ away ── settle ──▶ acknowledged, failed
//	                      └── the oldest, where there is no room ──▶ dropped
type queue struct {
	max      int
	maxBytes int64
	wake     chan struct{} // something changed that the sender may wait for
	gone     chan struct{} // closed at the end

	mu      sync.Mutex
	urgent  []entry // taken first, and never dropped
	waiting ring
	since   time.Time // when the oldest of waiting came, about
	away    int
	hasty   bool // what is waiting goes at once
	closed  bool
	over    bool
	count   Stats
	told    map[string]*loss // by tenant
	losses  []*loss          // those of told of which something is to be told
	telling int              // records that tell a loss and are on their way
	untold  int64            // losses of tenants for which told had no room
	epoch   int64
	open    map[int64]int64 // records by epoch that are not settled
	first   int64           // the first epoch that has some, or may get some
	flushes []*flush        // by epoch
	drained chan struct{}
}

// A loss is what is lost of one tenant's records.
type loss struct {
	tenant  string
	full    int64 // records that went because the queue was full
	refused int64 // records that brokers refused
	told    int64 // of both together, what brokers have acknowledged
	listed  bool
	away    bool // a record that tells it is on its way
}

func (l *loss) count() int64 { return l.full + l.refused }

// A flush waits until all epochs up to its own are settled.
type flush struct {
	epoch int64
	done  chan struct{}
	asked int // callers that wait for it
}

func newQueue(most int, maxBytes int64) *queue {
	return &queue{
		max: most, maxBytes: maxBytes, wake: make(chan struct{}, 1), gone: make(chan struct{}),
		told: map[string]*loss{}, open: map[int64]int64{},
	}
}

func (q *queue) nudge() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// add puts a record into the queue. Where there is no room the oldest ones go; if
// it would find none even so, it goes alone. It reports false where one went.
func (q *queue) add(n entry) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		q.count.Refused++
		return true
	}
	q.enter(&n)
	if q.count.Waiting-int64(q.waiting.n) > int64(q.max) || q.count.WaitingBytes-q.waiting.bytes > q.maxBytes {
		q.drop(n)
		return false
	}
	dropped := q.count.Dropped
	for !q.fits() {
		q.drop(q.waiting.pop())
	}
	if q.waiting.n == 0 {
		q.since = n.at
	}
	q.waiting.push(n)
	if q.waiting.n == 1 || q.waiting.n == batch {
		q.nudge()
	}
	return q.count.Dropped == dropped
}

// addUrgent puts in a record that somebody waits for.
func (q *queue) addUrgent(n entry) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		q.count.Refused++
		return false
	}
	q.enter(&n)
	q.urgent = append(q.urgent, n)
	q.nudge()
	return true
}

// refuses reports whether no record is taken any more.
func (q *queue) refuses() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		q.count.Refused++
	}
	return q.closed
}

// enter counts a record that comes.
func (q *queue) enter(n *entry) {
	n.epoch = q.epoch
	q.open[n.epoch]++
	q.count.Recorded++
	q.count.Waiting++
	q.count.WaitingBytes += int64(len(n.value))
}

// leave counts one that goes.
func (q *queue) leave(n *entry) {
	q.count.Waiting--
	q.count.WaitingBytes -= int64(len(n.value))
	if q.open[n.epoch]--; q.open[n.epoch] > 0 {
		return
	}
	delete(q.open, n.epoch)
	for len(q.flushes) > 0 && q.settledTo(q.flushes[0].epoch) {
		close(q.flushes[0].done)
		q.flushes = q.flushes[1:]
	}
}

// settledTo reports whether no record of an epoch, or one before, is open. It is
// one that gets no more.
func (q *queue) settledTo(epoch int64) bool {
	for q.first < q.epoch && q.open[q.first] == 0 {
		q.first++
	}
	return q.first > epoch
}

func (q *queue) fits() bool {
	return q.count.Waiting <= int64(q.max) && q.count.WaitingBytes <= q.maxBytes
}

func (q *queue) drop(n entry) {
	q.leave(&n)
	q.count.Dropped++
	q.lose(n.tenant, 1, 0)
}

// maxTold is how many tenants' losses are told of. Beyond it they are counted, and
// the last Close tells how many.
const maxTold = 100_000

// lose notes that a record of a tenant will not come.
func (q *queue) lose(tenant string, full, refused int64) {
	l := q.told[tenant]
	if l == nil {
		if len(q.told) >= maxTold {
			q.untold++
			return
		}
		l = &loss{tenant: tenant}
		q.told[tenant] = l
	}
	l.full += full
	l.refused += refused
	q.list(l)
}

func (q *queue) list(l *loss) {
	if !l.listed && !l.away && l.count() > l.told {
		l.listed = true
		q.losses = append(q.losses, l)
		q.nudge()
	}
}

// hurry lets what is waiting go at once.
func (q *queue) hurry() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hasty = q.hasty || q.waiting.n > 0
	q.nudge()
}

// settled returns a flush that is done once all that is in the queue now is settled.
// Who does not wait for it any more says so: see forsake.
func (q *queue) settled() *flush {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.flushes); n > 0 && q.flushes[n-1].epoch == q.epoch-1 && q.open[q.epoch] == 0 {
		q.flushes[n-1].asked++ // nothing came since
		return q.flushes[n-1]
	}
	f := &flush{q.epoch, make(chan struct{}), 1}
	q.epoch++
	if q.settledTo(f.epoch) {
		close(f.done)
		return f
	}
	q.flushes = append(q.flushes, f)
	q.hasty = q.hasty || q.waiting.n > 0
	q.nudge()
	return f
}

// forsake forgets a flush that nobody waits for any more: who flushes again and again
// while brokers are away must not make each record dearer than the one before.
func (q *queue) forsake(f *flush) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if f.asked--; f.asked == 0 {
		q.flushes = slices.DeleteFunc(q.flushes, func(g *flush) bool { return g == f })
	}
}

// drain takes no more records, and returns a channel that is closed once nothing
// is waiting and all losses are told.
func (q *queue) drain() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.hasty = true, true
	done := make(chan struct{})
	q.drained = done
	q.checkDrained()
	q.nudge()
	return done
}

func (q *queue) checkDrained() {
	if q.drained == nil || q.count.Waiting > 0 || len(q.losses) > 0 || q.telling > 0 {
		return
	}
	close(q.drained)
	q.drained = nil
}

// end gives up what is still there, and says how much that is.
func (q *queue) end() Undelivered {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := Undelivered{Records: q.count.Waiting, Uncounted: q.untold}
	for _, l := range q.told {
		left.Uncounted += l.count() - l.told
	}
	for _, n := range q.urgent {
		n.done(ErrClosed)
	}
	q.count.Failed += q.count.Waiting
	q.count.Waiting, q.count.WaitingBytes = 0, 0
	q.urgent, q.waiting, q.over = nil, ring{}, true
	close(q.gone)
	return left
}

func (q *queue) stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count
}

func (q *queue) unattributed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.count.Unattributed++
}

func (q *queue) swallowed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.count.Swallowed++
}

// take appends to dst the records that are to go now, at most room of them, and
// returns how long to wait for more: 0 where only a nudge can bring any.
func (q *queue) take(dst []entry, room int, now time.Time) (taken []entry, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	room -= q.away
	for len(q.urgent) > 0 && room > 0 {
		dst = append(dst, q.urgent[0])
		q.urgent = q.urgent[1:]
		room--
		q.away++
	}
	if q.waiting.n == 0 {
		q.hasty = false
		return dst, 0
	}
	if age := now.Sub(q.since); !q.hasty && q.waiting.n < batch && age < linger {
		return dst, linger - max(age, 0)
	}
	for q.waiting.n > 0 && room > 0 {
		dst = append(dst, q.waiting.pop())
		room--
		q.away++
	}
	if q.waiting.n == 0 {
		q.hasty = false
	}
	return dst, 0
}

// settle notes what became of a record that was taken.
func (q *queue) settle(n *entry, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return
	}
	q.away--
	q.leave(n)
	if err == nil {
		q.count.Acknowledged++
	} else {
		q.count.Failed++
		if n.done == nil { // who waits for it knows
			q.lose(n.tenant, 0, 1)
		}
	}
	q.checkDrained()
	q.nudge()
}

// A lossNote is a loss that is to be told.
type lossNote struct {
	of   *loss
	loss // as it was
}

// maxTelling is how many records that tell a loss may be on their way: where
// thousands of tenants lose some, the others wait for their turn.
const maxTelling = 500

// takeLosses returns what is to be told now.
func (q *queue) takeLosses() (notes []lossNote) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.losses), maxTelling-q.telling)
	for _, l := range q.losses[:n] {
		l.listed, l.away = false, true
		notes = append(notes, lossNote{l, *l})
	}
	q.losses = append(q.losses[:0], q.losses[n:]...)
	q.telling += n
	return notes
}

// tellsLosses says whether something is to be told, and whether at once.
func (q *queue) tellsLosses() (some, now bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.losses) > 0, q.closed
}

// settleLoss notes what became of a record that told a loss.
func (q *queue) settleLoss(n lossNote, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n.of.away = false
	q.telling--
	if err == nil {
		n.of.told = n.count()
	}
	q.list(n.of)
	if !q.over {
		q.checkDrained()
	}
	q.nudge()
}

// A ring is a queue of entries in an array that grows.
type ring struct {
	all     []entry
	from, n int
	bytes   int64 // of all values
}

func (r *ring) push(n entry) {
	if r.n == len(r.all) {
		grown := make([]entry, max(2*len(r.all), 64))
		copied := copy(grown, r.all[r.from:])
		copy(grown[copied:], r.all[:r.from])
		r.all, r.from = grown, 0
	}
	r.all[(r.from+r.n)%len(r.all)] = n
	r.n++
	r.bytes += int64(len(n.value))
}

func (r *ring) pop() entry {
	n := r.all[r.from]
	r.all[r.from] = entry{} // its bytes may go
	r.from = (r.from + 1) % len(r.all)
	r.n--
	r.bytes -= int64(len(n.value))
	return n
}
