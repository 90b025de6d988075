package parquet

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// turnRows makes rows as agents cause them, of 1.3 KB of JSON each: five steps a
// turn, four turns a session, most columns set and most slots not.
func turnRows(n int) []chain.Row {
	m := rowMaker{Rand: rand.New(rand.NewPCG(1, 2))}
	rows := make([]chain.Row, n)
	for i := range rows {
		m.turn(&rows[i], int64(i))
	}
	return rows
}

func (m rowMaker) pick(all ...string) audit.Text { return audit.Str(all[m.IntN(len(all))]) }

func (m rowMaker) turn(r *chain.Row, i int64) {
	at := 1_779_000_000_000_000 + i*37_000
	r.TenantID = audit.Str("tenant-" + strconv.Itoa(m.IntN(5)))
	r.Topic, r.TopicID = audit.Str("audit.calls"), audit.Str("kTq2VqYJQ0mFvY8v2b3m0A")
	r.Partition, r.Epoch, r.Seq, r.KafkaOffset = audit.I64(3), audit.I64(0), audit.I64(i), audit.I64(i+100)
	r.KafkaTimestamp, r.CreatedAt, r.ArchivedAt = audit.I64(at), audit.I64(at-1000), audit.I64(at+12345)
	r.Kind, r.AuditRecordVersion = audit.Str(audit.KindCall), audit.I64(19)
	r.RecordID = audit.Str(fmt.Sprintf("01KRNR3ZG%017d", m.Uint64()>>12))
	r.SessionID, r.TurnID = audit.Str(fmt.Sprintf("sess-%08x", i/20)), audit.Str(fmt.Sprintf("turn-%08x", i/5))
	r.StageID, r.SeqWithinTurn = m.pick("anchor-plan", "tool-loop", "synthesize"), audit.I64(i%5)
	r.ActorKind, r.SessionAuthMethod, r.CallClass = audit.Str("user"), audit.Str("api-key"), audit.Str("default")
	r.Family, r.ModelID, r.Transport = m.pick("anthropic", "openai"), m.pick("model-a", "model-b", "model-c"), audit.Str("native")
	r.InputTokens, r.OutputTokens = audit.I64(int64(m.IntN(5000))), audit.I64(int64(m.IntN(500)))
	r.Status, r.LatencyUS, r.FinishReason = audit.Str("ok"), audit.I64(int64(m.IntN(5000))*1000), audit.Str("stop")
	r.HTTPStatus, r.RedactionPolicy = audit.I64(200), audit.Str("none")
	r.SelectedReason, r.RungOrdinal, r.FallbackChain = audit.Str("family-lock"), audit.I64(i%3), []string{"model-a", "model-b"}
	r.UserID = audit.Str(fmt.Sprintf("user-%06d", m.IntN(10_000)))
	r.PrevHash, r.RowHash, r.PayloadCommit = m.hash(), m.hash(), m.hash()
	r.UserCommit, r.RowSalt = chain.NullHash{Hash: m.hash(), Valid: true}, chain.NullHash{Hash: m.hash(), Valid: true}
	m.turnSlots(r, i)
}

func (m rowMaker) turnSlots(r *chain.Row, i int64) {
	set := func(s audit.Slot, format string, args ...any) { r.Slots[s] = fmt.Appendf(nil, format, args...) }
	set(audit.SlotDecision, `{"requestedModel":null,"selectedReason":"family-lock","rungOrdinal":%d,"fallbackChain":["model-a","model-b"]}`, i%3)
	set(audit.SlotOutcomeWhy, `{"nativeFinishReason":"end_turn","servingProvider":"anthropic","gatewayAttempt":%d,"stats":{"ttftMs":%d}}`, i%3, m.IntN(900))
	set(audit.SlotFamilyLock, `{"resolverPath":"tenant-default","emitSite":"router","requestedFamily":"anthropic","familyMismatch":false,"byokActive":false,"byokKeyId":null,"resolvedViaAlias":%v}`, i%2 == 0)
	set(audit.SlotTokenCost, `{"inputTokens":%d,"outputTokens":%d,"usd":0.00%d}`, m.IntN(5000), m.IntN(500), m.IntN(1000))
	set(audit.SlotExt, `{"traceparent":"00-%016x%016x-%016x-01","region":"eu-central-1","buildId":"2026.05.%d"}`, m.Uint64(), m.Uint64(), m.Uint64(), i%28)
	if i%3 == 0 {
		set(audit.SlotCacheBreakpoint, `{"fingerprintComposite":"%016x","cacheReadTokens":%d,"cacheCreationTokens":%d,"inputTokens":%d}`, m.Uint64(), m.IntN(1000), m.IntN(100), m.IntN(4000))
	}
	if i%4 == 0 {
		set(audit.SlotPluginPayloads, `[{"pluginId":"guard","subKind":"verdict","data":{"score":0.%d,"labels":["a","b"],"note":"%x"}}]`, m.IntN(1000), m.hash())
	}
}
