package archive

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive/sign"
)

// Verdict says what the signatures of a note are worth to a ring, for a role and
// for a document of the time at. Where its signers are strangers, it reads the
// notes on keys that the bucket holds, and adds to the ring what a good key of it
// has certified. An error is the store's.
func Verdict(ctx context.Context, src Source, ring *sign.Ring, archiveID string, n *sign.Note, role sign.Role, at time.Time) (sign.State, error) {
	v := ring.Check(n, role, at)
	if v.State != sign.Unknown || ring.Empty() {
		return v.State, nil
	}
	if err := learnSigners(ctx, src, ring, archiveID, n); err != nil {
		return v.State, err
	}
	if v = ring.Check(n, role, at); v.State != sign.Unknown {
		return v.State, nil
	}
	if err := LearnKeys(ctx, src, ring, archiveID); err != nil {
		return v.State, err
	}
	return ring.Check(n, role, at).State, nil
}

// learnSigners reads the notes on the keys that signed n, as far as their names
// tell where they lie: there is one more with each start of a process.
func learnSigners(ctx context.Context, src Source, ring *sign.Ring, archiveID string, n *sign.Note) error {
	for _, s := range n.Signatures {
		key, ok := s.KeyNoteKey()
		if !ok {
			continue
		}
		body, err := src.Get(ctx, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("%s: %w", key, err)
		}
		_, _ = ring.AddKeyNote(body, archiveID)
	}
	return nil
}

// LearnKeys adds to a ring what the notes on keys that the bucket holds certify.
func LearnKeys(ctx context.Context, src Source, ring *sign.Ring, archiveID string) error {
	for o, err := range src.List(ctx, "key/", "") {
		if err != nil {
			return fmt.Errorf("list key/: %w", err)
		}
		body, err := src.Get(ctx, o.Key)
		if err != nil {
			return fmt.Errorf("%s: %w", o.Key, err)
		}
		_, _ = ring.AddKeyNote(body, archiveID) // one that no known key signed says nothing
	}
	return nil
}

// Signers names the keys that a note says it is signed by.
func Signers(n *sign.Note) string {
	var names []string
	for _, s := range n.Signatures {
		names = append(names, fmt.Sprintf("%s+%08x", s.Name, s.Hash))
	}
	return strings.Join(names, ", ")
}

// CatalogsIntroduced is a check that asks another one again, where it says that a
// catalog does not count, once learn has taken in what the newest good anchor of
// the line introduces: its key may be one of those.
func CatalogsIntroduced(check CheckNote, learn func(context.Context) error) CheckNote {
	return func(ctx context.Context, n *sign.Note, at time.Time) error {
		err := check(ctx, n, at)
		if !errors.Is(err, ErrCatalog) {
			return err
		}
		if err := learn(ctx); err != nil {
			return err
		}
		return check(ctx, n, at)
	}
}

// CatalogsSignedBy returns the check by which a version of a catalog counts where
// it is signed by a key that is good for catalogs; where the ring is empty, every
// version does. The ring may learn keys, as [Verdict] says.
func CatalogsSignedBy(src Source, ring *sign.Ring, archiveID string) CheckNote {
	return func(ctx context.Context, n *sign.Note, at time.Time) error {
		v, err := Verdict(ctx, src, ring, archiveID, n, sign.Catalog, at)
		switch {
		case err != nil:
			return err
		case v == sign.Good || ring.Empty():
			return nil
		case v == sign.Unsigned:
			return fmt.Errorf("%w: nobody has signed it, and the catalogs of this archive are signed: start ledgerlake-compact with its catalog key; if nobody of yours wrote this version, take the object out of the bucket", ErrCatalog)
		case v == sign.Bad:
			return fmt.Errorf("%w: one of its signatures (%s) is not that of the key: if nobody of yours wrote this version, take the object out of the bucket", ErrCatalog, Signers(n))
		}
		return fmt.Errorf("%w: it is signed by %s, and by no key that is known here: name its vkey in catalog-keys, if it is one of yours", ErrCatalog, Signers(n))
	}
}
