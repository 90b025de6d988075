package emit

import (
	"container/list"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/ledger"
)

// A Turn is what the records of one turn have in common.
//
// # seqWithinTurn
//
// Records of a turn are numbered in the order in which they are recorded. An
// archive knows a call by tenant, session, turn, stage and number, and refuses a
// second one that says something else; so no two processes, and no two lives of
// one, may give the same number in a turn. Where the numbers begin depends on
// what is known:
//
//	NewTurn                the turn is made here, nobody else knows it      0
//	StartTurn, FirstSeq    the application knows what was given before      FirstSeq
//	StartTurn              another process, or an earlier life of this      Unix time in seconds · 10⁶ + a random number
//	                       one, may have begun the turn                     below 900,000
//
// So a message that is delivered again after a crash goes on behind what was
// recorded before the crash, with a step in the numbers that shows when it was
// taken up. Two that take up a turn within the same second meet only if their
// random numbers lie closer than they record calls: with 100 records each, once in
// 4,500 times. Numbers stay below 2⁵³, so that JavaScript reads them exactly.
//
// A turn that is started again in a process that knows it goes on counting.
type Turn struct {
	Session   string
	TurnID    string // "" is the turn's key
	Principal ledger.Principal
	// Stage is the stageId of records whose site names none.
	Stage         string
	ParentTurnID  string // of a subagent's turn
	SubagentDepth *int64
	FirstSeq      *int64 // see above; not negative, and below 2⁵³
}

// maxFirst bounds FirstSeq: numbers go on from there.
const maxFirst = 1 << 53

// StartTurn says what the records of a turn have in common, until EndTurn. key is
// what sites know the turn by, as the id of the message that it serves. A tenant
// that no archive would take is trouble, and the turn stays unknown.
func (e *Emitter) StartTurn(key string, t Turn) {
	if e == nil {
		return
	}
	defer e.swallow()
	first := takenUp(e.now())
	if t.FirstSeq != nil && *t.FirstSeq >= 0 && *t.FirstSeq < maxFirst {
		first = *t.FirstSeq
	}
	if t.TurnID == "" {
		t.TurnID = key
	}
	e.startTurn(key, t, first)
}

// NewTurn begins a turn that nobody else knows: it makes its id, unless there is
// one, and returns it as the key. Numbers begin at 0.
func (e *Emitter) NewTurn(t Turn) (key string) {
	if e == nil {
		return t.TurnID
	}
	defer e.swallow()
	if t.TurnID == "" {
		t.TurnID = e.ids.next(e.now())
	}
	e.startTurn(t.TurnID, t, 0)
	return t.TurnID
}

func (e *Emitter) startTurn(key string, t Turn, first int64) {
	if err := audit.ValidTenant(t.Principal.TenantID); err != nil {
		e.trouble(aboutTurns, err)
		return
	}
	if t.Session == "" {
		e.trouble(aboutTurns, fmt.Errorf("turn %q has no session: an archive rejects calls without one, unless they name their own", key))
	}
	e.turns.start(key, t, first)
}

// takenUp returns where the numbers of a turn begin that may have some already.
func takenUp(at time.Time) int64 { return at.Unix()*1e6 + rand.Int64N(900_000) }

// EndTurn sends what is waiting at once. It waits for nothing. Records that come
// late for the turn still find it, as long as there is room for it.
func (e *Emitter) EndTurn(key string) {
	if e == nil {
		return
	}
	defer e.swallow()
	e.turns.end(key)
	e.queue.hurry()
}

// A turn is a Turn that was started. It is not changed, but for its counter.
type turn struct {
	Turn
	key  string
	seq  *atomic.Int64 // the number that comes next
	size int
}

// turns are the turns that are known, bounded in number and in bytes: ended ones
// are forgotten first, the oldest of them before the others.
type turns struct {
	max int

	mu    sync.RWMutex
	byKey map[string]*list.Element
	live  *list.List // of *turn, oldest first
	ended *list.List
	bytes int
}

// maxTurnBytes is how much the texts of all turns may take together.
const maxTurnBytes = 64 << 20

func newTurns(most int) *turns {
	return &turns{max: most, byKey: map[string]*list.Element{}, live: list.New(), ended: list.New()}
}

func (t *turns) start(key string, as Turn, first int64) {
	p := &as.Principal
	made := &turn{Turn: as, key: key, seq: new(atomic.Int64)}
	made.size = len(key) + len(as.Session) + len(as.TurnID) + len(as.Stage) + len(as.ParentTurnID) +
		len(p.TenantID) + len(p.UserID) + len(p.ActorKind) + len(p.SessionAuthMethod)
	for _, m := range p.Extra {
		made.size += len(m.Name) + len(m.Value)
	}
	made.seq.Store(first)
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.byKey[key]; known != nil {
		made.goOn(t.forget(known))
	}
	t.byKey[key] = t.live.PushBack(made)
	t.bytes += made.size
	for len(t.byKey) > t.max || t.bytes > maxTurnBytes && len(t.byKey) > 1 {
		t.forget(t.oldest())
	}
}

// goOn takes the counter of the same turn, as it was known before.
func (t *turn) goOn(before *turn) {
	same := before.Session == t.Session && before.TurnID == t.TurnID && before.Principal.TenantID == t.Principal.TenantID
	if same && (t.FirstSeq == nil || *t.FirstSeq <= before.seq.Load()) {
		t.seq = before.seq
	}
}

// oldest returns the turn that is to be forgotten first.
func (t *turns) oldest() *list.Element {
	if first := t.ended.Front(); first != nil {
		return first
	}
	return t.live.Front()
}

func (t *turns) forget(at *list.Element) *turn {
	gone := at.Value.(*turn)
	t.live.Remove(at) // of the one list that it is in
	t.ended.Remove(at)
	delete(t.byKey, gone.key)
	t.bytes -= gone.size
	return gone
}

// maxEnded is how many turns are known after their end.
const maxEnded = 1000

func (t *turns) end(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.byKey[key]
	if at == nil {
		return
	}
	gone := t.forget(at)
	t.byKey[key] = t.ended.PushBack(gone)
	t.bytes += gone.size
	if t.ended.Len() > maxEnded {
		t.forget(t.ended.Front())
	}
}

// find returns a turn, nil if it is unknown.
func (t *turns) find(key string) *turn {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if at := t.byKey[key]; at != nil {
		return at.Value.(*turn)
	}
	return nil
}

// next returns the turn's next number.
func (t *turn) next() int64 { return t.seq.Add(1) - 1 }
