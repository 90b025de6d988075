// Package securitylake delivers events to a custom source of Amazon Security
// Lake: Parquet objects of the class API Activity of OCSF 1.3, in the partitions
// that the lake prescribes.
//
//	ext/{source}/region={region}/accountId={account}/eventDay={YYYYMMDD}/{sha256 of the object}.parquet
//
// One batch makes one object for each day (UTC) that its events are of, and the
// rows of an object are in the order of their times. An object is never written
// over: the same batch again makes the same object, which is there already.
//
// Source: Security Lake's User Guide, Collecting data from custom sources.
//
// # What it does not do
//
// It does not register the custom source, nor read the lake. An event that is
// delivered in another batch again is in the lake twice: metadata.uid tells.
package securitylake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
)

// MaxObjectBytes is the size of the largest object that the lake wants.
const MaxObjectBytes = 256 << 20

// What one batch has at most, so that it is made in memory: it compresses to a
// small part of that.
const (
	maxEvents = 100_000
	maxBatch  = 128 << 20
	maxEvent  = 8 << 20
)

// Linger is how long events are to be gathered for a batch that is not full: the
// lake wants objects no oftener than every 5 minutes.
const Linger = 5 * time.Minute

// A Bucket is where the lake's objects are put: as much of [archive.Bucket].
type Bucket interface {
	// Create writes a new object, or returns an error matching
	// [archive.ErrExists] if there is one of that key.
	Create(ctx context.Context, key string, body []byte) (time.Time, error)
}

// Options say which lake it is.
type Options struct {
	Bucket Bucket // of the lake: aws-security-data-lake-{region}-…
	// Source is the name of the custom source, as it was registered: at most 20
	// letters, digits, - and _. Its version may follow, after a slash.
	Source string
	Region string // of AWS, that the events are of
	// Account is the AWS account that the events are of, 12 digits; or
	// "external", or "external_" and a name, where they are of none.
	Account string

	ArchiveID, Version string // see [event.EncoderOptions]
	WithoutContent     bool
}

var (
	sourceForm  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,20}(/[0-9]+(\.[0-9]+)*)?$`)
	regionForm  = regexp.MustCompile(`^[a-z]{2,4}(-[a-z]+)+-[0-9]+$`)
	accountForm = regexp.MustCompile(`^([0-9]{12}|external(_[A-Za-z0-9-]{1,64})?)$`)
)

// ValidSource reports whether a text can be Options.Source.
func ValidSource(text string) bool { return sourceForm.MatchString(text) }

// ValidRegion reports whether a text can be Options.Region.
func ValidRegion(text string) bool { return regionForm.MatchString(text) }

// ValidAccount reports whether a text can be Options.Account.
func ValidAccount(text string) bool { return accountForm.MatchString(text) }

func (o *Options) check() error {
	switch {
	case o.Bucket == nil:
		return errors.New("no bucket")
	case !ValidSource(o.Source):
		return fmt.Errorf("source %q: want the custom source's name, at most 20 letters, digits, - and _", o.Source)
	case !ValidRegion(o.Region):
		return fmt.Errorf("region %q: want one of AWS, as eu-central-1", o.Region)
	case !ValidAccount(o.Account):
		return fmt.Errorf("account %q: want 12 digits, external, or external_NAME", o.Account)
	}
	return nil
}

// A Sink delivers to one custom source. It reads the events of messages; their
// bodies count for the limits alone.
type Sink struct {
	o      Options
	prefix string
}

// New returns a sink. The error says which option is wrong.
func New(o Options) (*Sink, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("security lake: %w", err)
	}
	return &Sink{o: o, prefix: fmt.Sprintf("ext/%s/region=%s/accountId=%s/eventDay=", o.Source, o.Region, o.Account)}, nil
}

// Limits returns what one batch has at most.
func (s *Sink) Limits() sink.Limits {
	return sink.Limits{Events: maxEvents, BatchBytes: maxBatch, EventBytes: maxEvent}
}

// Close does nothing: the bucket is the caller's.
func (s *Sink) Close(context.Context) error { return nil }

// Deliver writes one object for each day of the batch, the earliest first, and
// stops at the first that fails: what is of that day and later ones has its
// verdict.
func (s *Sink) Deliver(ctx context.Context, batch []sink.Message) sink.Result {
	result := sink.All(len(batch), sink.Verdict{})
	days := map[string][]int{}
	for i := range batch {
		day := Day(batch[i].Event)
		days[day] = append(days[day], i)
	}
	order := make([]string, 0, len(days))
	for day := range days {
		order = append(order, day)
	}
	slices.Sort(order)
	failed := sink.Verdict{Outcome: sink.Delivered}
	for _, day := range order {
		if failed.Outcome == sink.Delivered {
			failed = s.put(ctx, day, batch, days[day])
		}
		for _, i := range days[day] {
			result.Verdicts[i] = failed
		}
	}
	return result
}

// Day returns the partition of an event: the day of its time, UTC, as YYYYMMDD.
func Day(ev *event.Event) string { return ev.Time.UTC().Format("20060102") }

// put writes the object of one day.
func (s *Sink) put(ctx context.Context, day string, batch []sink.Message, of []int) sink.Verdict {
	events := make([]*event.Event, len(of))
	for i, at := range of {
		events[i] = batch[at].Event
	}
	body, err := Encode(events, event.EncoderOptions{ArchiveID: s.o.ArchiveID, Version: s.o.Version, WithoutContent: s.o.WithoutContent})
	if err != nil {
		return sink.Verdict{Outcome: sink.Poison, Reason: err.Error()}
	}
	if len(body) > MaxObjectBytes {
		return sink.Verdict{Outcome: sink.Split, Reason: fmt.Sprintf("an object of %d bytes, at most %d are good", len(body), MaxObjectBytes)}
	}
	sum := sha256.Sum256(body)
	_, err = s.o.Bucket.Create(ctx, s.prefix+day+"/"+hex.EncodeToString(sum[:])+".parquet", body)
	switch {
	case err == nil, errors.Is(err, archive.ErrExists):
		return sink.Verdict{Outcome: sink.Delivered}
	case errors.Is(err, archive.ErrDenied):
		return sink.Verdict{Outcome: sink.Suspend, Reason: err.Error()}
	default:
		return sink.Verdict{Outcome: sink.Retry, Reason: err.Error()}
	}
}
