package render

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/internal/workload"
	"github.com/ledgerlake/ledgerlake/redact"
)

const archiveID = "01KRNR3ZG0ARCH00000000000A"

var line = archive.Line{Topic: "audit.calls", TopicID: "kTq2VqYJQ0mFvY8v2b3m0A", Partition: 3}

// A logbook stamps rows as ingest would, and gives them as export does.
type logbook struct {
	t    testing.TB
	h    *chain.Hasher
	head map[string]chain.Hash
	size map[string]int64
	next int64 // offset
}

func newLogbook(t testing.TB) *logbook {
	return &logbook{t: t, h: chain.NewHasher(nil), head: map[string]chain.Hash{}, size: map[string]int64{}}
}

// add archives a message.
func (l *logbook) add(m *audit.Message) *export.Row {
	m.Topic, m.Partition, m.Offset = line.Topic, line.Partition, l.next
	l.next++
	d := audit.Decoder{RetainPrompts: func(string) bool { return true }}
	r := &export.Row{Line: line, Scheme: chain.SchemeV1, Checked: true}
	d.Decode(&r.Record, m)
	return l.stamp(r)
}

// stamp gives a row its place.
func (l *logbook) stamp(r *export.Row) *export.Row {
	tenant := r.TenantID.S
	prev, ok := l.head[tenant]
	if !ok {
		prev = chain.Genesis(chain.SchemeV1, chain.Log{ArchiveID: archiveID, Tenant: tenant, Topic: line.Topic, TopicID: line.TopicID, Partition: line.Partition})
	}
	r.Topic, r.Partition, r.TopicID, r.Epoch = audit.Str(line.Topic), audit.I64(int64(line.Partition)), audit.Str(line.TopicID), audit.I64(0)
	r.Seq, r.ArchivedAt = audit.I64(l.size[tenant]), audit.I64(1_778_846_400_000_000+l.next)
	var salt chain.Hash
	binary.BigEndian.PutUint64(salt[:], uint64(l.next))
	l.h.Stamp(&r.Row, prev, salt)
	l.head[tenant] = r.RowHash
	l.size[tenant]++
	return r
}

// value archives a record of a value and headers.
func (l *logbook) value(value string, headers ...audit.MessageHeader) *export.Row {
	return l.add(&audit.Message{Timestamp: time.UnixMilli(1_778_846_400_000), Key: []byte("acme"), Value: []byte(value), Headers: append(headers, audit.MessageHeader{Name: "tenant", Value: []byte("acme")})})
}

// erase erases something of a row.
func (l *logbook) erase(r *export.Row, s chain.Sentinel) *export.Row {
	l.t.Helper()
	s.ID = "01KRNR3ZG0RDER00000000000A"
	out := *r
	if changed, err := redact.Erase(l.h, &out.Row, s); err != nil || !changed {
		l.t.Fatal(changed, err)
	}
	return &out
}

// call is an AuditableCall with some text as its model.
func call(model string) string {
	return `{"recordId":"01KRNR3ZG00000000000000001","sessionId":"s","turnId":"t","stageId":"tool-loop","seqWithinTurn":3,"createdAt":"2026-05-15T12:00:00.123Z","principal":{"tenantId":"acme","userId":"user-8841"},` +
		`"call":{"model":` + string(audit.AppendString(nil, model)) + `},"decision":{"requestedModel":"m"},"outcome":{"latencyMs":-5,"why":{"a":1}},"pluginPayloads":[{"prompt":1}],"later":{"x":[1.10]}}`
}

// generated archives n records as agents send them, some of them broken.
func generated(t testing.TB, n int) (rows []*export.Row, sent []workload.Record) {
	l, g := newLogbook(t), workload.New(7, 5)
	g.Broken = 0.05
	for range n {
		rec := g.Next()
		m := &audit.Message{Key: rec.Key, Value: rec.Value, Timestamp: rec.Time}
		for _, h := range rec.Headers {
			m.Headers = append(m.Headers, audit.MessageHeader{Name: h.Name, Value: h.Value})
		}
		rows, sent = append(rows, l.add(m)), append(sent, rec)
	}
	return rows, sent
}

// written returns what a format makes of rows.
func written(t testing.TB, f Format, o Options, rows ...*export.Row) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := New(f, &b, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
