package stream

import (
	"context"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
)

// Probe sends one event that is marked as a test to a destination, and returns what
// became of it, and its ID. It needs no archive to be there, and moves nothing.
func Probe(ctx context.Context, d Destination, root archive.Root, version, nonce string, now time.Time) (id string, v sink.Verdict, err error) {
	if d.Broken != nil {
		return "", v, d.Broken
	}
	encoder, err := event.NewEncoder(d.Format, event.EncoderOptions{ArchiveID: root.ArchiveID, Version: version})
	if err != nil {
		return "", v, err
	}
	ev := event.NewCheck(event.Check{Destination: d.Name, Nonce: nonce, Time: now})
	body, err := encoder.Append(nil, ev)
	if err != nil {
		return "", v, err
	}
	within, cancel := context.WithTimeout(ctx, attemptWithin)
	defer cancel()
	r := d.Sink.Deliver(within, []sink.Message{{Event: ev, Body: body}})
	if len(r.Verdicts) == 1 {
		v = r.Verdicts[0]
	}
	return ev.ID, v, nil
}
