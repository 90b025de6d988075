package audit

import (
	"encoding/json"
	"testing"
	"time"
)

// usualCall is an AuditableCall as most are: 1.3 KB, a few slots, a header.
const usualCall = `{"auditRecordVersion":19,"recordId":"01KRNR3ZG00000000000000001","sessionId":"sess-4f1c2b","turnId":"turn-000017","stageId":"tool-loop","seqWithinTurn":3,"createdAt":"2026-05-15T12:00:00.123Z",` +
	`"principal":{"tenantId":"acme","userId":"user-8841","actorKind":"user","sessionAuthMethod":"api-key"},` +
	`"call":{"callClass":"tool-loop","provider":"anthropic","model":"claude-sonnet-4-5","transport":"native"},` +
	`"decision":{"requestedModel":"claude-opus-4-5","selectedReason":"fallback-rung","rungOrdinal":1,"fallbackChain":["claude-opus-4-5"]},` +
	`"outcome":{"status":"ok","latencyMs":812,"finishReason":"tool_use","httpStatus":200,"why":{"nativeFinishReason":"tool_use","servingProvider":"anthropic","gatewayAttempt":1,"statistics":{"ttftMs":311,"queueMs":2}}},` +
	`"toolName":"search_orders","subagentDepth":0,"inputTokens":1200,"outputTokens":85,` +
	`"fallbackStep":{"originalFamily":"anthropic","originalModel":"claude-opus-4-5","attemptFamily":"anthropic","attemptModel":"claude-sonnet-4-5","attemptIndex":1,"reason":"overloaded","inFamily":true,"originalLadderStep":0,"ladderStep":1,"ladderRegression":false},` +
	`"tokenCost":{"inputTokens":1200,"outputTokens":85,"cacheReadTokens":640,"usd":0.00412},` +
	`"pluginPayloads":[{"pluginId":"guard","subKind":"verdict","data":{"score":0.0171,"labels":["none"],"span":9007199254740993}}]}`

func usualMessage() *Message {
	return &Message{
		Topic: "audit.calls", Partition: 3, Offset: 812, Timestamp: time.UnixMilli(1778846400456),
		Key: []byte("acme"), Value: []byte(usualCall), Headers: []MessageHeader{{"tenant", []byte("acme")}},
	}
}

func BenchmarkDecode(b *testing.B) {
	var d Decoder
	var r Record
	m := usualMessage()
	b.ReportAllocs()
	b.SetBytes(int64(len(m.Value)))
	for b.Loop() {
		if reject := d.Decode(&r, m); reject != nil {
			b.Fatal(reject)
		}
	}
}

// BenchmarkScan is the part of Decode that checks the text.
func BenchmarkScan(b *testing.B) {
	var s scanner
	text := []byte(usualCall)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if reject := s.scan(text, 0); reject != nil {
			b.Fatal(reject)
		}
	}
}

// BenchmarkStandardLibrary is what encoding/json takes for the same text, of
// which it would let much pass that Decode refuses.
func BenchmarkStandardLibrary(b *testing.B) {
	text := []byte(usualCall)
	b.ReportAllocs()
	for b.Loop() {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(text, &members); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReject(b *testing.B) {
	var d Decoder
	var r Record
	m := usualMessage()
	m.Value = m.Value[:len(m.Value)-1]
	b.ReportAllocs()
	for b.Loop() {
		d.Decode(&r, m)
	}
}

func BenchmarkCoordinates(b *testing.B) {
	var r Record
	new(Decoder).Decode(&r, usualMessage())
	b.ReportAllocs()
	for b.Loop() {
		r.Coordinates()
	}
}

func BenchmarkContentHash(b *testing.B) {
	var r Record
	new(Decoder).Decode(&r, usualMessage())
	b.ReportAllocs()
	for b.Loop() {
		r.ContentHash()
	}
}
