package proof

import (
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// What metadata says must agree with itself before a row is read: rows of
// tenants that were not asked for are never held against it.
func TestMetadataMustAgreeWithItself(t *testing.T) {
	good := func() *archive.Segment {
		return &archive.Segment{
			FirstOffset: 10, NextOffset: 17, Rows: 4, Made: 1,
			Duplicates: []archive.Duplicate{{Offset: 13, Tenant: "a"}},
			Gaps:       []archive.Gap{{From: 14, To: 17, Cause: archive.GapLost}},
			Logs: []archive.LogInterval{
				{Tenant: "a", Rows: 3, Size: 3, Frontier: make([]chain.Hash, 2)},
				{Tenant: "_partition", FirstSeq: 3, Rows: 1, Size: 4, Frontier: make([]chain.Hash, 1)},
			},
		}
	}
	for _, c := range []struct {
		kind   FaultKind
		words  string
		change func(*archive.Segment)
	}{
		{"", "", func(*archive.Segment) {}},
		{FaultMetadata, "previousSha256", func(s *archive.Segment) { s.PreviousSHA256 = &chain.Hash{} }},
		{FaultMetadata, "previousSha256", func(s *archive.Segment) { s.Ordinal = 1 }},
		{FaultReset, "voided", func(s *archive.Segment) { s.Voided = []archive.Voided{{}} }},
		{FaultReset, "voided", func(s *archive.Segment) { s.Ordinal, s.Voided = 3, []archive.Voided{{Ordinal: 1}} }},
		{FaultReset, "voided", func(s *archive.Segment) { s.Ordinal, s.Voided = 3, []archive.Voided{{Ordinal: 2}, {Ordinal: 1}} }},
		{FaultMetadata, "5 rows made, of 4", func(s *archive.Segment) { s.Made = 5 }},
		{FaultCoverage, "are 8, but rows, duplicates and gaps account for 7", func(s *archive.Segment) { s.NextOffset++ }},
		{FaultCoverage, "account for 6", func(s *archive.Segment) { s.Duplicates = nil }},
		{FaultCoverage, "account for 8", func(s *archive.Segment) { s.Gaps[0].To++ }},
		{FaultMetadata, "twice", func(s *archive.Segment) { s.Logs[1].Tenant = "a" }},
		{FaultMetadata, "logs have 5 rows, rows is 4", func(s *archive.Segment) { s.Logs[0].Rows++ }},
		{FaultMetadata, "log of tenant a has no rows", func(s *archive.Segment) { s.Logs[0].Rows = 0 }},
		{FaultMetadata, "firstSeq 2 and rows 1 do not give size 4", func(s *archive.Segment) { s.Logs[1].FirstSeq-- }},
		{FaultTree, "log of tenant a: size 3, 1 hashes", func(s *archive.Segment) { s.Logs[0].Frontier = s.Logs[0].Frontier[1:] }},
	} {
		s := good()
		c.change(s)
		found := c.kind == ""
		checkMetadata(s, func(kind FaultKind, text string) {
			if c.kind == "" {
				t.Errorf("good metadata: %s", text)
			}
			found = found || kind == c.kind && strings.Contains(text, c.words)
		})
		if !found {
			t.Errorf("no fault %s with %q", c.kind, c.words)
		}
	}
}
