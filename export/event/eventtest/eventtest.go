// Package eventtest makes events of every kind to try formats and destinations
// with: what agents send, what ingest and the control topic add, rows that were
// erased in every way, and rows whose texts were written to break a format.
//
// Equal seeds give equal events on every machine.
package eventtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/internal/workload"
	"github.com/ledgerlake/ledgerlake/redact"
)

// Line is the line of all events.
var Line = archive.Line{Topic: "audit.calls", TopicID: "kTq3mZ8fQ0ObW1hVZyJxXA", Partition: 3}

// ArchiveID is an id of an archive.
const ArchiveID = "01KBCDEFGHJKMNPQRSTVWXYZ00"

const redactionID = "01KBCDEFGHJKMNPQRSTVWXYZ30"

// Hostile are texts that mean something to a format, or to who reads lines.
var Hostile = []string{
	"", " ", "=", "|", `\`, `"`, "\t", "\n", "\r\n", "\x00", "\x1b[31m", "\x7f", "\u0085", "\u2028", "\u2029", "\v\f\x1c\x1d\x1e",
	"\xff\xfe", "a\xc3", "😀", "\ufeff", `\n`, `\\`, `\u0041`, "x=y", "a cs1=forged", "a\tusrName=forged", "x09|", "^usrName=forged",
	"CEF:0|a|b|c|d|e|9|suid=forged", "LEEF:2.0|a|b|c|d|x09|usrName=forged", "end\nCEF:0|evil|evil|1|1|1|10|", "</script>", `{"a":1}`, `"}}`, "]]>",
	`a\`, `a\=b`, `a\|b`, "=cmd|' /C calc'!A0", "ends with a backslash \\", " leads and trails ", "a  b", "cs1Label=forged cs1=forged",
	strings.Repeat("=", 900), strings.Repeat("\\", 900), strings.Repeat("\u2028", 900), strings.Repeat("\xff", 900), strings.Repeat("é", 70_000),
}

// Events returns n events or a few more: of every kind there is, if n is 500
// or more.
func Events(seed uint64, n int) []*event.Event {
	m := &maker{rng: rand.New(rand.NewPCG(seed, 1)), hasher: chain.NewHasher(nil), heads: make(map[string]*chain.Row)}
	m.load = workload.New(seed, 7)
	m.load.Broken, m.load.Conflicts = 0.08, 0.02
	for len(m.events) < n {
		m.next()
	}
	return m.events
}

type maker struct {
	rng    *rand.Rand
	load   *workload.Generator
	hasher *chain.Hasher
	heads  map[string]*chain.Row // the last row of each tenant
	events []*event.Event
	now    time.Time
}

func (m *maker) next() {
	switch k := m.rng.IntN(40); {
	case k < 26:
		m.add(m.produced())
	case k < 30:
		m.add(m.ordered())
	case k < 32:
		m.add(m.made())
	case k < 36:
		m.add(m.hostile())
	case k == 36:
		m.head()
	case k == 37:
		m.erasure()
	case k == 38:
		m.events = append(m.events, event.NewCheck(event.Check{Destination: m.text(), Nonce: fmt.Sprint(m.rng.Uint64()), Time: m.now}))
	default:
		if len(m.events) > 0 {
			m.events = append(m.events, m.events[m.rng.IntN(len(m.events))].Pointer())
		}
	}
}

// add stamps a record as the next row of its log, erases some of it, or
// nothing, and appends its event.
func (m *maker) add(r audit.Record) {
	tenant := r.TenantID.S
	row := &chain.Row{Record: r}
	prev, next := chain.Hash{}, int64(0)
	if last := m.heads[tenant]; last != nil {
		prev, next = last.RowHash, last.Seq.N+1
	}
	row.Topic, row.Partition, row.TopicID = audit.Str(Line.Topic), audit.I64(int64(Line.Partition)), audit.Str(Line.TopicID)
	row.Seq, row.Epoch = audit.I64(next), audit.I64(0)
	m.now = workload.Epoch.Add(time.Duration(len(m.events)) * time.Second)
	row.ArchivedAt = audit.I64(m.now.UnixMicro())
	if m.rng.IntN(50) == 0 {
		row.RepeatOf = audit.I64(m.rng.Int64N(next + 1))
	}
	m.hasher.Stamp(row, prev, m.hash())
	m.heads[tenant] = row
	if m.rng.IntN(6) == 0 {
		if _, err := redact.Erase(m.hasher, row, m.sentinel()); err != nil {
			panic(err)
		}
	}
	m.events = append(m.events, event.NewRecord(Line, row, m.rng.IntN(8) > 0))
}

// produced returns a record that a producer sent, or its reject.
func (m *maker) produced() audit.Record {
	sent := m.load.Next()
	msg := audit.Message{
		Topic: Line.Topic, Partition: Line.Partition, Offset: int64(len(m.events)) * 3, Timestamp: sent.Time, Key: sent.Key, Value: sent.Value,
	}
	for _, h := range sent.Headers {
		msg.Headers = append(msg.Headers, audit.MessageHeader{Name: h.Name, Value: h.Value})
	}
	d := audit.Decoder{RetainPrompts: func(string) bool { return true }}
	var r audit.Record
	if reject := d.Decode(&r, &msg); reject == nil && sent.Class == workload.Conflict {
		audit.Conflict(&r, &msg, "seq 7 says something else")
	}
	return r
}

// orders are the kinds of control records, and what they say beside the ids.
var orders = []struct{ kind, says string }{
	{audit.KindRedaction, `"target":{"userId":"dana"},"slots":"*","user":true,"hard":false,"reason":"asked\nfor","requestRef":"T-1|2","by":"dpo"`},
	{audit.KindRedactionCancelled, `"redactionId":"` + redactionID + `","reason":"withdrawn","by":"dpo"`},
	{audit.KindErasureDone, `"redactionId":"` + redactionID + `","slots":"*","user":true,"hard":false,"reason":"r","requestRef":null,"part":1,"parts":1,"erased":[],"deleted":[],"outOfReach":[]`},
	{audit.KindRetentionCut, `"topic":"t","topicId":"kTq3mZ8fQ0ObW1hVZyJxXA","partition":0,"size":4,"head":"` + strings.Repeat("ab", 32) + `","frontier":[],"policy":"p"`},
	{audit.KindLegalHold, `"scope":{"tenant":true},"set":true,"reason":"case 7","by":"legal"`},
	{audit.KindSourceChainReset, ``},
	{audit.KindSourceRotation, ``},
	{audit.KindQueueDropped, ``},
}

// ordered returns a control record or an administrative entry.
func (m *maker) ordered() audit.Record {
	o := orders[m.rng.IntN(len(orders))]
	id := fmt.Sprintf("01KBCDEFGHJKMNPQRSTVWX%04d", m.rng.IntN(10_000))
	value := fmt.Sprintf(`{"recordId":%q,"tenantId":"acme-corp","createdAt":"2026-05-15T12:00:00.000Z",%s}`, id, o.says)
	if o.says == "" {
		value = fmt.Sprintf(`{"tenantId":"acme-corp","ts":"2026-05-15T12:00:00.000Z","seq":%d,"policyDecision":"repaired","cumulative":9}`, len(m.events))
	}
	d := audit.Decoder{Control: o.says != ""}
	var r audit.Record
	d.Decode(&r, &audit.Message{
		Topic: Line.Topic, Partition: Line.Partition, Offset: int64(len(m.events)) * 3, Timestamp: workload.Epoch, Value: []byte(value),
		Headers: []audit.MessageHeader{{Name: audit.HeaderKind, Value: []byte(o.kind)}},
	})
	return r
}

// made returns a row that ingest makes.
func (m *maker) made() audit.Record {
	var r audit.Record
	audit.Gap(&r, 4, 9, "retention")
	if m.rng.IntN(2) == 0 {
		r = audit.Record{TenantID: audit.Str("acme-corp"), Kind: audit.Str(audit.KindChainReset)}
		r.Slots[audit.SlotContext] = []byte(`{"reason":"bad disk","previousHead":"` + strings.Repeat("ab", 32) + `","previousSize":4,"voided":[[1,"` + strings.Repeat("cd", 32) + `"]]}`)
	}
	return r
}

// hostile returns a record whose texts are of Hostile, whatever the column, and
// whose slots are no JSON, or JSON that no decoder wrote.
func (m *maker) hostile() audit.Record {
	kinds := []string{audit.KindCall, audit.KindDecision, audit.KindToolCall, audit.KindPolicyDecision, audit.KindRejected, "later-kind", m.text()}
	r := audit.Record{}
	for i := range audit.Header {
		c := &audit.Header[i]
		switch {
		case m.rng.IntN(4) == 0:
		case c.Text != nil:
			*c.Text(&r) = audit.Str(m.text())
		default:
			*c.Int(&r) = audit.I64([]int64{0, 1, -1, 812, 1 << 31, 1 << 53, 1<<63 - 1, -1 << 63}[m.rng.IntN(8)])
		}
	}
	r.CreatedAt, r.KafkaTimestamp = audit.I64(m.rng.Int64N(4e15)), audit.I64(m.rng.Int64N(4e15))
	tenant := "hostile" + m.text()
	if audit.ValidTenant(tenant) != nil {
		tenant = "hostile" + strings.Repeat("\u2028", 83) // as long as may be, and longer in JSON
	}
	r.TenantID, r.Kind, r.UserID = audit.Str(tenant), audit.Str(kinds[m.rng.IntN(len(kinds))]), audit.Str(m.text())
	for s := range audit.NumSlots {
		switch m.rng.IntN(5) {
		case 0:
			r.Slots[s] = []byte(m.text())
		case 1:
			r.Slots[s] = []byte("{\"reason\" :\t\"unauthorised\",\n \"policyDecision\":\"denied\",\"\u2028\":[1 , {\"a\\n\":\"\u0085 b \"}]}")
		}
	}
	r.RequestedModel, r.SelectedReason, r.FallbackChain = audit.Str(m.text()), audit.Str(m.text()), []string{m.text(), m.text()}
	return r
}

func (m *maker) head() {
	for _, tenant := range slices.Sorted(maps.Keys(m.heads)) {
		row := m.heads[tenant]
		if m.rng.IntN(len(m.heads)) > 0 {
			continue
		}
		h := event.Head{Size: row.Seq.N + 1, Hash: row.RowHash, Root: m.hash(), Anchor: int64(len(m.events)), Time: m.now}
		if m.rng.IntN(2) == 0 {
			h.Note = "ledgerlake/a/b\n4\nabc=\n\n— key sig\n"
		}
		m.events = append(m.events, event.NewHead(Line, tenant, h))
		return
	}
}

func (m *maker) erasure() {
	e := event.Erasure{What: m.sentinel(), RequestRef: m.text(), Time: m.now}
	at := int64(0)
	for range m.rng.IntN(200) {
		first := at + m.rng.Int64N(100)
		at = first + m.rng.Int64N(1000)
		e.Ranges = append(e.Ranges, [2]int64{first, at})
		at += 2
	}
	m.events = append(m.events, event.NewErasure(Line, "acme-corp", e))
}

// sentinel returns one that a row can have.
func (m *maker) sentinel() chain.Sentinel {
	s := chain.Sentinel{ID: redactionID, User: m.rng.IntN(2) == 0}
	switch m.rng.IntN(4) {
	case 0:
		s.All, s.User, s.Hard = true, true, true
	case 1:
		s.All = true
	default:
		s.Slots = chain.SlotSet(1+m.rng.IntN(1<<audit.NumSlots-1)) & chain.AllSlots
	}
	return s
}

// text returns one of Hostile, seldom the long one.
func (m *maker) text() string {
	s := Hostile[m.rng.IntN(len(Hostile))]
	if len(s) > 2000 && m.rng.IntN(8) > 0 {
		return "long, but not this time"
	}
	return s
}

func (m *maker) hash() (h chain.Hash) {
	for i := range h {
		h[i] = byte(m.rng.Uint32())
	}
	return h
}
