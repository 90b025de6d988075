package prooftest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// An Anchor is an anchor, signed by Signers: those that the archive had when it
// was added. A test changes Doc and encodes it again, or changes Body alone.
type Anchor struct {
	Doc     map[string]any
	Body    []byte
	Signers []*sign.Signer
	text    string
	covers  int   // segments
	at      int64 // microseconds
}

// count adds the counts of a segment to sums.
func count(sums *archive.AnchorCounts, m *archive.Segment) {
	if m.Ordinal == 0 {
		sums.FirstOffset = m.FirstOffset
	}
	sums.Add(archive.CountsOf(m))
}

// AnchorKey returns the key of the line's anchor i.
func (l *Line) AnchorKey(i int) string {
	return archive.AnchorKey(l.Line, int64(i))
}

// Anchor adds the next anchor, which covers all segments that there are.
func (l *Line) Anchor() *Anchor {
	return l.anchorAt(l.a.now, l.a.Signers, l.a.Keys)
}

func (l *Line) anchorAt(now int64, signers []*sign.Signer, keys any) *Anchor {
	n := len(l.Anchors)
	root := sha256.Sum256(l.a.Root)
	doc := map[string]any{
		"archiveId": l.a.ID, "archiveSha256": chain.Hash(root), "topic": l.Topic, "topicId": l.TopicID, "partition": l.Partition,
		"number": n, "ordinal": len(l.Segments) - 1, "previous": nil, "time": time.UnixMicro(now).UTC().Format(archive.TimeLayout),
		"totals": l.sums, "segments": l.anchorSegments(), "full": n%100 == 0, "heads": l.heads(n%100 == 0), "checkpoints": l.checkpoints(signers),
		"keys": keys,
	}
	if n > 0 {
		doc["previous"] = chain.Hash(sha256.Sum256([]byte(l.Anchors[n-1].text)))
	}
	a := &Anchor{Doc: doc, Signers: signers, covers: len(l.Segments), at: now}
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
	a.Body = Signed(a.text, a.Signers...)
}

// Signed returns a text as a note. Without signers it has no signature lines.
func Signed(text string, signers ...*sign.Signer) []byte {
	var by []note.Signer
	for _, s := range signers {
		by = append(by, s)
	}
	body, err := sign.Sign(text, by...)
	must(err)
	return body
}

// Signer returns the key of a name, the same at any time.
func Signer(name string) *sign.Signer {
	seed := sha256.Sum256([]byte(name))
	vkey := sign.VKey(name, ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey))
	hash := strings.Split(vkey, "+")[1]
	s, err := sign.NewSigner("PRIVATE+KEY+" + name + "+" + hash + "+" + base64.StdEncoding.EncodeToString(append([]byte{1}, seed[:]...)))
	must(err)
	return s
}

// Certify adds a key note: by says that key may sign for the archive, for a day
// from [Start] on.
func (a *Archive) Certify(key, by *sign.Signer) {
	text := sign.KeyNoteText(a.ID, key.VKey(), time.UnixMicro(Start).Add(24*time.Hour))
	a.KeyNotes[sign.KeyNoteKey(key.VKey())] = Signed(text, by)
}

// Reanchor makes the line's anchors anew from what its segments say, by the same
// signers, at the same times and over as many segments: what an attacker does
// who has the key. Anchors of segments that are gone go as well.
func (l *Line) Reanchor() {
	old, all := l.Anchors, l.Segments
	l.Anchors, l.Logs, l.sums, l.first = nil, map[string]*Log{}, archive.AnchorCounts{}, 0
	clear(l.changed)
	for _, a := range old {
		if a.covers > len(all) {
			break
		}
		for l.Segments = all[:l.first]; len(l.Segments) < a.covers; {
			l.Segments = all[:len(l.Segments)+1]
			l.replay(&all[len(l.Segments)-1].Meta)
		}
		l.anchorAt(a.at, a.Signers, a.Doc["keys"])
	}
	for _, s := range all[l.first:] {
		l.replay(&s.Meta)
	}
	l.Segments = all
}

// replay takes the state of the line's logs from what a segment says.
func (l *Line) replay(m *archive.Segment) {
	for _, iv := range m.Logs {
		l.Logs[iv.Tenant] = &Log{iv.Scheme, iv.Epoch, iv.HeadOut, chain.Tree{Size: iv.Size, Frontier: slices.Clone(iv.Frontier)}}
		l.changed[iv.Tenant] = true
	}
	count(&l.sums, m)
}

func (l *Line) anchorSegments() []any {
	list := []any{}
	for _, s := range l.Segments[l.first:] {
		if l.void[s.Meta.Ordinal] {
			continue
		}
		c := archive.CountsOf(&s.Meta)
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

func (l *Line) checkpoints(signers []*sign.Signer) []any {
	list := []any{}
	for _, tenant := range slices.Sorted(maps.Keys(l.changed)) {
		log := l.Logs[tenant]
		text := chain.CheckpointText(chain.CheckpointOrigin(l.chainLog(tenant)), log.Tree.Size, log.Tree.Root())
		list = append(list, map[string]any{"tenant": tenant, "note": string(Signed(text, signers...))})
	}
	return list
}
