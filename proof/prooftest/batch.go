package prooftest

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A Batch is what goes into one segment, in the order of offsets.
type Batch struct {
	l     *Line
	s     *Segment
	in    map[string]Log // logs as they were before the segment
	order []string       // their tenants, in the order of their first rows
}

// Row adds a row of a tenant. fill sets what a plain row has not. All that
// stamping needs is set by then, but for the row's seq, which is the next one
// unless fill sets another.
func (b *Batch) Row(tenant string, fill func(*audit.Record)) {
	var row chain.Row
	b.plain(&row, tenant)
	row.KafkaOffset = audit.I64(b.l.offset)
	row.KafkaTimestamp = audit.I64(b.l.a.now - b.l.a.now%1000)
	b.l.offset++
	fill(&row.Record)
	b.stamp(&row, tenant)
}

// plain sets what every row has.
func (b *Batch) plain(row *chain.Row, tenant string) {
	b.l.a.now += 137
	row.TenantID, row.Topic, row.TopicID = audit.Str(tenant), audit.Str(b.l.Topic), audit.Str(b.l.TopicID)
	row.Partition = audit.I64(int64(b.l.Partition))
	row.ArchivedAt = audit.I64(b.l.a.now)
	row.Epoch = audit.I64(int64(b.l.log(tenant).Epoch))
}

func (b *Batch) stamp(row *chain.Row, tenant string) {
	log := b.l.log(tenant)
	b.enter(tenant, log)
	if !row.Seq.Valid {
		row.Seq = audit.I64(log.Tree.Size)
	}
	hasher(log.Scheme).Stamp(row, log.Head, b.l.a.nextSalt())
	log.Head = row.RowHash
	log.Tree.Append(row.RowHash)
	b.s.Rows = append(b.s.Rows, *row)
}

// enter notes how a log stood before its first row of the segment.
func (b *Batch) enter(tenant string, log *Log) {
	if _, ok := b.in[tenant]; !ok {
		b.in[tenant] = Log{log.Scheme, log.Epoch, log.Head, log.Tree.Clone()}
		b.order = append(b.order, tenant)
	}
}

// Call adds a row of kind call, as agents write many.
func (b *Batch) Call(tenant string) { b.Row(tenant, b.call) }

func (b *Batch) call(r *audit.Record) {
	n := r.KafkaOffset.N
	r.Kind, r.AuditRecordVersion = audit.Str(audit.KindCall), audit.I64(19)
	r.RecordID = audit.Str(fmt.Sprintf("01KBCDEFGHJKMNPQRSTV%06d", n%1_000_000))
	r.SessionID, r.TurnID = audit.Str(fmt.Sprintf("sess-%d", n/50)), audit.Str(fmt.Sprintf("turn-%d", n/8))
	r.StageID, r.SeqWithinTurn = audit.Str("tool-loop"), audit.I64(n%8)
	r.CreatedAt = audit.I64(r.KafkaTimestamp.N - 5000)
	r.ActorKind, r.SessionAuthMethod = audit.Str("user"), audit.Str("api-key")
	r.CallClass, r.Family, r.ModelID, r.Transport = audit.Str("synthesize"), audit.Str("anthropic"), audit.Str("model-a"), audit.Str("native")
	r.InputTokens, r.OutputTokens = audit.I64(1200+n), audit.I64(85)
	r.Status, r.LatencyUS, r.FinishReason, r.HTTPStatus = audit.Str("ok"), audit.I64(812_000), audit.Str("stop"), audit.I64(200)
	r.RedactionPolicy = audit.Str(audit.PolicyNone)
	r.UserID = audit.Str(fmt.Sprintf("user-%d", 1000+n%7))
	r.Slots[audit.SlotDecision] = fmt.Appendf(nil, `{"requestedModel":null,"selectedReason":"fallback-rung","rungOrdinal":%d,"fallbackChain":["model-x","modèle-y"]}`, n%4)
	r.Slots[audit.SlotTokenCost] = fmt.Appendf(nil, `{ "inputTokens" : %d, "outputTokens":85 }`, 1200+n)
	r.Derived = audit.Derive(r.Slots[audit.SlotDecision])
}

// Control adds a row of the control topic.
func (b *Batch) Control(tenant string) {
	b.Row(tenant, func(r *audit.Record) {
		r.Kind, r.RecordID = audit.Str(audit.KindLegalHold), audit.Str("01KBCDEFGHJKMNPQRSTV000000")
		r.CreatedAt = r.KafkaTimestamp
		r.Slots[audit.SlotContext] = []byte(`{"recordId":"01KBCDEFGHJKMNPQRSTV000000","tenantId":"acme","scope":{"tenant":true},"set":true,"reason":"case 7","by":"counsel"}`)
	})
}

// Reject adds a rejected row that keeps raw.
func (b *Batch) Reject(tenant string, reason audit.Reason, raw []byte) {
	b.Row(tenant, func(r *audit.Record) {
		r.Kind = audit.Str(audit.KindRejected)
		sum := fmt.Sprintf(`"%x"`, sha256.Sum256(raw))
		if raw == nil {
			sum = "null"
		}
		r.Slots[audit.SlotContext] = fmt.Appendf(nil, `{"reason":%q,"detail":"byte 1","size":%d,"sha256":%s,"key":"k","headers":[["tenant","t"]]}`, reason, len(raw), sum)
		r.Slots[audit.SlotRaw] = raw
	})
}

// Duplicate accounts for an offset whose record repeats a row.
func (b *Batch) Duplicate(tenant string, seq int64) {
	b.s.Meta.Duplicates = append(b.s.Meta.Duplicates, archive.Duplicate{Offset: b.l.offset, Tenant: tenant, Seq: seq})
	b.l.offset++
}

// Skip accounts for n offsets that Kafka skips.
func (b *Batch) Skip(n int64, cause string) {
	b.s.Meta.Gaps = append(b.s.Meta.Gaps, archive.Gap{From: b.l.offset, To: b.l.offset + n, Cause: cause})
	b.l.offset += n
}

// Lost accounts for n offsets that Kafka no longer had, with their gap row.
func (b *Batch) Lost(n int64) {
	var row chain.Row
	b.plain(&row, audit.TenantPartition)
	row.Kind = audit.Str(audit.KindGap)
	row.Slots[audit.SlotContext] = fmt.Appendf(nil, `{"from":%d,"to":%d,"cause":"lost"}`, b.l.offset, b.l.offset+n)
	b.Skip(n, archive.GapLost)
	b.made(&row, audit.TenantPartition)
}

// Keyed makes the log of a tenant, which has no rows yet, a keyed one.
func (b *Batch) Keyed(tenant string) {
	log := b.l.log(tenant)
	log.Scheme, log.Head = chain.SchemeHMACv1, chain.Genesis(chain.SchemeHMACv1, b.l.chainLog(tenant))
}

// Reset begins a new epoch of a tenant's log, and declares segments void.
func (b *Batch) Reset(tenant, reason string, voided ...archive.Voided) {
	var row chain.Row
	b.plain(&row, tenant)
	log := b.l.log(tenant)
	b.enter(tenant, log)
	list := "["
	for i, v := range voided {
		if i > 0 {
			list += ","
		}
		list += fmt.Sprintf("[%d,%q]", v.Ordinal, v.SHA256)
	}
	row.Kind = audit.Str(audit.KindChainReset)
	row.Slots[audit.SlotContext] = fmt.Appendf(nil, `{"reason":%q,"previousHead":%q,"previousSize":%d,"voided":%s]}`, reason, log.Head, log.Tree.Size, list)
	log.Epoch++
	log.Head = chain.ResetGenesis(log.Scheme, b.l.chainLog(tenant), log.Epoch, log.Head, log.Tree.Size, audit.Str(reason))
	row.Epoch = audit.I64(int64(log.Epoch))
	b.s.Meta.Voided = voided
	b.made(&row, tenant)
}

func (b *Batch) made(row *chain.Row, tenant string) {
	b.s.Meta.Made++
	b.stamp(row, tenant)
}

// close fills in what the metadata says of the whole.
func (b *Batch) close() {
	m := &b.s.Meta
	m.NextOffset, m.Rows = b.l.offset, int64(len(b.s.Rows))
	for _, tenant := range b.order {
		in, out := b.in[tenant], b.l.Logs[tenant]
		m.Logs = append(m.Logs, archive.LogInterval{
			Tenant: tenant, Scheme: out.Scheme, Epoch: out.Epoch, FirstSeq: in.Tree.Size, Rows: out.Tree.Size - in.Tree.Size,
			HeadIn: in.Head, HeadOut: out.Head, Size: out.Tree.Size, Frontier: slices.Clone(out.Tree.Frontier),
		})
		b.l.changed[tenant] = true
	}
	count(&b.l.sums, m)
}

// Large adds a row of kind call with the slots of a long turn: about as much as
// 1.3 KB of JSON on the wire.
func (b *Batch) Large(tenant string) {
	b.Row(tenant, func(r *audit.Record) {
		b.call(r)
		n := r.KafkaOffset.N
		r.Slots[audit.SlotFamilyLock] = fmt.Appendf(nil, `{"resolverPath":"matrix","emitSite":"router","requestedFamily":"anthropic","familyMismatch":false,"byokActive":%t,"legacyDefaultModel":null}`, n%3 == 0)
		r.Slots[audit.SlotFallbackStep] = fmt.Appendf(nil, `{"originalFamily":"anthropic","originalModel":"model-a","attemptFamily":"openai","attemptModel":"model-x","attemptIndex":%d,"reason":"provider-error","inFamily":false,"ladderStep":2}`, n%5)
		r.Slots[audit.SlotCacheBreakpoint] = fmt.Appendf(nil, `{"fingerprintComposite":"%x","cacheReadTokens":%d,"cacheCreationTokens":120,"inputTokens":%d,"hitPct":61.5}`, sha256.Sum256([]byte{byte(n)}), n*3, n)
		r.Slots[audit.SlotPluginPayloads] = fmt.Appendf(nil, `[{"pluginId":"latency","subKind":"probe","data":{"p50":%d,"p99":%d}}]`, n%90, n%900)
		r.Slots[audit.SlotExt] = fmt.Appendf(nil, `{"$headers":[["traceparent","00-%032x-00f067aa0ba902b7-01"]],"region":"eu-central-1"}`, n)
	})
}
