package proof

import (
	"fmt"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// readRoot parses ledgerlake.json.
func readRoot(text []byte) (archive.Root, error) {
	var r archive.Root
	err := readDocument(text,
		field{Name: "format", Read: func(d *document) { d.Constant(archive.Format) }},
		field{Name: "archiveId", Read: func(d *document) { r.ArchiveID = d.ULID() }},
		field{Name: "createdAt", Read: func(d *document) { r.CreatedAt = d.Time().Format(archive.TimeLayout) }},
		field{Name: "graceSeconds", Read: func(d *document) {
			if r.GraceSeconds = d.Count(); r.GraceSeconds == 0 {
				d.Fail("must be above 0")
			}
		}})
	r.Format = archive.Format
	return r, err
}

// readMetadata parses the metadata of a segment. It checks each member alone;
// whether they agree with each other is for checkMetadata.
func readMetadata(text []byte) (*archive.Segment, error) {
	s := &archive.Segment{Format: archive.Format}
	fields := append(rangeFields(s),
		field{Name: "format", Read: func(d *document) { d.Constant(archive.Format) }},
		field{Name: "archiveId", Read: func(d *document) { s.ArchiveID = d.Str() }},
		field{Name: "topic", Read: func(d *document) { s.Topic = d.Str() }},
		field{Name: "topicId", Read: func(d *document) { s.TopicID = d.Str() }},
		field{Name: "partition", Read: func(d *document) { s.Partition = d.Int32() }},
		field{Name: "ordinal", Read: func(d *document) { s.Ordinal = d.Count() }},
		field{Name: "previousSha256", Read: func(d *document) { s.PreviousSHA256 = d.NullHash() }},
		field{Name: "voided", Optional: true, Read: func(d *document) { s.Voided = readVoided(d) }},
		field{Name: "writer", Read: func(d *document) { s.Writer = readWriter(d) }},
		field{Name: "logs", Read: func(d *document) {
			d.Array(func(d *document) { s.Logs = append(s.Logs, readInterval(d)) })
		}})
	return s, readDocument(text, fields...)
}

// rangeFields are the members that say what became of which offsets.
func rangeFields(s *archive.Segment) []field {
	return []field{
		{Name: "firstOffset", Read: func(d *document) { s.FirstOffset = d.Count() }},
		{Name: "nextOffset", Read: func(d *document) { s.NextOffset = d.Count() }},
		{Name: "leaderEpoch", Read: func(d *document) {
			if s.LeaderEpoch = d.Int32(); s.LeaderEpoch < -1 {
				d.Fail("%d is below -1", s.LeaderEpoch)
			}
		}},
		{Name: "rows", Read: func(d *document) { s.Rows = d.Count() }},
		{Name: "made", Read: func(d *document) { s.Made = d.Count() }},
		{Name: "duplicates", Read: func(d *document) {
			d.Array(func(d *document) { s.Duplicates = append(s.Duplicates, readDuplicate(d)) })
		}},
		{Name: "gaps", Read: func(d *document) {
			d.Array(func(d *document) { s.Gaps = append(s.Gaps, readGap(d)) })
		}},
	}
}

func readDuplicate(d *document) (dup archive.Duplicate) {
	d.Tuple(
		func(d *document) { dup.Offset = d.Count() },
		func(d *document) { dup.Tenant = d.Str() },
		func(d *document) { dup.Seq = d.Count() })
	return dup
}

func readGap(d *document) (g archive.Gap) {
	d.Tuple(
		func(d *document) { g.From = d.Count() },
		func(d *document) { g.To = d.Count() },
		func(d *document) { g.Cause = d.Str() })
	switch g.Cause {
	case archive.GapControl, archive.GapCompacted, archive.GapLost:
	default:
		d.Fail("cause %.40q is unknown", g.Cause)
	}
	if g.To <= g.From {
		d.Fail("gap from %d to %d is empty", g.From, g.To)
	}
	return g
}

func readVoided(d *document) (all []archive.Voided) {
	d.Array(func(d *document) {
		var v archive.Voided
		d.Tuple(
			func(d *document) { v.Ordinal = d.Count() },
			func(d *document) { v.SHA256 = d.Hash() })
		all = append(all, v)
	})
	return all
}

func readWriter(d *document) (w archive.Writer) {
	d.Object(
		field{Name: "version", Read: func(d *document) { w.Version = d.Str() }},
		field{Name: "policy", Read: func(d *document) { w.Policy = d.Str() }},
		field{Name: "settings", Read: func(d *document) { w.Settings = d.Hash().String() }})
	return w
}

func readInterval(d *document) (l archive.LogInterval) {
	d.Object(
		field{Name: "tenant", Read: func(d *document) { l.Tenant = d.Str() }},
		field{Name: "scheme", Read: func(d *document) { l.Scheme = d.Scheme() }},
		field{Name: "epoch", Read: func(d *document) { l.Epoch = d.Epoch() }},
		field{Name: "firstSeq", Read: func(d *document) { l.FirstSeq = d.Count() }},
		field{Name: "rows", Read: func(d *document) { l.Rows = d.Count() }},
		field{Name: "headIn", Read: func(d *document) { l.HeadIn = d.Hash() }},
		field{Name: "headOut", Read: func(d *document) { l.HeadOut = d.Hash() }},
		field{Name: "size", Read: func(d *document) { l.Size = d.Count() }},
		field{Name: "frontier", Read: func(d *document) { l.Frontier = d.Hashes() }})
	return l
}

// misplaced says how a segment's metadata disagrees with the place that its
// object has, or nil. An object in the wrong place says nothing about its
// neighbours.
func misplaced(s *archive.Segment, at place, archiveID string) error {
	want := archive.SegmentName{EscapedTopic: chain.Escape(s.Topic), TopicID: chain.Escape(s.TopicID), Partition: s.Partition, Ordinal: s.Ordinal}
	switch {
	case want != archive.SegmentName(at):
		return fmt.Errorf("it is segment %d of %s/%s/%d by its own metadata", s.Ordinal, Printable(s.Topic), Printable(s.TopicID), s.Partition)
	case archiveID != "" && s.ArchiveID != archiveID:
		return fmt.Errorf("it is of archive %.40q by its own metadata, not of %s", s.ArchiveID, archiveID)
	}
	return nil
}

// A place is where an object lies, by its key.
type place archive.SegmentName

// checkMetadata yields each way in which members of a segment's metadata
// disagree with each other.
func checkMetadata(s *archive.Segment, fault func(FaultKind, string)) {
	if (s.PreviousSHA256 == nil) != (s.Ordinal == 0) {
		fault(FaultMetadata, "previousSha256 is null in ordinal 0 and nowhere else")
	}
	if s.Made > s.Rows {
		fault(FaultMetadata, fmt.Sprintf("%d rows made, of %d", s.Made, s.Rows))
	}
	if !voidsItsPast(s) {
		fault(FaultReset, "voided are not the segments just before, in order")
	}
	checkCoverage(s, fault)
	var rows int64
	seen := make(map[string]bool, len(s.Logs))
	for i := range s.Logs {
		l := &s.Logs[i]
		if seen[l.Tenant] {
			fault(FaultMetadata, fmt.Sprintf("logs has tenant %s twice", name(l.Tenant)))
		}
		seen[l.Tenant] = true
		rows += l.Rows
		checkInterval(l, fault)
	}
	if rows != s.Rows {
		fault(FaultMetadata, fmt.Sprintf("logs have %d rows, rows is %d", rows, s.Rows))
	}
}

// voidsItsPast reports whether the segments that s declares void are those just
// before it, in order.
func voidsItsPast(s *archive.Segment) bool {
	for i, v := range s.Voided {
		if v.Ordinal != s.Ordinal-int64(len(s.Voided)-i) {
			return false
		}
	}
	return true
}

// checkCoverage checks the equation of section 5:
//
//	nextOffset − firstOffset = (rows − made) + duplicates + offsets in gaps
func checkCoverage(s *archive.Segment, fault func(FaultKind, string)) {
	gaps := int64(0)
	for _, g := range s.Gaps {
		gaps += g.To - g.From
	}
	accounted := s.Rows - s.Made + int64(len(s.Duplicates)) + gaps
	if span := s.NextOffset - s.FirstOffset; span != accounted {
		fault(FaultCoverage, fmt.Sprintf("offsets %d to %d are %d, but rows, duplicates and gaps account for %d",
			s.FirstOffset, s.NextOffset, span, accounted))
	}
}

func checkInterval(l *archive.LogInterval, fault func(FaultKind, string)) {
	who := "log of tenant " + name(l.Tenant)
	switch {
	case l.Rows == 0:
		fault(FaultMetadata, who+" has no rows and is listed")
	case l.Size-l.FirstSeq != l.Rows:
		fault(FaultMetadata, fmt.Sprintf("%s: firstSeq %d and rows %d do not give size %d", who, l.FirstSeq, l.Rows, l.Size))
	}
	if err := chain.CheckFrontier(l.Size, l.Frontier); err != nil {
		fault(FaultTree, fmt.Sprintf("%s: %v", who, err))
	}
}
