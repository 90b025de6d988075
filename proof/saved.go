package proof

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// ErrSaved: a saved state cannot be gone on from.
var ErrSaved = errors.New("saved state")

// A Saved is where a verification ended: each line at its newest anchor. The next
// one goes on from there, and reads nothing before it again but the listing and
// that anchor.
//
// It is the auditor's own: whoever can change it can have any rows before it
// passed over. It holds hashes, sizes and tenant ids.
type Saved struct {
	Format    string     `json:"format"`
	ArchiveID string     `json:"archiveId"`
	Root      chain.Hash `json:"root"` // SHA-256 of the object ledgerlake.json
	Time      time.Time  `json:"time"` // of the verification
	// Given are the keys that were given; Keys those that they vouched for.
	Given []string     `json:"given"`
	Keys  []SavedKey   `json:"keys"`
	Lines []*SavedLine `json:"lines"`
}

const savedFormat = "ledgerlake-verify-state-v1"

// A SavedKey is a key that anchors introduced.
type SavedKey struct {
	VKey   string    `json:"vkey"`
	Roles  sign.Role `json:"roles"`
	Source string    `json:"source"`
}

// A SavedLine is a line at one of its anchors.
type SavedLine struct {
	Line
	Anchor  int64                `json:"anchor"` // its number
	SHA256  chain.Hash           `json:"sha256"` // of its text
	Began   time.Time            `json:"began"`  // when the verification ended that read the line from its beginning
	Time    time.Time            `json:"time"`   // when the newest one ended
	Ordinal int64                `json:"ordinal"`
	Segment chain.Hash           `json:"segment"` // SHA-256 of the object at ordinal
	Counts  archive.AnchorCounts `json:"counts"`
	Totals  Totals               `json:"totals"`
	Data    bool                 `json:"data"` // the line has rows that a data topic brings
	Logs    []SavedLog           `json:"logs"`

	compacted bool // it is where compaction ended
}

// A SavedLog is a log at an anchor.
type SavedLog struct {
	LogReport
	Frontier   []chain.Hash `json:"frontier"`
	ArchivedAt int64        `json:"archivedAt"` // of the newest row, microseconds
}

// A SavedPoint says in a report from where a verification went on.
type SavedPoint struct {
	Anchor  int64     `json:"anchor"`
	Ordinal int64     `json:"ordinal"`
	Rows    int64     `json:"rows"`  // before it, which this verification did not read
	Began   time.Time `json:"began"` // when the first of the verifications that did ended
	Time    time.Time `json:"time"`  // when the newest of them did
}

// Save returns where the verification ended, for the next one to go on from: of
// the lines whose rows were all read, now or by the one that this one went on
// from. It returns nil where there is a fault, or nothing to go on from.
func (r *Report) Save(at time.Time) *Saved {
	if r.FaultCount > 0 || r.partial || r.root == nil {
		return nil
	}
	s := &Saved{Format: savedFormat, ArchiveID: r.ArchiveID, Root: *r.root, Time: at.UTC(), Given: r.given, Keys: []SavedKey{}}
	for _, k := range r.introduced {
		s.Keys = append(s.Keys, SavedKey{k.VKey, k.Roles, k.Source})
	}
	for _, l := range r.Lines {
		if l.Proved && l.at != nil && l.keyed == 0 && l.catalogs == 0 {
			s.Lines = append(s.Lines, l.save(at))
		}
	}
	if len(s.Lines) == 0 {
		return nil
	}
	return s
}

func (l *LineReport) save(at time.Time) *SavedLine {
	s := l.at
	s.Began, s.Time = at.UTC(), at.UTC()
	if l.Saved != nil {
		s.Began = l.Saved.Began
	}
	for _, tenant := range slices.Sorted(maps.Keys(l.logs)) {
		if log := &l.logs[tenant].saved; log.Size > 0 {
			s.Logs = append(s.Logs, *log)
		}
	}
	return s
}

// Encode returns the state as text: a line of JSON, and its SHA-256.
func (s *Saved) Encode() ([]byte, error) {
	doc, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(doc, "\n%x\n", sha256.Sum256(doc)), nil
}

// DecodeSaved is the inverse of [Saved.Encode]. An error matches [ErrSaved]: the
// text is damaged, or of another version.
func DecodeSaved(text []byte) (*Saved, error) {
	doc, sum, _ := bytes.Cut(text, []byte("\n"))
	if want := fmt.Appendf(nil, "%x\n", sha256.Sum256(doc)); !bytes.Equal(sum, want) {
		return nil, fmt.Errorf("%w: it is damaged; remove it, and all is verified from the beginning", ErrSaved)
	}
	s := &Saved{}
	if err := json.Unmarshal(doc, s); err != nil || s.Format != savedFormat {
		return nil, fmt.Errorf("%w: it is of another version; remove it, and all is verified from the beginning", ErrSaved)
	}
	if slices.Contains(s.Lines, nil) {
		return nil, fmt.Errorf("%w: it has a line that says nothing", ErrSaved)
	}
	return s, nil
}

// savedLine returns the line at anchor a, without its logs.
func (j *joiner) savedLine(a *anchor) *SavedLine {
	t := j.rep.Totals
	t.Gaps, t.Kinds, t.Rejects = maps.Clone(t.Gaps), maps.Clone(t.Kinds), maps.Clone(t.Rejects)
	return &SavedLine{
		Line: j.rep.Line, Anchor: a.number, SHA256: a.sum, Ordinal: a.Ordinal, Segment: j.sum, Counts: j.counts, Totals: t,
		Data: j.data,
	}
}

func savedLog(st *logState) SavedLog {
	return SavedLog{st.LogReport, slices.Clone(st.tree.Frontier), st.newest}
}

// resume takes in a saved state.
func (v *verifier) resume(r *Report) error {
	s := v.o.Saved
	if s == nil {
		return nil
	}
	if v.root.ArchiveID != "" && s.ArchiveID != v.root.ArchiveID {
		return fmt.Errorf("%w: it is of archive %s, this one is %s; give the state of this archive, or none", ErrSaved, s.ArchiveID, v.root.ArchiveID)
	}
	if v.partial() {
		return fmt.Errorf("%w: it says where all rows end, so that a part of them cannot be asked for with it", ErrSaved)
	}
	if v.rootSum != nil && s.Root != *v.rootSum {
		r.fault(Fault{Kind: FaultRoot, Key: archive.RootKey, Ordinal: -1, Text: "was changed since the verification of " + s.Time.UTC().Format(time.RFC3339)})
	}
	v.saved = make(map[lineKey]*SavedLine, len(s.Lines))
	for _, l := range s.Lines {
		v.saved[lineKey{chain.Escape(l.Topic), chain.Escape(l.TopicID), l.Partition}] = l
	}
	return nil
}

// lostSince names lines, segments and anchors of a saved state that are gone. What
// a line has lost, it says itself.
func (v *verifier) lostSince(s *survey, r *Report) {
	for _, saved := range v.o.savedLines() {
		k := lineKey{chain.Escape(saved.Topic), chain.Escape(saved.TopicID), saved.Partition}
		l, line := s.byKey[k], saved.Line
		lost := ""
		switch {
		case l == nil:
			lost = "the line is gone"
		case l.catalogs > 0: // it is read from the beginning
		case l.passed != saved.Ordinal+1:
			lost = fmt.Sprintf("%d segments are there", l.passed)
		case l.lastAnchor < saved.Anchor:
			lost = fmt.Sprintf("its anchors end before %d", saved.Anchor)
		case l.passedAnchors != saved.Anchor:
			lost = fmt.Sprintf("%s are there before anchor %d", Count(l.passedAnchors, "anchor"), saved.Anchor)
		}
		if lost != "" {
			f := Fault{Kind: FaultMissing, Key: k.prefix("log"), Line: &line, Ordinal: -1, Text: fmt.Sprintf(
				"%s; at the verification of %s it had segments 0 to %d and anchors 0 to %d", lost, saved.Time.UTC().Format(time.RFC3339), saved.Ordinal, saved.Anchor)}
			if l == nil {
				r.fault(f)
			} else {
				l.lost = &f
			}
		}
	}
}

func (o *Options) savedLines() []*SavedLine {
	if o.Saved == nil {
		return nil
	}
	return o.Saved.Lines
}

// savedOf returns from where a line is gone on with, nil from its beginning: so
// is one that was compacted since.
func (v *verifier) savedOf(l *surveyLine) *SavedLine {
	if l.catalogs > 0 {
		return nil
	}
	return v.saved[l.lineKey]
}

// goOn puts the joiner where the line was at the anchor. That one is read again.
func (j *joiner) goOn(from *SavedLine) {
	j.from = from
	j.ordinal, j.sum, j.counts, j.offsets, j.data = from.Ordinal, from.Segment, from.Counts, true, from.Data
	j.rep.Totals = newTotals()
	j.rep.Totals.add(&from.Totals)
	j.rep.Totals.Anchors-- // the one that is read again
	j.rep.Topic, j.rep.TopicID = from.Topic, from.TopicID
	j.rep.FirstOffset, j.rep.NextOffset = from.Counts.FirstOffset, from.Counts.NextOffset
	j.rep.Saved = &SavedPoint{from.Anchor, from.Ordinal, from.Totals.Rows, from.Began, from.Time}
	j.anchors.next = from.Anchor
	sizes := headSizes{of: make(map[string]int64, len(from.Logs)), known: true}
	for i := range from.Logs {
		l := from.Logs[i]
		l.Independent, l.Signed, l.Witnessed = 0, 0, nil // of that verification
		st := &logState{LogReport: l.LogReport, newest: l.ArchivedAt, deep: true, anchored: l.Size, saved: l}
		st.tree = chain.Tree{Size: l.Size, Frontier: slices.Clone(l.Frontier)}
		st.saved.LogReport = st.LogReport
		j.logs[l.Tenant] = st
		j.anchors.unsigned[l.Tenant] = true
		sizes.of[l.Tenant] = l.Size
		sizes.sum += l.Size
		j.meet(st, j.expected.heads[l.Tenant], st.Head, Fault{Key: j.l.prefix("log"), Ordinal: j.ordinal, Tenant: l.Tenant})
	}
	j.anchors.sizes = sizes
}

// savedAnchor compares the anchor of the saved state with what it was then.
func (j *joiner) savedAnchor(a *anchor) {
	if j.from != nil && a.number == j.from.Anchor && a.wrong == nil && a.sum != j.from.SHA256 {
		j.anchorFault(a, FaultAnchor, fmt.Sprintf("it was changed since the verification of %s", j.from.Time.UTC().Format(time.RFC3339)))
	}
}

// next returns the first ordinal that is to be read. It may be called on nil.
func (l *SavedLine) next() int64 {
	if l == nil {
		return 0
	}
	return l.Ordinal + 1
}

// afterSegment returns the key of the last segment that is not to be read.
func (l *SavedLine) afterSegment(at *surveyLine) string {
	if l == nil || l.Ordinal < 0 {
		return ""
	}
	return fmt.Sprintf("%s%020d.parquet", at.prefix("log"), l.Ordinal)
}

// afterAnchor returns the key of the last anchor that is not to be read.
func (l *SavedLine) afterAnchor(at *surveyLine) string {
	if l == nil || l.Anchor == 0 {
		return ""
	}
	return fmt.Sprintf("%s%020d.note", at.prefix("anchor"), l.Anchor-1)
}

// follows checks that the first segment that is read follows the last one that
// is not.
func (g *gate) follows(o *object) {
	if g.from == nil || o.wrong != nil || o.ordinal != g.from.next() {
		return // missing ones are named elsewhere
	}
	if g.from.compacted && g.from.Segment == (chain.Hash{}) {
		return // it is void, or its anchor says nothing
	}
	if p := o.meta.PreviousSHA256; (p == nil) != (g.from.Ordinal < 0) || p != nil && *p != g.from.Segment {
		if g.from.compacted {
			o.wrong = &problem{FaultHash, fmt.Sprintf("its previousSha256 is not the hash that an anchor states of segment %d, which was compacted", g.from.Ordinal)}
			return
		}
		o.wrong = &problem{FaultHash, fmt.Sprintf("its previousSha256 is not the hash that segment %d had at the verification of %s", g.from.Ordinal, g.from.Time.UTC().Format(time.RFC3339))}
	}
}
