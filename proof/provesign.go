package proof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
)

// maxIntroductions bounds how many keys vouch for each other in a row.
const maxIntroductions = 16

// signed returns what states the tree of a log in an anchor: its checkpoint,
// where there is one and the keys that are known do for it, else the anchor.
func (l *provenLine) signed(ctx context.Context, a *linkedAnchor, tenant string) (*Signed, error) {
	s := &Signed{number: a.Number, time: a.Time.Time}
	if i := slices.IndexFunc(a.Checkpoints, func(c archive.AnchorCheckpoint) bool { return c.Tenant == tenant }); i >= 0 {
		s.Checkpoint = a.Checkpoints[i].Note
	}
	notes, certified, err := l.introductions(ctx, a.note, a.Time.Time, 0)
	if err != nil {
		return nil, err
	}
	s.Introductions = notes
	alone := len(a.Heads) == 1 && a.Heads[0].Tenant == tenant
	// A certified key is good for some time, which only an anchor has.
	if s.Checkpoint == "" || certified || alone || l.p.o.WithAnchor {
		s.Anchor = string(a.body)
	}
	return s, nil
}

// introductions returns the notes by which the keys that are given lead to one
// that signed n, and whether that one is certified for a time. It finds none
// where one of the given keys signed n.
func (l *provenLine) introductions(ctx context.Context, n *sign.Note, at time.Time, depth int) (notes []string, certified bool, err error) {
	if l.p.keys.Check(n, sign.Anchor, at).State == sign.Good || depth == maxIntroductions {
		return nil, false, nil
	}
	for _, sig := range n.Signatures {
		notes, err := l.certificates(ctx, sig, at, depth)
		if err != nil || len(notes) > 0 {
			return notes, true, err
		}
	}
	if l.p.keys.Empty() {
		return nil, false, nil
	}
	for _, sig := range n.Signatures {
		notes, err := l.introducing(ctx, sig, at, depth)
		if err != nil || len(notes) > 0 {
			return notes, false, err
		}
	}
	return nil, false, nil
}

// certificates returns key notes for the key of a signature, and what introduces
// the keys that signed those.
func (l *provenLine) certificates(ctx context.Context, sig sign.Signature, at time.Time, depth int) (notes []string, err error) {
	all, err := l.p.keyNotes(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range all {
		if !isKeyOf(k.vkey, sig) {
			continue
		}
		more, _, err := l.introductions(ctx, k.note, at, depth+1)
		if err != nil {
			return nil, err
		}
		notes = append(append(notes, more...), string(k.body))
	}
	return notes, nil
}

// introducing returns the first anchor whose keys have the key of a signature,
// and what introduces the key that signed it. Anchors of a line list the keys
// that are good in an order: first without the key, then with it.
func (l *provenLine) introducing(ctx context.Context, sig sign.Signature, at time.Time, depth int) ([]string, error) {
	a, err := l.firstAnchor(ctx, func(a *linkedAnchor) answer {
		switch {
		case slices.ContainsFunc(a.Keys.Anchor, func(vkey string) bool { return isKeyOf(vkey, sig) }):
			return reached
		case a.Time.After(at):
			return reached // behind what it signed: not found
		}
		return before
	})
	if errors.Is(err, ErrNotAnchored) || err == nil && !slices.ContainsFunc(a.Keys.Anchor, func(vkey string) bool { return isKeyOf(vkey, sig) }) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	notes, _, err := l.introductions(ctx, a.note, a.Time.Time, depth+1)
	return append(notes, string(a.body)), err
}

// isKeyOf reports whether a signature is in the name of a key.
func isKeyOf(vkey string, sig sign.Signature) bool {
	name, rest, _ := strings.Cut(vkey, "+")
	text, _, _ := strings.Cut(rest, "+")
	hash, err := strconv.ParseUint(text, 16, 32)
	return err == nil && name == sig.Name && uint32(hash) == sig.Hash
}

// A foundKeyNote is a key note as it was read; what it says is not proved.
type foundKeyNote struct {
	vkey string
	note *sign.Note
	body []byte
}

// keyNotes reads the key notes of the archive, once. One that cannot be read
// certifies nothing.
func (p *Prover) keyNotes(ctx context.Context) ([]foundKeyNote, error) {
	if p.certified != nil {
		return p.certified, nil
	}
	p.certified = []foundKeyNote{}
	for o, err := range p.src.List(ctx, "key/", "") {
		if err != nil {
			return nil, fmt.Errorf("list key notes: %w", err)
		}
		body, err := p.src.Get(ctx, o.Key)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", o.Key, err)
		}
		n, err := sign.Parse(body)
		if err != nil {
			continue
		}
		if k, err := readKeyNote(n.Text); err == nil && k.archiveID == p.root.ArchiveID {
			p.certified = append(p.certified, foundKeyNote{k.vkey, n, body})
		}
	}
	return p.certified, nil
}
