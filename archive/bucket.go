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
	// ErrLocked: a lock or a legal hold keeps a version. It stays until that
	// ends: say so, and go on.
	ErrLocked = errors.New("object locked")
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

// A Ranger is a [Source] that also gives a part of an object: what a look-up
// needs that must not read objects whole.
//
// Nothing vouches for a part: the hash of an object is that of all of it.
type Ranger interface {
	Source
	// GetRange returns the n bytes of an object from an offset on, fewer where
	// the object ends before, none where it ends at the offset or before it. It
	// returns an error matching [ErrNotFound] if there is no object.
	GetRange(ctx context.Context, key string, offset, n int64) ([]byte, error)
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

// A Swapper is a [Bucket] in which what may change, the cursors of exporters, is
// changed by compare-and-swap, so that of two who change it one is told.
//
// Methods may be called concurrently. archivetest.RunSwapper checks all of this.
type Swapper interface {
	Bucket
	Ranger
	// GetTagged is [Source.Get], and returns the tag of what it returns: the
	// ETag, which no two bodies of one key share.
	GetTagged(ctx context.Context, key string) (body []byte, tag string, err error)
	// Swap writes over the object that has the tag, and returns its new tag. ""
	// is the tag of no object: Swap then creates it. The error matches
	// [ErrExists] where the object has another tag by now, and [ErrNotFound]
	// where it is gone; the object is then as it was. After any other error the
	// write may still have happened: read it back.
	Swap(ctx context.Context, key string, body []byte, tag string) (newTag string, err error)
}

// An Object is one entry of a listing.
type Object struct {
	Key      string
	Size     int64     // bytes
	Modified time.Time // by the store's clock, UTC; zero where it does not say
}

// A Store is what a compactor needs beyond a [Bucket]: it takes things away.
//
// Methods may be called concurrently. archivetest.RunStore checks all of this.
type Store interface {
	Bucket
	Ranger
	// Now returns the store's time, UTC, to the second. It never is the zero
	// time without an error.
	Now(ctx context.Context) (time.Time, error)
	// Versions yields every version and delete marker of all keys that begin
	// with prefix, in the order of the keys' bytes; those of one key in no
	// order to rely on. A store that keeps no versions gives one for each
	// object, with the ID "" or "null". An error ends the sequence.
	Versions(ctx context.Context, prefix string) iter.Seq2[Version, error]
	// Delete removes exactly these versions for good, and leaves no marker. It
	// returns those that are, or may be, still there. One that was gone before
	// is gone. The order of the keys is kept.
	Delete(ctx context.Context, versions []Version) []Kept
	// Uploads yields the uploads in parts that were begun and neither completed
	// nor aborted, of keys that begin with prefix, in the order of the keys.
	Uploads(ctx context.Context, prefix string) iter.Seq2[Upload, error]
	// Abort ends an upload and drops its parts. One that is gone is no error.
	Abort(ctx context.Context, u Upload) error
}

// A Version is what a store keeps under one key and id: bytes, or a marker that
// the key was deleted.
type Version struct {
	Key      string
	ID       string // "" or "null": the one that a store without versions has
	Marker   bool
	Size     int64     // bytes
	Modified time.Time // by the store's clock, UTC; zero where it does not say
	Latest   bool      // what Get returns, or why it finds nothing
}

// An Upload is an upload in parts that was not finished.
type Upload struct {
	Key   string
	ID    string
	Begun time.Time // by the store's clock, UTC; zero where it does not say
}

// A Kept is a version that could not be deleted. Err matches [ErrLocked] where
// a lock or a legal hold keeps it, and [ErrDenied] where the credentials may
// not; where neither, trying again may help.
type Kept struct {
	Version
	Err error
}
