// Package filesink writes events as files: into a folder, or into a bucket.
//
//	{tenant}/{topic}/{topicId}/{partition:05}/{firstSeq:020}.jsonl.gz                records of one log, one a line
//	{tenant}/{topic}/{topicId}/{partition:05}/{firstSeq:020}.jsonl.gz.manifest.json  written behind it
//	{tenant}/notices/{topic}/{topicId}/{partition:05}/{id}.json                      a head or an erasure
//	check/{id}.json                                                                  a test
//
// A file is named by the first row that is in it, so that what is delivered again
// after a crash takes the place of what was there: no row stands in two files, as
// long as who delivers knows how far he was before he begins the next batch. A
// file counts once its manifest is there and has its SHA-256; one without is half
// a delivery, and is written again.
//
// Names from outside are escaped as in docs/format.md, section 5.
//
// It does not delete: an erasure notice says which rows are to be taken out of
// which files, by their seq, which names and manifests say.
package filesink

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
)

// A Store keeps files. Put writes a whole one, durably, in the place of one that
// has the name: no reader ever sees part of it.
type Store interface {
	Put(ctx context.Context, name string, body []byte) error
}

// A Compression is how files are compressed.
type Compression string

// The compressions.
const (
	None Compression = "none"
	Gzip Compression = "gzip"
	Zstd Compression = "zstd"
)

var suffixes = map[Compression]string{None: "", Gzip: ".gz", Zstd: ".zst"}

// Options say where files go.
type Options struct {
	Store       Store
	Compression Compression // "" is gzip
	// Text is whether events are lines of text and no JSON: files then end in .log.
	Text bool
	// Refused reports whether an error of the Store is one that only a person can
	// mend; nil: archive.ErrDenied is.
	Refused func(error) bool
	Limits  sink.Limits // zero members are the usual ones
}

// The limits of a file, where Options has none.
const (
	usualEvents = 100_000
	usualBytes  = 32 << 20
)

// A Sink writes events to a Store.
type Sink struct {
	o Options
}

// New returns a Sink.
func New(o Options) (*Sink, error) {
	o.Compression = cmp.Or(o.Compression, Gzip)
	if _, ok := suffixes[o.Compression]; !ok {
		return nil, fmt.Errorf("compression %q: want none, gzip or zstd", o.Compression)
	}
	if o.Store == nil {
		return nil, errors.New("no folder and no bucket to write to")
	}
	o.Limits.Events = cmp.Or(o.Limits.Events, usualEvents)
	o.Limits.BatchBytes = cmp.Or(o.Limits.BatchBytes, usualBytes)
	return &Sink{o}, nil
}

// Limits implements [sink.Sink].
func (s *Sink) Limits() sink.Limits { return s.o.Limits }

// Close implements [sink.Sink].
func (s *Sink) Close(context.Context) error { return nil }

// A Manifest says what a file holds.
type Manifest struct {
	V             int        `json:"v"`
	Object        string     `json:"object"` // the file's name
	Tenant        string     `json:"tenant"`
	Topic         string     `json:"topic"`
	TopicID       string     `json:"topicId"`
	Partition     int32      `json:"partition"`
	Events        int        `json:"events"`
	FirstSeq      int64      `json:"firstSeq"`
	LastSeq       int64      `json:"lastSeq"`
	FirstPrevHash chain.Hash `json:"firstPrevHash"`
	LastRowHash   chain.Hash `json:"lastRowHash"`
	Bytes         int64      `json:"bytes"`
	SHA256        string     `json:"sha256"` // of the file as it is stored
}

// Deliver implements [sink.Sink]: a file for each log of the batch, and one for
// each event that is no record.
func (s *Sink) Deliver(ctx context.Context, batch []sink.Message) sink.Result {
	r := sink.Result{Verdicts: make([]sink.Verdict, len(batch))}
	var g errgroup.Group
	g.SetLimit(filesAtOnce)
	for _, group := range groups(batch) {
		g.Go(func() error {
			v := s.verdict(s.write(ctx, batch, group))
			for _, i := range group {
				r.Verdicts[i] = v
			}
			return nil
		})
	}
	_ = g.Wait()
	return r
}

// filesAtOnce is how many files are written at once.
const filesAtOnce = 8

func (s *Sink) verdict(err error) sink.Verdict {
	refused := s.o.Refused
	if refused == nil {
		refused = func(err error) bool { return errors.Is(err, archive.ErrDenied) }
	}
	switch {
	case err == nil:
		return sink.Verdict{Outcome: sink.Delivered}
	case refused(err):
		return sink.Verdict{Outcome: sink.Suspend, Reason: err.Error()}
	}
	return sink.Verdict{Outcome: sink.Retry, Reason: err.Error()}
}

// groups returns which messages go into one file, in the order of their first.
func groups(batch []sink.Message) (all [][]int) {
	type log struct {
		tenant string
		line   archive.Line
	}
	at := map[log]int{}
	for i, m := range batch {
		if !m.Event.IsRow() {
			all = append(all, []int{i})
			continue
		}
		l := log{m.Event.Tenant, m.Event.Line}
		n, ok := at[l]
		// A row that goes back, as after a reset of its log, begins a file of its own.
		if !ok || batch[last(all[n])].Event.Seq >= m.Event.Seq {
			n = len(all)
			at[l] = n
			all = append(all, nil)
		}
		all[n] = append(all[n], i)
	}
	return all
}

func last(list []int) int { return list[len(list)-1] }

// write writes the file of some messages.
func (s *Sink) write(ctx context.Context, batch []sink.Message, group []int) error {
	first := batch[group[0]].Event
	if !first.IsRow() {
		return s.o.Store.Put(ctx, noticeName(first), append(slices.Clip(batch[group[0]].Body), '\n'))
	}
	body, err := s.body(batch, group)
	if err != nil {
		return err
	}
	end := batch[last(group)].Event
	sum := sha256.Sum256(body)
	m := Manifest{
		V: 1, Object: s.name(&batch[group[0]]), Tenant: first.Tenant, Topic: first.Line.Topic, TopicID: first.Line.TopicID, Partition: first.Line.Partition,
		Events: len(group), FirstSeq: first.Seq, LastSeq: end.Seq, FirstPrevHash: first.Row.PrevHash, LastRowHash: end.Row.RowHash,
		Bytes: int64(len(body)), SHA256: hex.EncodeToString(sum[:]),
	}
	text, err := json.MarshalIndent(&m, "", "  ")
	if err != nil {
		return err
	}
	if err := s.o.Store.Put(ctx, m.Object, body); err != nil {
		return err
	}
	return s.o.Store.Put(ctx, m.Object+".manifest.json", append(text, '\n'))
}

// body returns the lines of some messages, compressed. Equal messages give equal
// bytes.
func (s *Sink) body(batch []sink.Message, group []int) ([]byte, error) {
	var b bytes.Buffer
	w, err := s.compressor(&b)
	if err != nil {
		return nil, err
	}
	for _, i := range group {
		if _, err := w.Write(batch[i].Body); err != nil {
			return nil, err
		}
		if _, err := w.Write([]byte{'\n'}); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (s *Sink) compressor(b *bytes.Buffer) (io.WriteCloser, error) {
	switch s.o.Compression {
	case Gzip:
		return gzip.NewWriter(b), nil
	case Zstd:
		return zstd.NewWriter(b, zstd.WithEncoderConcurrency(1))
	}
	return plain{b}, nil
}

type plain struct{ *bytes.Buffer }

func (plain) Close() error { return nil }

func (s *Sink) name(first *sink.Message) string {
	ev := first.Event
	suffix := ".jsonl"
	if s.o.Text {
		suffix = ".log"
	}
	if first.Backfill != "" { // which may have fewer rows than the file that was sent first, and must not take its place
		suffix = ".backfill-" + chain.Escape(first.Backfill) + suffix
	}
	return fmt.Sprintf("%s/%s/%020d%s%s", chain.Escape(ev.Tenant), folder(ev.Line), ev.Seq, suffix, suffixes[s.o.Compression])
}

func folder(l archive.Line) string {
	return fmt.Sprintf("%s/%s/%05d", chain.Escape(l.Topic), chain.Escape(l.TopicID), l.Partition)
}

func noticeName(ev *event.Event) string {
	if ev.Tenant == "" {
		return "check/" + ev.ID + ".json"
	}
	return chain.Escape(ev.Tenant) + "/notices/" + folder(ev.Line) + "/" + ev.ID + ".json"
}

// A Swapper is a bucket in which objects are written over by compare-and-swap.
type Swapper interface {
	Create(ctx context.Context, key string, body []byte) (time.Time, error)
	GetTagged(ctx context.Context, key string) (body []byte, tag string, err error)
	Swap(ctx context.Context, key string, body []byte, tag string) (newTag string, err error)
}

// Bucket returns a Store that writes objects to a bucket. It costs one PUT a file,
// and two requests more where one is written again.
func Bucket(b Swapper) Store { return bucket{b} }

type bucket struct{ b Swapper }

// Put implements [Store].
func (s bucket) Put(ctx context.Context, name string, body []byte) error {
	_, err := s.b.Create(ctx, name, body)
	if !errors.Is(err, archive.ErrExists) {
		return err
	}
	held, tag, err := s.b.GetTagged(ctx, name)
	if err != nil || bytes.Equal(held, body) {
		return err
	}
	_, err = s.b.Swap(ctx, name, body, tag)
	return err
}
