package event

import (
	"errors"
	"fmt"
	"slices"
)

// A Format is a form in which events leave.
type Format string

// The formats.
const (
	JSON   Format = "json"     // our own: all of it, and the record as it was sent
	OCSF18 Format = "ocsf-1.8" // OCSF 1.8.0, API Activity
	OCSF13 Format = "ocsf-1.3" // OCSF 1.3.0, API Activity
	ECS    Format = "ecs"      // Elastic Common Schema
	CEF    Format = "cef"      // ArcSight Common Event Format, version 0
	LEEF   Format = "leef"     // QRadar Log Event Extended Format 2.0
)

// Formats lists the formats.
var Formats = []Format{JSON, OCSF18, OCSF13, ECS, CEF, LEEF}

// ErrFormat: there is no format of that name.
var ErrFormat = errors.New("unknown format")

// EncoderOptions are what an encoder has to know beside the events.
type EncoderOptions struct {
	ArchiveID string // names the archive; "" is left out
	Version   string // of the product that sends; "" is left out
	// WithoutContent leaves out the record as it was sent, in the formats that
	// have it: what is sent of a row is then its columns.
	WithoutContent bool
}

// An Encoder writes events in one format. It keeps nothing of them between two
// calls; one goroutine at a time.
type Encoder struct {
	format Format
	o      EncoderOptions
	append func(dst []byte, v *view) []byte
	view   view
	values []Value
}

// NewEncoder returns an encoder of f. The error matches [ErrFormat].
func NewEncoder(f Format, o EncoderOptions) (*Encoder, error) {
	if !slices.Contains(Formats, f) {
		return nil, fmt.Errorf("%w %q: use one of %q", ErrFormat, f, Formats)
	}
	make, ok := encoders[f]
	if !ok {
		return nil, fmt.Errorf("%w %q: it is not built in", ErrFormat, f)
	}
	return &Encoder{format: f, o: o, append: make}, nil
}

var encoders = map[Format]func(dst []byte, v *view) []byte{
	JSON:   native.append,
	OCSF18: ocsf18.append,
	OCSF13: ocsf13.append,
	ECS:    ecs.append,
	CEF:    appendCEF,
	LEEF:   appendLEEF,
}

// Append appends an event to dst: one JSON object, or one line of text, without
// a line break in it or behind it. On an error, which only an event that no
// function of this package made can cause, dst is returned as it was.
func (e *Encoder) Append(dst []byte, ev *Event) ([]byte, error) {
	if ev.Row == nil && ev.Head == nil && ev.Erasure == nil && ev.Check == nil {
		return dst, fmt.Errorf("event %q of kind %q says nothing: make events with the functions of this package", ev.ID, ev.Kind)
	}
	e.view.set(&e.o, ev)
	return e.append(dst, &e.view), nil
}

// Format returns the encoder's format.
func (e *Encoder) Format() Format { return e.format }

// MaxRanges returns how many ranges a notice of an erasure may have to be
// written whole: see [Event.Split]. What is more is cut, and said to be.
func (e *Encoder) MaxRanges() int {
	if e.IsText() {
		return lineRanges
	}
	return MaxRanges
}

// IsText reports whether events are lines of text, not JSON objects.
func (e *Encoder) IsText() bool { return e.format == CEF || e.format == LEEF }

// ContentType returns the media type of one event.
func (e *Encoder) ContentType() string {
	if e.IsText() {
		return "text/plain; charset=utf-8"
	}
	return "application/json"
}
