package archive

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ledgerlake/ledgerlake/archive/jsondoc"
	"github.com/ledgerlake/ledgerlake/chain"
)

// TimeLayout is how documents write a time: RFC 3339, UTC, six decimals.
const TimeLayout = jsondoc.TimeLayout

// GraceSeconds is how long a snapshot of an archive stays readable, in the
// archives that this version creates.
const GraceSeconds = 3600

// A Root is the document ledgerlake.json, which makes a bucket (or a prefix of
// one) an archive.
type Root struct {
	Format       string `json:"format"`
	ArchiveID    string `json:"archiveId"` // a ULID
	CreatedAt    string `json:"createdAt"` // in [TimeLayout]
	GraceSeconds int64  `json:"graceSeconds"`

	SHA256 chain.Hash `json:"-"` // of the object
}

// OpenRoot reads the archive's root document. The error matches [ErrNotFound]
// where there is no archive.
func OpenRoot(ctx context.Context, src Source) (Root, error) {
	body, err := src.Get(ctx, RootKey)
	if err != nil {
		return Root{}, fmt.Errorf("%s: %w", RootKey, err)
	}
	return DecodeRoot(body)
}

// DecodeRoot parses and checks a root document.
func DecodeRoot(body []byte) (Root, error) {
	var r Root
	if err := decodeStrict(body, &r); err != nil {
		return Root{}, fmt.Errorf("%s: %w", RootKey, err)
	}
	switch {
	case r.Format != Format:
		return Root{}, fmt.Errorf("%s: format %q, this version reads %q", RootKey, r.Format, Format)
	case r.ArchiveID == "":
		return Root{}, fmt.Errorf("%s: no archiveId", RootKey)
	case r.GraceSeconds <= 0:
		return Root{}, fmt.Errorf("%s: graceSeconds is %d, must be above 0", RootKey, r.GraceSeconds)
	}
	r.SHA256 = sha256.Sum256(body)
	return r, nil
}

// CreateRoot opens the archive in a bucket, and creates it under the given id
// if there is none. Of several that create at once, one wins and all return
// its document.
func CreateRoot(ctx context.Context, b Bucket, id string, now time.Time) (Root, error) {
	root, err := OpenRoot(ctx, b)
	if !errors.Is(err, ErrNotFound) {
		return root, err
	}
	if root, err := refuseOrphans(ctx, b); err != nil || root != (Root{}) {
		return root, err
	}
	root = Root{Format: Format, ArchiveID: id, CreatedAt: now.UTC().Format(TimeLayout), GraceSeconds: GraceSeconds}
	body, err := json.Marshal(root)
	if err != nil {
		return Root{}, err
	}
	// A crash after this write leaves an archive without segments, which the
	// next start opens. A lost reply and a lost race look the same: read again.
	if _, err := b.Create(ctx, RootKey, body); err != nil && !errors.Is(err, ErrExists) {
		return Root{}, fmt.Errorf("create %s: %w", RootKey, err)
	}
	return OpenRoot(ctx, b)
}

// ErrNoRoot: there are objects of an archive, and ledgerlake.json is gone.
var ErrNoRoot = errors.New(RootKey + " is missing, and the bucket holds objects of an archive: restore it; a new one would make another archive of them")

// refuseOrphans returns an error that matches [ErrNoRoot] where a bucket without
// a root has what belongs to one. Where somebody has created the root meanwhile,
// it returns that.
func refuseOrphans(ctx context.Context, b Bucket) (Root, error) {
	for _, prefix := range []string{LogPrefix, "anchor/", "catalog/", "data/"} {
		for o, err := range b.List(ctx, prefix, "") {
			if err != nil {
				return Root{}, fmt.Errorf("list %s: %w", prefix, err)
			}
			root, err := OpenRoot(ctx, b)
			if errors.Is(err, ErrNotFound) {
				return Root{}, fmt.Errorf("%w (%s)", ErrNoRoot, o.Key)
			}
			return root, err
		}
	}
	return Root{}, nil
}
