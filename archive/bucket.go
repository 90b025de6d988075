package archive

import (
	"context"
	"errors"
	"iter"
	"time"
)

// The errors of a Bucket. Each is the caller's next move.
var (
	// ErrExists: the key is taken. Read it back.
	ErrExists = errors.New("object exists")
	// ErrNotFound: no object has the key.
	ErrNotFound = errors.New("object not found")
	// ErrDenied: the credentials may not do it. Alarm, and try again: it is
	// not a verdict on what was to be written.
	ErrDenied = errors.New("access denied")
	// ErrDamaged: an object is not what the store itself says it is (a wrong
	// checksum, a wrong length), also after reading it again.
	ErrDamaged = errors.New("object damaged")
	// ErrConflict: another writer is at the key right now. Try again.
	ErrConflict = errors.New("conflicting conditional request")
)

// A Source is an object store, read only: as little of one as a reader needs.
// Methods may be called concurrently.
type Source interface {
	// Get returns a whole object. It returns an error matching [ErrNotFound]
	// if there is none, and never returns part of an object without an error.
	Get(ctx context.Context, key string) ([]byte, error)
	// GetTail returns the last n bytes of an object (all of it if it is
	// shorter) and its size in bytes.
	GetTail(ctx context.Context, key string, n int64) (tail []byte, size int64, err error)
	// List yields all objects whose keys begin with prefix and sort after the
	// key after ("" for all), in the order of the keys' bytes, over as many
	// pages as it takes. An error ends the sequence.
	List(ctx context.Context, prefix, after string) iter.Seq2[Object, error]
}

// A Bucket is an object store, as little of one as the commit needs.
//
// Methods may be called concurrently. A write is durable once it returns nil;
// when it returns an error it may still have happened. archivetest.Run checks
// all of this.
type Bucket interface {
	Source
	// Create writes a new object. It returns an error matching [ErrExists] if
	// the key is taken, and never changes the object there. The time is the
	// store's own, to the second, zero where the store did not say.
	Create(ctx context.Context, key string, body []byte) (time.Time, error)
}

// An Object is one entry of a listing.
type Object struct {
	Key  string
	Size int64 // bytes
}
