// Package memory is a ledger in the process: all contracts of package ledger,
// with the arithmetic of an archive. Calls are decoded as ingest decodes them,
// linked as rows of package chain, and erased by package redact, so that what
// holds here holds there. What is in it is gone with the process, and it grows
// with every call: it is for tests, and for applications that have no archive
// yet.
package memory

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/ledger"
	"github.com/ledgerlake/ledgerlake/redact"
)

// Topic is the topic that the rows of a memory name.
const Topic = "memory"

// Options are what a ledger begins with. The zero Options are good.
type Options struct {
	Redactor ledger.Redactor  // applied once to each call, before it is stored; nil takes nothing out
	Key      []byte           // links under [chain.SchemeHMACv1], with the key of each tenant's log made of it: [chain.MinKey] bytes or more
	Now      func() time.Time // archived_at of rows; nil is [time.Now]
}

// A Ledger keeps all in memory. It is a [ledger.Ledger], a [ledger.Query] and a
// [ledger.SoftDelete]; [Ledger.Evidence] has its [ledger.TamperEvidence]. It may
// be used by several goroutines at once.
type Ledger struct {
	o  Options
	id string // of the archive that its rows would be in

	mu   sync.Mutex
	logs map[string]*log
}

// A log is what is kept of one tenant.
type log struct {
	chain.Log
	scheme string
	hasher *chain.Hasher
	rows   []*chain.Row // not changed: an erased row is another one
	at     map[audit.Fingerprint]int
	byID   map[string][]int // ids are not held to be one row's
}

var (
	_ ledger.Ledger     = (*Ledger)(nil)
	_ ledger.Query      = (*Ledger)(nil)
	_ ledger.SoftDelete = (*Ledger)(nil)
)

// New returns an empty ledger. It panics where the key is too short.
func New(o Options) *Ledger {
	if len(o.Key) > 0 && len(o.Key) < chain.MinKey {
		panic(fmt.Sprintf("memory: a key of %d bytes: %d are the least", len(o.Key), chain.MinKey))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Redactor == nil {
		o.Redactor = ledger.NoRedactor{}
	}
	return &Ledger{o: o, id: ulid.MustNew(ulid.Timestamp(o.Now()), rand.Reader).String(), logs: map[string]*log{}}
}

// RecordCall adds a call. A call that an archive would reject is an error that
// says why.
func (l *Ledger) RecordCall(_ context.Context, c *ledger.Call) error {
	redacted, err := l.o.Redactor.Redact(c)
	if err != nil {
		return err
	}
	row, err := l.decode(redacted)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	log := l.log(row.TenantID.S)
	where, _ := row.Coordinates()
	if i, ok := log.at[where]; ok {
		return log.repeat(i, row)
	}
	log.add(row, where, l.o.Now())
	return nil
}

// decode makes a row of a call, as ingest does.
func (l *Ledger) decode(c *ledger.Call) (*chain.Row, error) {
	row := new(chain.Row)
	m := audit.Message{Topic: Topic, Timestamp: l.o.Now(), Key: []byte(c.Tenant()), Value: c.AppendJSON(nil)}
	d := audit.Decoder{PromptPaths: []string{}} // no prompt is taken out of its place
	if reject := d.Decode(&row.Record, &m); reject != nil {
		return nil, fmt.Errorf("%w: %s: %s", ledger.ErrNoRecord, reject.Reason, reject.Detail)
	}
	row.KafkaOffset, row.KafkaTimestamp = audit.Int{}, audit.Int{}
	row.RedactionPolicy = audit.Str(l.o.Redactor.PolicyID())
	return row, nil
}

// log returns the log of a tenant, new if need be.
func (l *Ledger) log(tenant string) *log {
	if known := l.logs[tenant]; known != nil {
		return known
	}
	name := chain.Log{ArchiveID: l.id, Tenant: tenant, Topic: Topic}
	key := l.key(name)
	made := &log{Log: name, scheme: ledger.Chained{Key: key}.Scheme(), hasher: chain.NewHasher(key), at: map[audit.Fingerprint]int{}, byID: map[string][]int{}}
	l.logs[tenant] = made
	return made
}

// key returns the key of a log, nil if it has none.
func (l *Ledger) key(name chain.Log) []byte {
	if len(l.o.Key) == 0 {
		return nil
	}
	return chain.LogKey(l.o.Key, name)
}

// repeat says what a row is that has the coordinates of another.
func (g *log) repeat(i int, row *chain.Row) error {
	there := g.rows[i]
	if there.Redaction.Valid || there.ContentHash() == row.ContentHash() {
		return nil
	}
	return fmt.Errorf("%w: record %s says something else", ledger.ErrConflict, there.RecordID.S)
}

// add appends a row to its log.
func (g *log) add(row *chain.Row, where audit.Fingerprint, now time.Time) {
	row.Seq = audit.I64(int64(len(g.rows)))
	row.ArchivedAt = audit.I64(now.UnixMicro())
	var salt chain.Hash
	rand.Read(salt[:])
	g.hasher.Stamp(row, g.head(), salt)
	g.at[where] = len(g.rows)
	g.byID[row.RecordID.S] = append(g.byID[row.RecordID.S], len(g.rows))
	g.rows = append(g.rows, row)
}

// head returns the row_hash of the last row, genesis where there is none.
func (g *log) head() chain.Hash {
	if len(g.rows) == 0 {
		return g.genesis()
	}
	return g.rows[len(g.rows)-1].RowHash
}

func (g *log) genesis() chain.Hash { return chain.Genesis(g.scheme, g.Log) }

// rows returns the rows of a tenant as they are now.
func (l *Ledger) rows(tenant string) []*chain.Row {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.logs[tenant]; g != nil {
		return slices.Clone(g.rows)
	}
	return nil
}

// records returns the records of a tenant that match.
func (l *Ledger) records(tenant string, match func(*chain.Row) bool) (found []*ledger.Record, err error) {
	for _, row := range l.rows(tenant) {
		if match(row) {
			r, err := ledger.RecordOf(row)
			if err != nil {
				return nil, err
			}
			found = append(found, r)
		}
	}
	return found, nil
}

// Turn is [ledger.Query].
func (l *Ledger) Turn(_ context.Context, tenant, session, turn string) ([]*ledger.Record, error) {
	found, err := l.records(tenant, func(r *chain.Row) bool { return r.SessionID.S == session && r.TurnID.S == turn })
	slices.SortStableFunc(found, ledger.ByTurn)
	return found, err
}

// Session is [ledger.Query].
func (l *Ledger) Session(_ context.Context, tenant, session string, p ledger.Page) ([]*ledger.Record, error) {
	before, err := p.Cursor()
	if err != nil {
		return nil, err
	}
	found, err := l.records(tenant, func(r *chain.Row) bool {
		return r.SessionID.S == session && (before == "" || r.RecordID.S < before)
	})
	slices.SortStableFunc(found, ledger.Newest)
	return found[:min(len(found), p.Rows())], err
}

// Range is [ledger.Query].
func (l *Ledger) Range(ctx context.Context, tenant string, g ledger.Range) iter.Seq2[[]*ledger.Record, error] {
	return func(yield func([]*ledger.Record, error) bool) {
		found, err := l.records(tenant, func(r *chain.Row) bool { return g.Has(time.UnixMicro(r.CreatedAt.N)) })
		if err != nil {
			yield(nil, err)
			return
		}
		for chunk := range slices.Chunk(found, g.Chunk()) {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			if !yield(chunk, nil) {
				return
			}
		}
	}
}

// SoftDelete erases all slots of a record at once. User, identity and columns
// stay.
func (l *Ledger) SoftDelete(_ context.Context, tenant, recordID string, _ ledger.Request) (chain.Sentinel, error) {
	id, err := audit.ParseRecordID(recordID)
	if err != nil {
		return chain.Sentinel{}, fmt.Errorf("%w: %w", ledger.ErrUnknownRecord, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	log := l.logs[tenant]
	if log == nil {
		return chain.Sentinel{}, ledger.ErrUnknownRecord
	}
	rows := log.byID[id]
	if len(rows) == 0 {
		return chain.Sentinel{}, ledger.ErrUnknownRecord
	}
	return log.erase(rows, l.o.Now())
}

// erase erases rows, unless one of them is.
func (g *log) erase(rows []int, now time.Time) (chain.Sentinel, error) {
	for _, i := range rows {
		if r := g.rows[i].Redaction; r.Valid {
			return chain.ParseSentinel(r.S)
		}
	}
	s := chain.Sentinel{ID: ulid.MustNew(ulid.Timestamp(now), rand.Reader).String(), All: true}
	for _, i := range rows {
		row := *g.rows[i]
		if _, err := redact.Erase(g.hasher, &row, s); err != nil {
			return chain.Sentinel{}, err
		}
		g.rows[i] = &row
	}
	return s, nil
}

// Log returns all records of a tenant, as they are linked, and the hash before
// the first: what [ledger.TamperEvidence] goes through.
func (l *Ledger) Log(tenant string) (records []*ledger.Record, initial chain.Hash, err error) {
	l.mu.Lock()
	initial = l.log(tenant).genesis()
	l.mu.Unlock()
	records, err = l.records(tenant, func(*chain.Row) bool { return true })
	return records, initial, err
}

// Evidence returns what the records of a tenant are linked by.
func (l *Ledger) Evidence(tenant string) ledger.TamperEvidence {
	l.mu.Lock()
	defer l.mu.Unlock()
	return ledger.Chained{Key: l.key(l.log(tenant).Log)}
}
