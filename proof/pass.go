package proof

import (
	"math"
	"slices"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// Passed are segments that were hashed and not decoded.
type Passed struct {
	Segments int64 `json:"segments"`
	Rows     int64 `json:"rows"` // by their own metadata
}

// partial reports whether only a part of the rows was asked for.
func (v *verifier) partial() bool {
	o := &v.o
	return o.Tenant != "" || o.Topic != "" || o.Partition != nil || o.FromSeq > 0 || !o.Since.IsZero()
}

// asks reports whether a line was asked for. Of others nothing is read but
// anchors, for the keys in them.
func (v *verifier) asks(l *surveyLine) bool {
	return (v.o.Topic == "" || chain.Escape(v.o.Topic) == l.topic) && (v.o.Partition == nil || *v.o.Partition == l.partition)
}

// pass takes a segment whose rows were not asked for. Its hash is the one that an
// anchor states; what it says of itself must agree with itself and with the
// segments around it, and with the anchor's heads.
func (j *joiner) pass(m *archive.Segment, key string) {
	checkMetadata(m, func(kind FaultKind, text string) {
		j.fault(Fault{Kind: kind, Key: key, Ordinal: m.Ordinal, Text: text})
	})
	j.tally(m, key)
	j.rep.Passed.Segments++
	j.rep.Passed.Rows += m.Rows
	j.voidedLogs = nil // whether each got its row was not asked for
	for i := range m.Logs {
		if s := &m.Logs[i]; j.v.wants(s.Tenant) {
			j.passLog(m, s, key)
		}
	}
}

func (j *joiner) passLog(m *archive.Segment, s *archive.LogInterval, key string) {
	l := &logDigest{stated: s, deep: true, rows: s.Rows, first: firstRow{archivedAt: math.MaxInt64}}
	st := j.logs[s.Tenant]
	known := st != nil && st.breaks == j.breaks
	if st == nil {
		st = j.begin(l, m)
		known = j.breaks == 0
	}
	l.first.epoch = st.Epoch
	if l.first.reset = s.Epoch > st.Epoch; l.first.reset {
		l.first.epoch++
		j.rep.Resets++
	}
	if !j.continues(st, l, known, Fault{Key: key, Ordinal: m.Ordinal, Tenant: s.Tenant, Seq: &s.FirstSeq}) {
		j.adopt(st, l)
	}
	st.tree = chain.Tree{Size: s.Size, Frontier: slices.Clone(s.Frontier)}
	st.Size, st.Head, st.Epoch, st.Scheme = s.Size, s.HeadOut, s.Epoch, s.Scheme
	st.Rows += s.Rows
	st.CheckedFrom, st.breaks = s.Size, j.breaks
	j.anchors.changed[s.Tenant] = true
	j.meet(st, j.expected.heads[s.Tenant], st.Head, Fault{Key: key, Ordinal: m.Ordinal, Tenant: s.Tenant})
}
