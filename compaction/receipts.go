package compaction

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
)

// maxPartBytes is about how long the value of one part of a receipt gets: less
// than brokers take by default.
const maxPartBytes = 512 << 10

// maxRounds is how many receipts an order has at most: each is for rows that came
// late.
const maxRounds = 1000

// receiptsDue returns the parts of the receipts that are to be sent now, and how
// many orders they are of. Parts that are in the archive are not sent again;
// those of a receipt that no anchor covers yet are waited for.
//
// What a receipt says is made of catalogs and control rows alone, and its parts
// have the ids of [control.ReceiptID], so that it is the same from whichever
// compactor, and whenever.
func (g *Governor) receiptsDue(ctx context.Context, s *survey) (records []audit.Message, err error) {
	for _, tenant := range s.gov.Tenants() {
		if err := s.whole(tenant); err != nil {
			g.warn("receipts of a tenant wait for a line that cannot be read", err)
			continue
		}
		t := s.gov.Tenant(tenant)
		for _, o := range ordersOf(t) {
			ready, err := g.mayBeReceipted(ctx, s, t, o)
			if err != nil {
				return nil, err
			}
			if !ready {
				continue
			}
			parts := s.receipt(g.Topic, o)
			more, err := g.unsent(s, t, o, parts)
			if err != nil {
				return nil, fmt.Errorf("receipt of %s: %w", o.ID, err)
			}
			if len(more) > 0 {
				key, err := g.broughtBack(ctx, s, o)
				if err != nil {
					return nil, err
				}
				if key != "" {
					g.warn("a receipt waits for the next sweep", fmt.Errorf("order %s: %s is there below the watermark: its writer slept", o.ID, key))
					continue
				}
			}
			records = append(records, more...)
		}
	}
	return records, nil
}

// mayBeReceipted reports whether an order is one that was, or could be, carried
// out.
func (g *Governor) mayBeReceipted(ctx context.Context, s *survey, t *control.Tenant, o *control.Order) (bool, error) {
	if s.gov.Fault(o.Tenant) != nil {
		return false, nil
	}
	if whole, err := g.compactedBelow(ctx, s, o); !whole || err != nil {
		return false, err
	}
	state, _, err := g.state(ctx, s, t, o)
	return state == archive.RedactionReceipted || state == "" && g.taken(s, o) == kept && !s.now.Before(g.dueAt(o)), err
}

// broughtBack returns the key of a segment below the watermark of a line that an
// order reaches, which its catalog does not know: who wrote it slept through
// compaction, and it may hold again what a receipt would call gone. "" where there
// is none. Each line is listed once a survey.
func (g *Governor) broughtBack(ctx context.Context, s *survey, o *control.Order) (string, error) {
	for _, l := range s.reached(o) {
		key, known := s.back[l]
		if !known {
			var err error
			if key, err = g.segmentBack(ctx, l, s.views[l].catalog); err != nil {
				return "", err
			}
			s.back[l] = key
		}
		if key != "" {
			return key, nil
		}
	}
	return "", nil
}

func (g *Governor) segmentBack(ctx context.Context, l archive.Line, c *archive.CatalogVersion) (string, error) {
	if c == nil {
		return "", nil
	}
	doomed := map[string]bool{}
	for i := range c.Doomed {
		doomed[c.Doomed[i].Key] = true
	}
	for v, err := range g.engine.Archive.Versions(ctx, archive.SegmentPrefix(l)) {
		if err != nil {
			return "", fmt.Errorf("list segments: %w", err)
		}
		if n, ok := archive.ParseSegmentKey(v.Key); ok && n.Ordinal < c.Watermark && !doomed[v.Key] {
			return v.Key, nil
		}
	}
	return "", nil
}

// receipt returns the parts of the next receipt of an order, nil where none is
// due: all lines have called it gone, and there is no receipt yet, or one does
// not name all that went. The order's own context, which goes at the end, has a
// receipt of its own, behind one of rows that came late.
func (s *survey) receipt(topic string, o *control.Order) []*control.Receipt {
	lines := s.reached(o)
	b, last := receiptOf(o, false), receiptOf(o, true)
	for _, l := range lines {
		e := s.views[l].entry(o)
		if e == nil && o.Gone {
			continue // nothing of it was that line's, or all of that is receipted
		}
		if e == nil || e.State != archive.RedactionGone && e.State != archive.RedactionReceipted {
			return nil
		}
		left := without(e.Erased, s.namedBy(o, l))
		var own [][2]int64
		if o.Gone && l.Topic == topic {
			row := [][2]int64{{o.Seq, o.Seq}}
			rest := without(left, row)
			own, left = without(left, rest), rest
		}
		b.line(l, left, e)
		last.line(l, own, e)
	}
	switch {
	case len(lines) == 0 && (o.Redaction == nil || o.Redaction.Target.Log == nil):
		return nil
	case b.names, receipts(o) == 0:
		return b.end()
	case last.names:
		return last.end()
	}
	return nil
}

// A receiptBook makes the parts of one receipt.
type receiptBook struct {
	base  control.Receipt
	parts []*control.Receipt
	bytes int // of the last part, about
	count int // of its ranges
	names bool
	reach map[string]bool
}

// receiptOf begins a receipt of an order, or of what goes of the order itself.
func receiptOf(o *control.Order, own bool) *receiptBook {
	b := &receiptBook{reach: map[string]bool{}}
	b.base.RedactionID = o.ID
	if o.Redaction != nil {
		b.base.Erasure, b.base.Reason, b.base.RequestRef = o.Redaction.Erasure, o.Redaction.Reason, o.Redaction.RequestRef
	}
	for _, round := range o.Rounds {
		if r := round.Parts[0].Receipt; o.Redaction == nil && round.Anchored {
			b.base.Erasure, b.base.Reason, b.base.RequestRef = r.Erasure, r.Reason, r.RequestRef
			break
		}
	}
	if own {
		b.base.Erasure = control.Erasure{Slots: chain.SlotSetOf(audit.SlotContext)}
	}
	return b
}

// part returns the part that something more goes into.
func (b *receiptBook) part(bytes, ranges int) *control.Receipt {
	if len(b.parts) == 0 || b.bytes+bytes > maxPartBytes || b.count+ranges > control.MaxRanges {
		p := b.base
		b.parts, b.bytes, b.count = append(b.parts, &p), 0, 0
	}
	b.bytes, b.count = b.bytes+bytes, b.count+ranges
	return b.parts[len(b.parts)-1]
}

// line takes in what went from one line.
func (b *receiptBook) line(l archive.Line, erased [][2]int64, e *archive.CatalogRedaction) {
	for _, r := range erased {
		b.names = true
		p := b.part(48, 1)
		if n := len(p.Erased); n == 0 || p.Erased[n-1].Log != l {
			p.Erased = append(p.Erased, control.Erased{Log: l})
			b.bytes += 128
		}
		last := &p.Erased[len(p.Erased)-1]
		last.Ranges = append(last.Ranges, r)
	}
	if len(erased) > 0 {
		b.reach[fmt.Sprintf("Kafka: records of topic %s stay there until the topic's own retention or compaction takes them", l.Topic)] = true
	}
	for _, d := range e.Deleted {
		p := b.part(len(d.Key)+40*len(d.Versions)+40, 0)
		p.Deleted = append(p.Deleted, control.Deleted{Key: d.Key, Versions: d.Versions})
	}
	for _, k := range e.Kept {
		b.reach[k] = true
	}
}

// outOfReach are what no compactor can see, whatever was erased.
var outOfReach = []string{
	"copies of records in a dead-letter topic, where ingest has one",
	"exports, backups and replicas of the bucket that were made before",
}

func (b *receiptBook) end() []*control.Receipt {
	b.part(0, 0)
	first := b.parts[0]
	for text := range b.reach {
		first.OutOfReach = append(first.OutOfReach, text)
	}
	slices.Sort(first.OutOfReach)
	if b.names {
		first.OutOfReach = append(first.OutOfReach, outOfReach...)
	}
	for i, p := range b.parts {
		p.Part, p.Parts = int64(i+1), int64(len(b.parts))
	}
	return b.parts
}

// unsent returns the records of those parts that are not in the archive. The
// receipt is the first of which nothing else stands there.
func (g *Governor) unsent(s *survey, t *control.Tenant, o *control.Order, parts []*control.Receipt) (records []audit.Message, err error) {
	if parts == nil {
		return nil, nil
	}
	for round := nextRound(o); round < maxRounds; round++ {
		missing, free, err := missingParts(t, o, round, parts)
		if err != nil {
			return nil, err
		}
		if !free {
			continue
		}
		for _, i := range missing {
			id, err := control.ReceiptID(o.ID, round, parts[i].Part)
			if err != nil {
				return nil, err
			}
			m, err := g.record(o.Tenant, id, time.UnixMicro(o.ArchivedAt), parts[i])
			if err != nil {
				return nil, err
			}
			records = append(records, m)
		}
		return records, nil
	}
	return nil, fmt.Errorf("%d receipts were begun, and none is whole", maxRounds)
}

// nextRound returns the number behind the last receipt that counts.
func nextRound(o *control.Order) (n int) {
	for _, r := range o.Rounds {
		if r.Anchored {
			n = max(n, r.Number+1)
		}
	}
	return n
}

// missingParts returns which parts of a round are not in the archive; free is
// false where another receipt than this was begun under its ids: who sent it saw
// other catalogs. What that one names, and it is never whole, the next names too.
func missingParts(t *control.Tenant, o *control.Order, round int, parts []*control.Receipt) (missing []int, free bool, err error) {
	for i, p := range parts {
		id, err := control.ReceiptID(o.ID, round, p.Part)
		if err != nil {
			return nil, false, err
		}
		row := t.Row(id, audit.KindErasureDone)
		switch {
		case row == nil:
			missing = append(missing, i)
		case row.Receipt == nil || !sameReceipt(row.Receipt, p):
			return nil, false, nil
		}
	}
	return missing, true, nil
}

func sameReceipt(a, b *control.Receipt) bool {
	return a.Parts == b.Parts && slices.EqualFunc(a.Erased, b.Erased, func(x, y control.Erased) bool {
		return x.Log == y.Log && slices.Equal(x.Ranges, y.Ranges)
	}) && slices.EqualFunc(a.Deleted, b.Deleted, func(x, y control.Deleted) bool {
		return x.Key == y.Key && slices.Equal(x.Versions, y.Versions)
	}) && slices.Equal(a.OutOfReach, b.OutOfReach)
}

// record makes the record of a document. It says that it was made at a time that
// does not depend on who makes it, and when: what is sent again is to be the same
// to the byte.
func (g *Governor) record(tenant, id string, at time.Time, d control.Document) (audit.Message, error) {
	value, err := d.Value(tenant, id, at.Truncate(time.Millisecond))
	if err != nil {
		return audit.Message{}, err
	}
	return control.Record(g.engine.Root.ArchiveID, tenant, d.Kind(), strings.ToUpper(id), value, g.Signer)
}
