// Package natssink delivers events to a stream of NATS JetStream.
//
//	subject      {prefix}.{tenant}.{kind}, where every byte but letters, digits, - and _ is % and two hex digits: no
//	             tenant can be another's subject, or a wildcard
//	Nats-Msg-Id  row_hash in hex, or the id of an event that is no row: what comes twice within the stream's duplicate
//	             window (2 minutes unless the stream says otherwise) is there once
//
// Delivered is what the stream has acknowledged, each event by itself. What comes
// again after the window, or a crash, may be there twice.
//
// A batch goes over one connection, which is not resumed: of what follows a
// connection that broke nothing is sent before what was on its way is sent again.
// So the order of a log is kept, but where a cluster's stream changes its leader
// in the middle of a batch, or refuses a single message.
//
// It creates no stream.
package natssink

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
)

// What is usual.
const (
	DefaultPrefix  = "audit"
	DefaultTimeout = 30 * time.Second
)

// The limits of a batch. How large a message may be a server says once it is
// reached; until then it is what is usual.
const (
	batchEvents  = 1000
	batchBytes   = 4 << 20
	usualPayload = 1 << 20
	header       = 1024               // Nats-Msg-Id and the other headers
	maxPending   = 1000 * batchEvents // of all lines together: more lines than that nobody has
)

// Options say which stream it is. Of Creds, NKey, Token and User one may be set.
type Options struct {
	URLs      []string // nats://host:port, tls://host:port; of one cluster
	Plaintext bool     // without TLS: whoever is on the way can read and change what is sent

	CA        string // PEM; "": what the system trusts
	Cert, Key string // PEM, of this client; "" where the server asks for none
	Creds     string // what a .creds file holds
	NKey      string // a user's seed
	Token     string
	User      string
	Password  string

	Prefix      string // of subjects; "" is audit
	Stream      string // its name, where no other one may take what is sent; "" is any
	InboxPrefix string // of the subjects that acknowledgements come by; "" is _INBOX
	Timeout     time.Duration
}

func (o *Options) fill() error {
	o.Prefix = cmp.Or(o.Prefix, DefaultPrefix)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	ways := 0
	for _, s := range []string{o.Creds, o.NKey, o.Token, o.User} {
		if s != "" {
			ways++
		}
	}
	switch {
	case len(o.URLs) == 0:
		return errors.New("no server")
	case !ValidPrefix(o.Prefix):
		return fmt.Errorf("prefix %q: want letters, digits, - and _, and dots in between", o.Prefix)
	case ways > 1:
		return errors.New("credentials, a seed, a token and a user: want one of them")
	case o.Plaintext && (o.CA != "" || o.Cert != "" || o.Key != ""):
		return errors.New("certificates, but no TLS: leave them out, or do not allow plain text")
	}
	return nil
}

// ValidPrefix reports whether subjects may begin with s.
func ValidPrefix(s string) bool {
	for token := range strings.SplitSeq(s, ".") {
		if token == "" || Escape(token) != token {
			return false
		}
	}
	return true
}

// A Sink delivers to one stream.
type Sink struct {
	o       Options
	connect []nats.Option
	payload atomic.Int64 // that the server takes

	mu   sync.Mutex
	conn *connection // nil is none
}

// A connection is one to a server.
type connection struct {
	*nats.Conn
	js     jetstream.JetStream
	closed chan struct{}

	mu      sync.Mutex
	refused error // what the server said that we may not
}

// New returns a Sink. Nothing is reached yet. The error says which option is wrong.
func New(o Options) (*Sink, error) {
	if err := o.fill(); err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	s := &Sink{o: o}
	s.payload.Store(usualPayload)
	// A batch is of one connection: see the package's documentation.
	s.connect = []nats.Option{nats.Name("ledgerlake-export"), nats.NoReconnect(), nats.NoEcho()}
	if o.InboxPrefix != "" {
		s.connect = append(s.connect, nats.CustomInboxPrefix(o.InboxPrefix))
	}
	for _, add := range []func(*Options) ([]nats.Option, error){secure, identity} {
		opts, err := add(&o)
		if err != nil {
			return nil, fmt.Errorf("nats: %w", err)
		}
		s.connect = append(s.connect, opts...)
	}
	return s, nil
}

func secure(o *Options) ([]nats.Option, error) {
	if o.Plaintext {
		return nil, nil
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CA != "" {
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM([]byte(o.CA)) {
			return nil, errors.New("the CA's file: want certificates in PEM, found none")
		}
	}
	if o.Cert != "" || o.Key != "" {
		pair, err := tls.X509KeyPair([]byte(o.Cert), []byte(o.Key))
		if err != nil {
			return nil, fmt.Errorf("the client's certificate and key: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return []nats.Option{nats.Secure(t)}, nil
}

func identity(o *Options) ([]nats.Option, error) {
	switch {
	case o.Creds != "":
		return []nats.Option{nats.UserCredentialBytes([]byte(o.Creds))}, nil
	case o.NKey != "":
		return nkey(o.NKey)
	case o.Token != "":
		return []nats.Option{nats.Token(o.Token)}, nil
	case o.User != "":
		return []nats.Option{nats.UserInfo(o.User, o.Password)}, nil
	}
	return nil, nil
}

// Limits implements [sink.Sink].
func (s *Sink) Limits() sink.Limits {
	return sink.Limits{Events: batchEvents, BatchBytes: batchBytes, EventBytes: max(s.payload.Load()-header, header)}
}

// Close implements [sink.Sink].
func (s *Sink) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
	return nil
}

// Deliver implements [sink.Sink].
func (s *Sink) Deliver(ctx context.Context, batch []sink.Message) sink.Result {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	c, err := s.reach(ctx)
	if err != nil {
		return sink.All(len(batch), s.verdict(ctx, nil, "", err))
	}
	return s.publish(ctx, c, batch)
}

// reach returns the connection that is, or a new one.
func (s *Sink) reach(ctx context.Context) (*connection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && s.conn.IsConnected() {
		return s.conn, nil
	}
	c := &connection{closed: make(chan struct{})}
	opts := append([]nats.Option(nil), s.connect...)
	opts = append(
		opts,
		nats.SetCustomDialer(dialer{ctx}), nats.Timeout(s.o.Timeout),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.refuse(err) }),
	)
	nc, err := nats.Connect(strings.Join(s.o.URLs, ","), opts...)
	if err != nil {
		return nil, err
	}
	c.Conn = nc
	if c.js, err = jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(maxPending), jetstream.WithPublishAsyncTimeout(s.o.Timeout)); err != nil {
		nc.Close()
		return nil, err
	}
	s.payload.Store(nc.MaxPayload())
	s.conn = c
	return c, nil
}

// A dialer dials as long as a context lives.
type dialer struct{ ctx context.Context }

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(d.ctx, network, address)
}

// refuse notes what the server says that is no answer: that a subject is not ours
// to publish to.
func (c *connection) refuse(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = err
}

func (c *connection) takeRefusal() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.refused
	c.refused = nil
	return err
}

// publish sends a batch and counts what is acknowledged.
func (s *Sink) publish(ctx context.Context, c *connection, batch []sink.Message) sink.Result {
	result := sink.All(len(batch), sink.Verdict{Outcome: sink.Retry, Reason: "not sent: another event before it was not taken"})
	acks := make([]jetstream.PubAckFuture, len(batch))
	for i := range batch {
		msg := s.message(&batch[i])
		ack, err := c.js.PublishMsgAsync(msg, s.publishOptions()...)
		if err != nil {
			result.Verdicts[i] = s.verdict(ctx, c, msg.Subject, err)
			if result.Verdicts[i].Outcome != sink.Split {
				break
			}
			continue
		}
		acks[i] = ack
	}
	for i, ack := range acks {
		if ack != nil {
			result.Verdicts[i] = s.verdict(ctx, c, ack.Msg().Subject, c.wait(ctx, ack))
		}
	}
	return result
}

func (s *Sink) publishOptions() []jetstream.PublishOpt {
	opts := []jetstream.PublishOpt{jetstream.WithRetryAttempts(0)}
	if s.o.Stream != "" {
		opts = append(opts, jetstream.WithExpectStream(s.o.Stream))
	}
	return opts
}

var errBroken = errors.New("the connection broke before the stream acknowledged")

// wait waits for an acknowledgement, or for its connection's end.
func (c *connection) wait(ctx context.Context, ack jetstream.PubAckFuture) error {
	select {
	case <-ack.Ok():
		return nil
	case err := <-ack.Err():
		return c.why(err)
	default:
	}
	select {
	case <-ack.Ok():
		return nil
	case err := <-ack.Err():
		return c.why(err)
	case <-c.closed:
		return cmp.Or(c.takeRefusal(), errBroken)
	case <-ctx.Done():
		return cmp.Or(c.takeRefusal(), fmt.Errorf("no acknowledgement: %w", context.Cause(ctx)))
	}
}

// why returns what the server has said meanwhile, where an acknowledgement did not
// come in time: it answers no message whose subject is not ours to publish to.
func (c *connection) why(err error) error {
	if errors.Is(err, jetstream.ErrAsyncPublishTimeout) {
		return cmp.Or(c.takeRefusal(), err)
	}
	return err
}

func (s *Sink) message(m *sink.Message) *nats.Msg {
	ev := m.Event
	msg := nats.NewMsg(Subject(s.o.Prefix, ev))
	msg.Data = append([]byte(nil), m.Body...) // the client keeps it until it is acknowledged, which may be after us
	msg.Header.Set(jetstream.MsgIDHeader, ev.ID)
	msg.Header.Set("Ledgerlake-Event", string(ev.Kind))
	if ev.IsRow() {
		msg.Header.Set("Ledgerlake-Seq", strconv.FormatInt(ev.Seq, 10))
	}
	return msg
}

// Subject returns the subject of an event: "%" stands where it has no tenant.
func Subject(prefix string, ev *event.Event) string {
	kind := string(ev.Kind)
	if ev.IsRow() {
		kind = ev.Row.Kind.S
	}
	return prefix + "." + Escape(ev.Tenant) + "." + Escape(kind)
}

// Escape writes a text as one token of a subject: all but letters, digits, - and _
// as % and two hex digits, and nothing as "%". No two texts are written alike.
func Escape(s string) string {
	if s == "" {
		return "%"
	}
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
