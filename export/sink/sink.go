// Package sink is what a destination of events is to who delivers them: an
// attempt to deliver a batch, and what became of each event in it.
//
//	delivered  the destination has it, as well as it can say so
//	retry      not this time: try again later, without an end
//	split      too large together: try again in smaller batches
//	suspend    the destination takes nothing, and will not until somebody acts
//	poison     the destination will never take this event
//
// The package delivers nothing by itself: drivers lie in the folders below.
package sink

import (
	"context"
	"time"

	"github.com/ledgerlake/ledgerlake/export/event"
)

// A Message is one event in the form of a destination.
type Message struct {
	Event *event.Event
	Body  []byte // one JSON object or one line of text, without its end
	// Backfill is the id of the backfill that sends it; "" is what is live.
	Backfill string
}

// Limits are what a destination takes in one batch. Zero is no limit.
type Limits struct {
	Events     int
	BatchBytes int64 // of all bodies together, with what the driver puts around them
	EventBytes int64 // of one body; a larger record is sent as its pointer
}

// An Outcome is what became of an event, and so what to do next.
type Outcome int

// The outcomes. The zero Outcome is Retry: what was not said to be delivered is
// not.
const (
	Retry Outcome = iota
	Delivered
	Split
	Suspend
	Poison
)

var outcomes = [...]string{"retry", "delivered", "split", "suspend", "poison"}

// String returns the outcome in a word.
func (o Outcome) String() string { return outcomes[o] }

// A Verdict is an outcome and its reason.
type Verdict struct {
	Outcome Outcome
	Reason  string // for people; never shows a payload or a secret; "" where delivered
}

// A Result is what became of a batch.
type Result struct {
	Verdicts []Verdict // one for each message, in their order
	// After is how long the destination asks to be left alone before the next
	// attempt. 0 where it does not say.
	After time.Duration
}

// All returns the result of a batch of n messages of all of which the same is
// to be said.
func All(n int, v Verdict) Result {
	r := Result{Verdicts: make([]Verdict, n)}
	for i := range r.Verdicts {
		r.Verdicts[i] = v
	}
	return r
}

// Done reports whether every message was delivered.
func (r *Result) Done() bool {
	for _, v := range r.Verdicts {
		if v.Outcome != Delivered {
			return false
		}
	}
	return true
}

// A Sink delivers to one destination.
//
// Deliver makes one attempt at a batch, in its order, and returns a verdict for
// each message; it returns as soon as ctx is done. An attempt that did not
// succeed may have had its effect all the same. It keeps neither batch nor
// bodies once it has returned, and does not change them. Methods may be called
// concurrently; who needs order makes one attempt at a time.
type Sink interface {
	Deliver(ctx context.Context, batch []Message) Result
	Limits() Limits
	// Close ends the connections. What was delivered before stays delivered.
	Close(ctx context.Context) error
}
