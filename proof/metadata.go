package proof

import (
	"fmt"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// readRoot parses ledgerlake.json.
func readRoot(text []byte) (archive.Root, error) {
	var r archive.Root
	err := readDocument(text,
		field{name: "format", read: func(d *document) { d.constant(archive.Format) }},
		field{name: "archiveId", read: func(d *document) { r.ArchiveID = d.ulid() }},
		field{name: "createdAt", read: func(d *document) { r.CreatedAt = d.time().Format(archive.TimeLayout) }},
		field{name: "graceSeconds", read: func(d *document) {
			if r.GraceSeconds = d.count(); r.GraceSeconds == 0 {
				d.fail("must be above 0")
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
		field{name: "format", read: func(d *document) { d.constant(archive.Format) }},
		field{name: "archiveId", read: func(d *document) { s.ArchiveID = d.str() }},
		field{name: "topic", read: func(d *document) { s.Topic = d.str() }},
		field{name: "topicId", read: func(d *document) { s.TopicID = d.str() }},
		field{name: "partition", read: func(d *document) { s.Partition = d.int32() }},
		field{name: "ordinal", read: func(d *document) { s.Ordinal = d.count() }},
		field{name: "previousSha256", read: func(d *document) { s.PreviousSHA256 = d.nullHash() }},
		field{name: "voided", optional: true, read: func(d *document) { s.Voided = readVoided(d) }},
		field{name: "writer", read: func(d *document) { s.Writer = readWriter(d) }},
		field{name: "logs", read: func(d *document) {
			d.array(func(d *document) { s.Logs = append(s.Logs, readInterval(d)) })
		}})
	return s, readDocument(text, fields...)
}

// rangeFields are the members that say what became of which offsets.
func rangeFields(s *archive.Segment) []field {
	return []field{
		{name: "firstOffset", read: func(d *document) { s.FirstOffset = d.count() }},
		{name: "nextOffset", read: func(d *document) { s.NextOffset = d.count() }},
		{name: "leaderEpoch", read: func(d *document) {
			if s.LeaderEpoch = d.int32(); s.LeaderEpoch < -1 {
				d.fail("%d is below -1", s.LeaderEpoch)
			}
		}},
		{name: "rows", read: func(d *document) { s.Rows = d.count() }},
		{name: "made", read: func(d *document) { s.Made = d.count() }},
		{name: "duplicates", read: func(d *document) {
			d.array(func(d *document) { s.Duplicates = append(s.Duplicates, readDuplicate(d)) })
		}},
		{name: "gaps", read: func(d *document) {
			d.array(func(d *document) { s.Gaps = append(s.Gaps, readGap(d)) })
		}},
	}
}

func readDuplicate(d *document) (dup archive.Duplicate) {
	d.tuple(
		func(d *document) { dup.Offset = d.count() },
		func(d *document) { dup.Tenant = d.str() },
		func(d *document) { dup.Seq = d.count() })
	return dup
}

func readGap(d *document) (g archive.Gap) {
	d.tuple(
		func(d *document) { g.From = d.count() },
		func(d *document) { g.To = d.count() },
		func(d *document) { g.Cause = d.str() })
	switch g.Cause {
	case archive.GapControl, archive.GapCompacted, archive.GapLost:
	default:
		d.fail("cause %.40q is unknown", g.Cause)
	}
	if g.To <= g.From {
		d.fail("gap from %d to %d is empty", g.From, g.To)
	}
	return g
}

func readVoided(d *document) (all []archive.Voided) {
	d.array(func(d *document) {
		var v archive.Voided
		d.tuple(
			func(d *document) { v.Ordinal = d.count() },
			func(d *document) { v.SHA256 = d.hash() })
		all = append(all, v)
	})
	return all
}

func readWriter(d *document) (w archive.Writer) {
	d.object(
		field{name: "version", read: func(d *document) { w.Version = d.str() }},
		field{name: "policy", read: func(d *document) { w.Policy = d.str() }},
		field{name: "settings", read: func(d *document) { w.Settings = d.hash().String() }})
	return w
}

func readInterval(d *document) (l archive.LogInterval) {
	d.object(
		field{name: "tenant", read: func(d *document) { l.Tenant = d.str() }},
		field{name: "scheme", read: func(d *document) { l.Scheme = d.scheme() }},
		field{name: "epoch", read: func(d *document) { l.Epoch = d.epoch() }},
		field{name: "firstSeq", read: func(d *document) { l.FirstSeq = d.count() }},
		field{name: "rows", read: func(d *document) { l.Rows = d.count() }},
		field{name: "headIn", read: func(d *document) { l.HeadIn = d.hash() }},
		field{name: "headOut", read: func(d *document) { l.HeadOut = d.hash() }},
		field{name: "size", read: func(d *document) { l.Size = d.count() }},
		field{name: "frontier", read: func(d *document) { l.Frontier = d.hashes() }})
	return l
}

func (d *document) constant(want string) {
	if got := d.str(); d.err == nil && got != want {
		d.fail("%.40q, this version reads %q", got, want)
	}
}

func (d *document) scheme() string {
	s := d.str()
	if d.err == nil && s != chain.SchemeV1 && s != chain.SchemeHMACv1 {
		d.fail("%.40q is no known scheme", s)
	}
	return s
}

func (d *document) epoch() int32 {
	n := d.int32()
	if n < 0 {
		d.fail("%d is negative", n)
	}
	return n
}

func (d *document) hashes() (all []chain.Hash) {
	d.array(func(d *document) { all = append(all, d.hash()) })
	return all
}

// ulid reads a ULID: 26 characters of Crockford's base 32 in upper case, of
// which the first is at most 7.
func (d *document) ulid() string {
	s := d.str()
	ok := len(s) == 26 && s[0] <= '7'
	for i := 0; ok && i < len(s); i++ {
		c := s[i]
		ok = '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' && c != 'I' && c != 'L' && c != 'O' && c != 'U'
	}
	if d.err == nil && !ok {
		d.fail("%.40q is no ULID", s)
	}
	return s
}

// time reads a time as documents write it: UTC, exactly six decimals.
func (d *document) time() time.Time {
	s := d.str()
	if d.err != nil {
		return time.Time{}
	}
	t, err := time.Parse(archive.TimeLayout, s)
	if err != nil || t.Format(archive.TimeLayout) != s {
		d.fail("%.40q is no time in UTC with six decimals", s)
	}
	return t
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
