package archive

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ledgerlake/ledgerlake/chain"
)

// Format is the name of the format, as documents state it.
const Format = "ledgerlake-v1"

// MetadataKey is the one Parquet key-value key of ours.
const MetadataKey = "ledgerlake"

// A Line is one partition of one topic, the unit that is written in order.
// A topic that was deleted and created again has another TopicID, and so is
// another line.
type Line struct {
	Topic     string
	TopicID   string // Kafka's topic UUID, base64url without padding: 22 characters
	Partition int32
}

// A Segment is the metadata of one segment: what it holds, what became of each
// Kafka offset of its range, and the state of each of its logs before and
// after. Source: docs/format.md, section 5.
type Segment struct {
	Format         string        `json:"format"`
	ArchiveID      string        `json:"archiveId"`
	Topic          string        `json:"topic"`
	TopicID        string        `json:"topicId"`
	Partition      int32         `json:"partition"`
	Ordinal        int64         `json:"ordinal"`
	PreviousSHA256 *chain.Hash   `json:"previousSha256"` // of the whole object before; null for ordinal 0
	FirstOffset    int64         `json:"firstOffset"`
	NextOffset     int64         `json:"nextOffset"`  // after the last offset accounted for
	LeaderEpoch    int32         `json:"leaderEpoch"` // of the last record, or -1
	Rows           int64         `json:"rows"`
	Made           int64         `json:"made"` // rows that ingest itself made
	Duplicates     []Duplicate   `json:"duplicates"`
	Gaps           []Gap         `json:"gaps"`
	Voided         []Voided      `json:"voided,omitempty"`
	Writer         Writer        `json:"writer"`
	Logs           []LogInterval `json:"logs"`
}

// A Duplicate is an offset whose record repeats an archived row.
// Its JSON is [offset, tenant, seq].
type Duplicate struct {
	Offset int64
	Tenant string
	Seq    int64 // of the row that it repeats
}

// The causes of gaps.
const (
	GapControl   = "control"   // a control record of Kafka was delivered there
	GapCompacted = "compacted" // any other offset that Kafka skips
	GapLost      = "lost"      // Kafka no longer had it; a gap row says so
)

// A Gap is a stretch of offsets that no record came from.
// Its JSON is [from, to, cause].
type Gap struct {
	From, To int64 // To is exclusive
	Cause    string
}

// A Voided is a segment that an operator's chain reset declared void.
// Its JSON is [ordinal, sha256].
type Voided struct {
	Ordinal int64
	SHA256  chain.Hash
}

// A Writer says what made a segment.
type Writer struct {
	Version  string `json:"version"`
	Policy   string `json:"policy"`   // id of the scrubbing policy, or "none"
	Settings string `json:"settings"` // hex SHA-256 of every setting that shapes a row
}

// A LogInterval is what a segment does to one log.
type LogInterval struct {
	Tenant   string       `json:"tenant"`
	Scheme   string       `json:"scheme"`
	Epoch    int32        `json:"epoch"`
	FirstSeq int64        `json:"firstSeq"`
	Rows     int64        `json:"rows"`
	HeadIn   chain.Hash   `json:"headIn"`
	HeadOut  chain.Hash   `json:"headOut"`
	Size     int64        `json:"size"`     // of the log's tree after the segment
	Frontier []chain.Hash `json:"frontier"` // of the log's tree after the segment
}

// MarshalJSON returns [offset, tenant, seq].
func (d Duplicate) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{d.Offset, d.Tenant, d.Seq})
}

// UnmarshalJSON reads [offset, tenant, seq].
func (d *Duplicate) UnmarshalJSON(b []byte) error {
	return unmarshalTuple(b, &d.Offset, &d.Tenant, &d.Seq)
}

// MarshalJSON returns [from, to, cause].
func (g Gap) MarshalJSON() ([]byte, error) { return json.Marshal([]any{g.From, g.To, g.Cause}) }

// UnmarshalJSON reads [from, to, cause].
func (g *Gap) UnmarshalJSON(b []byte) error { return unmarshalTuple(b, &g.From, &g.To, &g.Cause) }

// MarshalJSON returns [ordinal, sha256].
func (v Voided) MarshalJSON() ([]byte, error) { return json.Marshal([]any{v.Ordinal, v.SHA256}) }

// UnmarshalJSON reads [ordinal, sha256].
func (v *Voided) UnmarshalJSON(b []byte) error { return unmarshalTuple(b, &v.Ordinal, &v.SHA256) }

// EncodeSegment returns the JSON of a segment's metadata.
func EncodeSegment(s *Segment) ([]byte, error) {
	c := *s
	if c.Duplicates == nil {
		c.Duplicates = []Duplicate{}
	}
	if c.Gaps == nil {
		c.Gaps = []Gap{}
	}
	if c.Logs == nil {
		c.Logs = []LogInterval{}
	}
	return json.Marshal(&c)
}

// DecodeSegment parses a segment's metadata. It checks the form, and that the
// counts agree with each other; whether they agree with rows and chain is for
// those who read the rows.
func DecodeSegment(body []byte) (*Segment, error) {
	var s Segment
	if err := decodeStrict(body, &s); err != nil {
		return nil, fmt.Errorf("segment metadata: %w", err)
	}
	if s.Format != Format {
		return nil, fmt.Errorf("segment metadata: format %q, this version reads %q", s.Format, Format)
	}
	if err := s.checkMembers(); err != nil {
		return nil, fmt.Errorf("segment metadata: %w", err)
	}
	var rows, lost int64
	for _, l := range s.Logs {
		rows += l.Rows
	}
	for _, g := range s.Gaps {
		lost += g.To - g.From
	}
	switch want := s.Rows - s.Made + int64(len(s.Duplicates)) + lost; {
	case rows != s.Rows:
		return nil, fmt.Errorf("segment metadata: logs have %d rows, the segment says %d", rows, s.Rows)
	case s.NextOffset-s.FirstOffset != want:
		return nil, fmt.Errorf("segment metadata: offsets %d to %d are %d, rows, duplicates and gaps account for %d",
			s.FirstOffset, s.NextOffset, s.NextOffset-s.FirstOffset, want)
	}
	return &s, nil
}

// checkMembers checks each member alone: what a writer never writes, and a
// verifier refuses.
func (s *Segment) checkMembers() error {
	switch {
	case s.Duplicates == nil || s.Gaps == nil || s.Logs == nil:
		return errors.New("duplicates, gaps or logs is no array")
	case min(s.Ordinal, s.FirstOffset, s.NextOffset, s.Rows, s.Made) < 0 || s.LeaderEpoch < -1 || s.Partition < 0:
		return errors.New("a number is negative")
	}
	if sum, err := hex.DecodeString(s.Writer.Settings); err != nil || len(sum) != len(chain.Hash{}) || strings.ToLower(s.Writer.Settings) != s.Writer.Settings {
		return fmt.Errorf("writer.settings %.80q is no hash", s.Writer.Settings)
	}
	for _, g := range s.Gaps {
		if g.From < 0 || g.To <= g.From || g.Cause != GapControl && g.Cause != GapCompacted && g.Cause != GapLost {
			return fmt.Errorf("a gap from %d to %d, cause %.40q", g.From, g.To, g.Cause)
		}
	}
	for _, d := range s.Duplicates {
		if d.Offset < 0 || d.Seq < 0 {
			return fmt.Errorf("a duplicate at offset %d of seq %d", d.Offset, d.Seq)
		}
	}
	for _, l := range s.Logs {
		if l.Rows < 1 || l.FirstSeq < 0 || l.Epoch < 0 {
			return fmt.Errorf("a log of %d rows from seq %d in epoch %d", l.Rows, l.FirstSeq, l.Epoch)
		}
	}
	return nil
}

// Line returns the line that the segment says it belongs to.
func (s *Segment) Line() Line {
	return Line{Topic: s.Topic, TopicID: s.TopicID, Partition: s.Partition}
}

// Log returns the log of a tenant on the segment's line.
func (s *Segment) Log(tenant string) chain.Log {
	return chain.Log{ArchiveID: s.ArchiveID, Tenant: tenant, Topic: s.Topic, TopicID: s.TopicID, Partition: s.Partition}
}
