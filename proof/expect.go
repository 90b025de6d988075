package proof

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// An Expected is a head that a log must have, from a place which whoever can
// write to the bucket cannot change: the log is at least as long, and its rows
// up to there are the same.
type Expected struct {
	Source    string // where it was got from, for people
	ArchiveID string // "" is any
	Topic     string
	TopicID   string // "" where the archive has one line of that topic and partition
	Partition int32
	Tenant    string
	Size      int64       // rows
	Head      *chain.Hash // row_hash of the last of them; nil is not compared
	Root      *chain.Hash // of their tree; nil is not compared

	cosigned []Witnessed
}

// A Place keeps notes apart from the bucket: anchors, or checkpoints of logs.
type Place struct {
	Name string // for people
	// Notes yields notes as they lie there, in any order. Of each line the
	// newest anchor by a good key counts; what no good key signed is passed over
	// where a key was given. Without one nothing there counts, unless Trusted.
	Notes func(context.Context) iter.Seq2[[]byte, error]
	// Trusted: nobody but the auditor can write there, so that notes count
	// without a signature.
	Trusted bool
	// Some: it is not asked to have an anchor of every line.
	Some bool
}

// A Witnessed is a cosignature of a log by a witness that was given.
type Witnessed struct {
	Witness string    `json:"witness"` // its name
	Size    int64     `json:"size"`    // rows
	Time    time.Time `json:"time"`    // by the witness's clock
}

// An expectedHead is an Expected that was brought to its line.
type expectedHead struct {
	Expected
	explicit bool // it was asked for by itself, not as part of an anchor
	done     bool // it was compared
}

// An expectedAnchor is the newest anchor of a line that a place has.
type expectedAnchor struct {
	*archive.Anchor
	place string
	sum   chain.Hash // of the text
	done  bool
}

// expectations are what is expected of one line.
type expectations struct {
	heads   map[string][]*expectedHead // by tenant
	anchors []*expectedAnchor
}

func (e *expectations) head(h *expectedHead) {
	if e.heads == nil {
		e.heads = map[string][]*expectedHead{}
	}
	e.heads[h.Tenant] = append(e.heads[h.Tenant], h)
}

// unmet returns the same expectations, of which nothing was compared yet. It may
// be called on nil.
func (e *expectations) unmet() *expectations {
	u := &expectations{}
	if e == nil {
		return u
	}
	for _, a := range e.anchors {
		c := *a
		c.done = false
		u.anchors = append(u.anchors, &c)
	}
	for _, all := range e.heads {
		for _, h := range all {
			c := *h
			c.done = false
			u.head(&c)
		}
	}
	return u
}

// expect takes in what is expected, and brings it to the lines that there are.
func (v *verifier) expect(ctx context.Context, s *survey, r *Report) error {
	v.expected = map[lineKey]*expectations{}
	for _, e := range v.o.Expect {
		if err := v.expectHead(s, r, e); err != nil {
			return err
		}
	}
	for _, p := range v.o.ExpectFrom {
		if err := v.expectFrom(ctx, s, r, p); err != nil {
			return err
		}
	}
	return nil
}

// expectHead brings one head to its line. Where there is no such line that is a
// fault; where several are meant, the question is not clear.
func (v *verifier) expectHead(s *survey, r *Report, e Expected) error {
	if e.ArchiveID != "" && v.root.ArchiveID != "" && e.ArchiveID != v.root.ArchiveID {
		r.fault(independent(fmt.Sprintf("%s has a head of archive %.40q, this one is %s", e.Source, e.ArchiveID, v.root.ArchiveID)))
		return nil
	}
	var found []lineKey
	for _, l := range s.lines {
		if l.topic == chain.Escape(e.Topic) && l.partition == e.Partition && (e.TopicID == "" || l.topicID == chain.Escape(e.TopicID)) {
			found = append(found, l.lineKey)
		}
	}
	where := fmt.Sprintf("%s/%d", Printable(e.Topic), e.Partition)
	switch {
	case len(found) > 1:
		return fmt.Errorf("%s: topic %s was made anew, and %d lines have partition %d of it: say which topicId is meant", e.Source, Printable(e.Topic), len(found), e.Partition)
	case len(found) == 0:
		f := independent(fmt.Sprintf("%s has a head of %s of a log in %s, and there is no such line", e.Source, Count(e.Size, "row"), where))
		f.Tenant = e.Tenant
		r.fault(f)
	case !v.asks(s.byKey[found[0]]):
		r.Less = append(r.Less, fmt.Sprintf("the head of %s in %s was not compared: the line was not asked for", name(e.Tenant), where))
	case !v.wants(e.Tenant):
		r.Less = append(r.Less, fmt.Sprintf("the head of %s in %s was not compared: the tenant was not asked for", name(e.Tenant), where))
	default:
		v.of(found[0]).head(&expectedHead{Expected: e, explicit: true})
	}
	return nil
}

func (v *verifier) of(k lineKey) *expectations {
	e := v.expected[k]
	if e == nil {
		e = &expectations{}
		v.expected[k] = e
	}
	return e
}

func independent(text string) Fault {
	return Fault{Kind: FaultIndependent, Ordinal: -1, Text: text}
}

// expectFrom takes the newest anchors that a place has.
func (v *verifier) expectFrom(ctx context.Context, s *survey, r *Report, p Place) error {
	newest := map[lineKey]*expectedAnchor{}
	ignored := int64(0)
	for body, err := range p.Notes(ctx) {
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		used, err := v.expectNote(s, r, p, body, newest)
		if err != nil {
			return err
		}
		if !used {
			ignored++
		}
	}
	if ignored > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: %s passed over: of another archive, or signed by no good key", p.Name, Count(ignored, "note")))
	}
	for k, a := range newest {
		v.expectAnchor(s, r, k, a)
	}
	for _, l := range s.lines {
		if !p.Some && v.asks(l) && l.segments > 0 && newest[l.lineKey] == nil && v.expected[l.lineKey] == nil {
			r.Less = append(r.Less, fmt.Sprintf("%s has no head of %s/%d by a good key", p.Name, unescape(l.topic), l.partition))
		}
	}
	return nil
}

// expectNote takes one note of a place, and reports whether it counts.
func (v *verifier) expectNote(s *survey, r *Report, p Place, body []byte, newest map[lineKey]*expectedAnchor) (bool, error) {
	n, err := sign.Parse(body)
	if err != nil {
		return false, nil
	}
	if e, err := v.expectedCheckpoint(n); err == nil {
		e.Source = p.Name
		// A checkpoint has no time: it may be older than the end of a certified key.
		if e.ArchiveID != v.root.ArchiveID && v.root.ArchiveID != "" && !p.Trusted || !v.counts(n, time.Unix(0, 1), p) {
			return false, nil
		}
		return true, v.expectHead(s, r, e)
	}
	a, err := archive.DecodeAnchor(n.Text)
	if err != nil || !v.counts(n, a.Time.Time, p) {
		return false, nil
	}
	if a.ArchiveID != v.root.ArchiveID && v.root.ArchiveID != "" {
		v.otherArchive(s, r, p, a)
		return false, nil
	}
	k := lineKey{chain.Escape(a.Topic), chain.Escape(a.TopicID), a.Partition}
	if old := newest[k]; old == nil || old.Number < a.Number {
		newest[k] = &expectedAnchor{Anchor: a, place: p.Name, sum: archive.TextHash(n.Text)}
	}
	return true, nil
}

// otherArchive says that a place knows another archive of a line that this one
// has, by the same keys: this one may have been put in its place.
func (v *verifier) otherArchive(s *survey, r *Report, p Place, a *archive.Anchor) {
	l := s.byKey[lineKey{chain.Escape(a.Topic), chain.Escape(a.TopicID), a.Partition}]
	if l == nil || !v.asks(l) {
		return
	}
	text := fmt.Sprintf("%s has anchors of %s/%d that a good key signed for another archive, %.40q: this one may have been put in its place", p.Name, Printable(a.Topic), a.Partition, a.ArchiveID)
	if !slices.Contains(r.Less, text) {
		r.Less = append(r.Less, text)
	}
}

// counts reports whether the signatures of a note of a place are enough.
func (v *verifier) counts(n *sign.Note, at time.Time, p Place) bool {
	if !v.keys.given {
		return p.Trusted
	}
	return v.keys.Check(n, sign.Anchor, at).State == sign.Good
}

// expectAnchor brings an anchor of a place to its line.
func (v *verifier) expectAnchor(s *survey, r *Report, k lineKey, a *expectedAnchor) {
	l := s.byKey[k]
	if l == nil {
		r.fault(independent(fmt.Sprintf("%s has anchor %d of %s/%d, and there is no such line", a.place, a.Number, Printable(a.Topic), a.Partition)))
		return
	}
	if !v.asks(l) {
		return
	}
	e := v.of(k)
	e.anchors = append(e.anchors, a)
	for i := range a.Heads {
		h := &a.Heads[i]
		if v.wants(h.Tenant) {
			e.head(&expectedHead{Expected: Expected{Source: a.place, Tenant: h.Tenant, Size: h.Size, Head: &h.Head, Root: &h.Root}})
		}
	}
}

// expectedCheckpoint reads a checkpoint of a log.
func (v *verifier) expectedCheckpoint(n *sign.Note) (e Expected, err error) {
	origin, size, root, err := chain.ParseCheckpointText(n.Text)
	if err != nil {
		return e, err
	}
	e = Expected{Size: size, Root: &root, cosigned: v.witnessed(n, size)}
	parts := strings.Split(origin, "/")
	if len(parts) != 6 || parts[0] != "ledgerlake" {
		return e, errors.New("not the origin of a log")
	}
	partition, err := strconv.ParseInt(parts[5], 10, 32)
	e.ArchiveID, e.TopicID, e.Partition = parts[1], parts[4], int32(partition)
	e.Tenant, e.Topic = unescape(parts[2]), unescape(parts[3])
	log := chain.Log{ArchiveID: e.ArchiveID, Tenant: e.Tenant, Topic: e.Topic, TopicID: e.TopicID, Partition: e.Partition}
	if err != nil || chain.CheckpointOrigin(log) != origin {
		return e, errors.New("not the origin of a log whose names can be read")
	}
	return e, nil
}

// witnessed returns which of the given witnesses cosigned a checkpoint.
func (v *verifier) witnessed(n *sign.Note, size int64) (all []Witnessed) {
	for _, s := range n.Signatures {
		for _, w := range v.o.Witnesses {
			if at, err := w.Check(n.Text, s); err == nil {
				all = append(all, Witnessed{w.Name(), size, at})
			}
		}
	}
	return all
}

// meet compares the heads that are expected of a log with the tree as it stands
// now, after a row whose hash is head.
func (j *joiner) meet(st *logState, want []*expectedHead, head chain.Hash, f Fault) {
	for _, e := range want {
		if e.done || e.Size != st.tree.Size {
			continue
		}
		e.done = true
		last := max(e.Size-1, 0)
		f.Seq, f.RecordID, f.Offset = &last, "", nil
		switch {
		case e.Head != nil && *e.Head != head:
			f.Kind, f.Text = FaultIndependent, fmt.Sprintf("the log's head at %s is %s; %s has %s: a row up to there was changed", Count(e.Size, "row"), short(head), e.Source, short(*e.Head))
			j.fault(f)
		case e.Root != nil && *e.Root != st.tree.Root():
			f.Kind, f.Text = FaultIndependent, fmt.Sprintf("the root of the log's tree at %s is not the one that %s has: a row up to there was changed", Count(e.Size, "row"), e.Source)
			j.fault(f)
		default:
			st.Independent = max(st.Independent, e.Size)
			st.witness(e.cosigned)
		}
	}
}

// witness notes cosignatures of the log.
func (st *logState) witness(all []Witnessed) {
	for _, w := range all {
		i := slices.IndexFunc(st.Witnessed, func(o Witnessed) bool { return o.Witness == w.Witness })
		switch {
		case i < 0:
			st.Witnessed = append(st.Witnessed, w)
		case st.Witnessed[i].Size < w.Size:
			st.Witnessed[i] = w
		}
	}
}

// meetAnchor compares an anchor with the same one of other places.
func (j *joiner) meetAnchor(a *anchor) {
	for _, e := range j.expected.anchors {
		if e.Number != a.number {
			continue
		}
		e.done = true
		if a.wrong != nil {
			continue // it is named already
		}
		if e.sum != a.sum {
			j.anchorFault(a, FaultIndependent, fmt.Sprintf("%s has another anchor %d of the line: there are two histories, or this one was made anew", e.place, e.Number))
			continue
		}
		j.met = e
	}
}

// coverIndependent notes that all up to the anchor that was met has been
// compared with an independent place.
func (j *joiner) coverIndependent(a *anchor) {
	if j.met == nil || j.met.Number != a.number {
		return
	}
	j.rep.Independent = &IndependentAnchor{Number: a.number, Ordinal: a.Ordinal, Source: j.met.place}
	for _, st := range j.logs {
		st.Independent = max(st.Independent, st.anchored)
	}
}

// unmet names what was expected and did not come.
func (j *joiner) unmet() {
	for _, e := range j.expected.anchors {
		if !e.done && j.from != nil && e.Number < j.from.Anchor {
			j.rep.less = append(j.rep.less, fmt.Sprintf("anchor %d of %s that %s has was not compared: it lies before the saved state", e.Number, j.rep.Line, e.place))
		}
		if !e.done && e.Number >= j.anchors.next {
			f := independent(fmt.Sprintf("the line's anchors end before %d; %s has anchor %d, of %s: the newest part of the archive is missing", j.anchors.next, e.place, e.Number, e.Time.UTC().Format(archive.TimeLayout)))
			f.Key, f.Ordinal = archive.AnchorKey(archive.Line(e.Line()), e.Number), j.ordinal
			j.fault(f)
		}
	}
	for _, tenant := range slices.Sorted(maps.Keys(j.expected.heads)) {
		for _, e := range j.expected.heads[tenant] {
			if !e.done {
				j.unmetHead(tenant, e)
			}
		}
	}
}

func (j *joiner) unmetHead(tenant string, e *expectedHead) {
	st := j.logs[tenant]
	size := int64(0)
	if st != nil {
		size = st.Size
	}
	switch {
	case e.Size > size:
		f := independent(fmt.Sprintf("the log ends at %s; %s has a head of %d: its newest rows are missing", Count(size, "row"), e.Source, e.Size))
		f.Key, f.Tenant, f.Seq, f.Ordinal = j.l.prefix("log"), tenant, &size, j.ordinal
		j.fault(f)
	case e.Size == 0: // of no rows
	case e.explicit:
		j.rep.less = append(j.rep.less, fmt.Sprintf("the head of %s at %s was not compared: the rows there were not read", name(tenant), Count(e.Size, "row")))
	}
}
