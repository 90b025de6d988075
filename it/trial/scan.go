//go:build it

package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/internal/scan"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// bytes looks for marks of what was erased in every byte of every version of
// every object, and requires that it finds those of what was not.
func (t *trial) bytes(ctx context.Context) error {
	gone, kept := map[[12]byte]*order{}, map[[12]byte]bool{}
	for _, d := range t.deeds.all {
		must, may := t.ordered(d)
		switch {
		case must != nil: // the mark stands in ext, which every order of the trial takes
			gone[d.mark] = must
		case t.leaves(d.tenant) && !d.broken && d.at.Before(t.offboarded.Add(-anchorLag)): // whose a broken record is may not be known
			gone[d.mark] = &order{kind: "offboard"}
		case t.leaves(d.tenant): // it came around the cut, or behind it
		case !may && !d.broken:
			kept[d.mark] = true
		}
	}
	s := &scanner{client: parts.S3Client(t.s3.Endpoint), gone: gone, seen: map[[12]byte]bool{}}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	var all, size int64
	uploads := 0
	for _, err := range t.store.Uploads(ctx, "") {
		if err != nil {
			return err
		}
		uploads++
	}
	for v, err := range t.store.Versions(ctx, "") {
		if err != nil {
			return err
		}
		if v.Marker {
			continue
		}
		all, size = all+1, size+v.Size
		g.Go(func() error { return s.version(ctx, v) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	missing := 0
	for mark := range kept {
		if !s.seen[mark] {
			missing++
		}
	}
	t.say("%d versions of objects, %d bytes, %d texts, %d bytes unpacked, %d unfinished uploads: of %d marks that must be gone 0 are there, of %d others %d are not",
		all, size, s.texts.Load(), s.unpacked.Load(), uploads, len(gone), len(kept), missing)
	if missing > 0 {
		return fmt.Errorf("%w: %d marks of rows that nobody erased are not to be found", errWrong, missing)
	}
	return nil
}

// A scanner looks for marks.
type scanner struct {
	client          *s3.Client
	gone            map[[12]byte]*order
	seen            map[[12]byte]bool
	mu              sync.Mutex // of seen
	texts, unpacked atomic.Int64
}

func (s *scanner) version(ctx context.Context, v archive.Version) error {
	in := &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String(v.Key)}
	if v.ID != "" {
		in.VersionId = aws.String(v.ID)
	}
	out, err := s.client.GetObject(ctx, in)
	if err != nil {
		return fmt.Errorf("version %s of %s: %w", v.ID, v.Key, err)
	}
	defer func() { _ = out.Body.Close() }()
	body, err := io.ReadAll(out.Body)
	if err != nil {
		return err
	}
	var found [][12]byte
	for text, err := range scan.Texts(body) {
		if err != nil {
			return fmt.Errorf("version %s of %s: %w", v.ID, v.Key, err)
		}
		s.texts.Add(1)
		s.unpacked.Add(int64(len(text.Bytes)))
		for rest := text.Bytes; ; {
			i := bytes.Index(rest, []byte(markPrefix))
			if i < 0 || len(rest) < i+len(markPrefix)+24 {
				break
			}
			rest = rest[i+len(markPrefix):]
			var mark [12]byte
			if _, err := hex.Decode(mark[:], rest[:24]); err != nil {
				continue
			}
			if o := s.gone[mark]; o != nil {
				return fmt.Errorf("%w: %s%x is in version %s of %s (%s), and went by %s %s %q", errWrong, markPrefix, mark, v.ID, v.Key, text.Where, o.kind, o.id, o.args)
			}
			found = append(found, mark)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, mark := range found {
		s.seen[mark] = true
	}
	return nil
}
