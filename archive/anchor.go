package archive

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive/jsondoc"
	"github.com/ledgerlake/ledgerlake/chain"
)

// FullEvery: an anchor whose number is a multiple of it lists every head.
const FullEvery = 100

// An Anchor is the statement of all heads and tree roots of a line at one
// moment: the document of an anchor note. Source: docs/format.md, section 6.
type Anchor struct {
	ArchiveID     string             `json:"archiveId"`
	ArchiveSHA256 chain.Hash         `json:"archiveSha256"` // of the object ledgerlake.json
	Topic         string             `json:"topic"`
	TopicID       string             `json:"topicId"`
	Partition     int32              `json:"partition"`
	Number        int64              `json:"number"`   // from 0 without holes
	Ordinal       int64              `json:"ordinal"`  // of the last segment covered; -1 before the first
	Previous      *chain.Hash        `json:"previous"` // of the previous anchor's text; null in number 0
	Time          Time               `json:"time"`     // never before the previous one's
	Totals        AnchorCounts       `json:"totals"`   // since the beginning
	Segments      []AnchorSegment    `json:"segments"` // since the previous anchor, without void ones
	Full          bool               `json:"full"`     // every head is listed
	Heads         []AnchorHead       `json:"heads"`    // the changed ones, or all; in the order of tenants' bytes
	Checkpoints   []AnchorCheckpoint `json:"checkpoints"`
	Keys          AnchorKeys         `json:"keys"`
}

// A Time is a time as documents write it: UTC, to the microsecond.
type Time struct{ time.Time }

// MarshalJSON writes the time in [TimeLayout].
func (t Time) MarshalJSON() ([]byte, error) { return json.Marshal(t.UTC().Format(TimeLayout)) }

// AnchorCounts are a range of offsets and what became of it. Gaps counts
// offsets.
type AnchorCounts struct {
	FirstOffset int64 `json:"firstOffset"`
	NextOffset  int64 `json:"nextOffset"`
	Rows        int64 `json:"rows"`
	Made        int64 `json:"made"`
	Duplicates  int64 `json:"duplicates"`
	Gaps        int64 `json:"gaps"`
}

// CountsOf returns the counts of a segment.
func CountsOf(s *Segment) AnchorCounts {
	c := AnchorCounts{FirstOffset: s.FirstOffset, NextOffset: s.NextOffset, Rows: s.Rows, Made: s.Made, Duplicates: int64(len(s.Duplicates))}
	for _, g := range s.Gaps {
		c.Gaps += g.To - g.From
	}
	return c
}

// Add adds the counts of the next segment; FirstOffset stays.
func (c *AnchorCounts) Add(next AnchorCounts) {
	c.NextOffset = next.NextOffset
	c.Rows += next.Rows
	c.Made += next.Made
	c.Duplicates += next.Duplicates
	c.Gaps += next.Gaps
}

// An AnchorSegment is what an anchor says of one segment.
type AnchorSegment struct {
	Ordinal int64      `json:"ordinal"`
	Bytes   int64      `json:"bytes"`
	SHA256  chain.Hash `json:"sha256"` // of the whole object
	AnchorCounts
}

// An AnchorHead is what an anchor says of one log.
type AnchorHead struct {
	Tenant   string       `json:"tenant"`
	Scheme   string       `json:"scheme"`
	Epoch    int32        `json:"epoch"`
	Size     int64        `json:"size"` // rows
	Head     chain.Hash   `json:"head"`
	Root     chain.Hash   `json:"root"`
	Frontier []chain.Hash `json:"frontier"`
}

// An AnchorCheckpoint is a C2SP tlog-checkpoint of one log, as a signed note.
type AnchorCheckpoint struct {
	Tenant string `json:"tenant"`
	Note   string `json:"note"`
}

// AnchorKeys are verifier keys (vkeys) that are good from the next anchor on.
type AnchorKeys struct {
	Anchor  []string `json:"anchor"`
	Catalog []string `json:"catalog"`
	Control []string `json:"control"`
}

// Line returns the line that the anchor says it belongs to.
func (a *Anchor) Line() Line { return Line{Topic: a.Topic, TopicID: a.TopicID, Partition: a.Partition} }

// AnchorPrefix returns the prefix of a line's anchors.
func AnchorPrefix(l Line) string { return linePrefix("anchor", l) }

// AnchorKey returns the key of a line's anchor.
func AnchorKey(l Line, number int64) string {
	return fmt.Sprintf("%s%020d.note", AnchorPrefix(l), number)
}

// A NoteName is what the key of an anchor or of a catalog version says. The
// topic stands in it escaped.
type NoteName struct {
	EscapedTopic string
	TopicID      string // escaped
	Partition    int32
	Number       int64
}

// ParseAnchorKey is the inverse of [AnchorKey]. It reports whether key is, byte
// for byte, one that AnchorKey makes.
func ParseAnchorKey(key string) (NoteName, bool) {
	rest, isAnchor := strings.CutPrefix(key, "anchor/")
	body, isNote := strings.CutSuffix(rest, ".note")
	s, ok := ParseSegmentKey("log/" + body + ".parquet")
	return NoteName{s.EscapedTopic, s.TopicID, s.Partition, s.Ordinal}, isAnchor && isNote && ok
}

// EncodeAnchor returns the text of an anchor: exactly the bytes that are signed.
func EncodeAnchor(a *Anchor) (string, error) {
	c := *a
	c.Segments = orEmpty(a.Segments)
	c.Heads = orEmpty(a.Heads)
	c.Checkpoints = orEmpty(a.Checkpoints)
	c.Keys = AnchorKeys{orEmpty(a.Keys.Anchor), orEmpty(a.Keys.Catalog), orEmpty(a.Keys.Control)}
	for i := range c.Heads {
		if c.Heads[i].Frontier == nil {
			return "", errors.New("a head without rows")
		}
	}
	doc, err := json.Marshal(&c)
	if err != nil {
		return "", err
	}
	return chain.NoteText(chain.AnchorNote, doc), nil
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// TextHash returns the hash of a note's text: what the next note of its kind
// calls previous.
func TextHash(text string) chain.Hash { return sha256.Sum256([]byte(text)) }

// DecodeAnchor parses the text of an anchor, strictly, and checks what it says
// against itself: order of segments and heads, roots against frontiers, number
// against full and previous. Signatures are for package sign.
func DecodeAnchor(text string) (*Anchor, error) {
	kind, doc, err := chain.ParseNoteText(text)
	if err != nil {
		return nil, err
	}
	if kind != chain.AnchorNote {
		return nil, fmt.Errorf("it is a note of another kind: %s", kind)
	}
	a := &Anchor{}
	if err := a.read(doc); err != nil {
		return nil, fmt.Errorf("document: %w", err)
	}
	return a, a.check()
}

type (
	doc   = jsondoc.Document
	field = jsondoc.Field
)

func (a *Anchor) read(text []byte) error {
	return jsondoc.Read(text,
		field{Name: "archiveId", Read: func(d *doc) { a.ArchiveID = d.Str() }},
		field{Name: "archiveSha256", Read: func(d *doc) { a.ArchiveSHA256 = d.Hash() }},
		field{Name: "topic", Read: func(d *doc) { a.Topic = d.Str() }},
		field{Name: "topicId", Read: func(d *doc) { a.TopicID = d.Str() }},
		field{Name: "partition", Read: func(d *doc) { a.Partition = d.Int32() }},
		field{Name: "number", Read: func(d *doc) { a.Number = d.Count() }},
		field{Name: "ordinal", Read: func(d *doc) { a.Ordinal = d.Integer() }},
		field{Name: "previous", Read: func(d *doc) { a.Previous = d.NullHash() }},
		field{Name: "time", Read: func(d *doc) { a.Time = Time{d.Time()} }},
		field{Name: "totals", Read: func(d *doc) { d.Object(countFields(&a.Totals)...) }},
		field{Name: "segments", Read: func(d *doc) {
			d.Array(func(d *doc) { a.Segments = append(a.Segments, readAnchorSegment(d)) })
		}},
		field{Name: "full", Read: func(d *doc) { a.Full = d.Boolean() }},
		field{Name: "heads", Read: func(d *doc) {
			d.Array(func(d *doc) { a.Heads = append(a.Heads, readAnchorHead(d)) })
		}},
		field{Name: "checkpoints", Read: func(d *doc) {
			d.Array(func(d *doc) { a.Checkpoints = append(a.Checkpoints, readCheckpoint(d)) })
		}},
		field{Name: "keys", Read: func(d *doc) { a.Keys = readAnchorKeys(d) }})
}

func countFields(c *AnchorCounts) []field {
	return []field{
		{Name: "firstOffset", Read: func(d *doc) { c.FirstOffset = d.Count() }},
		{Name: "nextOffset", Read: func(d *doc) { c.NextOffset = d.Count() }},
		{Name: "rows", Read: func(d *doc) { c.Rows = d.Count() }},
		{Name: "made", Read: func(d *doc) { c.Made = d.Count() }},
		{Name: "duplicates", Read: func(d *doc) { c.Duplicates = d.Count() }},
		{Name: "gaps", Read: func(d *doc) { c.Gaps = d.Count() }},
	}
}

func readAnchorSegment(d *doc) (s AnchorSegment) {
	d.Object(append(countFields(&s.AnchorCounts),
		field{Name: "ordinal", Read: func(d *doc) { s.Ordinal = d.Count() }},
		field{Name: "bytes", Read: func(d *doc) { s.Bytes = d.Count() }},
		field{Name: "sha256", Read: func(d *doc) { s.SHA256 = d.Hash() }})...)
	return s
}

func readAnchorHead(d *doc) (h AnchorHead) {
	d.Object(
		field{Name: "tenant", Read: func(d *doc) { h.Tenant = d.Str() }},
		field{Name: "scheme", Read: func(d *doc) { h.Scheme = d.Scheme() }},
		field{Name: "epoch", Read: func(d *doc) { h.Epoch = d.Epoch() }},
		field{Name: "size", Read: func(d *doc) { h.Size = d.Count() }},
		field{Name: "head", Read: func(d *doc) { h.Head = d.Hash() }},
		field{Name: "root", Read: func(d *doc) { h.Root = d.Hash() }},
		field{Name: "frontier", Read: func(d *doc) { h.Frontier = d.Hashes() }})
	return h
}

func readCheckpoint(d *doc) (c AnchorCheckpoint) {
	d.Object(
		field{Name: "tenant", Read: func(d *doc) { c.Tenant = d.Str() }},
		field{Name: "note", Read: func(d *doc) { c.Note = d.Str() }})
	return c
}

func readAnchorKeys(d *doc) (k AnchorKeys) {
	list := func(into *[]string) func(*doc) {
		return func(d *doc) { d.Array(func(d *doc) { *into = append(*into, d.Str()) }) }
	}
	d.Object(
		field{Name: "anchor", Read: list(&k.Anchor)},
		field{Name: "catalog", Read: list(&k.Catalog)},
		field{Name: "control", Read: list(&k.Control)})
	return k
}

// check checks what an anchor says against itself.
func (a *Anchor) check() error {
	switch {
	case a.Ordinal < -1:
		return fmt.Errorf("ordinal is %d", a.Ordinal)
	case a.Full != (a.Number%FullEvery == 0):
		return fmt.Errorf("number %d says full: %t", a.Number, a.Full)
	case (a.Previous == nil) != (a.Number == 0):
		return errors.New("previous is null in number 0 and nowhere else")
	}
	for i := range a.Segments {
		if s := &a.Segments[i]; s.Ordinal > a.Ordinal || i > 0 && s.Ordinal <= a.Segments[i-1].Ordinal {
			return errors.New("segments are not in order, or go beyond its ordinal")
		}
	}
	for i := range a.Heads {
		h := &a.Heads[i]
		if i > 0 && a.Heads[i-1].Tenant >= h.Tenant {
			return errors.New("heads are not in the order of their tenants")
		}
		if err := h.check(); err != nil {
			return fmt.Errorf("head of tenant %s: %w", strconv.Quote(h.Tenant), err)
		}
	}
	return nil
}

func (h *AnchorHead) check() error {
	if err := chain.CheckFrontier(h.Size, h.Frontier); err != nil {
		return err
	}
	tree := chain.Tree{Size: h.Size, Frontier: h.Frontier}
	if tree.Root() != h.Root {
		return errors.New("root is not that of its frontier")
	}
	return nil
}
