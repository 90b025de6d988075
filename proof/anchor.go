package proof

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
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

	lines    int // of signatures
	verdict  sign.Verdict
	stranger error // why its signatures are a fault, while its text can be right
}

// fetchAnchor reads an anchor.
func (v *verifier) fetchAnchor(ctx context.Context, o archive.Object, number int64) (*anchor, error) {
	body, wrong, err := v.note(ctx, o)
	if err != nil {
		return nil, err
	}
	a := &anchor{key: o.Key, number: number, wrong: wrong}
	if wrong == nil {
		a.wrong = v.readAnchor(a, body)
	}
	v.progress(0)
	return a, nil
}

// readAnchor parses an anchor and judges its signatures. What a good key did not
// sign, though it says so, says nothing.
func (v *verifier) readAnchor(a *anchor, body []byte) *problem {
	n, err := sign.Parse(body)
	if err != nil {
		return &problem{FaultAnchor, err.Error()}
	}
	if a.Anchor, err = archive.DecodeAnchor(n.Text); err != nil {
		return &problem{FaultAnchor, err.Error()}
	}
	if a.Number != a.number {
		return &problem{FaultAnchor, fmt.Sprintf("it says that it is number %d", a.Number)}
	}
	a.sum, a.lines = archive.TextHash(n.Text), len(n.Signatures)
	a.verdict, err = v.keys.judge(n, sign.Anchor, a.Time.Time)
	switch {
	case errors.Is(err, errForged):
		return &problem{FaultSignature, err.Error()}
	case err != nil:
		a.stranger = err
	}
	return nil
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
