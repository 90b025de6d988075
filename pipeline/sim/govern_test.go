package sim_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	governance "github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// A governing row is one of a control log, from when it is archived on.
type governing struct {
	*governance.Row
	placed   *placed
	landed   time.Time // when its segment was there
	anchored time.Time // zero: not yet
}

// makeControl makes the control topic, and its line.
func (w *world) makeControl() {
	w.sending = make(chan struct{}, 1)
	if !w.plan.governs {
		return
	}
	if err := w.kafka.CreateTopic(audit.ControlTopic, 1, map[string]string{"retention.ms": "-1"}); err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addLine(archive.Line{Topic: audit.ControlTopic, TopicID: topicIDOf(w.kafka, audit.ControlTopic)})
}

// controlLine returns the line of the control topic; nil if there is none.
func (w *world) controlLine() *line {
	if !w.plan.governs {
		return nil
	}
	return w.lines[0]
}

// sendControl sends what people or compactors have to say to the control topic,
// these in a round that began at a time.
func (w *world) sendControl(who string, began time.Time, ms ...audit.Message) {
	w.sending <- struct{}{}
	defer func() { <-w.sending }()
	for i := range ms {
		m := &ms[i]
		now := time.Now().Truncate(time.Millisecond)
		w.mu.Lock()
		l := w.controlLine()
		r := l.add(delivered, m.Key, m.Value, now)
		r.message.Headers = m.Headers
		w.trace.say(who, "tells the control topic, at offset %d: %s", r.offset, m.Value)
		w.judgeSent(who, began, r)
		w.mu.Unlock()
		k := &kgo.Record{Topic: audit.ControlTopic, Key: m.Key, Value: m.Value, Timestamp: now}
		for _, h := range m.Headers {
			k.Headers = append(k.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
		}
		if res := w.producer.ProduceSync(context.Background(), k); res.FirstErr() != nil || k.Offset != r.offset {
			w.t.Fatalf("seed %d: produce: %v, offset %d, want %d", w.seed, res.FirstErr(), k.Offset, r.offset)
		}
	}
}

// sendControl is how a compactor sends: an await point, with the network in
// between.
func (p *process) sendControl(ctx context.Context, ms []audit.Message) error {
	at := point{"tell", ""}
	d, n := p.latency(at)
	draw := p.w.seed.at(p.name, "tell-fault", "", n)
	fault := p.w.tellFault(p, draw)
	if err := p.awaitFor(ctx, at, d); err != nil {
		return err
	}
	if fault == "tell:lost" {
		return errors.New("Kafka cannot be reached")
	}
	p.w.sendControl(p.name, p.roundBegan(), ms...)
	if err := p.await(ctx, point{"told", ""}); err != nil {
		return err
	}
	if fault == "tell:reply-lost" {
		return errors.New("the reply was lost")
	}
	return nil
}

func (w *world) tellFault(p *process, draw uint64) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind := ""
	switch {
	case w.calm:
	case w.kafkaIsAway(p):
		kind = "tell:lost"
	case chance(draw, w.plan.flaky):
		kind = []string{"tell:lost", "tell:reply-lost"}[scramble(draw)%2]
	}
	if kind != "" {
		w.counts[kind]++
	}
	return kind
}

// order has people say something.
func (w *world) order(tenant string, d governance.Document) string {
	w.orders++
	id := fmt.Sprintf("01KRNR3ZG1%016d", w.orders)
	value, err := d.Value(tenant, id, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	signer := w.keys.control
	if !w.plan.signed {
		signer = nil
	}
	m, err := governance.Record(w.root.ArchiveID, tenant, d.Kind(), id, value, noteSigner(signer))
	if err != nil {
		w.t.Fatal(err)
	}
	w.count("say:" + d.Kind())
	w.sendControl("", time.Time{}, m)
	return id
}

// erase orders an erasure, mostly of something that is there.
func (w *world) erase() {
	w.mu.Lock()
	t, tenant, kind := w.target()
	w.mu.Unlock()
	o := &governance.Redaction{Target: t, Reason: "they asked", By: "somebody"}
	switch at := w.dice.Float64(); {
	case at < 0.15:
		o.Erasure = governance.Erasure{All: true, User: true, Hard: true}
	case at < 0.6:
		o.Erasure = governance.Erasure{All: true, User: t.User != nil || w.dice.chance(0.3)}
	default:
		o.Slots = one(w.dice, chain.SlotSetOf(audit.SlotExt), chain.SlotSetOf(audit.SlotExt, audit.SlotContext), chain.SlotSetOf(audit.SlotPrompts, audit.SlotRaw))
		o.User = t.User != nil
	}
	w.count("erase:" + kind)
	w.order(tenant, o)
}

// target draws what an order means: a record that was produced, or nothing.
func (w *world) target() (t governance.Target, tenant, kind string) {
	var l *line
	var r *record
	for range 20 {
		if l = w.lines[w.dice.IntN(len(w.lines))]; len(l.records) > 0 {
			r = l.records[w.dice.IntN(len(l.records))]
			if r.decode(); r.fate == delivered && r.row.TenantID.Valid {
				break
			}
		}
		r = nil
	}
	kind = one(w.dice, "record", "coordinates", "turn", "session", "user", "user", "offset", "before", "unknown")
	if r == nil || kind == "unknown" && w.dice.chance(0.5) {
		id := "01KRNR3ZG29999999999999999"
		return governance.Target{Record: &id}, "tenant-0", "unknown"
	}
	text := func(t audit.Text) *string {
		if !t.Valid {
			return nil
		}
		s := t.S
		return &s
	}
	row := &r.row
	switch kind {
	case "unknown":
		kind = "offset" // of nothing in particular
	case "record":
		t.Record = text(row.RecordID)
	case "coordinates":
		t.Session, t.Turn, t.Stage = text(row.SessionID), text(row.TurnID), text(row.StageID)
		if row.SeqWithinTurn.Valid {
			n := row.SeqWithinTurn.N
			t.Within = &n
		}
	case "turn":
		t.Turn = text(row.TurnID)
	case "session":
		t.Session = text(row.SessionID)
	case "user":
		if t.User = text(row.UserID); t.User == nil {
			u := fmt.Sprintf("user-%d", w.dice.IntN(7))
			t.User = &u
		}
	case "offset":
		at, n := l.Line, r.offset
		t.Log, t.Offset = &at, &n
	case "before":
		at, n := l.Line, w.dice.Int64N(int64(len(l.logs[row.TenantID.S])+1))
		t.Log, t.Before = &at, &n
	}
	if !t.Valid() {
		at, n := l.Line, r.offset
		t, kind = governance.Target{Log: &at, Offset: &n}, "offset"
	}
	return t, row.TenantID.S, kind
}

// cancel takes an order back.
func (w *world) cancel() {
	w.mu.Lock()
	var all []*governing
	for _, o := range w.governs {
		if o.Redaction != nil {
			all = append(all, o)
		}
	}
	w.mu.Unlock()
	if len(all) == 0 {
		return
	}
	o := all[len(all)-1-w.dice.IntN(min(3, len(all)))]
	w.order(o.Tenant, &governance.Cancel{RedactionID: o.ID, Reason: "they thought again", By: "somebody"})
}

// hold sets or lifts a legal hold.
func (w *world) hold() {
	s := governance.Scope{Tenant: true}
	tenant := fmt.Sprintf("tenant-%d", w.dice.IntN(w.plan.tenants))
	switch w.dice.IntN(3) {
	case 0:
		id := fmt.Sprintf("s-%d", w.dice.IntN(int(w.plan.partitions)))
		s = governance.Scope{Session: &id}
	case 1:
		id := fmt.Sprintf("user-%d", w.dice.IntN(7))
		s = governance.Scope{User: &id}
	}
	w.order(tenant, &governance.Hold{Scope: s, Set: w.dice.chance(0.5), Reason: "a court", By: "somebody"})
}

// releaseAll lifts all holds, so that what they kept can go.
func (w *world) releaseAll() {
	w.mu.Lock()
	scopes := map[string]*governing{}
	for _, h := range w.governs {
		if h.Hold != nil {
			scopes[h.Tenant+" "+scopeName(&h.Hold.Scope)] = h
		}
	}
	w.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(scopes)) {
		if h := scopes[key]; h.Hold.Set {
			w.order(h.Tenant, &governance.Hold{Scope: h.Hold.Scope, Reason: "the court is done", By: "somebody"})
		}
	}
}

func scopeName(s *governance.Scope) string {
	switch {
	case s.Session != nil:
		return "session " + *s.Session
	case s.User != nil:
		return "user " + *s.User
	}
	return "all"
}

// cut orders that a prefix of a log is dropped, as a compactor does by policy.
func (w *world) cut() {
	w.mu.Lock()
	l := w.anyLine()
	var c *governance.Cut
	tenant := ""
	if n := len(l.anchors); n > 0 && l.forgedAnchor < 0 {
		heads := l.headsAt(l.anchors[n-1].Ordinal)
		if len(heads) > 0 {
			tenant = one(w.dice, slices.Sorted(maps.Keys(heads))...)
			c = l.cutAt(tenant, 1+w.dice.Int64N(heads[tenant].Tree.Size))
		}
	}
	w.mu.Unlock()
	if c != nil {
		w.order(tenant, c)
	}
}

// cutAt returns the cut of a log at a size.
func (l *line) cutAt(tenant string, size int64) *governance.Cut {
	tree := chain.Tree{}
	for _, p := range l.logs[tenant][:size] {
		tree.Append(p.row.RowHash)
	}
	return &governance.Cut{Log: l.Line, Size: size, Head: l.logs[tenant][size-1].row.RowHash, Frontier: tree.Frontier, Policy: "rows 1d"}
}

// governed takes in the rows of a new segment of the control line.
func (w *world) governed(l *line, ordinal int64) {
	var rows []*placed
	for _, log := range l.logs {
		for _, p := range log {
			if p.ordinal == ordinal && audit.IsControlKind(p.row.Kind.S) {
				rows = append(rows, p)
			}
		}
	}
	slices.SortFunc(rows, func(a, b *placed) int { return a.index - b.index })
	for _, p := range rows {
		r, err := governance.ParseRow(p.row)
		if err != nil {
			w.failLocked("control row %d: %v", p.index, err)
			return
		}
		g := &governing{Row: r, placed: p, landed: time.Now()}
		w.governs = append(w.governs, g)
		if r.Receipt != nil {
			w.counts["receipt"]++
			if err := w.judgeReceipt(r, w.vouched[r.ID]); err != nil {
				w.failLocked("the receipt of %s is archived: %v", r.Receipt.RedactionID, err)
			}
		}
	}
}

// anchorGoverning notes which control rows an anchor covers.
func (w *world) anchorGoverning(l *line, ordinal int64) {
	if !l.control {
		return
	}
	for _, g := range w.governs {
		if g.anchored.IsZero() && g.placed.ordinal <= ordinal {
			g.anchored = time.Now()
		}
	}
}

// governing returns the control row of an id.
func (w *world) governing(tenant, id string) *governing {
	for _, g := range w.governs {
		if g.Tenant == tenant && g.ID == id {
			return g
		}
	}
	return nil
}

// cancelled reports whether a round that began at a time had to know that an
// order was taken back: before it was due.
func (w *world) cancelled(o *governing, began time.Time) bool {
	due := o.ArchivedAt + w.delay(o).Microseconds()
	return o.Redaction != nil && slices.ContainsFunc(w.governs, func(c *governing) bool {
		return c.Cancel != nil && c.Tenant == o.Tenant && c.Cancel.RedactionID == o.ID && c.ArchivedAt < due && c.landed.Before(began)
	})
}

// delay is how long an order can be taken back: one of expiry, or a hard one, at
// no time.
func (w *world) delay(o *governing) time.Duration {
	if o.Redaction.Hard || o.Redaction.Target.Before != nil {
		return 0
	}
	return w.plan.purgeAfter
}

// means reports whether an order is to erase something from a row.
func (w *world) means(o *governing, l *line, p *placed) bool {
	t, row := &o.Redaction.Target, p.row
	place := t.Record != nil || t.Within != nil || t.Log != nil
	kind := row.Kind.S
	switch {
	case row.TenantID.S != o.Tenant, kind == audit.KindGap, kind == audit.KindChainReset:
		return false
	case audit.IsControlKind(kind):
		context := governance.Erasure{Slots: chain.SlotSetOf(audit.SlotContext)}
		if (kind != audit.KindRedaction && kind != audit.KindLegalHold) || o.Redaction.Erasure != context || t.Record == nil && t.Log == nil {
			return false
		}
	}
	fits := true
	for _, m := range []struct {
		want *string
		has  audit.Text
	}{{t.Record, row.RecordID}, {t.Session, row.SessionID}, {t.Turn, row.TurnID}, {t.Stage, row.StageID}} {
		fits = fits && (m.want == nil || m.has.Valid && m.has.S == *m.want)
	}
	fits = fits && (t.Within == nil || row.SeqWithinTurn.Valid && row.SeqWithinTurn.N == *t.Within)
	fits = fits && (t.User == nil || isOf(row, *t.User))
	fits = fits && (t.Log == nil || *t.Log == l.Line)
	fits = fits && (t.Offset == nil || row.KafkaOffset.Valid && row.KafkaOffset.N == *t.Offset)
	fits = fits && (t.Before == nil || row.Seq.N < *t.Before)
	if !fits || place || row.ArchivedAt.N <= o.ArchivedAt {
		return fits
	}
	made := row.KafkaTimestamp.N
	if row.CreatedAt.Valid {
		made = row.CreatedAt.N
	}
	return made <= o.CreatedAt
}

// isOf reports whether a row is of a user. What the world rejects has the id as
// it is, or with its first letter escaped.
func isOf(row *chain.Row, user string) bool {
	raw := row.Slots[audit.SlotRaw]
	return row.UserID.Valid && row.UserID.S == user || bytes.Contains(raw, []byte(user)) || bytes.Contains(raw, []byte(`\u0075`+user[1:]))
}

// keeps reports whether a hold keeps a row.
func keeps(h *governing, row *chain.Row) bool {
	s := &h.Hold.Scope
	switch {
	case row.TenantID.S != h.Tenant:
		return false
	case s.Session != nil:
		return row.SessionID.Valid && row.SessionID.S == *s.Session
	case s.User != nil:
		return isOf(row, *s.User)
	}
	return true
}

// holds returns the holds that a round which began at a time must know of: set,
// anchored before, and not lifted by anything that is archived.
func (w *world) holds(began time.Time) (all []*governing) {
	newest := map[string]*governing{}
	for _, h := range w.governs {
		if h.Hold != nil && (!h.Hold.Set || !h.anchored.IsZero() && h.anchored.Before(began)) {
			newest[h.Tenant+" "+scopeName(&h.Hold.Scope)] = h
		}
	}
	for _, key := range slices.Sorted(maps.Keys(newest)) {
		if newest[key].Hold.Set {
			all = append(all, newest[key])
		}
	}
	return all
}

// held reports whether a hold that a round must know of keeps a row.
func (w *world) held(row *chain.Row, began time.Time) bool {
	return slices.ContainsFunc(w.holds(began), func(h *governing) bool { return keeps(h, row) })
}

// ordered requires that what is gone of a row was ordered by rows that count,
// when it was due, and is not held.
func (w *world) ordered(l *line, p *placed, s chain.Sentinel, began time.Time) error {
	if w.held(p.row, began) {
		return fmt.Errorf("%v is erased, and a legal hold keeps the row", s)
	}
	if l.control && p.row.Kind.S == audit.KindRedaction && s == (chain.Sentinel{ID: p.row.RecordID.S, Slots: chain.SlotSetOf(audit.SlotContext)}) {
		return w.mayClose(p.row.TenantID.S, s.ID)
	}
	var all governance.Erasure
	first := p.erased.ID != ""
	for _, o := range w.governs {
		switch {
		case o.Redaction == nil, o.anchored.IsZero(), w.cancelled(o, began), !w.means(o, l, p),
			time.Now().UnixMicro() < o.ArchivedAt+(w.delay(o)-time.Second).Microseconds():
			continue
		}
		all = all.Union(o.Redaction.Erasure)
		first = first || o.ID == s.ID
	}
	if p.erased.ID != "" {
		all = all.Union(governance.Erasure{All: p.erased.All, Slots: p.erased.Slots, User: p.erased.User, Hard: p.erased.Hard})
	}
	if !first || !all.Covers(&s) {
		return fmt.Errorf("%v is erased, and what was ordered, and due, is %+v", s, all)
	}
	return nil
}

// mayClose requires that the context of an order goes only after its receipt,
// and the time for late rows.
func (w *world) mayClose(tenant, id string) error {
	for _, r := range w.governs {
		if r.Tenant == tenant && r.Receipt != nil && r.Receipt.RedactionID == id && !r.anchored.IsZero() &&
			time.Now().UnixMicro() >= r.ArchivedAt+(w.plan.lateWindow-time.Second).Microseconds() {
			return nil
		}
	}
	return fmt.Errorf("the context of order %s is erased too early", id)
}

// judgeHolds requires that the version lists the holds that its round must know
// of, and that no cut of it drops a row that they keep.
func (j *catalogJudging) judgeHolds() error {
	heads := j.l.headsAt(j.c.Watermark - 1)
	for _, h := range j.w.holds(j.began) {
		if _, here := heads[h.Tenant]; !here {
			continue
		}
		if !slices.ContainsFunc(j.c.Holds, func(x archive.CatalogHold) bool { return x.Tenant == h.Tenant && x.ID == h.ID }) {
			return fmt.Errorf("it does not list hold %s of %s, which was anchored at %v", h.ID, h.Tenant, h.anchored)
		}
	}
	for tenant, end := range j.c.begin {
		from := int64(0)
		if j.before != nil {
			from = j.before.begin[tenant]
		}
		for _, p := range j.l.logs[tenant][min(from, end):end] {
			if j.w.held(p.row, j.began) {
				return fmt.Errorf("the log of %s is cut at %d, and a legal hold keeps row %d", tenant, end, p.seq)
			}
		}
	}
	return nil
}

// judgeStates requires that an order which is called gone is: no version of any
// object has what it took.
func (j *catalogJudging) judgeStates() error {
	for _, r := range j.c.Redactions {
		o := j.w.governing(r.Tenant, r.ID)
		if o == nil || o.Kind != audit.KindRedaction || o.anchored.IsZero() {
			return fmt.Errorf("it lists order %s of %s, which no anchor covers", r.ID, r.Tenant)
		}
		if r.State == archive.RedactionGated || r.State == archive.RedactionPurged || j.before != nil && slices.ContainsFunc(j.before.Redactions, func(b archive.CatalogRedaction) bool {
			return b.Tenant == r.Tenant && b.ID == r.ID && b.State == r.State
		}) {
			continue
		}
		j.w.counts["redaction-"+r.State]++
		if err := j.isGone(o); err != nil {
			return fmt.Errorf("it calls order %s of %s %s: %w", r.ID, r.Tenant, r.State, err)
		}
	}
	return nil
}

// isGone requires that of the rows from which the order took something nothing
// of that is anywhere.
func (j *catalogJudging) isGone(o *governing) error {
	if o.Redaction == nil {
		return nil
	}
	var left map[int64][]trace1
	for _, p := range j.l.logs[o.Tenant] {
		s := j.erasedOf(p)
		if s.ID == "" || !coversAll(s, o.Redaction.Erasure) || !j.w.means(o, j.l, p) || !p.row.KafkaOffset.Valid {
			continue
		}
		if left == nil {
			left = j.w.traces(j.l, j.began)
		}
		if err := nothingOf(left[p.row.KafkaOffset.N], o.Redaction.Erasure); err != nil {
			return fmt.Errorf("seq %d: %w", p.seq, err)
		}
	}
	return nil
}

// erasedOf returns what the version lacks of a row.
func (j *catalogJudging) erasedOf(p *placed) chain.Sentinel {
	for key, f := range j.c.files {
		if f.Tenant == p.row.TenantID.S && f.FirstSeq <= p.seq && p.seq <= f.LastSeq {
			s, _ := sentinelOf(&j.l.stored[key][p.seq-f.FirstSeq])
			return s
		}
	}
	return chain.Sentinel{}
}

// coversAll reports whether all that an erasure takes is gone by a sentinel.
func coversAll(s chain.Sentinel, e governance.Erasure) bool {
	return (s.All || !e.All && e.Slots&^s.Slots == 0) && (s.User || !e.User && !e.Hard) && (s.Hard || !e.Hard)
}

// A trace1 is what an object has of one record.
type trace1 struct {
	slots              chain.SlotSet
	salt, user, header bool
	at                 string // which version of which object
}

// of names something that an erasure takes, and that is there.
func (t trace1) of(e governance.Erasure) string {
	switch {
	case (e.All || e.Hard) && t.salt:
		return "a salt"
	case (e.All || e.Hard) && t.slots != 0, t.slots&e.Slots != 0:
		return "a slot"
	case (e.User || e.Hard) && t.user:
		return "user_id"
	case e.Hard && t.header:
		return "its header"
	}
	return ""
}

// nothingOf requires that no object has what an erasure takes.
func nothingOf(all []trace1, e governance.Erasure) error {
	for _, t := range all {
		if what := t.of(e); what != "" {
			return fmt.Errorf("%s is there, in %s", what, t.at)
		}
	}
	return nil
}

// traces looks into every version of every object of a line, by offset, but for
// what was brought back since.
func (w *world) traces(l *line, since time.Time) map[int64][]trace1 {
	all := map[int64][]trace1{}
	for v, body := range w.memory.Everything() {
		if of := w.lineOfKey(v.Key); of != l || v.Marker || !strings.HasSuffix(v.Key, ".parquet") || w.broughtBack(v, since) {
			continue
		}
		for at, t := range w.contentOf(v.Key, body) {
			t.at = fmt.Sprintf("%s, version %q of %v", v.Key, v.ID, v.Modified)
			all[at] = append(all[at], t)
		}
	}
	return all
}

// broughtBack reports whether a version was written below the watermark since a
// time: whoever looked then could not know. Nothing keeps a writer that slept from
// that, also after the receipt; a sweep takes it away.
func (w *world) broughtBack(v archive.Version, since time.Time) bool {
	at, ok := w.strewn[v.Key]
	return ok && !at.Before(since) && !v.Modified.Before(at.Truncate(time.Second))
}

// contentOf returns what an object has of each record, by offset.
func (w *world) contentOf(key string, body []byte) map[int64]trace1 {
	sum := chain.Hash(sha256.Sum256(body))
	if known, ok := w.contents[sum]; ok {
		return known
	}
	all := map[int64]trace1{}
	w.contents[sum] = all
	f, err := parquet.Open(body)
	if err != nil {
		w.failLocked("%s: %v", key, err)
		return nil
	}
	rows, err := rowsOf(f)
	if err != nil {
		w.failLocked("%s: %v", key, err)
		return nil
	}
	for i := range rows {
		r := &rows[i]
		if !r.KafkaOffset.Valid {
			continue
		}
		t := trace1{salt: r.RowSalt.Valid, user: r.UserID.Valid || r.UserSalt.Valid, header: r.RecordID.Valid || r.SessionID.Valid || r.CreatedAt.Valid}
		for slot, text := range r.Slots {
			if text != nil {
				t.slots |= chain.SlotSetOf(audit.Slot(slot))
			}
		}
		all[r.KafkaOffset.N] = t
	}
	return all
}

// judgeSent holds a receipt against the bucket in the instant in which it is
// sent, by a round that began at a time.
func (w *world) judgeSent(who string, began time.Time, r *record) {
	r.decode()
	if r.reject != nil {
		w.failLocked("%s sends what is rejected: %v", who, r.reject)
		return
	}
	row := chain.Row{Record: r.row}
	c, err := governance.ParseRow(&row)
	if err != nil {
		w.failLocked("%s sends what nobody can read: %v", who, err)
		return
	}
	if c.Receipt == nil {
		return
	}
	w.counts["receipt-sent"]++
	if w.vouched[c.ID].IsZero() {
		w.vouched[c.ID] = began
	}
	if err := w.judgeReceipt(c, began); err != nil {
		w.failLocked("%s sends a receipt of %s: %v", who, c.Receipt.RedactionID, err)
	}
}

// judgeReceipt requires that what a receipt says is so, but for what was brought
// back since.
func (w *world) judgeReceipt(r *governance.Row, since time.Time) error {
	o := w.governing(r.Tenant, r.Receipt.RedactionID)
	if o == nil || o.Kind != audit.KindRedaction || o.anchored.IsZero() {
		return errors.New("of an order that no anchor covers")
	}
	for _, e := range r.Receipt.Erased {
		l := w.lineLocked(e.Log.TopicID, e.Log.Partition)
		if l == nil || l.Line != e.Log {
			return fmt.Errorf("a log of %v, which there is not", e.Log)
		}
		left := w.traces(l, since)
		for _, span := range e.Ranges {
			for seq := span[0]; seq <= span[1]; seq++ {
				if err := w.judgeNamed(l, o, r, seq, left); err != nil {
					return fmt.Errorf("seq %d of %s: %w", seq, w.name(l.Line), err)
				}
			}
		}
	}
	for _, d := range r.Receipt.Deleted {
		if n := w.versionsLeft(d.Key); n > 0 && (w.strewn[d.Key].IsZero() || w.strewn[d.Key].Before(since)) {
			return fmt.Errorf("%s is called deleted, and %d versions of it are there", d.Key, n)
		}
	}
	return nil
}

func (w *world) judgeNamed(l *line, o *governing, r *governance.Row, seq int64, left map[int64][]trace1) error {
	log := l.logs[r.Tenant]
	if seq >= int64(len(log)) {
		return fmt.Errorf("the log has %d rows", len(log))
	}
	p := log[seq]
	own := l.control && p.row.RecordID.S == o.ID
	switch {
	case !own && o.Redaction != nil && !w.means(o, l, p):
		return errors.New("the order does not mean it")
	case p.seq >= l.begins(r.Tenant) && !coversAll(p.erased, r.Receipt.Erasure):
		return fmt.Errorf("what is gone of it is %+v", p.erased)
	}
	return nothingOf(left[p.row.KafkaOffset.N], r.Receipt.Erasure)
}

// begins returns where a log begins.
func (l *line) begins(tenant string) int64 {
	if c := l.newest(); c != nil {
		return c.begin[tenant]
	}
	return 0
}

// stays reports whether an order may stay as it is: it was taken back too late,
// or a hold keeps it.
func (w *world) stays(tenant, id string) bool {
	o := w.governing(tenant, id)
	return o == nil || w.cancelled(o, time.Now()) || w.holdsSome(tenant) || slices.ContainsFunc(w.lines, func(l *line) bool {
		return l.logs[tenant] != nil && l.stuck()
	})
}

// stuck reports whether the line has segments that nobody will ever anchor: what
// was forged, or the tail of a topic that is gone. Until an operator says what
// to do, no order is done there.
func (l *line) stuck() bool {
	anchored := int64(-1)
	if n := len(l.anchors); n > 0 {
		anchored = l.anchors[n-1].Ordinal
	}
	return l.forged >= 0 || l.forgedAnchor >= 0 || l.doubted || l.gone && anchored+1 < l.state.Ordinal
}

// holdsSome reports whether a hold of the tenant is in force.
func (w *world) holdsSome(tenant string) bool {
	return slices.ContainsFunc(w.holds(time.Now()), func(h *governing) bool { return h.Tenant == tenant })
}

// openOrders says which order is not done.
func (w *world) openOrders() error {
	for _, o := range w.governs {
		if o.Kind != audit.KindRedaction || o.anchored.IsZero() || w.stays(o.Tenant, o.ID) {
			continue
		}
		if !slices.ContainsFunc(w.governs, func(r *governing) bool {
			return r.Receipt != nil && r.Tenant == o.Tenant && r.Receipt.RedactionID == o.ID && !r.anchored.IsZero()
		}) {
			return fmt.Errorf("%w: order %s of %s has no receipt", errUnfinished, o.ID, o.Tenant)
		}
		if o.Redaction.Target.Before == nil && o.placed.erased.ID == "" {
			return fmt.Errorf("%w: order %s of %s is not closed", errUnfinished, o.ID, o.Tenant)
		}
	}
	return nil
}

// checkReached requires that each order took what it means, unless that came
// after all was done.
func (w *world) checkReached() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.governs {
		if o.Redaction == nil || o.anchored.IsZero() || w.stays(o.Tenant, o.ID) {
			continue
		}
		done := w.firstReceipt(o) + w.plan.lateWindow.Microseconds()
		for _, l := range w.lines {
			for _, p := range l.logs[o.Tenant] {
				gone := o.Redaction.Target.User != nil && p.erased.User
				if p.seq < l.begins(o.Tenant) || p.ordinal >= l.watermark() || p.row.ArchivedAt.N >= done || gone || !w.means(o, l, p) || p == o.placed {
					continue
				}
				if !coversAll(p.erased, o.Redaction.Erasure) {
					gone := "nothing"
					if p.erased.ID != "" {
						gone = p.erased.String()
					}
					w.failLocked("order %s of %s is closed, and seq %d of %s has %s gone", o.ID, o.Tenant, p.seq, w.name(l.Line), gone)
					return
				}
			}
		}
	}
}

// firstReceipt returns when the first receipt of an order was archived.
func (w *world) firstReceipt(o *governing) int64 {
	for _, r := range w.governs {
		if r.Receipt != nil && r.Tenant == o.Tenant && r.Receipt.RedactionID == o.ID {
			return r.ArchivedAt
		}
	}
	return 0
}
