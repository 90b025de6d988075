package stream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A Cursor is how far one log was delivered to one destination.
type Cursor struct {
	Tenant string `json:"tenant"`
	First  int64  `json:"first"` // the first seq that this cursor was in front of
	Next   int64  `json:"next"`  // the seq that comes next
	// RowHash is that of the row in front of Next. null where Next is 0; in a
	// backfill that begins elsewhere, until its first row says.
	RowHash   *chain.Hash `json:"rowHash"`
	Epoch     int32       `json:"epoch"`
	Delivered int64       `json:"delivered"` // rows
	Dead      int64       `json:"dead"`      // rows that were refused for good
	Dropped   int64       `json:"dropped"`   // rows that a cut took first
	Head      int64       `json:"head"`      // size that the newest head said that was sent
}

// Cursors are the cursors of a destination in one line: one document, so that a
// line of ten thousand tenants costs one PUT a second and not ten thousand.
type Cursors struct {
	V           int          `json:"v"`
	ArchiveID   string       `json:"archiveId"`
	Destination string       `json:"destination"`
	Topic       string       `json:"topic"`
	TopicID     string       `json:"topicId"`
	Partition   int32        `json:"partition"`
	By          string       `json:"by"`    // the process that wrote it
	Count       int64        `json:"count"` // of writes
	Time        archive.Time `json:"time"`
	// Hints, from where to read on: rows are found by their cursors.
	Spec    string   `json:"spec"`    // of the destination, as a hash
	Ordinal int64    `json:"ordinal"` // all segments in front of it are passed
	Day     string   `json:"day"`     // all data files of days before it are passed
	Anchor  int64    `json:"anchor"`  // the next anchor to look at
	Logs    []Cursor `json:"logs"`    // by tenant
}

// Line returns the line of the cursors.
func (c *Cursors) Line() archive.Line {
	return archive.Line{Topic: c.Topic, TopicID: c.TopicID, Partition: c.Partition}
}

// Of returns the cursor of a tenant's log; nil if there is none.
func (c *Cursors) Of(tenant string) *Cursor {
	i, ok := slices.BinarySearchFunc(c.Logs, tenant, func(l Cursor, t string) int { return cmp.Compare(l.Tenant, t) })
	if !ok {
		return nil
	}
	return &c.Logs[i]
}

// docVersion is the version of all documents here.
const docVersion = 1

// decodeCursors reads the document of cursors of a destination in a line; job names
// a backfill, "" what is live. The error matches [ErrCursor].
func decodeCursors(body []byte, archiveID, destination, job string, line archive.Line) (*Cursors, error) {
	c := &Cursors{}
	if err := json.Unmarshal(body, c); err != nil {
		return nil, fmt.Errorf("%w: it cannot be read: %w", ErrCursor, err)
	}
	switch {
	case c.V != docVersion:
		return nil, fmt.Errorf("%w: it is of version %d, and this program knows %d: use a newer one", ErrCursor, c.V, docVersion)
	case c.ArchiveID != archiveID:
		return nil, fmt.Errorf("%w: it is of archive %s, and this is %s", ErrCursor, c.ArchiveID, archiveID)
	case c.Destination != destination || c.Line() != line:
		return nil, fmt.Errorf("%w: it is that of destination %q in %s/%d (topic id %s)", ErrCursor, c.Destination, c.Topic, c.Partition, c.TopicID)
	}
	for i := range c.Logs {
		l := &c.Logs[i]
		switch {
		case i > 0 && c.Logs[i-1].Tenant >= l.Tenant:
			return nil, fmt.Errorf("%w: its logs are in no order", ErrCursor)
		case l.Next < 0 || l.First < 0 || l.First > l.Next:
			return nil, fmt.Errorf("%w: tenant %q: it stands at seq %d", ErrCursor, l.Tenant, l.Next)
		case l.RowHash == nil && l.Next > 0 && (job == "" || l.Next != l.First):
			return nil, fmt.Errorf("%w: tenant %q: it stands at seq %d and does not say behind which row", ErrCursor, l.Tenant, l.Next)
		}
	}
	return c, nil
}

// ReadCursors reads the cursors of a destination in a line; nil where there are
// none. job names a backfill, "" what is live.
func ReadCursors(ctx context.Context, src archive.Source, archiveID, destination, job string, l archive.Line) (*Cursors, error) {
	key := cursorKey(destination, job, l)
	var body []byte
	err := whole(key, func() (err error) { body, err = src.Get(ctx, key); return err })
	if errors.Is(err, archive.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := decodeCursors(body, archiveID, destination, job, l)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return c, nil
}

// errLost: another exporter has moved what this one was to move.
var errLost = errors.New("another exporter has moved it")

// A document is an object that this process changes by compare-and-swap. It is
// used by one goroutine at a time.
type document struct {
	e     *Engine
	key   string
	tag   string    // "" where there is no object
	wrote time.Time // when it was stored last
}

// read reads the object; nil where there is none.
func (d *document) read(ctx context.Context) ([]byte, error) {
	var body []byte
	var tag string
	err := whole(d.key, func() (err error) { body, tag, err = d.e.s.Archive.GetTagged(ctx, d.key); return err })
	if errors.Is(err, archive.ErrNotFound) {
		d.tag = ""
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d.tag = tag
	return body, nil
}

// write stores a body that was never stored before, for as long as it takes.
// The error matches [errLost] where another process has moved it; else ctx is
// done.
//
// A write without an answer may have happened, and then the next one is told that
// the object is another one: it is read back, and ours by its bytes.
func (d *document) write(ctx context.Context, body []byte) error {
	for attempt := 1; ; attempt++ {
		tag, err := d.e.s.Archive.Swap(ctx, d.key, body, d.tag)
		if errors.Is(err, archive.ErrExists) || errors.Is(err, archive.ErrNotFound) {
			tag, err = d.ours(ctx, body)
		}
		switch {
		case err == nil:
			d.tag, d.wrote = tag, d.e.s.Now()
			return nil
		case errors.Is(err, errLost):
			return fmt.Errorf("%s: %w", d.key, err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		d.e.warn("", "what was delivered cannot be stored; trying again", err)
		if err := pause(ctx, d.e.backOff(attempt)); err != nil {
			return err
		}
	}
}

// ours returns the tag of the object where it is what we wrote.
func (d *document) ours(ctx context.Context, body []byte) (string, error) {
	held, tag, err := d.e.s.Archive.GetTagged(ctx, d.key)
	switch {
	case errors.Is(err, archive.ErrNotFound):
		return "", errLost
	case err != nil:
		return "", err
	case !bytes.Equal(held, body):
		return "", errLost
	}
	return tag, nil
}
