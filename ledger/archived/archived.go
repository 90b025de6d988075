// Package archived is the ledger of an application that has an archive: it asks
// the archive (package export), and orders deletions of it by the control topic,
// as ledgerlake-compact erase does. Calls are recorded by package emit.
//
// What was recorded is in an archive once ledgerlake-ingest has written it, some
// seconds later; what is asked for here is as new as [Options.MaxAge] says. An
// ordered deletion hides what it takes at once for every reader that has seen the
// order, and ledgerlake-compact carries it out later (docs/erasure.md).
package archived

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/ledger"
)

// DefaultMaxAge is how old what is seen of an archive may be where nothing else
// is said.
const DefaultMaxAge = 5 * time.Second

// Options are what an archive is asked with.
type Options struct {
	// MaxAge is how old a look at the archive may be for a query: a new one costs
	// a few listings. 0 means [DefaultMaxAge], less than 0 looks each time.
	MaxAge time.Duration
	// Send sends a record to the control topic, and returns nil once it is
	// acknowledged: see [Sender]. nil: deletions are [ledger.ErrUnwired].
	Send func(ctx context.Context, m audit.Message) error
	// Signer signs orders; nil where the archive has no control keys in force.
	Signer note.Signer
	// LogKeys are those of keyed logs.
	LogKeys chain.Keys
}

// A Ledger is a [ledger.Query] and a [ledger.SoftDelete] over an archive. It may be
// used by several goroutines at once.
type Ledger struct {
	archive *export.Archive
	o       Options

	mu      sync.Mutex
	looked  time.Time
	ordered map[deletion]*ordering // what was ordered here and is not seen yet
}

type deletion struct{ tenant, record string }

var (
	_ ledger.Query      = (*Ledger)(nil)
	_ ledger.SoftDelete = (*Ledger)(nil)
)

// New returns the ledger of an archive that is open.
func New(a *export.Archive, o Options) *Ledger {
	if o.MaxAge == 0 {
		o.MaxAge = DefaultMaxAge
	}
	return &Ledger{archive: a, o: o, looked: time.Now(), ordered: map[deletion]*ordering{}}
}

// look makes sure that what is seen of the archive is new enough.
func (l *Ledger) look(ctx context.Context, maxAge time.Duration) error {
	l.mu.Lock()
	now := time.Now()
	old := maxAge < 0 || now.Sub(l.looked) > maxAge
	if old {
		l.looked = now // who comes now is served by what is known until this look is done
	}
	l.mu.Unlock()
	if !old {
		return nil
	}
	if err := l.archive.Refresh(ctx); err != nil {
		l.mu.Lock()
		l.looked = time.Time{}
		l.mu.Unlock()
		return err
	}
	return nil
}

// Turn is [ledger.Query].
func (l *Ledger) Turn(ctx context.Context, tenant, session, turn string) ([]*ledger.Record, error) {
	if err := l.ready(ctx, tenant); err != nil {
		return nil, err
	}
	rows, err := l.archive.Turn(ctx, tenant, session, turn)
	if err != nil {
		return nil, err
	}
	found, err := calls(rows, func(r *export.Row) bool { return r.SessionID.S == session })
	slices.SortStableFunc(found, ledger.ByTurn)
	return ledger.Once(found), err
}

// ready refuses a tenant that means all of them, and looks at the archive.
func (l *Ledger) ready(ctx context.Context, tenant string) error {
	if err := audit.ValidTenant(tenant); err != nil {
		return err
	}
	return l.look(ctx, l.o.MaxAge)
}

// calls returns the records of those rows that are calls and match.
func calls(rows []*export.Row, match func(*export.Row) bool) (found []*ledger.Record, err error) {
	for _, row := range rows {
		if row.Kind.S != audit.KindCall || row.RepeatOf.Valid || !match(row) {
			continue
		}
		r, err := recordOf(row)
		if err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, nil
}

func recordOf(row *export.Row) (*ledger.Record, error) {
	r, err := ledger.RecordOf(&row.Row)
	if err == nil {
		r.Gated = row.Gated
	}
	return r, err
}

// Session is [ledger.Query].
func (l *Ledger) Session(ctx context.Context, tenant, session string, p ledger.Page) ([]*ledger.Record, error) {
	before, err := p.Cursor()
	if err != nil {
		return nil, err
	}
	if err := l.ready(ctx, tenant); err != nil {
		return nil, err
	}
	var found []*ledger.Record
	for len(found) < p.Rows() {
		rows, err := l.archive.Session(ctx, tenant, session, export.Page{Limit: p.Rows(), Before: before})
		if err != nil {
			return nil, err
		}
		more, err := calls(rows, func(*export.Row) bool { return true })
		if err != nil {
			return nil, err
		}
		found = ledger.Once(append(found, more...))
		if len(rows) < p.Rows() {
			break
		}
		before = rows[len(rows)-1].Cursor()
	}
	slices.SortStableFunc(found, ledger.Newest)
	return found[:min(len(found), p.Rows())], nil
}

// Range is [ledger.Query]. A call that was sent twice, so far apart that ingest
// did not know it any more, comes twice until compaction has met it.
func (l *Ledger) Range(ctx context.Context, tenant string, g ledger.Range) iter.Seq2[[]*ledger.Record, error] {
	return func(yield func([]*ledger.Record, error) bool) {
		if err := l.ready(ctx, tenant); err != nil {
			yield(nil, err)
			return
		}
		var chunk []*ledger.Record
		for row, err := range l.archive.Range(ctx, export.Range{Tenant: tenant, From: g.From, To: g.To}) {
			if err != nil {
				yield(nil, err)
				return
			}
			more, err := calls([]*export.Row{row}, func(*export.Row) bool { return true })
			if err != nil {
				yield(nil, err)
				return
			}
			if chunk = append(chunk, more...); len(chunk) >= g.Chunk() {
				if !yield(chunk, nil) {
					return
				}
				chunk = nil
			}
		}
		if len(chunk) > 0 {
			yield(chunk, nil)
		}
	}
}

// Logs returns the logs of a tenant, by line: where its rows are linked.
func (l *Ledger) Logs(ctx context.Context, tenant string) ([]export.Log, error) {
	if err := l.ready(ctx, tenant); err != nil {
		return nil, err
	}
	return l.archive.Logs(ctx, tenant)
}

// ErrNoLog: the tenant has no log in that line.
var ErrNoLog = errors.New("no such log")

// Log returns rows of a tenant's log in one line, as they are linked, all kinds of
// them: at most limit, from a seq on. initial is the hash before the first:
// genesis where the log begins with it, else what that row says.
func (l *Ledger) Log(ctx context.Context, tenant string, line archive.Line, from int64, limit int) (records []*ledger.Record, initial chain.Hash, err error) {
	if err := l.ready(ctx, tenant); err != nil {
		return nil, initial, err
	}
	for row, err := range l.archive.Rows(ctx, export.Scan{Line: line, Tenant: tenant, From: from}) {
		if err != nil {
			return nil, initial, err
		}
		r, err := recordOf(row)
		if err != nil {
			return nil, initial, err
		}
		if records = append(records, r); len(records) == limit {
			break
		}
	}
	if len(records) == 0 {
		return nil, initial, nil
	}
	initial = records[0].Row.PrevHash
	if log, err := l.find(ctx, tenant, line); err == nil && records[0].Row.Seq.N == 0 {
		initial = chain.Genesis(l.evidence(log).Scheme(), log.Log)
	}
	return records, initial, nil
}

// find returns a tenant's log in a line.
func (l *Ledger) find(ctx context.Context, tenant string, line archive.Line) (export.Log, error) {
	logs, err := l.archive.Logs(ctx, tenant)
	if err != nil {
		return export.Log{}, err
	}
	for _, log := range logs {
		if log.Line == line && log.Tenant == tenant {
			return log, nil
		}
	}
	return export.Log{}, fmt.Errorf("%w: tenant %q has none in %s/%d", ErrNoLog, tenant, line.Topic, line.Partition)
}

// Evidence returns what the rows of a tenant's log in one line are linked by.
func (l *Ledger) Evidence(ctx context.Context, tenant string, line archive.Line) (ledger.TamperEvidence, error) {
	log, err := l.find(ctx, tenant, line)
	if err != nil {
		return nil, err
	}
	e := l.evidence(log)
	if log.Scheme == chain.SchemeHMACv1 && e.Scheme() != log.Scheme {
		return nil, fmt.Errorf("%w: tenant %q in %s/%d", chain.ErrNoKey, tenant, line.Topic, line.Partition)
	}
	return e, nil
}

func (l *Ledger) evidence(log export.Log) ledger.Chained {
	if log.Scheme == chain.SchemeV1 || l.o.LogKeys == nil {
		return ledger.Chained{}
	}
	key, _ := l.o.LogKeys(log.Log)
	return ledger.Chained{Key: key}
}
