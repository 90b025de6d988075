// Package laketest has a stand-in for the bucket of a Security Lake: it takes
// what the lake's documentation says that a custom source may write, refuses all
// else, and keeps it.
package laketest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/ledgerlake/ledgerlake/archive"
)

// ErrRule: an object breaks a rule of the lake.
var ErrRule = errors.New("breaks a rule of the lake")

// A Bucket is a lake. The zero Bucket is empty. Methods may be called
// concurrently.
type Bucket struct {
	mu      sync.Mutex
	objects map[string][]byte
	// Fail is asked before an object is looked at, with its key; an error that
	// it returns is returned by Create. nil fails nothing.
	Fail func(key string) error
}

// Objects returns what was written, by key.
func (b *Bucket) Objects() map[string][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	objects := make(map[string][]byte, len(b.objects))
	for key, body := range b.objects {
		objects[key] = body
	}
	return objects
}

// Create takes an object. Its errors match [ErrRule], [archive.ErrExists] or
// what Fail returned.
func (b *Bucket) Create(ctx context.Context, key string, body []byte) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Fail != nil {
		if err := b.Fail(key); err != nil {
			return time.Time{}, err
		}
	}
	if err := Check(key, body); err != nil {
		return time.Time{}, fmt.Errorf("%s: %w: %w", key, ErrRule, err)
	}
	if _, ok := b.objects[key]; ok {
		return time.Time{}, fmt.Errorf("%s: %w", key, archive.ErrExists)
	}
	if b.objects == nil {
		b.objects = map[string][]byte{}
	}
	b.objects[key] = bytes.Clone(body)
	return time.Time{}, nil
}

var keyForm = regexp.MustCompile(`^ext/[A-Za-z0-9_-]{1,20}(?:/[0-9.]+)?/region=[a-z]+(?:-[a-z]+)+-[0-9]/accountId=(?:[0-9]{12}|external(?:_[A-Za-z0-9-]+)?)/eventDay=([0-9]{8})/[^/]+\.parquet$`)

// Check says which rule an object breaks: the partitions of its key; at most 256
// MB; Parquet compressed by zstd, row groups of at most 256 MB, pages of some 1
// MB; one class of OCSF, in a version; rows of the day that the key says, in the
// order of their times.
func Check(key string, body []byte) error {
	m := keyForm.FindStringSubmatch(key)
	if m == nil {
		return errors.New("the key is none of a custom source's partitions")
	}
	if len(body) > 256<<20 {
		return fmt.Errorf("%d bytes", len(body))
	}
	f, err := parquet.OpenFile(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return err
	}
	if f.NumRows() == 0 {
		return errors.New("no rows")
	}
	for _, g := range f.Metadata().RowGroups {
		if g.TotalCompressedSize > 256<<20 {
			return fmt.Errorf("a row group of %d bytes", g.TotalCompressedSize)
		}
		for _, c := range g.Columns {
			if c.MetaData.Codec != format.Zstd {
				return fmt.Errorf("column %v is compressed by %v", c.MetaData.PathInSchema, c.MetaData.Codec)
			}
		}
	}
	if err := checkPages(f); err != nil {
		return err
	}
	return checkRows(f, m[1])
}

// checkPages wants pages of 1 MB before they are compressed: more is only what
// the last value of one has beyond that.
func checkPages(f *parquet.File) error {
	const most = 1<<20 + 1<<17
	for _, g := range f.RowGroups() {
		for i, c := range g.ColumnChunks() {
			pages := c.Pages()
			for {
				p, err := pages.ReadPage()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					return errors.Join(err, pages.Close())
				}
				size := p.Size()
				parquet.Release(p)
				if size > most {
					return errors.Join(fmt.Errorf("column %d has a page of %d bytes", i, size), pages.Close())
				}
			}
			if err := pages.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// A row is what is looked at of an event.
type row struct {
	ClassUID int64 `parquet:"class_uid,optional"`
	TypeUID  int64 `parquet:"type_uid,optional"`
	Time     int64 `parquet:"time,optional"`
	Metadata struct {
		Version string `parquet:"version,optional"`
		UID     string `parquet:"uid,optional"`
	} `parquet:"metadata"`
}

func checkRows(f *parquet.File, day string) error {
	r := parquet.NewGenericReader[row](f)
	defer func() { _ = r.Close() }()
	rows := make([]row, f.NumRows())
	if n, err := r.Read(rows); n != len(rows) {
		return fmt.Errorf("%d of %d rows: %w", n, len(rows), err)
	}
	for i, x := range rows {
		switch {
		case x.ClassUID != 6003, x.TypeUID/100 != x.ClassUID:
			return fmt.Errorf("row %d: class %d, type %d", i, x.ClassUID, x.TypeUID)
		case x.Metadata.Version != "1.3.0", x.Metadata.UID == "":
			return fmt.Errorf("row %d: OCSF %q, id %q", i, x.Metadata.Version, x.Metadata.UID)
		case time.UnixMilli(x.Time).UTC().Format("20060102") != day:
			return fmt.Errorf("row %d is of %v", i, time.UnixMilli(x.Time).UTC())
		case i > 0 && x.Time < rows[i-1].Time:
			return fmt.Errorf("row %d is before the one before", i)
		}
	}
	return nil
}
