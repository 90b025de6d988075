package proof

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// An anchor is one anchor as it was read. Its form is checked; nothing that it
// says is proved.
type anchor struct {
	*archive.Anchor // nil where wrong is not

	key    string
	number int64 // by its key
	wrong  *problem
	sum    chain.Hash // of the text: what the next anchor calls previous

	signatures int
}

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
	if a.wrong == nil && a.Number != number {
		a.wrong = &problem{FaultAnchor, fmt.Sprintf("it says that it is number %d", a.Number)}
	}
	v.progress(0)
	return a, nil
}

func (a *anchor) parse(body []byte) error {
	text, signatures, err := splitNote(body)
	if err != nil {
		return err
	}
	a.sum, a.signatures = archive.TextHash(text), signatures
	a.Anchor, err = archive.DecodeAnchor(text)
	return err
}

// segment returns what the anchor says of a segment, or nil.
func (a *anchor) segment(ordinal int64) *archive.AnchorSegment {
	i, ok := slices.BinarySearchFunc(a.Segments, ordinal, func(s archive.AnchorSegment, o int64) int { return cmp.Compare(s.Ordinal, o) })
	if !ok {
		return nil
	}
	return &a.Segments[i]
}

// head returns what the anchor says of a tenant's log, or nil.
func (a *anchor) head(tenant string) *archive.AnchorHead {
	i, ok := slices.BinarySearchFunc(a.Heads, tenant, func(h archive.AnchorHead, t string) int { return strings.Compare(h.Tenant, t) })
	if !ok {
		return nil
	}
	return &a.Heads[i]
}
