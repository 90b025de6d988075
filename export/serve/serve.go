// Package serve answers from an archive over HTTP, and only reads.
//
//	request ── token ── route ── limits ──▶ export.Archive ── render ──▶ JSON, NDJSON, server-sent events
//	                                        proof.Prover ─────────────▶ a bundle, or whether it checks
//	                                        files of this package ────▶ the timeline page
//
//	/                                        the timeline page, for people
//	/v1/tenants                              the tenants that the token is good for
//	/v1/tenants/{tenant}/recent              newest sessions and turns
//	/v1/tenants/{tenant}/turns/{turn}        a turn, in order; /timeline: prepared for people
//	/v1/tenants/{tenant}/sessions/{session}  a session, newest first
//	/v1/tenants/{tenant}/records/{record}    a record; /proof: its bundle; /check: what that is worth
//	/v1/tenants/{tenant}/range               what was created in a stretch of time, streamed
//	/v1/tenants/{tenant}/tail                what is archived from now on, or from a position on
//	/v1/openapi.json                         all of this, for programs
//	/healthz                                 whether it lives
//
// The table in route.go makes both the routes and the OpenAPI document.
//
// # Nothing of one tenant to another
//
// A token names its tenants. Any other tenant's path is answered with the bytes
// of one that does not exist, before the archive is asked, so that neither
// answer nor time says whether there is such a tenant. Every row is held against
// the tenant of the path once more before it leaves. Texts of errors say what
// kind of fault it is and never what was found, as what lies in one object may be
// of several tenants; the operator hears the whole by [Events]. Proofs that would
// have to name other tenants are refused.
//
// The package reads no files and no clock of its own but to wait, never logs,
// and knows neither Kafka nor the store.
package serve

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"sync"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
)

// An Archive is what is asked: an [export.Archive]. Its methods may be called
// concurrently.
type Archive interface {
	Refresh(ctx context.Context) error
	Logs(ctx context.Context, tenant string) ([]export.Log, error)
	Turn(ctx context.Context, tenant, session, turn string) ([]*export.Row, error)
	Tree(ctx context.Context, tenant, turn string) ([]export.Branch, error)
	Session(ctx context.Context, tenant, session string, p export.Page) ([]*export.Row, error)
	Record(ctx context.Context, tenant, recordID string) ([]*export.Row, error)
	At(ctx context.Context, tenant string, lines func(archive.Line) bool, seq int64) ([]*export.Row, error)
	Range(ctx context.Context, r export.Range) iter.Seq2[*export.Row, error]
	Rows(ctx context.Context, s export.Scan) iter.Seq2[*export.Row, error]
}

// Options say what a Server works with. Archive, Source, and Now must be set.
type Options struct {
	Archive Archive
	// Source is the same archive, for proofs.
	Source archive.Source
	// Keys are good for all roles; nil where none is known. Proofs say whether
	// one of them vouches.
	Keys *sign.Ring
	// LogKeys are those of keyed logs, to check rows with.
	LogKeys chain.Keys
	// ControlTopic is the topic of which the rows order erasures; "" is
	// [audit.ControlTopic].
	ControlTopic string
	// Age is how old an answer may be: the archive is looked at again where it
	// was looked at longer ago, and a tail looks as often. 0: [DefaultAge].
	Age    time.Duration
	Limits Limits
	Events Events
	Now    func() time.Time
}

// DefaultAge is how old an answer may be.
const DefaultAge = 2 * time.Second

// Events hear what happens. Each may be nil, and is called by several goroutines
// at once. They hear no token and no query.
type Events struct {
	// Answered: a request was answered.
	Answered func(Request)
	// Failed: a request could not be answered as it should have been. err has
	// what the answer does not say.
	Failed func(r Request, err error)
}

// A Request is what is told of one.
type Request struct {
	Route    string // its path in the table, such as /v1/tenants/{tenant}/recent; "" for one that is not there
	Token    string // the name of its entry; "" for none
	Tenant   string // of the path, if the token is good for it; else ""
	Status   int
	Bytes    int64 // of the answer, before compression
	Began    time.Time
	Duration time.Duration
	// The headers traceparent and tracestate of W3C Trace Context, unchecked.
	TraceParent, TraceState string
}

// A Server answers requests. New makes one.
type Server struct {
	o       Options
	tokens  tokenBook
	limiter *limiter
	prover  provers
	handler http.Handler

	freshen  sync.Mutex
	freshAt  time.Time
	freshErr error // of the last look
	stopping chan struct{}
	stop     sync.Once
}

// New returns a server for which no token is good yet.
func New(o Options) (*Server, error) {
	if o.Archive == nil || o.Source == nil || o.Now == nil {
		return nil, errors.New("serve: no archive, or no clock")
	}
	if o.Age <= 0 {
		o.Age = DefaultAge
	}
	o.Limits = o.Limits.withDefaults()
	s := &Server{o: o, limiter: newLimiter(o.Limits), stopping: make(chan struct{})}
	s.prover.o = &s.o
	var err error
	s.handler, err = compressing(http.HandlerFunc(s.serve))
	return s, err
}

// SetTokens has other tokens be good from now on. What is under way for one that
// is gone ends when it is looked at next: a tail within its heartbeat.
func (s *Server) SetTokens(t *Tokens) { s.tokens.set(t) }

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Stop ends all tails, which end by themselves only when whoever listens goes.
// The other requests end; http.Server.Shutdown waits for them.
func (s *Server) Stop() { s.stop.Do(func() { close(s.stopping) }) }

// HTTP returns an http.Server with the limits of time and size that s needs. It has
// none for all of a request or an answer, as tails have no end: no body is read,
// and each write has a time of its own.
func (s *Server) HTTP() *http.Server {
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
	}
}

// fresh has the archive looked at again where the last look was too long ago.
// Where that cannot be done nothing may be answered: what was ordered to be
// erased since is not known. Such an answer holds as long as any other, so that a
// store that is away is not asked by everybody in turn.
func (s *Server) fresh(ctx context.Context) error {
	s.freshen.Lock()
	defer s.freshen.Unlock()
	now := s.o.Now()
	if !s.freshAt.IsZero() && now.Sub(s.freshAt) < s.o.Age {
		return s.freshErr
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// Others wait for the same look, so that it does not end with who asked.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Limits.Look)
	defer cancel()
	s.freshErr = s.o.Archive.Refresh(ctx)
	s.freshAt = s.o.Now()
	if s.freshErr == nil {
		s.freshAt = now
	}
	return s.freshErr
}
