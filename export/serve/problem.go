package serve

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// A problem is an answer that is an error: RFC 9457. It says nothing that
// depends on what somebody else may see, not even the path that was asked for.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`

	after int // seconds, for Retry-After; 0 is none
}

// ProblemBase begins the type of every problem; it resolves to nothing, and
// docs/serve.md has the list.
const ProblemBase = "tag:ledgerlake,2026:problem:"

func newProblem(status int, name, title string) *problem {
	return &problem{Type: ProblemBase + name, Title: title, Status: status}
}

// The problems there are. A detail is added to copies alone.
var (
	errToken    = newProblem(http.StatusUnauthorized, "token", "a token is wanted, and none that is good was given")
	errNowhere  = newProblem(http.StatusNotFound, "nowhere", "there is no such place, or it is not yours to see")
	errNoRecord = newProblem(http.StatusNotFound, "no-record", "no such record")
	errMethod   = newProblem(http.StatusMethodNotAllowed, "method", "everything here is only read: GET or HEAD")
	errBody     = newProblem(http.StatusRequestEntityTooLarge, "body", "no body is taken")
	errRequest  = newProblem(http.StatusBadRequest, "request", "the request is not understood")
	errBusy     = newProblem(http.StatusTooManyRequests, "busy", "too many requests at once with this token")
	errFull     = newProblem(http.StatusServiceUnavailable, "full", "the server has too much to do")
	errStored   = newProblem(http.StatusInternalServerError, "stored", "what is stored does not fit together, and is not shown")
	errStore    = newProblem(http.StatusBadGateway, "store", "the archive cannot be read at the moment")
	errAnchor   = newProblem(http.StatusConflict, "not-anchored", "the record is there, and no anchor covers it yet")
	errOthers   = newProblem(http.StatusForbidden, "names-others", "the proof would name other tenants, whose anchor it needs")
	errPosition = newProblem(http.StatusConflict, "position", "the position is not one of this archive")
)

// with returns the problem with a detail.
func (p *problem) with(detail string) *problem {
	c := *p
	c.Detail = detail
	return &c
}

// retry returns the problem with a time after which to ask again.
func (p *problem) retry(seconds int) *problem {
	c := *p
	c.after = seconds
	return &c
}

// Error makes a problem an error.
func (p *problem) Error() string {
	if p.Detail != "" {
		return p.Title + ": " + p.Detail
	}
	return p.Title
}

// write answers with the problem.
func (p *problem) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="ledgerlake"`)
	case http.StatusMethodNotAllowed:
		h.Set("Allow", "GET, HEAD")
	case http.StatusRequestEntityTooLarge:
		h.Set("Connection", "close") // what is sent is not read
	}
	if p.after > 0 {
		h.Set("Retry-After", strconv.Itoa(p.after))
	}
	body := p.json()
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // who asked is gone
}

// line returns the problem on one line.
func (p *problem) line() []byte {
	body, _ := json.Marshal(p) // strings and a number
	return body
}

func (p *problem) json() []byte { return append(p.line(), '\n') }
