package faults3

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"
)

// Always is the Times of a rule that fires until it is cleared.
const Always = -1

// A Rule makes some requests meet a fault. Among several the first one that
// matches and still fires wins.
type Rule struct {
	Op        Op     // "" is any
	Key       string // what the key contains
	AccessKey string // who signed; "" is anybody
	Skip      int    // matching requests that pass before it fires
	Every     int    // of those after them, only each n-th meets it; 0 is each
	Times     int    // how often it fires; 0 is once, [Always] for ever
	Fault     Fault

	seen, fired int
}

// A Fault is what becomes of a request.
type Fault struct {
	Name   string        // for the log of requests
	Delay  time.Duration // before anything happens
	Status int           // the answer instead of the store's, with Code; nothing takes effect
	Code   string
	Drop   bool   // cut the connection instead of answering
	Apply  bool   // with Drop: the request takes effect first
	Keys   string // of DeleteMany: those that contain it fail, with Code, inside a success; the rest goes
	Torn   bool   // the store behind gets the first half of the request, and no more of it
	body   func([]byte) (sent []byte, announced int)
}

// SlowDown is a store's plea to be spared.
func SlowDown() Fault { return Status(http.StatusServiceUnavailable, "SlowDown") }

// Denied is a store that does not let these credentials do it.
func Denied() Fault { return Status(http.StatusForbidden, "AccessDenied") }

// Expired is what AWS answers to credentials whose time is over. It is no 403.
func Expired() Fault { return Status(http.StatusBadRequest, "ExpiredToken") }

// Full is a store without room, as some answer: with half of the object on its
// disk.
func Full() Fault {
	f := Status(http.StatusInsufficientStorage, "InsufficientStorage")
	f.Torn = true
	return f
}

// Status answers with an S3 error; nothing takes effect.
func Status(status int, code string) Fault { return Fault{Name: code, Status: status, Code: code} }

// KeysFail is an answer of success to DeleteMany in which the keys that contain
// part fail with code, and are still there.
func KeysFail(part, code string) Fault { return Fault{Name: "keys fail", Keys: part, Code: code} }

// Lost cuts the connection before anything takes effect.
func Lost() Fault { return Fault{Name: "lost", Drop: true} }

// Torn cuts the connection in the middle of the request.
func Torn() Fault { return Fault{Name: "torn", Drop: true, Torn: true} }

// LostReply lets the request take effect, and cuts the connection then.
func LostReply() Fault { return Fault{Name: "lost reply", Drop: true, Apply: true} }

// Slow answers well, after d.
func Slow(d time.Duration) Fault { return Fault{Name: "slow", Delay: d} }

// Flip turns the lowest bit of byte n of the answer's body, as rotting memory
// does. A body that is shorter passes.
func Flip(n int) Fault {
	return Fault{Name: "flip", body: func(b []byte) ([]byte, int) {
		if n < len(b) {
			b[n] ^= 1
		}
		return b, len(b)
	}}
}

// Short sends the first n bytes of the body as if they were all.
func Short(n int) Fault {
	return Fault{Name: "short", body: func(b []byte) ([]byte, int) {
		b = b[:min(n, len(b))]
		return b, len(b)
	}}
}

// Truncate announces the whole body, sends its first n bytes and cuts the
// connection.
func Truncate(n int) Fault {
	return Fault{Name: "truncate", body: func(b []byte) ([]byte, int) { return b[:min(n, len(b))], len(b) }}
}

// Add puts a rule behind those that are there.
func (s *Server) Add(r Rule) {
	if r.Times == 0 {
		r.Times = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, &r)
}

// Clear ends all rules: the store is well again.
func (s *Server) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = nil
}

// Fired returns how many requests have met a fault.
func (s *Server) Fired() int {
	n := 0
	for _, r := range s.Requests() {
		if r.Fault != "" {
			n++
		}
	}
	return n
}

// meet returns the fault that a request meets, or the zero Fault.
func (s *Server) meet(q *request) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rules {
		if !r.matches(q) {
			continue
		}
		r.seen++
		if r.seen <= r.Skip || r.Every > 0 && (r.seen-r.Skip)%r.Every != 0 || r.Times != Always && r.fired >= r.Times {
			continue
		}
		r.fired++
		return r.Fault
	}
	return Fault{}
}

func (r *Rule) matches(q *request) bool {
	return (r.Op == "" || r.Op == q.op) && strings.Contains(q.key, r.Key) && (r.AccessKey == "" || r.AccessKey == accessKey(q.Request))
}

// refuses reports whether the request must not take effect.
func (f Fault) refuses() bool { return f.Status != 0 || f.Drop && !f.Apply }

// reply sends what is left of an answer and returns its status, 0 where the
// connection must be cut.
func reply(w http.ResponseWriter, rec *httptest.ResponseRecorder, f Fault) int {
	if f.Drop {
		return 0
	}
	if f.Status != 0 {
		refuse(w, f.Status, f.Code)
		return f.Status
	}
	sent := rec.Body.Bytes()
	announced := len(sent)
	if f.body != nil {
		sent, announced = f.body(sent)
	}
	for name, values := range rec.Header() {
		w.Header()[name] = values
	}
	if rec.Header().Get("Content-Length") == "" || f.body != nil {
		w.Header().Set("Content-Length", strconv.Itoa(announced))
	}
	w.WriteHeader(rec.Code)
	w.Write(sent)
	if announced > len(sent) {
		w.(http.Flusher).Flush()
		return 0
	}
	return rec.Code
}

// sleep waits d, or until the client has gone.
func sleep(r *http.Request, d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	}
}
