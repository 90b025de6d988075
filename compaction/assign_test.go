package compaction

import (
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
)

// Whatever the group gives to whom, every line has one compactor, and one leads:
// the one with the control partition, which has the lines that are gone from
// Kafka too.
func TestShares(t *testing.T) {
	there := []Partition{{"calls", 0}, {"calls", 1}, {"ledgerlake.control", 0}, {"more", 0}}
	lines := []archive.Line{
		{Topic: "calls", TopicID: "a"},
		{Topic: "calls", TopicID: "b"}, // of a topic that was made anew
		{Topic: "calls", TopicID: "a", Partition: 1},
		{Topic: "calls", TopicID: "a", Partition: 2}, // of one that had more partitions
		{Topic: "gone", TopicID: "c"},
		{Topic: "ledgerlake.control", TopicID: "d"},
		{Topic: "ledgerlake.control", TopicID: "old"},
	}
	for _, control := range []string{"ledgerlake.control", "another"} {
		for mask := range 1 << len(there) {
			shares := []*Share{{Control: control, There: there}, {Control: control, There: there}}
			for i, p := range there {
				s := shares[mask>>i&1]
				s.Assigned = append(s.Assigned, p)
			}
			if shares[0].Leads() == shares[1].Leads() {
				t.Errorf("%b: %v leads, and %v", mask, shares[0].Leads(), shares[1].Leads())
			}
			for _, l := range lines {
				if shares[0].Has(l) == shares[1].Has(l) {
					t.Errorf("%b: %v has two compactors or none", mask, l)
				}
			}
			for _, s := range shares {
				for _, l := range lines[3:5] {
					if s.Has(l) != s.Leads() {
						t.Errorf("%b: %v is not the lead's", mask, l)
					}
				}
			}
		}
	}
	none := &Share{Control: "ledgerlake.control"}
	if none.Leads() || none.Has(lines[0]) {
		t.Error("who knows of no partition has something")
	}
}
