// Package syslog delivers events as syslog messages of RFC 5424, over TLS as RFC
// 5425 has it: each with the count of its octets before it.
//
//	<PRI>1 TIME HOST APP - KIND [ledgerlake@NUMBER event=… tenant=… topic=… topicId=… partition=… seq=… prevHash=… verified=… rowHash=…] MSG
//
// MSG is the event in the destination's format: JSON, CEF or LEEF. PRI is the
// facility and a severity: that of the event's status, 6 informational to 3 error.
//
// # What counts as delivered
//
// Syslog has no acknowledgement. In its place, with [Close]: after each batch we
// end our side of the connection, and the batch counts once the receiver, having
// read it to that end, ends the other side in order, and its system has
// acknowledged all bytes. A receiver that closes before, resets, or does not
// answer in time has not taken the batch, which is sent again whole. So what is
// lost is what the receiver itself loses after it was read: its queue in memory, or
// messages that it throws away unprocessed and yet closes in order.
//
// With [Open], for what stands in between and cannot close one side: a batch counts
// once the other system has acknowledged all bytes (where the kernel says so:
// Linux) and the connection is still open. What the receiver had not read by then
// goes with it where it dies, so the last messages, up to Options.Resend bytes,
// are sent again on every new connection. What was on its way beyond that, or when
// both sides die at once, is lost.
//
// A receiver sees either as a repeat (rowHash) or as a gap (seq), by the query in
// docs/destinations.md; a gap is closed by a backfill.
package syslog

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/ledgerlake/ledgerlake/export/sink"
)

// A Confirm is how it is known that a batch has arrived.
type Confirm string

// The ways: see the package's documentation.
const (
	Close Confirm = "close"
	Open  Confirm = "open"
)

// What is usual.
const (
	DefaultMessageBytes = 8192 // rsyslog splits what is longer than its maxMessageSize, which is 8k
	DefaultFacility     = 13   // log audit
	DefaultEnterprise   = "32473"
	DefaultResend       = 1 << 20
	DefaultTimeout      = 30 * time.Second
)

// Limits of one batch, and the room that a message needs beside its body.
const (
	batchEvents = 2000
	batchBytes  = 1 << 20
	header      = 512
)

// Options say where messages go, and what they look like. Zero members are what is
// usual.
type Options struct {
	Address string // host:port; a receiver of RFC 5425 listens at 6514
	// Plaintext sends without TLS (RFC 6587, octet counting): whoever is on the
	// way can read and change it.
	Plaintext  bool
	CA         string // PEM; "": what the system trusts
	Cert, Key  string // PEM, of this client; "" where the receiver asks for none
	ServerName string // in the receiver's certificate; "" is the host of Address

	MessageBytes int    // of one message, its header included; at least 1024
	Facility     int    // 1 to 23; 0 is 13, log audit
	Hostname     string // "" is "-"
	AppName      string // "" is ledgerlake
	Enterprise   string // the private enterprise number behind the @ of the structured data
	BOM          bool   // a byte order mark before MSG, as RFC 5424 wants it and few receivers do

	Confirm Confirm       // "" is Close
	Resend  int64         // bytes sent again on a new connection, with Open; 0 is 1 MiB, less than 0 none
	Timeout time.Duration // for a connection, for 64 KiB to leave, and for the confirmation
	// Dial reaches the receiver; nil is the system's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func (o *Options) fill() error {
	host, port, err := net.SplitHostPort(o.Address)
	if err != nil || host == "" || port == "" {
		return fmt.Errorf("address %q: want HOST:PORT", o.Address)
	}
	o.ServerName = or(o.ServerName, host)
	o.MessageBytes = or(o.MessageBytes, DefaultMessageBytes)
	o.Facility = or(o.Facility, DefaultFacility)
	o.AppName = or(o.AppName, "ledgerlake")
	o.Enterprise = or(o.Enterprise, DefaultEnterprise)
	o.Confirm = or(o.Confirm, Close)
	o.Resend = max(or(o.Resend, DefaultResend), 0)
	o.Timeout = or(o.Timeout, DefaultTimeout)
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	switch {
	case o.MessageBytes < 1024:
		return fmt.Errorf("messages of %d bytes: want 1024 at least", o.MessageBytes)
	case o.Facility < 1 || o.Facility > 23:
		return fmt.Errorf("facility %d: want 1 to 23", o.Facility)
	case o.Confirm != Close && o.Confirm != Open:
		return fmt.Errorf("confirm %q: want %s or %s", o.Confirm, Close, Open)
	case !isElement(element(o.Enterprise)):
		return fmt.Errorf("enterprise number %q: want digits, as IANA gives them", o.Enterprise)
	case o.Plaintext && (o.CA != "" || o.Cert != "" || o.Key != ""):
		return errors.New("certificates, but no TLS: leave them out, or do not allow plain text")
	}
	return nil
}

func or[T comparable](a, b T) T {
	var zero T
	if a != zero {
		return a
	}
	return b
}

func element(enterprise string) string { return "ledgerlake@" + enterprise }

// A Sink delivers to one receiver of syslog.
type Sink struct {
	o       Options
	tls     *tls.Config // nil with Plaintext
	names   []byte      // " HOST APP - " of each message
	element string

	mu     sync.Mutex  // of the connection that stays, with Open
	conn   *connection // nil is none
	window window
}

// New returns a Sink. Nothing is reached yet. The error says which option is wrong.
func New(o Options) (*Sink, error) {
	if err := o.fill(); err != nil {
		return nil, fmt.Errorf("syslog: %w", err)
	}
	s := &Sink{o: o, element: element(o.Enterprise), window: window{most: int(o.Resend)}}
	s.names = append(appendName([]byte{' '}, o.Hostname, maxHostname), ' ')
	s.names = append(appendName(s.names, o.AppName, maxAppName), " - "...)
	if o.Plaintext {
		return s, nil
	}
	var err error
	if s.tls, err = newTLS(&o); err != nil {
		return nil, fmt.Errorf("syslog: %w", err)
	}
	return s, nil
}

func newTLS(o *Options) (*tls.Config, error) {
	// Sessions are not resumed: rsyslog, asking for a certificate, ends those that are.
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.ServerName}
	if o.CA != "" {
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM([]byte(o.CA)) {
			return nil, errors.New("the CA's file: want certificates in PEM, found none")
		}
	}
	if o.Cert == "" && o.Key == "" {
		return t, nil
	}
	pair, err := tls.X509KeyPair([]byte(o.Cert), []byte(o.Key))
	if err != nil {
		return nil, fmt.Errorf("the client's certificate and key: %w", err)
	}
	t.Certificates = []tls.Certificate{pair}
	return t, nil
}

// Limits implements [sink.Sink].
func (s *Sink) Limits() sink.Limits {
	return sink.Limits{Events: batchEvents, BatchBytes: batchBytes, EventBytes: int64(s.o.MessageBytes - header)}
}

// Close implements [sink.Sink].
func (s *Sink) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop()
	return nil
}

// Deliver implements [sink.Sink]. A message that does not fit is to be split; all
// others have one verdict.
func (s *Sink) Deliver(ctx context.Context, batch []sink.Message) sink.Result {
	result := sink.All(len(batch), sink.Verdict{})
	var frames, scratch []byte
	var ends []int
	large := make([]bool, len(batch))
	for i := range batch {
		if scratch = s.message(scratch[:0], &batch[i]); len(scratch) > s.o.MessageBytes {
			large[i] = true
			continue
		}
		frames = append(strconv.AppendInt(frames, int64(len(scratch)), 10), ' ')
		frames = append(frames, scratch...)
		ends = append(ends, len(frames))
	}
	v := sink.Verdict{Outcome: sink.Delivered}
	if len(ends) > 0 {
		v = verdict(s.send(ctx, frames, ends))
	}
	for i := range batch {
		result.Verdicts[i] = v
		if large[i] {
			result.Verdicts[i] = sink.Verdict{Outcome: sink.Split, Reason: "a message of more than " + strconv.Itoa(s.o.MessageBytes) + " bytes"}
		}
	}
	return result
}

// verdict says what an error means. Who shows a wrong certificate, or refuses ours,
// does so until somebody acts; all else may pass.
func verdict(err error) sink.Verdict {
	switch {
	case err == nil:
		return sink.Verdict{Outcome: sink.Delivered}
	case sink.IsRefusal(err):
		return sink.Verdict{Outcome: sink.Suspend, Reason: err.Error()}
	}
	return sink.Verdict{Outcome: sink.Retry, Reason: err.Error()}
}

// send writes frames and sees that they arrive. ends are where each ends.
func (s *Sink) send(ctx context.Context, frames []byte, ends []int) error {
	if s.o.Confirm == Close {
		return s.sendAndClose(ctx, frames)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && s.conn.isClosed() {
		s.drop()
	}
	if s.conn == nil {
		c, err := s.connect(ctx)
		if err != nil {
			return err
		}
		s.conn = c
		if err := s.sendOpen(ctx, s.window.bytes); err != nil {
			return err
		}
	}
	if err := s.sendOpen(ctx, frames); err != nil {
		return err
	}
	s.window.add(frames, ends)
	return nil
}

func (s *Sink) sendAndClose(ctx context.Context, frames []byte) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, c.Close)()
	if err := c.write(frames); err != nil {
		return err
	}
	return c.finish(ctx)
}

// sendOpen writes on the connection that is, and drops it where that fails.
func (s *Sink) sendOpen(ctx context.Context, frames []byte) error {
	c := s.conn
	stop := context.AfterFunc(ctx, c.Close)
	err := c.write(frames)
	if err == nil {
		err = c.flushed(ctx)
	}
	if err == nil && c.isClosed() {
		err = c.why()
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		s.drop()
	}
	return err
}

func (s *Sink) drop() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// A window is the last frames that were sent, whole ones.
type window struct {
	most  int
	bytes []byte
	ends  []int
}

// add appends frames, and lets the oldest go.
func (w *window) add(frames []byte, ends []int) {
	if w.most == 0 {
		return
	}
	base := len(w.bytes)
	w.bytes = append(w.bytes, frames...)
	for _, e := range ends {
		w.ends = append(w.ends, base+e)
	}
	cut := 0
	for len(w.bytes)-cut > w.most && len(w.ends) > 0 {
		cut = w.ends[0]
		w.ends = w.ends[1:]
	}
	w.bytes = append(w.bytes[:0], w.bytes[cut:]...)
	for i := range w.ends {
		w.ends[i] -= cut
	}
}
