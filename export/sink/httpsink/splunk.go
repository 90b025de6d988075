package httpsink

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/ledgerlake/ledgerlake/export/sink"
)

// SplunkOptions say which HTTP Event Collector takes events, and what they are
// called there.
type SplunkOptions struct {
	HTTP         // URL is that of Splunk; /services/collector/event where it has no path
	Token string // of the collector
	// Index, Source, Sourcetype and Host of each event; "" is what the token has.
	Index, Source, Sourcetype, Host string
	// Ack says that the token has indexer acknowledgement: an event is delivered
	// once Splunk says that it is indexed.
	Ack       bool
	AckWithin time.Duration // how long that may take before events are sent again; 0 is 5 minutes
	AckEvery  time.Duration // how often it is asked, at most; 0 is 5 seconds
	// RequestBytes is how large a request gets, before it is compressed; 0 is
	// 1,000,000, what Splunk Cloud takes.
	RequestBytes int
	Limits       sink.Limits // zero members are the usual ones
}

// A Splunk delivers to an HTTP Event Collector.
//
// Each event has the fields ledgerlake_id, by which repeats are dropped, and
// ledgerlake_tenant, ledgerlake_log and ledgerlake_seq, by which gaps are found.
//
// An answer that names an event as invalid condemns it only once it was refused
// alone: versions of Splunk count from 0 and from 1. All others are sent again, in
// their order, also those in front of it, as some keep them and some do not. Of a server that is busy
// (503, code 9) after n events, n-1 count as delivered, for the same reason.
//
// Source: Splunk Enterprise, Getting Data In: "Troubleshoot HTTP Event Collector"
// and "About HTTP Event Collector Indexer Acknowledgment".
type Splunk struct {
	c      *client
	o      SplunkOptions
	url    string
	ackURL string
	before []byte // members of each event that are always the same, with a comma behind each
}

// Times that Splunk wants. Its indexers write what they have every two minutes at
// the latest.
const (
	usualAckWithin = 5 * time.Minute
	usualAckEvery  = 5 * time.Second
	firstAck       = 100 * time.Millisecond
)

// NewSplunk returns a Splunk.
func NewSplunk(o SplunkOptions) (*Splunk, error) {
	o.AckWithin = cmp.Or(o.AckWithin, usualAckWithin)
	o.AckEvery = cmp.Or(o.AckEvery, usualAckEvery)
	o.RequestBytes = cmp.Or(o.RequestBytes, 1_000_000)
	if o.Token == "" {
		return nil, errors.New("token: none: make one in Splunk, below Settings, Data inputs, HTTP Event Collector")
	}
	c, err := newClient(o.HTTP, o.Token)
	if err != nil {
		return nil, err
	}
	if err := c.bearing("token", "Authorization", "Splunk "+o.Token); err != nil {
		return nil, err
	}
	s := &Splunk{c: c, o: o, url: c.pathOr("services/collector/event")}
	if o.Ack {
		channel := newChannel()
		c.header.Set("X-Splunk-Request-Channel", channel)
		u := *c.url
		u.Path, u.RawPath = "/services/collector/ack", ""
		u.RawQuery = url.Values{"channel": {channel}}.Encode()
		s.ackURL = u.String()
	}
	for _, m := range [][2]string{{"host", o.Host}, {"source", o.Source}, {"sourcetype", o.Sourcetype}, {"index", o.Index}} {
		if m[1] != "" {
			s.before = append(appendText(append(appendText(s.before, m[0]), ':'), m[1]), ',')
		}
	}
	// Several requests, so that the last one, which is smaller, does not matter; and
	// with acknowledgement more, as one wait is for all of them.
	usual := sink.Limits{Events: 4000, BatchBytes: 4 * int64(o.RequestBytes), EventBytes: int64(o.RequestBytes) - 1024}
	if o.Ack {
		usual.Events, usual.BatchBytes = 4*usual.Events, 4*usual.BatchBytes
	}
	s.o.Limits = limits(o.Limits, usual)
	return s, nil
}

// newChannel returns a name for what this process sends: acknowledgements are
// numbered by channel.
func newChannel() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Limits implements [sink.Sink].
func (s *Splunk) Limits() sink.Limits { return s.o.Limits }

// Close implements [sink.Sink].
func (s *Splunk) Close(context.Context) error {
	s.c.close()
	return nil
}

// Deliver implements [sink.Sink]. A batch may be several requests: the first that
// is not taken ends it.
func (s *Splunk) Deliver(ctx context.Context, batch []sink.Message) sink.Result {
	d := &delivery{Splunk: s, batch: batch, r: sink.All(len(batch), sink.Verdict{Outcome: sink.Retry, Reason: "not sent, as what was in front of it was not taken"})}
	bodies := s.bodies(batch)
	for from := 0; from < len(batch); {
		n := s.fits(bodies[from:])
		if !d.send(ctx, bodies, from, n) {
			break
		}
		from += n
	}
	if len(d.acks) > 0 {
		d.await(ctx)
	}
	return d.r
}

// bodies returns what is sent for each message.
func (s *Splunk) bodies(batch []sink.Message) [][]byte {
	all := make([][]byte, len(batch))
	for i, m := range batch {
		b := make([]byte, 0, len(m.Body)+512)
		b = append(b, '{')
		if t := m.Event.Time; t.Unix() >= 0 {
			b = fmt.Appendf(b, `"time":%d.%06d,`, t.Unix(), t.Nanosecond()/1000)
		}
		b = append(append(b, s.before...), `"event":`...)
		if isObject(m.Body) {
			b = append(b, m.Body...)
		} else {
			b = appendText(b, string(m.Body))
		}
		all[i] = append(appendFields(b, &m), '}')
	}
	return all
}

// appendFields appends the fields that are indexed, all of them texts.
func appendFields(b []byte, m *sink.Message) []byte {
	ev := m.Event
	b = append(b, `,"fields":{"ledgerlake_id":"`+ev.ID+`","ledgerlake_event":"`+string(ev.Kind)+`"`...)
	if ev.Tenant != "" {
		b = appendText(append(b, `,"ledgerlake_tenant":`...), ev.Tenant)
		b = appendText(append(b, `,"ledgerlake_log":`...), fmt.Sprintf("%s/%s/%d", ev.Line.Topic, ev.Line.TopicID, ev.Line.Partition))
	}
	if ev.IsRow() {
		b = append(b, `,"ledgerlake_seq":"`+strconv.FormatInt(ev.Seq, 10)+`"`...)
	}
	return append(b, '}')
}

// appendText appends a text as JSON.
func appendText(b []byte, text string) []byte {
	t, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always is
	}
	return append(b, t...)
}

// fits returns how many of the bodies one request takes, one at least.
func (s *Splunk) fits(bodies [][]byte) int {
	size := 0
	for i, b := range bodies {
		if size += len(b); i > 0 && size > s.o.RequestBytes {
			return i
		}
	}
	return len(bodies)
}

// A delivery is an attempt at a batch.
type delivery struct {
	*Splunk
	batch    []sink.Message
	r        sink.Result
	acks     []ack
	condemns bool // looks for the event that was refused: once is enough
}

// An ack is a request whose acknowledgement is to come.
type ack struct {
	id      int64
	from, n int
}

// A hecAnswer is what the collector says.
type hecAnswer struct {
	Code    *int   `json:"code"`
	AckID   *int64 `json:"ackId"`
	Invalid *int   `json:"invalid-event-number"`
}

// The codes of the collector, as Splunk's documentation lists them, that say
// something else than their status.
const (
	codeSuccess = 0
	codeBusy    = 9
)

// settings are the codes that come with 400, and are about how we are set up.
var settings = []int{7, 10, 11, 14, 16, 21, 22}

// send sends n messages as one request, and reports whether they were taken.
func (d *delivery) send(ctx context.Context, bodies [][]byte, from, n int) (taken bool) {
	batch := d.batch[from : from+n]
	a, err := d.c.post(ctx, request{url: d.url, contentType: "application/json", body: bytes.Join(bodies[from:from+n], nil)})
	if err != nil {
		d.set(from, d.c.failed(ctx, n, err))
		return false
	}
	says := readHEC(a)
	r := d.c.judged(batch, a, says.words())
	switch {
	case r.Verdicts[0].Outcome == sink.Delivered:
		r, taken = d.taken(batch, a, &says, from)
	case a.status == http.StatusBadRequest && slices.Contains(settings, says.code()):
		r = sink.All(n, sink.Verdict{Outcome: sink.Suspend, Reason: r.Verdicts[0].Reason})
	case a.status == http.StatusBadRequest && n > 1 && says.names(n) && !d.condemns:
		d.set(from, sink.All(n, sink.Verdict{Outcome: sink.Retry, Reason: "sent with an event that was refused"}))
		d.condemn(ctx, bodies, from, n, *says.Invalid)
		return false
	case a.status == http.StatusServiceUnavailable && says.code() == codeBusy && says.names(n) && !d.o.Ack:
		for i := range *says.Invalid - 1 {
			r.Verdicts[i] = sink.Verdict{Outcome: sink.Delivered}
		}
	}
	d.set(from, r)
	return taken
}

// readHEC reads what the collector says; all of it is nil where it is not that.
func readHEC(a *answer) (says hecAnswer) {
	if json.Unmarshal(a.body, &says) != nil {
		return hecAnswer{}
	}
	return says
}

// code returns the code, -1 where there is none.
func (h *hecAnswer) code() int {
	if h.Code == nil {
		return -1
	}
	return *h.Code
}

// names reports whether the answer says which of n events is invalid, counting from
// 0 or from 1.
func (h *hecAnswer) names(n int) bool { return h.Invalid != nil && *h.Invalid >= 0 && *h.Invalid <= n }

// words returns what is known of an answer.
func (h *hecAnswer) words() string {
	if h.Code == nil {
		return ""
	}
	text := fmt.Sprintf("code %d of Splunk's HTTP Event Collector", *h.Code)
	if s := hecCodes[*h.Code]; s != "" {
		text += " (" + s + ")"
	}
	return text
}

// hecCodes are the codes that Splunk documents.
var hecCodes = map[int]string{
	1: "token disabled", 2: "token required", 3: "invalid authorization", 4: "invalid token", 5: "no data", 6: "invalid data format",
	7: "incorrect index", 8: "internal server error", 9: "server is busy", 10: "data channel is missing", 11: "invalid data channel",
	12: "event field is required", 13: "event field cannot be blank", 14: "acknowledgement is disabled", 15: "error in handling indexed fields",
	16: "query string authorization is not enabled", 18: "queues are full", 19: "acknowledgement is not available",
	20: "queues are full, and acknowledgement is not available", 23: "shutting down", 26: "the queue is at capacity", 27: "too large, or the channel is at capacity",
}

// taken returns the result of a request that was answered with success, and
// whether the collector has it.
func (d *delivery) taken(batch []sink.Message, a *answer, says *hecAnswer, from int) (r sink.Result, ok bool) {
	switch {
	case says.code() != codeSuccess:
		return d.c.unclear(batch, a, "that is no answer of Splunk's HTTP Event Collector"), false
	case !d.o.Ack:
		return sink.All(len(batch), sink.Verdict{Outcome: sink.Delivered}), true
	case says.AckID == nil:
		return sink.All(len(batch), sink.Verdict{Outcome: sink.Suspend, Reason: "no ackId in the answer: turn on indexer acknowledgement of the token, or ack off here"}), false
	}
	d.acks = append(d.acks, ack{*says.AckID, from, len(batch)})
	return sink.All(len(batch), sink.Verdict{Outcome: sink.Retry, Reason: "not acknowledged by the indexers in time"}), true
}

// condemn finds which of n messages was meant as invalid, in their order: what is
// in front of it whichever way it was counted is sent first, and then each that
// may be meant alone.
func (d *delivery) condemn(ctx context.Context, bodies [][]byte, from, n, number int) {
	d.condemns = true
	first := max(number-1, 0)
	if first > 0 && !d.send(ctx, bodies, from, first) {
		return
	}
	for i := first; i <= min(number, n-1); i++ {
		if !d.send(ctx, bodies, from+i, 1) {
			return
		}
	}
	// None of them was it.
	for i := from; i < from+n; i++ {
		if v := &d.r.Verdicts[i]; v.Outcome == sink.Retry {
			*v = sink.Verdict{Outcome: sink.Split, Reason: "sent with an event that was refused, and cannot be told from it"}
		}
	}
}

func (d *delivery) set(from int, r sink.Result) {
	copy(d.r.Verdicts[from:], r.Verdicts)
	d.r.After = max(d.r.After, r.After)
}

// await asks for acknowledgements until all are there, or their time is over.
func (d *delivery) await(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, d.o.AckWithin)
	defer cancel()
	for pause := firstAck; len(d.acks) > 0; pause = min(2*pause, d.o.AckEvery) {
		timer := time.NewTimer(min(pause, d.o.AckEvery))
		select {
		case <-within.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if !d.ask(within) {
			return
		}
	}
}

// ask asks once, and reports whether to go on asking.
func (d *delivery) ask(ctx context.Context) bool {
	ids := make([]int64, len(d.acks))
	for i, a := range d.acks {
		ids[i] = a.id
	}
	body, err := json.Marshal(map[string][]int64{"acks": ids})
	if err != nil {
		panic(err) // numbers always are
	}
	a, err := d.c.post(ctx, request{url: d.ackURL, contentType: "application/json", body: body, most: maxAnswer + int64(32*len(ids))})
	if err != nil {
		return true
	}
	switch outcome, _ := sink.Classify(a.status, a.header, d.c.o.Now()); outcome {
	case sink.Delivered:
		d.acknowledge(a)
		return true
	case sink.Retry:
		return true
	}
	v := sink.Verdict{Outcome: sink.Suspend, Reason: d.c.reason(nil, a, "acknowledgements are refused")}
	for _, a := range d.acks {
		d.set(a.from, sink.All(a.n, v))
	}
	return false
}

func (d *delivery) acknowledge(a *answer) {
	var says struct {
		Acks map[string]bool `json:"acks"`
	}
	if json.Unmarshal(a.body, &says) != nil {
		return
	}
	d.acks = slices.DeleteFunc(d.acks, func(k ack) bool {
		if !says.Acks[strconv.FormatInt(k.id, 10)] {
			return false
		}
		d.set(k.from, sink.All(k.n, sink.Verdict{Outcome: sink.Delivered}))
		return true
	})
}
