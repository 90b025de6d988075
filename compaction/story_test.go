package compaction

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A random is a story that a seed tells: rows, orders of all kinds, holds, cuts
// and compactors of all settings, in any order.
type random struct {
	*world
	*rand.Rand
	ids   int
	holds []map[string]any
	cuts  map[string]int64
}

func (r *random) pick(names ...string) string { return names[r.IntN(len(names))] }

func (r *random) id() string {
	r.ids++
	return prooftest.OrderID(r.ids)
}

// said is what a row says, and no other one.
func said(row *audit.Record) string {
	return fmt.Sprintf("said at offset %06d only", row.KafkaOffset.N)
}

func (r *random) rows(b *prooftest.Batch) {
	for range 1 + r.IntN(8) {
		tenant := r.pick("acme", "globex")
		if r.IntN(6) == 0 {
			user := r.pick("user-1", "user-2", "user-3")
			b.Row(tenant, func(row *audit.Record) {
				raw := fmt.Sprintf(`{"userId":%q,"text":%q,`, user, said(row))
				row.Kind = audit.Str(audit.KindRejected)
				row.Slots[audit.SlotContext] = fmt.Appendf(nil, `{"reason":"invalid_json","detail":"byte 1","size":%d,"sha256":%q,"key":"k","headers":[]}`, len(raw), chain.Hash(sha256.Sum256([]byte(raw))).String())
				row.Slots[audit.SlotRaw] = []byte(raw)
			})
			continue
		}
		b.Row(tenant, func(row *audit.Record) {
			row.Kind, row.RedactionPolicy = audit.Str(audit.KindToolCall), audit.Str(audit.PolicyNone)
			row.RecordID = audit.Str(fmt.Sprintf("01KBCDEFGHJKMNPQRSTX%06d", row.KafkaOffset.N))
			row.SessionID, row.TurnID = audit.Str(r.pick("s-1", "s-2")), audit.Str(r.pick("t-1", "t-2", "t-3"))
			row.StageID, row.SeqWithinTurn = audit.Str("tool-loop"), audit.I64(row.KafkaOffset.N)
			row.CreatedAt = audit.I64(row.KafkaTimestamp.N - r.Int64N(7_200_000_000))
			row.UserID = audit.Str(r.pick("user-1", "user-2", "user-3"))
			row.Slots[audit.SlotContext] = fmt.Appendf(nil, `{"said":%q}`, said(row))
			row.Slots[audit.SlotTokenCost] = []byte(`{"inputTokens":1}`)
		})
	}
}

// target returns one that means something most often.
func (r *random) target() map[string]any {
	row := r.anyRow()
	switch r.IntN(7) {
	case 0:
		return map[string]any{"sessionId": r.pick("s-1", "s-2")}
	case 1:
		return map[string]any{"turnId": r.pick("t-1", "t-2", "t-3")}
	case 2:
		return map[string]any{"userId": r.pick("user-1", "user-2", "user-3")}
	case 3:
		return map[string]any{"topic": r.calls.Topic, "topicId": r.calls.TopicID, "partition": 0, "offset": row.KafkaOffset.N}
	case 4:
		return map[string]any{"topic": r.calls.Topic, "topicId": r.calls.TopicID, "partition": 0, "seqBefore": 1 + r.Int64N(10)}
	case 5:
		return map[string]any{"sessionId": row.SessionID.S, "turnId": row.TurnID.S, "stageId": "tool-loop", "seqWithinTurn": row.KafkaOffset.N}
	}
	return map[string]any{"recordId": fmt.Sprintf("01KBCDEFGHJKMNPQRSTX%06d", row.KafkaOffset.N)}
}

func (r *random) anyRow() *chain.Row {
	s := r.calls.Segments[r.IntN(len(r.calls.Segments))]
	return &s.Rows[r.IntN(len(s.Rows))]
}

// step does one thing.
func (r *random) step() {
	switch r.IntN(10) {
	case 0, 1, 2:
		for range 1 + r.IntN(3) {
			r.calls.Segment(r.rows)
		}
		if r.IntN(3) > 0 {
			r.calls.Anchor()
		}
		r.land()
	case 3:
		order := prooftest.Redaction(r.target(), []any{"*", []any{"context", "raw"}}[r.IntN(2)])
		order["user"] = r.IntN(3) == 0
		if r.IntN(5) == 0 {
			order["slots"], order["user"], order["hard"] = "*", true, true
		}
		r.order(r.pick("acme", "globex"), audit.KindRedaction, r.id(), order)
	case 4:
		scope := map[string]any{"sessionId": r.pick("s-1", "s-2")}
		if r.IntN(2) == 0 {
			scope = map[string]any{"userId": r.pick("user-1", "user-2")}
		}
		hold := map[string]any{"scope": scope, "set": true, "reason": "case", "by": "counsel"}
		r.holds = append(r.holds, hold)
		r.order("acme", audit.KindLegalHold, r.id(), hold)
	case 5:
		r.lift()
	case 6:
		r.cut(r.pick("acme", "globex"))
	default:
		r.compact()
		r.later(time.Duration(r.IntN(120)) * time.Minute)
	}
}

func (r *random) lift() {
	if len(r.holds) == 0 {
		return
	}
	hold := r.holds[0]
	r.holds = r.holds[1:]
	hold["set"] = false
	r.order("acme", audit.KindLegalHold, r.id(), hold)
}

// cut orders a cut of what anchors cover.
func (r *random) cut(tenant string) {
	log := r.calls.Logs[tenant]
	if log == nil || log.Tree.Size <= r.cuts[tenant] || r.IntN(2) == 0 {
		return
	}
	r.calls.Anchor()
	size := r.cuts[tenant] + 1 + r.Int64N(log.Tree.Size-r.cuts[tenant])
	r.cuts[tenant] = size
	cut := r.calls.CutAt(tenant, r.id(), size)
	r.order(tenant, audit.KindRetentionCut, cut.ID, r.calls.CutOrder(cut))
}

// compact has a compactor work on both lines, with settings of its own.
func (r *random) compact() {
	s := r.settings
	s.Once = r.IntN(2) == 0
	s.MinSegments, s.MergeFiles, s.RepeatFiles = 1, 2+r.IntN(4), r.IntN(3)-1
	s.Memory = []int64{0, 100_000, 1 << 20}[r.IntN(3)]
	s.PassBytes = []int64{0, 1, 40_000}[r.IntN(3)]
	e := New(s)
	for range 1 + r.IntN(3) {
		r.govern(e)
	}
	if x := r.verify(); x.ExitCode() == 1 {
		r.t.Fatalf("faults: %v", x.Faults)
	}
}

// end carries everything out, and receipts it.
func (r *random) end() {
	for len(r.holds) > 0 {
		r.lift()
	}
	r.calls.Anchor()
	r.land()
	e := New(r.settings)
	for range 6 {
		r.govern(e)
		r.later(2 * time.Hour)
		r.receipts()
	}
	r.govern(e)
}

// receipts sends the receipts of all orders that both lines call gone.
func (r *random) receipts() {
	for _, d := range r.duties(r.calls.Line).Orders {
		e := r.entry(r.calls.Line, d.Row.ID)
		c := r.entry(r.control.Line, d.Row.ID)
		if e == nil || e.State != archive.RedactionGone || c != nil && c.State != archive.RedactionGone && c.State != archive.RedactionReceipted {
			continue
		}
		o := d.Row.Redaction
		m := r.calls.Receipt(d.Row.ID, "*", e.Erased...)
		if !o.All {
			names := []any{}
			for s := range audit.NumSlots {
				if o.Slots.Has(s) {
					names = append(names, s.String())
				}
			}
			m["slots"] = names
		}
		m["user"], m["hard"] = o.User, o.Hard
		r.order(d.Row.Tenant, audit.KindErasureDone, r.id(), m)
	}
}

// wantModel requires that what went is what was to go, by a model that knows
// nothing of files.
func (r *random) wantModel() {
	r.t.Helper()
	var gone []string
	left := map[string]bool{}
	orders := r.duties(r.calls.Line).Orders
	for _, s := range r.calls.Segments {
		for i := range s.Rows {
			row := &s.Rows[i]
			erased := row.Seq.N < r.cuts[row.TenantID.S]
			for _, d := range orders {
				erased = erased || d.Row.Reaches(row)
			}
			if erased {
				gone = append(gone, said(&row.Record))
			} else {
				left[said(&row.Record)] = true
			}
		}
	}
	if len(gone) > 0 {
		r.wantNowhere(gone...)
	}
	for _, f := range append(r.filesOf(r.calls.Line, "acme"), r.filesOf(r.calls.Line, "globex")...) {
		body, err := r.store.Get(context.Background(), f.Key)
		if err != nil {
			r.t.Fatal(err)
		}
		file, _, err := archive.OpenDataFile(body, &f)
		if err != nil {
			r.t.Fatal(err)
		}
		for row, err := range file.Rows() {
			if err != nil {
				r.t.Fatal(err)
			}
			if text := said(&row.Record); strings.Contains(string(row.Slots[audit.SlotContext])+string(row.Slots[audit.SlotRaw]), text) {
				delete(left, text)
			}
		}
	}
	if len(left) > 0 {
		r.t.Fatalf("rows lost what nobody took: %v", sortedKeys(left))
	}
}

var (
	stories    = flag.Uint64("stories", 12, "how many stories are told")
	firstStory = flag.Uint64("story", 0, "the seed of the first one")
)

// Whatever happens in whatever order: what is ordered goes, what is held stays as
// long as it is, nothing else changes, and verify finds nothing wrong at any time.
func TestStories(t *testing.T) {
	for seed := *firstStory; seed < *firstStory+*stories; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := &random{world: newWorld(t), Rand: rand.New(rand.NewPCG(seed, 7)), cuts: map[string]int64{}}
			r.store.SetVersioning([]archive.Versioning{archive.Unversioned, archive.Versioned, archive.Suspended}[seed%3])
			r.calls.Segment(r.rows)
			r.calls.Anchor()
			r.order("acme", audit.KindLegalHold, r.id(), map[string]any{"scope": map[string]any{"sessionId": "none"}, "set": true, "reason": "r", "by": "b"})
			for range 30 {
				r.step()
			}
			r.end()
			r.wantModel()
			r.wantExit(0)
		})
	}
}
