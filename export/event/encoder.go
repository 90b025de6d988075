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
}

// An Encoder writes events in one format. It keeps nothing of them between two
// calls; one goroutine at a time.
type Encoder struct {
	format Format
	o      EncoderOptions
	append func(e *Encoder, dst []byte, ev *Event) ([]byte, error)
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

var encoders = map[Format]func(e *Encoder, dst []byte, ev *Event) ([]byte, error){
	JSON: (*Encoder).appendJSON,
}

// Append appends an event to dst: one JSON object, or one line of text, without
// a line break in it or behind it. On an error dst is returned as it was.
func (e *Encoder) Append(dst []byte, ev *Event) ([]byte, error) {
	out, err := e.append(e, dst, ev)
	if err != nil {
		return dst, fmt.Errorf("event %s as %s: %w", ev.ID, e.format, err)
	}
	return out, nil
}

// Format returns the encoder's format.
func (e *Encoder) Format() Format { return e.format }

// IsText reports whether events are lines of text, not JSON objects.
func (e *Encoder) IsText() bool { return e.format == CEF || e.format == LEEF }

// ContentType returns the media type of one event.
func (e *Encoder) ContentType() string {
	if e.IsText() {
		return "text/plain; charset=utf-8"
	}
	return "application/json"
}
