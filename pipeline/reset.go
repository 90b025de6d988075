package pipeline

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// ErrNothingToReset: every segment of the line is what it should be.
var ErrNothingToReset = errors.New("nothing is to be declared void: each segment continues the line, and says what Kafka says")

// ErrAnchored: what a reset would declare void is in an anchor. Evidence is never
// taken back.
var ErrAnchored = errors.New("an anchor covers what would be declared void, which no reset may do")

// ErrResetLost: somebody else has written the segment meanwhile.
var ErrResetLost = errors.New("somebody else has written the segment that was to be the reset: look again")

// A ResetPlan is what a chain reset of a line would do, or has done.
type ResetPlan struct {
	Line    archive.Line
	Why     error // what is wrong with the first void segment
	Ordinal int64 // of the segment that declares the others void
	// Existing: that segment is there already, and lacks but the voucher; Reason
	// is then what it says.
	Existing bool
	Reason   string
	Voided   []archive.Voided // oldest first
	Unread   []int64          // ordinals of those whose logs cannot be told
	Logs     []ResetLog       // by tenant
	Offset   int64            // where the line goes on
	Start    int64            // Kafka's first offset
	End      int64            // and the one after its last
	Unsigned bool             // no anchor by a good key says where the good part ends
}

// A ResetLog is what happens to one log.
type ResetLog struct {
	Tenant string
	Size   int64 // good rows
	Epoch  int32 // that begins
	Lost   int64 // rows of void segments, as far as can be told
}

// Rows returns how many rows lie in void segments, as far as can be told.
func (p *ResetPlan) Rows() (n int64) {
	for i := range p.Logs {
		n += p.Logs[i].Lost
	}
	return n
}

// Gone returns how many offsets of the void segments, and behind them, Kafka no
// longer has: they become a lost gap.
func (p *ResetPlan) Gone() int64 { return max(0, p.Start-p.Offset) }

// A Reset is a chain reset that was planned, and may be carried out.
type Reset struct {
	ResetPlan
	c     *consumer
	state *archive.State // behind the void segments
	look  *lookout
	keeps []chain.Hash // anchors that the group forgoes
}

// PlanReset finds what an operator's chain reset of a partition would declare
// void: all segments from the first bad one that no anchor covers on. It changes
// nothing. The error matches [ErrNothingToReset] where the line is whole, and
// [ErrAnchored] where an anchor is in the way. The plan is to be closed.
func PlanReset(ctx context.Context, s Settings, at Partition, reason string, ev Events) (*Reset, error) {
	s = s.withDefaults()
	s.Topics, s.TopicPattern, s.Assign = nil, "", []Partition{at}
	switch {
	case reason == "" || len(reason) > maxReason || !utf8.ValidString(reason):
		return nil, fmt.Errorf("the reason: want 1 to %d bytes of UTF-8; it is kept for ever", maxReason)
	case s.Root == (archive.Root{}):
		return nil, errors.New("no archive")
	}
	if err := s.checkKeys(); err != nil {
		return nil, err
	}
	c, err := newConsumer(s, ev)
	if err != nil {
		return nil, err
	}
	r := &Reset{c: c, ResetPlan: ResetPlan{Reason: reason}}
	if err := r.plan(ctx, at); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// maxReason bounds the reason of a reset, which every log gets.
const maxReason = 4096

// Close lets go of Kafka.
func (r *Reset) Close() {
	r.c.end()
	r.c.hangUp()
	r.c.client.Close()
}

func (r *Reset) plan(ctx context.Context, at Partition) error {
	l, err := r.c.line(ctx, at.Topic, at.Number)
	if err != nil {
		return err
	}
	r.Line = l
	vouched, err := r.c.vouchers(ctx, []string{at.Topic})
	if err != nil {
		return err
	}
	v := parseVoucher(vouched[place{at.Topic, at.Number}], r.c.Root.ArchiveID, l)
	r.keeps = v.forgone()
	w := &resetWalk{c: r.c, v: v}
	if err := r.c.patiently(ctx, l, func() error { return w.run(ctx, l) }); err != nil {
		return err
	}
	r.Why, r.Unsigned, r.state, r.look = w.why, w.unsigned, w.state, w.look
	b, err := r.c.bounds(ctx, at.Topic, at.Number)
	if err != nil {
		return err
	}
	r.Start, r.End = b.start, b.end
	if r.state.NextOffset < 0 {
		r.state.NextOffset = b.start
	}
	if r.Offset = r.state.NextOffset; r.Offset > b.end {
		return b.check(r.Offset)
	}
	return r.c.patiently(ctx, l, func() error { return r.voids(ctx, w) })
}

// patiently calls f until its answer is nil or one about the line, which it gives
// twice.
func (c *consumer) patiently(ctx context.Context, l archive.Line, f func() error) error {
	for attempt := 1; ; attempt++ {
		err := f()
		if err == nil || c.isFinal(err) || errors.Is(err, ErrNothingToReset) || errors.Is(err, ErrAnchored) || attempt > 1 && isVerdict(err) {
			return err
		}
		c.retrying(ctx, l, attempt, err)
		if err := c.backOff(ctx, attempt); err != nil {
			return err
		}
	}
}

// A resetWalk goes through the segments that no anchor covers to the first bad
// one.
type resetWalk struct {
	c        *consumer
	v        *voucher
	ahead    []*anchorNote
	unsigned bool
	look     *lookout
	state    *archive.State // in front of the first bad segment
	window   *window        // of that state, but for one in front of an earlier reset
	again    bool           // which it is
	why      error
}

func (w *resetWalk) run(ctx context.Context, l archive.Line) error {
	st, window, err := w.base(ctx, l)
	if err != nil {
		return err
	}
	return w.from(ctx, st, window, noReset)
}

// noReset is the ordinal from which on nothing was declared void.
const noReset = -1

// from walks from st on. Where an earlier reset is known that declares void what
// lies behind an ordinal, the walk ends there.
func (w *resetWalk) from(ctx context.Context, st *archive.State, window *window, voided int64) error {
	known, err := w.c.vouchedFor(ctx, st.Line, w.v, st.Ordinal)
	if err != nil {
		return err
	}
	w.window = window
	var again *archive.State // in front of what an earlier reset declared void
	bounds := &bounds{end: -1}
	for {
		if st.Ordinal == voided {
			w.state, w.again = st, true
			return nil
		}
		if known.voidsFrom(st.Ordinal) {
			again = st.Clone()
			st.Void(known.voided)
		}
		err := w.one(ctx, st, window, known, bounds)
		switch {
		case errors.Is(err, archive.ErrNotFound):
			if w.v != nil && st.Ordinal <= w.v.Ordinal {
				return w.v.missing()
			}
			return ErrNothingToReset
		case errors.Is(err, chain.ErrNoKey):
			return fmt.Errorf("%w: %w", err, errKeyless)
		case errors.Is(err, archive.ErrBreaks), errors.Is(err, archive.ErrDamaged), errors.Is(err, ErrForged), errors.Is(err, errReplaced):
			// What an earlier reset declared void stays so: two of them that no
			// anchor covers would leave the older one unvouched for.
			w.state, w.again, w.why = cmp.Or(again, st), again != nil, err
			return w.below(ctx, st)
		case err != nil:
			return err
		}
	}
}

// below goes back, where the segment behind st is an earlier reset that the group
// went on behind, and that declares segments in front of st void: they look good,
// or no hash led to it, for a later one is bad. It must be one for the state in
// front of them, and name the bytes that are there.
func (w *resetWalk) below(ctx context.Context, st *archive.State) error {
	if w.again || w.v == nil || w.v.Ordinal < st.Ordinal {
		return nil
	}
	reset, err := archive.GetSegment(ctx, w.c.Archive, st.Line, st.Ordinal, st.Keys)
	if errors.Is(err, archive.ErrBreaks) {
		return nil
	} else if err != nil {
		return err
	}
	if n := len(reset.Voided); n == 0 || reset.Voided[n-1].Ordinal != st.Ordinal-1 {
		return nil
	}
	for _, one := range reset.Voided {
		body, err := w.c.Archive.Get(ctx, archive.SegmentKey(st.Line, one.Ordinal))
		if err != nil && !errors.Is(err, archive.ErrNotFound) {
			return err
		}
		if err != nil || sha256.Sum256(body) != one.SHA256 {
			return nil
		}
	}
	first := &resetWalk{c: w.c, v: w.v}
	base, window, err := first.base(ctx, st.Line)
	if err != nil || base.Ordinal > reset.Voided[0].Ordinal {
		return err
	}
	if err := first.from(ctx, base, window, reset.Voided[0].Ordinal); err != nil {
		return err
	}
	if first.state.Ordinal != reset.Voided[0].Ordinal {
		return nil
	}
	behind := first.state.Clone()
	behind.Void(reset.Voided)
	if behind.Follows(reset) == nil {
		w.state, w.window, w.again = first.state, first.window, true
	}
	return nil
}

// one takes the next segment. What the voucher vouches for, a process of the
// group has compared.
func (w *resetWalk) one(ctx context.Context, st *archive.State, window *window, known *vouched, bounds *bounds) error {
	o, err := archive.GetNext(ctx, w.c.Archive, st)
	if err != nil {
		return err
	}
	if known != nil && o.Ordinal == known.other || w.v != nil && o.Ordinal == w.v.Ordinal && o.SHA256 != w.v.SHA256 {
		return fmt.Errorf("segment %d: %w", o.Ordinal, errReplaced)
	}
	if !known.vouchesFor(o) {
		if err := w.c.compareOnce(ctx, bounds, st, window, w.v.writer(), o); err != nil {
			return err
		}
	}
	w.c.take(st, window, o)
	return nil
}

// goesOn reports whether all segments behind a reset, whose state st is, are
// good: else they have to be declared void together with it.
func (w *resetWalk) goesOn(ctx context.Context, st *archive.State, last bool) (bool, error) {
	if last || w.again {
		return last, nil
	}
	st, bounds := st.Clone(), &bounds{end: -1}
	for {
		err := w.one(ctx, st, w.window, nil, bounds)
		switch {
		case errors.Is(err, archive.ErrNotFound):
			return true, nil
		case errors.Is(err, archive.ErrBreaks), errors.Is(err, archive.ErrDamaged), errors.Is(err, ErrForged), errors.Is(err, errReplaced):
			return false, nil
		case err != nil:
			return false, err
		}
	}
}

// errReplaced: a segment is not the one that the group vouched for.
var errReplaced = errors.New("it is another one than this group wrote or compared")

// base returns the state behind the newest anchor that is believed. Where no key
// is known at all, one without a signature is: the operator is told.
func (w *resetWalk) base(ctx context.Context, l archive.Line) (*archive.State, *window, error) {
	c := w.c
	catalog, err := c.newestCatalog(ctx, l)
	if err != nil {
		return nil, nil, err
	}
	known, err := c.copies.newest(ctx, l)
	if err != nil {
		return nil, nil, err
	}
	t, err := c.readTrail(ctx, l, -1)
	if err != nil {
		return nil, nil, err
	}
	if err := c.checkCopies(ctx, t, known, w.v.forgone()); err != nil {
		return nil, nil, err
	}
	good, err := c.trusted(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	if w.unsigned = good == 0; w.unsigned && c.ring.Empty() {
		good = len(t.notes)
	}
	if err := c.checkWatermark(ctx, catalog, t, good); err != nil {
		return nil, nil, err
	}
	w.look = newLookout(c.shared, l, catalog)
	base := &trail{t.line, t.notes[:good]}
	w.ahead = t.notes[good:]
	if good == 0 {
		return c.newState(l), newWindow(), nil
	}
	st, window, err := c.resumeAnchored(ctx, base, catalog, c.windowLimit())
	switch {
	case errors.Is(err, errAnchoredGone):
		return nil, nil, fmt.Errorf("%w: %w", ErrAnchored, err)
	case err == nil && w.v != nil && w.v.Ordinal < st.Ordinal:
		err = w.v.checkListed(base)
	}
	return st, window, err
}

// voids finds what is to be declared void: the segments behind r.state, each of
// which is hashed.
func (r *Reset) voids(ctx context.Context, w *resetWalk) error {
	st := w.state
	ordinals, err := r.ordinals(ctx, st.Ordinal)
	if err != nil {
		return err
	}
	for _, n := range w.ahead {
		if n.Ordinal >= st.Ordinal {
			return fmt.Errorf("%w: anchor %d goes up to segment %d, and segment %d is bad (%w). It is signed by no key that anchor-keys names; if nobody of yours wrote it, take it out of the bucket",
				ErrAnchored, n.Number, n.Ordinal, st.Ordinal, w.why)
		}
	}
	var found []*suspect
	for _, n := range ordinals {
		s, err := r.suspect(ctx, n)
		if err != nil {
			return err
		}
		found = append(found, s)
	}
	for i := len(found) - 1; i > 0; i-- {
		try := r.recognise(st, found[:i], found[i])
		if try == nil {
			continue
		}
		whole, err := w.goesOn(ctx, try.state, i == len(found)-1)
		if err != nil {
			return err
		}
		if whole {
			*r = *try
			return nil
		}
	}
	r.lay(st, found)
	return r.tryKeys(ctx, st)
}

// tryKeys requires that the keys of logs with good rows are those of these rows.
// Under a wrong key every row of theirs looks bad.
func (r *Reset) tryKeys(ctx context.Context, st *archive.State) error {
	for i := range r.Logs {
		h := st.Head(r.Logs[i].Tenant)
		if h.Scheme != chain.SchemeHMACv1 || h.Tree.Size == 0 {
			continue
		}
		if err := r.c.tryKey(ctx, st, r.Logs[i].Tenant); err != nil {
			return fmt.Errorf("the key of a keyed log does not fit its good rows: %w", err)
		}
	}
	return nil
}

// ordinals lists the segments of the line from one on. A hole among them cannot be
// declared void: nobody knows what was there.
func (r *Reset) ordinals(ctx context.Context, from int64) (all []int64, err error) {
	prefix := archive.SegmentPrefix(r.Line)
	after := prefix
	if from > 0 {
		after = archive.SegmentKey(r.Line, from-1)
	}
	for o, err := range r.c.Archive.List(ctx, prefix, after) {
		if err != nil {
			return nil, fmt.Errorf("list segments: %w", err)
		}
		name, ok := archive.ParseSegmentKey(o.Key)
		if !ok {
			continue
		}
		if want := from + int64(len(all)); name.Ordinal != want {
			return nil, fmt.Errorf("segment %d: %w: it is missing, and segment %d is there: restore it, for only what is there can be declared void", want, archive.ErrBreaks, name.Ordinal)
		}
		all = append(all, name.Ordinal)
	}
	return all, nil
}

// A suspect is a segment that may have to be declared void.
type suspect struct {
	archive.Voided
	body []byte           // where it may be a reset
	rows map[string]int64 // by tenant, as it says
	read bool             // it says so in order
}

func (r *Reset) suspect(ctx context.Context, ordinal int64) (*suspect, error) {
	body, err := r.c.Archive.Get(ctx, archive.SegmentKey(r.Line, ordinal))
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w", ordinal, err)
	}
	s := &suspect{Voided: archive.Voided{Ordinal: ordinal, SHA256: sha256.Sum256(body)}, rows: map[string]int64{}}
	seg, err := archive.SegmentMetadata(body)
	if err != nil {
		s.loosely(body)
		return s, nil
	}
	s.read = true
	for i := range seg.Logs {
		s.rows[seg.Logs[i].Tenant] += seg.Logs[i].Rows
	}
	if len(seg.Voided) > 0 {
		s.body = body
	}
	return s, nil
}

// loosely takes the logs from metadata that is not in order.
func (s *suspect) loosely(body []byte) {
	meta, err := archive.RawMetadata(body)
	if err != nil {
		return
	}
	var seg struct{ Logs []struct{ Tenant string } }
	if json.Unmarshal(meta, &seg) == nil {
		for _, l := range seg.Logs {
			s.rows[l.Tenant] += 0
		}
	}
}

// lay makes the plan of a new segment that declares all of found void.
func (r *Reset) lay(st *archive.State, found []*suspect) {
	lost, unread := rowsOf(found)
	r.Unread = unread
	if len(unread) > 0 { // any log of the line may be in them
		for tenant := range st.Heads {
			lost[tenant] += 0
		}
	}
	maps.DeleteFunc(lost, func(tenant string, _ int64) bool { // of a log that cannot be
		return audit.ValidTenant(tenant) != nil && !audit.IsReservedTenant(tenant)
	})
	if len(lost) == 0 { // the order has to stand somewhere
		lost[audit.TenantPartition] = 0
	}
	for _, s := range found {
		r.Voided = append(r.Voided, s.Voided)
	}
	for _, tenant := range slices.Sorted(maps.Keys(lost)) {
		h := st.Head(tenant)
		r.Logs = append(r.Logs, ResetLog{Tenant: tenant, Size: h.Tree.Size, Epoch: h.Epoch + 1, Lost: lost[tenant]})
	}
	r.state = st.Clone()
	r.state.Void(r.Voided)
	r.Ordinal = r.state.Ordinal
}

// rowsOf sums the rows of void segments by tenant, and names those that do not
// say whose they are. Rows of a reset are none of anybody's.
func rowsOf(found []*suspect) (rows map[string]int64, unread []int64) {
	rows = map[string]int64{}
	for _, s := range found {
		if !s.read {
			unread = append(unread, s.Ordinal)
		}
		for tenant, n := range s.rows {
			if s.body != nil {
				n = 0
			}
			rows[tenant] += n
		}
	}
	return rows, unread
}

// recognise returns the plan of a reset that is there already, if a segment is the
// one that would be written; else nil. An earlier run died before it could vouch
// for it, or another operator is about to. All of it but reason and time is
// checked.
func (r *Reset) recognise(st *archive.State, void []*suspect, s *suspect) *Reset {
	if s.body == nil {
		return nil
	}
	o, err := archive.ReadForeignSegment(s.body, st.Keys)
	if err != nil {
		return nil
	}
	try := Reset{c: r.c, ResetPlan: r.ResetPlan, look: r.look}
	try.lay(st, void)
	if try.state.Follows(o) != nil || len(o.Logs) != len(try.Logs) {
		return nil
	}
	for i := range o.Rows {
		row := &o.Rows[i]
		if row.Kind.S != audit.KindChainReset || row.ArchivedAt.N < st.ArchivedAt || row.ArchivedAt.N > r.c.Now().Add(clockSkew).UnixMicro() {
			return nil
		}
		said, err := archive.ParseReset(row.Slots[audit.SlotContext])
		if err != nil || !slices.ContainsFunc(try.Logs, func(l ResetLog) bool { return l.Tenant == row.TenantID.S }) {
			return nil
		}
		try.Reason = said.Reason.S
	}
	try.Existing, try.keeps = true, r.keeps
	try.state.Take(o)
	return &try
}

// Commit carries the plan out: it writes the segment, and vouches for it. A crash
// before the write leaves nothing. One between the two leaves a segment that no
// start believes, and that the next plan recognises. The error matches
// [ErrResetLost] where somebody else was faster; then there is a new plan to be
// made.
func (r *Reset) Commit(ctx context.Context) error {
	if !r.Existing {
		if err := r.write(ctx); err != nil {
			return err
		}
	}
	return r.vouch(ctx)
}

func (r *Reset) write(ctx context.Context) error {
	c := r.c
	order := archive.ResetOrder{Reason: r.Reason, At: c.Now().UnixMicro(), Writer: c.writer, Rand: c.Rand}
	for i := range r.Logs {
		order.Tenants = append(order.Tenants, r.Logs[i].Tenant)
	}
	seg, rows, err := archive.NewReset(r.state, order)
	if err != nil {
		return fmt.Errorf("segment %d: %w", r.Ordinal, err)
	}
	body, err := c.encode(&built{segment: seg, rows: rows})
	if err != nil {
		return fmt.Errorf("encode segment %d: %w", r.Ordinal, err)
	}
	o, err := archive.ReadForeignSegment(body, r.state.Keys)
	if err == nil {
		err = r.state.Follows(o)
	}
	if err != nil {
		return fmt.Errorf("segment %d, as it would be written: %w", r.Ordinal, err)
	}
	commit := archive.Committer{
		Bucket: c.Archive, Wait: c.backOff,
		Retrying: func(key string, attempt int, err error) {
			if f := c.events.Retrying; f != nil {
				f(r.Line, key, attempt, err)
			}
		},
		Believe: func(ctx context.Context, _ time.Time) error {
			if err := r.look.look(ctx); err != nil {
				return err
			}
			return r.look.passed(r.Voided[0].Ordinal)
		},
	}
	other, err := commit.Commit(ctx, r.state, body)
	if other != nil || errors.Is(err, archive.ErrBreaks) {
		return ErrResetLost
	}
	if err != nil {
		return err
	}
	r.state.Take(o)
	return nil
}

// vouch commits the voucher for the segment.
func (r *Reset) vouch(ctx context.Context) error {
	c, p := r.c, positionOf(r.state)
	v := voucher{ArchiveID: c.Root.ArchiveID, TopicID: r.Line.TopicID, Ordinal: p.ordinal, SHA256: p.sum, Writer: c.writer, Forgone: r.keeps}
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: r.Line.Topic, Partition: r.Line.Partition, At: p.offset, LeaderEpoch: p.epoch, Metadata: v.text()})
	for attempt := 1; ; attempt++ {
		resp, err := c.admin.CommitOffsets(ctx, c.voucherGroup(), offsets)
		if err = cmp.Or(err, resp.Error()); err == nil {
			return nil
		}
		if errors.Is(err, kerr.GroupAuthorizationFailed) {
			return fmt.Errorf("vouch for segment %d in group %s: %w: the reset is written, and no start believes it until this is allowed and reset-chain was run again", p.ordinal, c.voucherGroup(), err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("vouch for segment %d in group %s: %w: run reset-chain again", p.ordinal, c.voucherGroup(), err)
		}
		c.warn("vouch for the reset in group "+c.voucherGroup(), err)
		if err := c.backOff(ctx, attempt); err != nil {
			return err
		}
	}
}

// Written returns when the reset is said to have been ordered.
func (r *Reset) Written() time.Time { return time.UnixMicro(r.state.ArchivedAt).UTC() }
