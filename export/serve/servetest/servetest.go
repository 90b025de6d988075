// Package servetest builds the archives that tests of package serve and of its
// page look at: a turn of which the whole story is written by hand, and one in
// which every string is hostile.
//
//	t-204   a ladder with a regression, a tool cascade, a change of provider, an erased record,
//	        a human who said no, a policy that denied, a guard that rejected
//	t-205   its subagent, and t-206 that one's
//	t-evil  what nobody should send
//
// Archives are deterministic: the same calls give the same bytes.
package servetest

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// The names in the story.
const (
	Tenant  = "acme"
	Session = "s-4711"
	Turn    = "t-204"
	Hostile = "t-evil"
)

// Erased is the tool step of the story that was erased.
const Erased = 6

//go:embed testdata/turn.jsonl
var story string

// Story returns the records of the story as their producers sent them.
func Story() []string { return strings.Split(strings.TrimSuffix(story, "\n"), "\n") }

// Archive returns an archive with the story, compacted as far as its last record
// but the newest, and signed.
func Archive() *prooftest.Archive {
	a, _ := Growing()
	return a
}

// Growing returns the same archive with its line, for more to be added.
func Growing() (*prooftest.Archive, *prooftest.Line) {
	a := prooftest.New()
	a.Signers = append(a.Signers, prooftest.Signer("anchors.example"))
	l := a.Line("audit.calls", 0)
	order := prooftest.OrderID(1)
	records := Story()
	l.Segment(func(b *prooftest.Batch) {
		for _, text := range records[:len(records)-1] {
			Add(b, text)
		}
	})
	l.Segment(func(b *prooftest.Batch) { Add(b, records[len(records)-1]) })
	l.Anchor()
	l.Compact(prooftest.Compaction{Watermark: 1, Change: func(row *chain.Row) {
		if row.TurnID.S == Turn && row.SeqWithinTurn.N == Erased && row.Kind.S == audit.KindCall {
			prooftest.Erase(row, order)
		}
	}})
	return a, l
}

// Add adds a record as its producer sent it.
func Add(b *prooftest.Batch, text string) {
	kind := ""
	if strings.HasPrefix(text, `{"seq"`) {
		kind = audit.KindPolicyDecision
	}
	b.Row(Tenant, func(r *audit.Record) {
		was := *r
		m := &audit.Message{
			Topic: r.Topic.S, Partition: int32(r.Partition.N), Offset: r.KafkaOffset.N, Timestamp: time.UnixMicro(r.KafkaTimestamp.N).UTC(),
			Key: []byte(Tenant), Value: []byte(text),
		}
		if kind != "" {
			m.Headers = []audit.MessageHeader{{Name: "ledgerlake-kind", Value: []byte(kind)}}
		}
		if reject := new(audit.Decoder).Decode(r, m); reject != nil {
			panic(fmt.Sprintf("%v of %.200s", reject, text))
		}
		r.TenantID, r.Topic, r.TopicID, r.Partition, r.Epoch = was.TenantID, was.Topic, was.TopicID, was.Partition, was.Epoch
		r.KafkaOffset, r.KafkaTimestamp, r.ArchivedAt = was.KafkaOffset, was.KafkaTimestamp, was.ArchivedAt
		r.RedactionPolicy = audit.Str(audit.PolicyNone)
	})
}

// Attacks are texts that must be shown, and do nothing: markup, scripts in
// attributes and addresses, characters that turn the line around or are not seen,
// and a megabyte.
func Attacks() []string {
	return []string{
		`<img src=x onerror="window.pwned=1">`,
		`<script>window.pwned=2</script>`,
		`"><svg onload=window.pwned=3>`,
		`javascript:window.pwned=4`,
		`{{constructor.constructor('window.pwned=5')()}}`,
		"good\u202edab.exe", "\u2066\u2067isolated\u2069", "a\u200bb\ufeffc\u00add", "line\u2028break\u2029s", "nul\u0000bell\u0007esc\u001b[31mred",
		`'; alert(1); //`, `&lt;b&gt;`, "\U000e0041\U000e0042", strings.Repeat("Z\u0301", 400),
		strings.Repeat("x", 1<<20),
		"مرحبا <b>", "#tenant=globex&turn=x", "https://evil.example/x",
	}
}

// HostileArchive returns an archive with a turn of hostile records, one for each
// attack, which has it in every place.
func HostileArchive() *prooftest.Archive {
	a := prooftest.New()
	a.Signers = append(a.Signers, prooftest.Signer("anchors.example"))
	l := a.Line("audit.calls", 0)
	l.Segment(func(b *prooftest.Batch) {
		for i, text := range Attacks() {
			hostile(b, i, text)
		}
	})
	l.Anchor()
	return a
}

func hostile(b *prooftest.Batch, i int, text string) {
	q := quoted(text)
	b.Row(Tenant, func(r *audit.Record) {
		r.Kind, r.AuditRecordVersion, r.RecordID = audit.Str(audit.KindCall), audit.I64(19), audit.Str(fmt.Sprintf("01KBCDEFGHJKMNPQRSTE%06d", i))
		r.SeqWithinTurn, r.CreatedAt, r.LatencyUS = audit.I64(int64(i)), audit.I64(r.KafkaTimestamp.N), audit.I64(1_000_000)
		r.TurnID, r.RedactionPolicy = audit.Str(Hostile), audit.Str(audit.PolicyNone)
		for _, t := range []*audit.Text{
			&r.SessionID, &r.StageID, &r.ActorKind, &r.SessionAuthMethod, &r.CallClass, &r.Family, &r.ModelID, &r.Transport, &r.Status, &r.FinishReason, &r.UserID,
		} {
			*t = audit.Str(text)
		}
		if i%2 == 0 {
			r.ToolName = audit.Str(text)
		}
		r.Slots[audit.SlotDecision] = fmt.Appendf(nil, `{"requestedModel":%[1]s,"selectedReason":%[1]s,"rungOrdinal":1,"fallbackChain":[%[1]s,"b"]}`, q)
		r.Slots[audit.SlotFallbackStep] = fmt.Appendf(nil, `{"originalModel":%[1]s,"attemptModel":%[1]s,"reason":%[1]s,"ladderRegression":true}`, q)
		r.Slots[audit.SlotProviderCascade] = fmt.Appendf(nil, `{"providerFrom":%[1]s,"providerTo":%[1]s,"trigger":%[1]s,"errorType":%[1]s}`, q)
		r.Slots[audit.SlotToolFallbackStep] = fmt.Appendf(nil, `{"originalTool":%[1]s,"cascadedTo":%[1]s,"capabilityId":%[1]s,"failureClass":%[1]s}`, q)
		r.Slots[audit.SlotInterruptDecision] = fmt.Appendf(nil, `{"question":%[1]s,"answer":%[1]s}`, q)
		r.Slots[audit.SlotExt] = fmt.Appendf(nil, `{%s:%s}`, q, q)
		r.Derived = audit.Derive(r.Slots[audit.SlotDecision])
	})
}

// quoted returns a text as JSON, with nothing escaped that need not be.
func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < 0x20:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
