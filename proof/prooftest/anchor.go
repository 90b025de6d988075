package prooftest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// An Anchor is an anchor without signatures. A test changes Doc and encodes it
// again, or changes Body alone.
type Anchor struct {
	Doc  map[string]any
	Body []byte
	text string
}

// counts is a range of offsets and what became of it.
type counts struct {
	FirstOffset int64 `json:"firstOffset"`
	NextOffset  int64 `json:"nextOffset"`
	Rows        int64 `json:"rows"`
	Made        int64 `json:"made"`
	Duplicates  int64 `json:"duplicates"`
	Gaps        int64 `json:"gaps"`
}

func (c *counts) add(m *archive.Segment) {
	if m.Ordinal == 0 {
		c.FirstOffset = m.FirstOffset
	}
	c.NextOffset = m.NextOffset
	c.Rows += m.Rows
	c.Made += m.Made
	c.Duplicates += int64(len(m.Duplicates))
	for _, g := range m.Gaps {
		c.Gaps += g.To - g.From
	}
}

// AnchorKey returns the key of the line's anchor i.
func (l *Line) AnchorKey(i int) string {
	return fmt.Sprintf("anchor/%s/%s/%05d/%020d.note", chain.Escape(l.Topic), chain.Escape(l.TopicID), l.Partition, i)
}

// Anchor adds the next anchor, which covers all segments that there are.
func (l *Line) Anchor() *Anchor {
	n := len(l.Anchors)
	root := sha256.Sum256(l.a.Root)
	doc := map[string]any{
		"archiveId": l.a.ID, "archiveSha256": chain.Hash(root), "topic": l.Topic, "topicId": l.TopicID, "partition": l.Partition,
		"number": n, "ordinal": len(l.Segments) - 1, "previous": nil, "time": time.UnixMicro(l.a.now).UTC().Format(archive.TimeLayout),
		"totals": l.sums, "segments": l.anchorSegments(), "full": n%100 == 0, "heads": l.heads(n%100 == 0), "checkpoints": l.checkpoints(),
		"keys": map[string]any{"anchor": []string{}, "catalog": []string{}, "control": []string{}},
	}
	if n > 0 {
		doc["previous"] = chain.Hash(sha256.Sum256([]byte(l.Anchors[n-1].text)))
	}
	a := &Anchor{Doc: doc}
	a.Encode()
	l.Anchors = append(l.Anchors, a)
	l.first = len(l.Segments)
	clear(l.changed)
	return a
}

// Encode makes Body anew from Doc.
func (a *Anchor) Encode() {
	doc, err := json.Marshal(a.Doc)
	must(err)
	a.text = chain.NoteText(chain.AnchorNote, doc)
	a.Body = []byte(a.text + "\n")
}

func (l *Line) anchorSegments() []any {
	list := []any{}
	for _, s := range l.Segments[l.first:] {
		if l.void[s.Meta.Ordinal] {
			continue
		}
		var c counts
		c.add(&s.Meta)
		c.FirstOffset = s.Meta.FirstOffset
		list = append(list, map[string]any{
			"ordinal": s.Meta.Ordinal, "bytes": len(s.Body), "sha256": chain.Hash(sha256.Sum256(s.Body)),
			"firstOffset": c.FirstOffset, "nextOffset": c.NextOffset, "rows": c.Rows, "made": c.Made, "duplicates": c.Duplicates, "gaps": c.Gaps,
		})
	}
	return list
}

func (l *Line) heads(full bool) []any {
	list := []any{}
	for _, tenant := range slices.Sorted(maps.Keys(l.Logs)) {
		if log := l.Logs[tenant]; full || l.changed[tenant] {
			list = append(list, map[string]any{
				"tenant": tenant, "scheme": log.Scheme, "epoch": log.Epoch, "size": log.Tree.Size,
				"head": log.Head, "root": log.Tree.Root(), "frontier": slices.Clone(log.Tree.Frontier),
			})
		}
	}
	return list
}

func (l *Line) checkpoints() []any {
	list := []any{}
	for _, tenant := range slices.Sorted(maps.Keys(l.changed)) {
		log := l.Logs[tenant]
		text := chain.CheckpointText(chain.CheckpointOrigin(l.chainLog(tenant)), log.Tree.Size, log.Tree.Root())
		list = append(list, map[string]any{"tenant": tenant, "note": text + "\n"})
	}
	return list
}
