package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// The share of the memory that all windows together may take. The rest is for
// records.
const windowShare = 4

// Segments that a start reads at once to rebuild a window.
const windowParallel = 8

// shared is what all partitions of a run have in common.
type shared struct {
	Settings
	events   Events
	writer   archive.Writer
	budget   *budget
	encoders chan *parquet.Encoder
	assigned atomic.Int64 // partitions
	dlq      func(*kgo.Record)
	copy     func(l archive.Line, number int64, body []byte) // of a durable anchor; nil is nowhere
	ring     *sign.Ring                                      // Keys, and what they vouch for
	keys     chain.Keys                                      // of keyed logs; nil where there are none
	master   atomic.Bool                                     // MasterKey is the one that rows were written with
	objects  *semaphore.Weighted                             // of data files that are held, in bytes

	mu      sync.Mutex
	tenants map[[2]string]int32 // (topic, tenant) → partition
}

func newShared(s Settings, ev Events) *shared {
	sh := &shared{
		Settings: s, events: ev, writer: s.writer(),
		budget: newBudget(s.recordMemory()), tenants: map[[2]string]int32{},
		encoders: make(chan *parquet.Encoder, runtime.GOMAXPROCS(0)), ring: &sign.Ring{}, keys: s.keys(),
	}
	sh.objects = semaphore.NewWeighted(sh.objectBytes())
	if s.Keys != nil {
		sh.ring = s.Keys.Clone()
	}
	for range cap(sh.encoders) {
		sh.encoders <- nil // made when first needed
	}
	return sh
}

// recordMemory returns how many bytes of records may be held.
func (s *Settings) recordMemory() int64 { return s.Memory - s.Memory/windowShare }

// objectBytes returns how many bytes of data files may be held, but for one that
// is larger by itself.
func (s *Settings) objectBytes() int64 { return max(1, s.Memory/windowShare) }

// encode returns the object of a segment. Encoders are borrowed: one holds
// megabytes, and no more can work at once than there are processors.
func (sh *shared) encode(b *built) ([]byte, error) {
	meta, err := archive.EncodeSegment(b.segment)
	if err != nil {
		return nil, err
	}
	e := <-sh.encoders
	if e == nil {
		e = parquet.NewEncoder()
	}
	defer func() { sh.encoders <- e }()
	return e.EncodeRefs(b.rows, meta)
}

// windowLimit returns how many coordinates a partition may remember: all
// windows together take at most a quarter of the memory.
func (sh *shared) windowLimit() int {
	most := sh.Memory / windowShare / windowEntryBytes / max(1, sh.assigned.Load())
	return min(sh.Window, int(most))
}

// take moves a state and a window past a segment that somebody else wrote. Where
// that one made a row of coordinates that the window has, it knew the first one to
// be gone, or had a smaller window.
func (sh *shared) take(st *archive.State, w *window, o *archive.SegmentObject) {
	st.Take(o)
	sh.proveAll(o.Segment)
	tenants := interner{}
	for i := range o.Rows {
		r := &o.Rows[i].Record
		if coord, ok := r.Coordinates(); ok {
			e := entry{seq: r.Seq.N, ordinal: o.Ordinal, tenant: tenants.name(r.TenantID.S)}
			e.content, e.foreign = sh.contentOf(r)
			w.put(coord, e, sh.windowLimit())
		}
	}
}

// readWindow rebuilds a window from the newest segments, in parallel, reading
// only the columns that coordinates need. What is compacted of them, by a version
// of the catalog (nil: nothing), is read from data files.
func (sh *shared) readWindow(ctx context.Context, l archive.Line, c *archive.CatalogVersion, recent []archive.SegmentRef, limit int) (*window, error) {
	w := newWindow()
	compacted := 0
	for compacted < len(recent) && recent[compacted].Ordinal < watermarkOf(c) {
		compacted++
	}
	if compacted > 0 {
		rows, err := sh.readCompacted(ctx, l, c, recent[0].FirstOffset)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			w.add(r.coord, r.entry, limit)
		}
	}
	return w, sh.readSegments(ctx, l, w, recent[compacted:], limit)
}

// readSegments adds the rows of segments to a window.
func (sh *shared) readSegments(ctx context.Context, l archive.Line, w *window, recent []archive.SegmentRef, limit int) error {
	read := make([]chan []remembered, len(recent))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(windowParallel)
	for chunk := range slices.Chunk(recent, 4*windowParallel) {
		for i := range chunk {
			read[i] = make(chan []remembered, 1)
			g.Go(func() error {
				rows, err := sh.readCoordinates(ctx, l, chunk[i].Ordinal)
				read[i] <- rows
				return err
			})
		}
		for i := range chunk {
			for _, r := range <-read[i] {
				w.add(r.coord, r.entry, limit)
			}
		}
	}
	return g.Wait()
}

// windowColumns are the columns that a window is rebuilt from.
var windowColumns = append([]string{"tenant_id", "seq"}, audit.CoordinateColumns...)

func (sh *shared) readCoordinates(ctx context.Context, l archive.Line, ordinal int64) ([]remembered, error) {
	body, err := sh.Archive.Get(ctx, archive.SegmentKey(l, ordinal))
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w", ordinal, err)
	}
	f, err := archive.OpenForeignSegment(body)
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w: %w", ordinal, archive.ErrBreaks, err)
	}
	var rows []remembered
	tenants := interner{}
	for row, err := range f.Select(windowColumns...) {
		if err != nil {
			return nil, fmt.Errorf("segment %d: %w: %w", ordinal, archive.ErrBreaks, err)
		}
		if coord, ok := row.Coordinates(); ok {
			rows = append(rows, remembered{coord, entry{seq: row.Seq.N, ordinal: ordinal, tenant: tenants.name(row.TenantID.S)}})
		}
	}
	return rows, nil
}

// retrying tells of a failed attempt to read a line.
func (sh *shared) retrying(ctx context.Context, l archive.Line, attempt int, err error) {
	if f := sh.events.Retrying; f != nil && ctx.Err() == nil {
		f(l, archive.SegmentPrefix(l), attempt, err)
	}
}

// rejected tells of a reject that is durable, and copies it to the dead-letter
// topic where there is one.
func (sh *shared) rejected(l archive.Line, it *item, tenant string) {
	if f := sh.events.Rejected; f != nil {
		f(l, it.from, tenant, *it.reject)
	}
	if sh.dlq == nil || it.record == nil {
		return
	}
	headers := make([]kgo.RecordHeader, 0, len(it.record.Headers)+6)
	for _, h := range it.record.Headers {
		headers = append(headers, kgo.RecordHeader{Key: strings.Clone(h.Key), Value: bytes.Clone(h.Value)})
	}
	if sh.Scrub != nil {
		headers = append(headers, kgo.RecordHeader{Key: "ledgerlake-unscrubbed", Value: []byte(sh.Scrub.ID())})
	}
	// Copies, for what waits must not hold the fetch that brought it.
	sh.dlq(&kgo.Record{
		Topic: sh.DLQTopic, Key: bytes.Clone(it.record.Key), Value: bytes.Clone(it.record.Value),
		Headers: append(headers,
			kgo.RecordHeader{Key: "ledgerlake-reason", Value: []byte(it.reject.Reason)},
			kgo.RecordHeader{Key: "ledgerlake-detail", Value: []byte(it.reject.Detail)},
			kgo.RecordHeader{Key: "ledgerlake-topic", Value: []byte(l.Topic)},
			kgo.RecordHeader{Key: "ledgerlake-partition", Value: strconv.AppendInt(nil, int64(l.Partition), 10)},
			kgo.RecordHeader{Key: "ledgerlake-offset", Value: strconv.AppendInt(nil, it.from, 10)},
		),
	})
}

// How many tenants are watched for a second log.
const maxTenantsSeen = 100_000

// sawTenant says, once, when a tenant has logs in two partitions of a topic:
// its order is then kept in each, and not between them.
func (sh *shared) sawTenant(tenant string, l archive.Line) {
	if sh.events.SecondLog == nil || tenant == audit.TenantPartition || tenant == audit.TenantUnattributed {
		return
	}
	key := [2]string{l.Topic, tenant}
	sh.mu.Lock()
	first, ok := sh.tenants[key]
	second := ok && first != l.Partition && first >= 0
	switch {
	case !ok && len(sh.tenants) < maxTenantsSeen:
		sh.tenants[key] = l.Partition
	case second:
		sh.tenants[key] = -1 // said
	}
	sh.mu.Unlock()
	if second {
		sh.events.SecondLog(tenant, l)
	}
}

// An interner gives each name once, in memory of its own, so that a window
// holds neither a copy for each row nor the page that a name was read from.
type interner map[string]string

func (in interner) name(s string) string {
	if t, ok := in[s]; ok {
		return t
	}
	s = strings.Clone(s)
	in[s] = s
	return s
}
