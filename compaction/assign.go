package compaction

import (
	"cmp"
	"slices"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A Partition is one partition of a topic in Kafka.
type Partition struct {
	Topic  string
	Number int32
}

func byName(a, b Partition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Number, b.Number))
}

// A Share says which lines of a bucket one of several compactors works on: those
// of its partitions, of whichever topic id. Who has partition 0 of the control
// topic leads: it sends what is due, and has the lines whose partition is gone
// from Kafka. Where there is no control topic, the first partition leads.
type Share struct {
	Control  string      // the control topic
	There    []Partition // those that the group shares
	Assigned []Partition // to this process
}

// Leads reports whether the process leads.
func (s *Share) Leads() bool {
	if len(s.There) == 0 {
		return false
	}
	lead := Partition{Topic: s.Control}
	if !slices.Contains(s.There, lead) {
		lead = slices.MinFunc(s.There, byName)
	}
	return slices.Contains(s.Assigned, lead)
}

// Has reports whether a line is one of the process's.
func (s *Share) Has(l archive.Line) bool {
	p := Partition{l.Topic, l.Partition}
	if !slices.Contains(s.There, p) {
		return s.Leads()
	}
	return slices.Contains(s.Assigned, p)
}
