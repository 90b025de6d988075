package compaction

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/retention"
)

// Rules are what a [Governor] goes by. Periods are by the store's clock.
type Rules struct {
	Topic      string        // the control topic
	PurgeAfter time.Duration // a soft order is carried out so long after it was archived, and can be taken back until then
	LateWindow time.Duration // so long after its receipt rows that an order means are erased still; then its own context goes
	Within     time.Duration // so long after it was archived an order is to have a receipt at the latest
	Policies   *retention.Policies
	// Send produces records to the control topic, in order. An error may mean
	// that they arrived all the same: what was sent is sent again until it is
	// seen in the archive, under the same ids, and ingest drops repeats. nil:
	// nothing is sent, so that nothing is receipted, cut or expires.
	Send   func(ctx context.Context, records []audit.Message) error
	Signer note.Signer // of those records; nil signs none
	// ListEvery is how long a line may stay unseen that nobody knew of; 1 minute. The
	// bucket is listed again before a receipt is sent.
	ListEvery time.Duration
	By        string // who orders, in records of expiry
	Warn      func(text string, err error)
}

// A Governor has an engine do what the control logs of its archive order, and
// says there what was done. It may be used by one goroutine at a time; what it
// remembers is found again where it is lost.
type Governor struct {
	Rules
	engine *Engine
	reader *control.Reader

	mu      sync.Mutex
	heads   map[archive.Line]*headMemo
	files   map[archive.Line]fileMemo
	all     []archive.Line // of the bucket, as of the store's time
	listed  time.Time
	sent    map[chain.Hash]time.Time // by the store's clock, when records were sent that were not seen yet, by the hashes of their values
	last    *survey                  // of all lines, when this process led last; nil: never
	expired time.Time                // when policies were looked at last
}

const (
	// expireEvery is how often policies are looked at: they speak of days.
	expireEvery = 10 * time.Minute
	// passesAtOnce is how many passes of a line follow each other before the
	// others have their turn.
	passesAtOnce = 8
	// racesAtOnce is how often in a row another compactor may be faster.
	racesAtOnce = 3
)

// NewGovernor returns a Governor. It reads nothing.
func NewGovernor(e *Engine, r Rules) *Governor {
	r.ListEvery = or(r.ListEvery, time.Minute)
	return &Governor{
		Rules: r, engine: e, heads: map[archive.Line]*headMemo{}, files: map[archive.Line]fileMemo{}, sent: map[chain.Hash]time.Time{},
		reader: control.NewReader(e.Archive, control.ReadOptions{Root: e.Root, Keys: e.Keys, LogKeys: e.LogKeys, Topic: r.Topic}),
	}
}

// A Cycle says what one [Governor.Cycle] did.
type Cycle struct {
	Now      time.Time              // the store's, when it began
	Results  []*Result              // of each pass
	Failed   map[archive.Line]error // [ErrHalted], or the store's; also lines that could not be looked at
	More     bool                   // some line has more to do now
	Sent     int                    // records
	Expiries []*Expiry              // that were ordered by policy, as lead
	Standing []Standing             // of every order, as lead
}

// Cycle reads the control logs, makes passes over lines, and, as lead, sends the
// receipts, cuts and expiries that are due. One of all compactors is to be lead,
// the one that has the control lines; where two are, nothing happens twice. The
// error is that of what concerns all lines: nothing was done then.
func (g *Governor) Cycle(ctx context.Context, lines []archive.Line, lead bool) (*Cycle, error) {
	if lead && g.last == nil {
		last, err := g.surveyAll(ctx)
		if err != nil {
			return nil, err
		}
		g.last = last
	}
	s, err := g.look(ctx, lines)
	if err != nil {
		return nil, err
	}
	c := &Cycle{Now: s.now, Failed: map[archive.Line]error{}}
	for _, l := range lines {
		if err := g.passes(ctx, s, l, c); err != nil {
			if ctx.Err() != nil {
				return c, ctx.Err()
			}
			c.Failed[l] = err
		}
	}
	if !lead {
		return c, nil
	}
	return c, g.leads(ctx, c)
}

// surveyAll looks at every line of the bucket.
func (g *Governor) surveyAll(ctx context.Context) (*survey, error) {
	s, err := g.govern(ctx)
	if err != nil {
		return nil, err
	}
	lines, err := g.linesAt(ctx, s.now)
	if err != nil {
		return nil, err
	}
	s.listed = g.listed
	return s, g.views(ctx, s, lines)
}

// linesAt returns every line of the bucket, as it was listed not long before a time.
func (g *Governor) linesAt(ctx context.Context, now time.Time) (_ []archive.Line, err error) {
	if g.all == nil || now.Sub(g.listed) >= g.ListEvery {
		if g.all, err = g.linesOf(ctx); err != nil {
			return nil, err
		}
		g.listed = now
	}
	return g.all, nil
}

// read reads the control logs.
func (g *Governor) read(ctx context.Context) (*control.Governance, error) { return g.reader.Read(ctx) }

// passes makes passes over a line until nothing is left to do, or others are to
// have their turn.
func (g *Governor) passes(ctx context.Context, s *survey, l archive.Line, c *Cycle) error {
	d, err := g.duties(ctx, s, l)
	if err != nil {
		return err
	}
	races := 0
	for range passesAtOnce {
		r, err := g.engine.Pass(ctx, l, d)
		if errors.Is(err, ErrRaced) {
			if races++; races < racesAtOnce {
				continue
			}
			c.More = true
			return nil
		}
		if err != nil {
			return err
		}
		c.Results = append(c.Results, &r)
		if !r.More {
			return nil
		}
	}
	c.More = true
	return nil
}

// leads sends what is due, as all lines stand after the passes.
func (g *Governor) leads(ctx context.Context, c *Cycle) error {
	s, err := g.surveyAll(ctx)
	if err != nil {
		return err
	}
	for l, err := range s.failed {
		if c.Failed[l] == nil {
			c.Failed[l] = err
		}
	}
	g.last = s
	if c.Standing, err = g.standing(ctx, s); err != nil {
		return err
	}
	if g.Send == nil {
		return nil
	}
	records, err := g.receipts(ctx, s)
	if err != nil {
		g.warn("receipts wait", err)
	}
	more, err := g.expire(ctx, s, c)
	if err != nil {
		g.warn("retention waits", err)
	}
	return g.send(ctx, c, append(records, more...))
}

// receipts returns the records of receipts that are due. The bucket is listed
// again before there are any: a line that nobody knew of may hold rows, too.
func (g *Governor) receipts(ctx context.Context, s *survey) ([]audit.Message, error) {
	records, err := g.receiptsDue(ctx, s)
	if len(records) == 0 || err != nil {
		return nil, err
	}
	known := g.all
	if g.all, err = g.linesOf(ctx); err != nil {
		return nil, err
	}
	if slices.Equal(known, g.all) {
		return records, nil
	}
	if s, err = g.surveyAll(ctx); err != nil {
		return nil, err
	}
	return g.receiptsDue(ctx, s)
}

// expire returns the records of what is due to go by policy.
func (g *Governor) expire(ctx context.Context, s *survey, c *Cycle) ([]audit.Message, error) {
	if g.Policies == nil || !g.expired.IsZero() && s.now.Sub(g.expired) < expireEvery {
		return nil, nil
	}
	all, err := g.expiries(ctx, s, "")
	if err != nil {
		return nil, err
	}
	g.expired = s.now
	for _, x := range all {
		if !x.Nothing() {
			c.Expiries = append(c.Expiries, x)
		}
	}
	return g.expiryRecords(s, all)
}

// sentAtOnce is how many records are produced together.
const sentAtOnce = 200

// sendAgain is how long what was sent may take to stand in the archive before it
// is sent again.
const sendAgain = time.Minute

func (g *Governor) send(ctx context.Context, c *Cycle, records []audit.Message) error {
	maps.DeleteFunc(g.sent, func(_ chain.Hash, at time.Time) bool { return c.Now.Sub(at) >= sendAgain })
	records = slices.DeleteFunc(records, func(m audit.Message) bool { _, ok := g.sent[sha256.Sum256(m.Value)]; return ok })
	for some := range slices.Chunk(records, sentAtOnce) {
		if err := g.Send(ctx, some); err != nil {
			return fmt.Errorf("control topic: %w", err)
		}
		c.Sent += len(some)
		for i := range some {
			g.sent[sha256.Sum256(some[i].Value)] = c.Now
		}
	}
	return nil
}

// Duties returns what governs lines now, for who only looks.
func (g *Governor) Duties(ctx context.Context, lines []archive.Line) (map[archive.Line]*Duties, error) {
	s, err := g.surveyAll(ctx)
	if err != nil {
		return nil, err
	}
	g.last = s
	all := map[archive.Line]*Duties{}
	for _, l := range lines {
		if all[l], err = g.duties(ctx, s, l); err != nil {
			return nil, fmt.Errorf("%s/%d: %w", l.Topic, l.Partition, err)
		}
	}
	return all, nil
}

// Records makes the records of what is offboarded.
func (g *Governor) Records(ctx context.Context, o *Offboarding) ([]audit.Message, error) {
	s, err := g.govern(ctx)
	if err != nil {
		return nil, err
	}
	records, err := g.expiryRecords(s, o.Expiries)
	if err != nil {
		return nil, err
	}
	for _, p := range o.Contexts {
		m, err := g.dated(o.Tenant, p.ID, p.Redaction)
		if err != nil {
			return nil, err
		}
		records = append(records, m)
	}
	return records, nil
}
