package proof

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// A problem is what is wrong with an object, before its place in a line is
// known.
type problem struct {
	kind FaultKind
	text string
}

// An object is one segment as it was read: hashed, its metadata parsed, its
// rows untouched. Nothing about it is proved.
type object struct {
	key     string
	ordinal int64
	listed  int64  // bytes, as the listing says
	body    []byte // nil once it was let go
	bytes   int64
	sum     chain.Hash // of the whole object
	text    []byte     // of the metadata
	meta    *archive.Segment
	wrong   *problem // why the metadata says nothing, or nil
}

// get reads an object that a listing showed. What is not there, is cut short
// or has another size is read once more, for a listing may be older than what
// it lists; met again, it is a problem of the archive. Any other error is the
// store's or the network's: it is no verdict, and ends the verification.
func (v *verifier) get(ctx context.Context, o archive.Object) ([]byte, *problem, error) {
	body, wrong, err := v.getOnce(ctx, o)
	if err == nil && wrong != nil {
		body, wrong, err = v.getOnce(ctx, o)
	}
	return body, wrong, err
}

func (v *verifier) getOnce(ctx context.Context, o archive.Object) ([]byte, *problem, error) {
	body, err := v.src.Get(ctx, o.Key)
	switch {
	case errors.Is(err, archive.ErrNotFound):
		return nil, &problem{FaultMissing, "is listed, but there is no such object"}, nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &problem{FaultUnreadable, fmt.Sprintf("is listed with %d bytes, but ends before that", o.Size)}, nil
	case errors.Is(err, archive.ErrDamaged):
		return nil, &problem{FaultUnreadable, "the store itself finds it damaged: " + err.Error()}, nil
	case err != nil:
		return nil, nil, fmt.Errorf("read %s: %w", o.Key, err)
	case int64(len(body)) != o.Size:
		return body, &problem{FaultUnreadable, fmt.Sprintf("is listed with %d bytes, but has %d", o.Size, len(body))}, nil
	}
	return body, nil, nil
}

// fetch reads a segment, hashes it and parses its metadata.
func (v *verifier) fetch(ctx context.Context, o archive.Object, at place) (*object, error) {
	body, wrong, err := v.get(ctx, o)
	if err != nil {
		return nil, err
	}
	obj := &object{key: o.Key, ordinal: at.Ordinal, listed: o.Size, body: body, bytes: int64(len(body)), wrong: wrong}
	if body == nil && wrong != nil {
		return obj, nil
	}
	if err := v.permit(ctx); err != nil {
		return nil, err
	}
	defer v.done()
	obj.sum = sha256.Sum256(body)
	if obj.wrong == nil {
		obj.wrong = obj.peek(at, v.root.ArchiveID)
	}
	return obj, nil
}

// peek parses the metadata of an object from its footer, without a look at its
// pages.
func (o *object) peek(at place, archiveID string) *problem {
	err := safely(func() (err error) {
		o.text, _, err = parquet.TailMetadata(o.body, o.bytes)
		return err
	})
	if err != nil {
		return &problem{FaultUnreadable, err.Error()}
	}
	meta, err := readMetadata(o.text)
	if err != nil {
		return &problem{FaultMetadata, "metadata: " + err.Error()}
	}
	o.meta = meta
	if err := misplaced(meta, at, archiveID); err != nil {
		return &problem{FaultMisplaced, err.Error()}
	}
	return nil
}

// safely runs f on bytes that an attacker may have written, and turns a panic
// of a decoder into an error.
func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoding panics: %v", p)
		}
	}()
	return f()
}
