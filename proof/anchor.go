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
		field{name: "archiveId", read: func(d *document) { a.archiveID = d.str() }},
		field{name: "archiveSha256", read: func(d *document) { a.archiveSHA256 = d.hash() }},
		field{name: "topic", read: func(d *document) { a.line.Topic = d.str() }},
		field{name: "topicId", read: func(d *document) { a.line.TopicID = d.str() }},
		field{name: "partition", read: func(d *document) { a.line.Partition = d.int32() }},
		field{name: "number", read: func(d *document) { a.stated = d.count() }},
		field{name: "ordinal", read: func(d *document) { a.ordinal = d.integer() }},
		field{name: "previous", read: func(d *document) { a.previous = d.nullHash() }},
		field{name: "time", read: func(d *document) { a.time = d.time() }},
		field{name: "totals", read: func(d *document) { d.object(countFields(&a.totals)...) }},
		field{name: "segments", read: func(d *document) {
			d.array(func(d *document) { a.segments = append(a.segments, readAnchorSegment(d)) })
		}},
		field{name: "full", read: func(d *document) { a.full = d.boolean() }},
		field{name: "heads", read: func(d *document) {
			d.array(func(d *document) { a.heads = append(a.heads, readAnchorHead(d)) })
		}},
		field{name: "checkpoints", read: func(d *document) {
			d.array(func(d *document) { a.checkpoints = append(a.checkpoints, readCheckpoint(d)) })
		}},
		field{name: "keys", read: readAnchorKeys})
}

func countFields(c *anchorCounts) []field {
	return []field{
		{name: "firstOffset", read: func(d *document) { c.FirstOffset = d.count() }},
		{name: "nextOffset", read: func(d *document) { c.NextOffset = d.count() }},
		{name: "rows", read: func(d *document) { c.Rows = d.count() }},
		{name: "made", read: func(d *document) { c.Made = d.count() }},
		{name: "duplicates", read: func(d *document) { c.Duplicates = d.count() }},
		{name: "gaps", read: func(d *document) { c.Gaps = d.count() }},
	}
}

func readAnchorSegment(d *document) (s anchorSegment) {
	d.object(append(countFields(&s.anchorCounts),
		field{name: "ordinal", read: func(d *document) { s.ordinal = d.count() }},
		field{name: "bytes", read: func(d *document) { s.bytes = d.count() }},
		field{name: "sha256", read: func(d *document) { s.sum = d.hash() }})...)
	return s
}

func readAnchorHead(d *document) (h anchorHead) {
	d.object(
		field{name: "tenant", read: func(d *document) { h.tenant = d.str() }},
		field{name: "scheme", read: func(d *document) { h.scheme = d.scheme() }},
		field{name: "epoch", read: func(d *document) { h.epoch = d.epoch() }},
		field{name: "size", read: func(d *document) { h.size = d.count() }},
		field{name: "head", read: func(d *document) { h.head = d.hash() }},
		field{name: "root", read: func(d *document) { h.root = d.hash() }},
		field{name: "frontier", read: func(d *document) { h.frontier = d.hashes() }})
	return h
}

func readCheckpoint(d *document) (c anchorCheckpoint) {
	d.object(
		field{name: "tenant", read: func(d *document) { c.tenant = d.str() }},
		field{name: "note", read: func(d *document) { c.note = d.str() }})
	return c
}

func readAnchorKeys(d *document) {
	list := func(d *document) { d.array(func(d *document) { d.str() }) }
	d.object(field{name: "anchor", read: list}, field{name: "catalog", read: list}, field{name: "control", read: list})
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
