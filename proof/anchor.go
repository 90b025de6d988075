package proof

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// fullEvery: an anchor whose number is a multiple lists every head.
const fullEvery = 100

// An anchor is one anchor as it was read. Its form is checked; its signatures
// are not, and nothing that it says is proved.
type anchor struct {
	key    string
	number int64 // by its key
	wrong  *problem
	sum    chain.Hash // of the text: what the next anchor calls previous

	archiveID     string
	archiveSHA256 chain.Hash
	line          archive.Line
	stated        int64 // number, by the document
	ordinal       int64 // of the last segment covered; -1 before the first
	previous      *chain.Hash
	time          time.Time
	totals        anchorCounts
	segments      []anchorSegment // in the order of ordinals
	full          bool
	heads         []anchorHead
	checkpoints   []anchorCheckpoint
	signatures    int
}

// An anchorCounts is a range of offsets and what became of it.
type anchorCounts struct {
	FirstOffset, NextOffset, Rows, Made, Duplicates, Gaps int64
}

type anchorSegment struct {
	ordinal, bytes int64
	sum            chain.Hash
	anchorCounts
}

type anchorHead struct {
	tenant, scheme string
	epoch          int32
	size           int64
	head, root     chain.Hash
	frontier       []chain.Hash
}

type anchorCheckpoint struct{ tenant, note string }

// fetchAnchor reads an anchor.
func (v *verifier) fetchAnchor(ctx context.Context, o archive.Object, number int64) (*anchor, error) {
	body, wrong, err := v.get(ctx, o)
	if err != nil {
		return nil, err
	}
	a := &anchor{wrong: wrong}
	if wrong == nil {
		if err := a.parse(body); err != nil {
			a.wrong = &problem{FaultAnchor, err.Error()}
		}
	}
	a.key, a.number = o.Key, number
	if a.wrong == nil && a.stated != number {
		a.wrong = &problem{FaultAnchor, fmt.Sprintf("it says that it is number %d", a.stated)}
	}
	v.progress(0)
	return a, nil
}

func (a *anchor) parse(body []byte) error {
	text, signatures, err := splitNote(body)
	if err != nil {
		return err
	}
	kind, doc, err := chain.ParseNoteText(text)
	if err != nil {
		return err
	}
	if kind != chain.AnchorNote {
		return fmt.Errorf("it is a note of another kind: %s", kind)
	}
	a.sum, a.signatures = sha256.Sum256([]byte(text)), signatures
	if err := a.read(doc); err != nil {
		return fmt.Errorf("document: %w", err)
	}
	return a.check()
}

func (a *anchor) read(doc []byte) error {
	return readDocument(doc,
		field{Name: "archiveId", Read: func(d *document) { a.archiveID = d.Str() }},
		field{Name: "archiveSha256", Read: func(d *document) { a.archiveSHA256 = d.Hash() }},
		field{Name: "topic", Read: func(d *document) { a.line.Topic = d.Str() }},
		field{Name: "topicId", Read: func(d *document) { a.line.TopicID = d.Str() }},
		field{Name: "partition", Read: func(d *document) { a.line.Partition = d.Int32() }},
		field{Name: "number", Read: func(d *document) { a.stated = d.Count() }},
		field{Name: "ordinal", Read: func(d *document) { a.ordinal = d.Integer() }},
		field{Name: "previous", Read: func(d *document) { a.previous = d.NullHash() }},
		field{Name: "time", Read: func(d *document) { a.time = d.Time() }},
		field{Name: "totals", Read: func(d *document) { d.Object(countFields(&a.totals)...) }},
		field{Name: "segments", Read: func(d *document) {
			d.Array(func(d *document) { a.segments = append(a.segments, readAnchorSegment(d)) })
		}},
		field{Name: "full", Read: func(d *document) { a.full = d.Boolean() }},
		field{Name: "heads", Read: func(d *document) {
			d.Array(func(d *document) { a.heads = append(a.heads, readAnchorHead(d)) })
		}},
		field{Name: "checkpoints", Read: func(d *document) {
			d.Array(func(d *document) { a.checkpoints = append(a.checkpoints, readCheckpoint(d)) })
		}},
		field{Name: "keys", Read: readAnchorKeys})
}

func countFields(c *anchorCounts) []field {
	return []field{
		{Name: "firstOffset", Read: func(d *document) { c.FirstOffset = d.Count() }},
		{Name: "nextOffset", Read: func(d *document) { c.NextOffset = d.Count() }},
		{Name: "rows", Read: func(d *document) { c.Rows = d.Count() }},
		{Name: "made", Read: func(d *document) { c.Made = d.Count() }},
		{Name: "duplicates", Read: func(d *document) { c.Duplicates = d.Count() }},
		{Name: "gaps", Read: func(d *document) { c.Gaps = d.Count() }},
	}
}

func readAnchorSegment(d *document) (s anchorSegment) {
	d.Object(append(countFields(&s.anchorCounts),
		field{Name: "ordinal", Read: func(d *document) { s.ordinal = d.Count() }},
		field{Name: "bytes", Read: func(d *document) { s.bytes = d.Count() }},
		field{Name: "sha256", Read: func(d *document) { s.sum = d.Hash() }})...)
	return s
}

func readAnchorHead(d *document) (h anchorHead) {
	d.Object(
		field{Name: "tenant", Read: func(d *document) { h.tenant = d.Str() }},
		field{Name: "scheme", Read: func(d *document) { h.scheme = d.Scheme() }},
		field{Name: "epoch", Read: func(d *document) { h.epoch = d.Epoch() }},
		field{Name: "size", Read: func(d *document) { h.size = d.Count() }},
		field{Name: "head", Read: func(d *document) { h.head = d.Hash() }},
		field{Name: "root", Read: func(d *document) { h.root = d.Hash() }},
		field{Name: "frontier", Read: func(d *document) { h.frontier = d.Hashes() }})
	return h
}

func readCheckpoint(d *document) (c anchorCheckpoint) {
	d.Object(
		field{Name: "tenant", Read: func(d *document) { c.tenant = d.Str() }},
		field{Name: "note", Read: func(d *document) { c.note = d.Str() }})
	return c
}

func readAnchorKeys(d *document) {
	list := func(d *document) { d.Array(func(d *document) { d.Str() }) }
	d.Object(field{Name: "anchor", Read: list}, field{Name: "catalog", Read: list}, field{Name: "control", Read: list})
}

// check checks what an anchor says against itself.
func (a *anchor) check() error {
	switch {
	case a.ordinal < -1:
		return fmt.Errorf("ordinal is %d", a.ordinal)
	case a.full != (a.stated%fullEvery == 0):
		return fmt.Errorf("number %d says full: %t", a.stated, a.full)
	case (a.previous == nil) != (a.stated == 0):
		return errors.New("previous is null in number 0 and nowhere else")
	}
	for i := range a.segments {
		if s := &a.segments[i]; s.ordinal > a.ordinal || i > 0 && s.ordinal <= a.segments[i-1].ordinal {
			return errors.New("segments are not in order, or go beyond its ordinal")
		}
	}
	for i := range a.heads {
		h := &a.heads[i]
		if i > 0 && a.heads[i-1].tenant >= h.tenant {
			return errors.New("heads are not in the order of their tenants")
		}
		if err := h.check(); err != nil {
			return fmt.Errorf("head of tenant %s: %w", name(h.tenant), err)
		}
	}
	return nil
}

func (h *anchorHead) check() error {
	if err := chain.CheckFrontier(h.size, h.frontier); err != nil {
		return err
	}
	tree := chain.Tree{Size: h.size, Frontier: h.frontier}
	if tree.Root() != h.root {
		return errors.New("root is not that of its frontier")
	}
	return nil
}

// segment returns what the anchor says of a segment, or nil.
func (a *anchor) segment(ordinal int64) *anchorSegment {
	i, ok := slices.BinarySearchFunc(a.segments, ordinal, func(s anchorSegment, o int64) int { return cmp.Compare(s.ordinal, o) })
	if !ok {
		return nil
	}
	return &a.segments[i]
}

// head returns what the anchor says of a tenant's log, or nil.
func (a *anchor) head(tenant string) *anchorHead {
	i, ok := slices.BinarySearchFunc(a.heads, tenant, func(h anchorHead, t string) int { return strings.Compare(h.tenant, t) })
	if !ok {
		return nil
	}
	return &a.heads[i]
}
