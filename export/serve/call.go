package serve

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/proof"
)

// A call is one request that is being answered.
type call struct {
	ctx    context.Context
	w      *writer
	r      *http.Request
	route  *route
	path   map[string]string
	query  map[string]string
	secret string
	token  *Token
	tenant string // of the path; the token is good for it
}

// A tokenBook has the tokens that are good now.
type tokenBook struct{ now atomic.Pointer[Tokens] }

func (b *tokenBook) set(t *Tokens) { b.now.Store(t) }

func (b *tokenBook) find(secret string, now time.Time) *Token {
	if t := b.now.Load(); t != nil {
		return t.find(secret, now)
	}
	return nil
}

var table = newMatcher(routes())

// serve answers a request, and tells of it.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	begin := s.o.Now()
	guard(w.Header())
	c := &call{ctx: r.Context(), w: newWriter(w, s.o.Limits.Write), r: r}
	c.w.rest() // the connection may still have the time of the request before
	err := s.answer(c)
	c.w.extend() // for what net/http writes at the end
	told := Request{
		Token: c.tokenName(), Tenant: c.tenant, Status: c.w.status, Bytes: c.w.bytes, Began: begin, Duration: s.o.Now().Sub(begin),
		TraceParent: r.Header.Get("Traceparent"), TraceState: r.Header.Get("Tracestate"),
	}
	if c.route != nil {
		told.Route = c.route.path
	}
	abort := false
	if err != nil {
		abort = s.fail(c, &told, err)
	}
	if s.o.Events.Answered != nil {
		s.o.Events.Answered(told)
	}
	if abort {
		panic(http.ErrAbortHandler) // the one way to show that an answer is not complete
	}
}

func (c *call) tokenName() string {
	if c.token == nil {
		return ""
	}
	return c.token.Name
}

// fail answers with the problem that an error is; where the answer has begun, it
// has to be cut off.
func (s *Server) fail(c *call, told *Request, err error) (abort bool) {
	p := problemOf(err)
	begun := c.w.status != 0
	if !begun {
		told.Status = p.Status
		p.write(c.w)
	}
	gone := c.ctx.Err() != nil || errors.Is(err, errGone)
	if p.Status >= 500 && !gone && s.o.Events.Failed != nil {
		s.o.Events.Failed(*told, err)
	}
	return begun
}

// errGone: who asked takes no more.
var errGone = errors.New("who asked is gone")

// problemOf returns what may be said of an error.
func problemOf(err error) *problem {
	var p *problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, export.ErrTampered), errors.Is(err, proof.ErrTampered), errors.Is(err, archive.ErrDamaged):
		return errStored
	case errors.Is(err, proof.ErrNoRow):
		return errNoRecord
	case errors.Is(err, proof.ErrNotAnchored):
		return errAnchor
	}
	return errStore.retry(5)
}

// guard sets the headers that every answer has.
func guard(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
}

// answer finds out what is asked and by whom, and has it answered. A token is
// looked at before anything that depends on the archive.
func (s *Server) answer(c *call) error {
	switch {
	case !readOnly(c.r.Method):
		return errMethod
	case c.r.ContentLength != 0:
		_ = c.w.control.SetReadDeadline(time.Now().Add(s.o.Limits.Write)) // net/http reads some of it
		return errBody
	}
	c.route, c.path = table.match(c.r.URL)
	if c.route == nil || !c.route.open {
		if err := s.identify(c); err != nil {
			return err
		}
	}
	if c.route == nil {
		return errNowhere
	}
	if c.route.open {
		return s.run(c)
	}
	u, leave, err := s.limiter.enter(c.token.Name)
	if err != nil {
		return err
	}
	defer leave()
	c.w.usage, c.w.ctx = u, c.ctx
	return s.ask(c)
}

// identify finds the token of a request, and whether it is good for the tenant
// of the path.
func (s *Server) identify(c *call) error {
	var ok bool
	if c.secret, ok = bearer(c.r.Header); !ok {
		return errToken
	}
	if c.token = s.tokens.find(c.secret, s.o.Now()); c.token == nil {
		return errToken
	}
	if tenant, ok := c.path["tenant"]; ok {
		if !c.token.May(tenant) {
			return errNowhere
		}
		c.tenant = tenant
	}
	return nil
}

// bearer returns the token of a request: RFC 6750, section 2.1 alone.
func bearer(h http.Header) (secret string, ok bool) {
	all := h.Values("Authorization")
	if len(all) != 1 {
		return "", false
	}
	scheme, secret, ok := strings.Cut(all[0], " ")
	return secret, ok && strings.EqualFold(scheme, "Bearer") && strings.HasPrefix(secret, TokenPrefix)
}

// ask has a route answered that reads the archive.
func (s *Server) ask(c *call) error {
	if err := s.fresh(c.ctx); err != nil {
		return err
	}
	if c.token.All && c.tenant != "" {
		// To others, a tenant that is not there is refused by their token.
		logs, err := s.o.Archive.Logs(c.ctx, c.tenant)
		if complete, err := s.partly(c, err); err != nil {
			return err
		} else if complete && len(logs) == 0 {
			return errNowhere
		}
	}
	return s.run(c)
}

// run has a route answer, once it is known what is asked.
func (s *Server) run(c *call) (err error) {
	if c.query, err = c.route.parameters(c.r.URL); err != nil {
		return err
	}
	return c.route.serve(s, c)
}

// A writer is an answer that is being written. It sends no more than a token's
// rate allows, and gives up on who does not take it.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	ctx     context.Context
	usage   *usage // nil: no token, no rate
	status  int    // 0: not begun
	bytes   int64
}

func newWriter(w http.ResponseWriter, timeout time.Duration) *writer {
	return &writer{ResponseWriter: w, control: http.NewResponseController(w), timeout: timeout}
}

// WriteHeader begins the answer.
func (w *writer) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write writes some of the answer. An error matches errGone.
func (w *writer) Write(b []byte) (n int, err error) {
	w.WriteHeader(http.StatusOK)
	for len(b) > 0 {
		piece := b[:min(len(b), pieceBytes)]
		if err := w.piece(piece); err != nil {
			return n, err
		}
		n += len(piece)
		b = b[len(piece):]
	}
	return n, nil
}

// extend gives what is written next its time. A connection has a clock of its own,
// whatever Options.Now says.
func (w *writer) extend() { _ = w.control.SetWriteDeadline(time.Now().Add(w.timeout)) }

func (w *writer) piece(b []byte) error {
	if w.usage != nil {
		if err := w.usage.wait(w.ctx, len(b)); err != nil {
			return errors.Join(errGone, err)
		}
	}
	w.bytes += int64(len(b))
	w.extend()
	if _, err := w.ResponseWriter.Write(b); err != nil {
		return errors.Join(errGone, err)
	}
	w.rest()
	return nil
}

// rest ends the time of a write: by HTTP/2 an answer would be cut off where the
// archive has nothing to write for so long.
func (w *writer) rest() { _ = w.control.SetWriteDeadline(time.Time{}) }

// flush sends what was written.
func (w *writer) flush() error {
	w.extend()
	if err := w.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errors.Join(errGone, err)
	}
	w.rest()
	return nil
}

var _ io.Writer = (*writer)(nil)

// body answers with a whole document.
func (c *call) body(media string, b []byte) error {
	c.w.Header().Set("Content-Type", media)
	_, err := c.w.Write(b)
	return err
}
