package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// A tally is what became of the records of an archive, counted from its files.
type tally struct {
	Segments   int
	Bytes      int64 // of segments
	Offsets    int64 // accounted for
	Rows       int64 // rejected and made ones too
	Rejected   int64
	Made       int64
	Duplicates int64
	Gaps       int64 // offsets in gaps
	Tenants    map[string]bool
}

// count reads all segments of an archive that lies as files in a folder.
func count(ctx context.Context, folder string) (t tally, err error) {
	dir, err := archive.OpenDir(folder)
	if err != nil {
		return t, err
	}
	defer dir.Close()
	for o, err := range dir.List(ctx, archive.LogPrefix, "") {
		if err != nil {
			return t, err
		}
		body, err := dir.Get(ctx, o.Key)
		if err != nil {
			return t, err
		}
		if err := t.add(body); err != nil {
			return t, fmt.Errorf("%s: %w", o.Key, err)
		}
	}
	return t, nil
}

// add counts one segment.
func (t *tally) add(body []byte) error {
	f, err := parquet.Open(body)
	if err != nil {
		return err
	}
	meta, ok := f.Metadata()
	if !ok {
		return errors.New("no metadata")
	}
	s, err := archive.DecodeSegment(meta)
	if err != nil {
		return err
	}
	t.Segments++
	t.Bytes += int64(len(body))
	t.Offsets += s.NextOffset - s.FirstOffset
	t.Made += s.Made
	t.Duplicates += int64(len(s.Duplicates))
	for _, g := range s.Gaps {
		t.Gaps += g.To - g.From
	}
	if t.Tenants == nil {
		t.Tenants = map[string]bool{}
	}
	for i := range s.Logs {
		t.Tenants[s.Logs[i].Tenant] = true
	}
	return t.addRows(f)
}

func (t *tally) addRows(f *parquet.File) error {
	for row, err := range f.Select("kind") {
		if err != nil {
			return err
		}
		t.Rows++
		if row.Kind.S == audit.KindRejected {
			t.Rejected++
		}
	}
	return nil
}

// check compares an archive with what was sent to it.
func (t *tally) check(s *sent) error {
	var errs []error
	for _, c := range []struct {
		what      string
		got, want int64
	}{
		{"offsets accounted for", t.Offsets, int64(s.Records)},
		{"rows", t.Rows, int64(s.rows())},
		{"rejected rows", t.Rejected, int64(s.rejects())},
		{"duplicates", t.Duplicates, int64(s.Repeats)},
		{"made rows", t.Made, 0},
		{"offsets in gaps", t.Gaps, 0},
	} {
		if c.got != c.want {
			errs = append(errs, fmt.Errorf("the archive has %d %s, want %d", c.got, c.what, c.want))
		}
	}
	return errors.Join(errs...)
}
