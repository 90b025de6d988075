package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/internal/reach"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// An independence is what is expected of the archive, by heads that whoever can
// write to the bucket cannot change.
type independence struct {
	heads  []proof.Expected
	places []proof.Place
	from   []string // places that are opened once the settings are known
	closes []func()
}

// expect takes an --expect flag: a head, or a file that holds some.
func (in *independence) expect(value string) error {
	if strings.Contains(value, "=") && !reach.IsFile(value) {
		e, err := parseHead(value)
		in.heads = append(in.heads, e)
		return err
	}
	return in.file(value, true)
}

// file takes the heads of a file: a note (an anchor, or a log's checkpoint), the
// report of an earlier verification, or its saved state.
func (in *independence) file(name string, some bool) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if strings.HasPrefix(strings.TrimSpace(string(text)), "{") {
		heads, err := proof.ExpectedOf(text, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		in.heads = append(in.heads, heads...)
		return nil
	}
	in.places = append(in.places, proof.Place{Name: name, Trusted: true, Some: some, Notes: func(context.Context) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) { yield(text, nil) }
	}})
	return nil
}

// parseHead parses tenant=…,topic=…,partition=…,size=…,head=…, whose values may
// have bytes as %XX.
func parseHead(text string) (e proof.Expected, err error) {
	e = proof.Expected{Source: "the head that was given", Size: -1, Partition: -1}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		if value, err = url.PathUnescape(value); err == nil {
			err = setHead(&e, name, value)
		}
		if err != nil {
			return e, fmt.Errorf("%s: want NAME=VALUE: %w", part, err)
		}
	}
	if e.Tenant == "" || e.Topic == "" || e.Size < 0 || e.Partition < 0 || e.Head == nil && e.Root == nil {
		return e, errors.New("want tenant=NAME,topic=NAME,partition=N,size=ROWS,head=HEX, or a file")
	}
	return e, nil
}

func setHead(e *proof.Expected, name, value string) (err error) {
	switch name {
	case "tenant":
		e.Tenant = value
	case "topic":
		e.Topic = value
	case "topic-id":
		e.TopicID = value
	case "archive":
		e.ArchiveID = value
	case "size":
		e.Size, err = strconv.ParseInt(value, 10, 64)
	case "partition":
		e.Partition, err = parsePartition(value)
	case "head":
		e.Head, err = parseHash(value)
	case "root":
		e.Root, err = parseHash(value)
	default:
		err = errors.New("want tenant, topic, topic-id, archive, partition, size, head or root")
	}
	return err
}

func parsePartition(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, errors.New("want the number of a partition")
	}
	return int32(n), nil
}

func parseHash(text string) (*chain.Hash, error) {
	var h chain.Hash
	if err := h.UnmarshalText([]byte(text)); err != nil {
		return nil, errors.New("want 64 hex digits")
	}
	return &h, nil
}

// open opens the places of --expect-from.
func (in *independence) open(ctx context.Context, target string, f *reach.Flags) error {
	for _, from := range in.from {
		if from == target {
			return fmt.Errorf("%w: --expect-from is the archive itself: it says nothing that is independent", errUsage)
		}
		if err := in.place(ctx, from, f); err != nil {
			return fmt.Errorf("--expect-from %s: %w", from, err)
		}
	}
	return nil
}

func (in *independence) place(ctx context.Context, from string, f *reach.Flags) error {
	switch {
	case strings.HasPrefix(from, "kafka://"):
		notes, err := kafkaNotes(from, &f.Kafka)
		in.places = append(in.places, proof.Place{Name: from, Notes: notes})
		return err
	case strings.HasPrefix(from, "s3://"):
		b, err := s3sink.Open(ctx, from, f.S3)
		in.places = append(in.places, proof.Place{Name: withoutQuery(from), Notes: proof.NotesIn(b)})
		return err
	}
	path, err := reach.Folder(from)
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return errors.Join(onlyMissing(err), in.file(path, false))
	}
	d, err := archive.OpenDir(path)
	if err != nil {
		return err
	}
	in.closes = append(in.closes, func() { _ = d.Close() })
	in.places = append(in.places, proof.Place{Name: from, Trusted: true, Notes: proof.NotesIn(d)})
	return nil
}

// onlyMissing drops the error of a file that is not there: reading it says so.
func onlyMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func withoutQuery(u string) string {
	before, _, _ := strings.Cut(u, "?")
	return before
}

func (in *independence) close() {
	for _, c := range in.closes {
		c()
	}
}
