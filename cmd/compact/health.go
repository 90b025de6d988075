package main

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/compaction"
	"github.com/ledgerlake/ledgerlake/daemon"
)

// health answers whoever asks how this process is.
//
// Alive is one that answers. Ready is one whose lines were looked at within the
// last cycles, and none of which is halted: a store or brokers that are away, and
// a halted line, are no reason to kill it, and one to look.
type health struct {
	every time.Duration // between cycles

	mu       sync.Mutex
	s        standing
	lag      map[archive.Line]int64
	failed   map[archive.Line]error
	last     time.Time // when a cycle ended well
	err      error     // why the last one did not
	stopping bool
}

// A standing is how a process stands.
type standing struct {
	lines   int
	leads   bool
	halted  int
	lag     int64
	oldest  time.Duration
	overdue int64
	open    int64
}

func (h *health) standing() standing {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.s
}

func (h *health) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopping = true
}

// share notes which lines this process has, and whether it leads.
func (h *health) share(lines []archive.Line, leads bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.s.lines, h.s.leads = len(lines), leads; !leads {
		h.s.oldest, h.s.overdue, h.s.open = 0, 0, 0
	}
	maps.DeleteFunc(h.lag, func(l archive.Line, _ int64) bool { return !slices.Contains(lines, l) })
	maps.DeleteFunc(h.failed, func(l archive.Line, _ error) bool { return !leads && !slices.Contains(lines, l) })
}

// cycled notes how a cycle ended.
func (h *health) cycled(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err = err; err == nil {
		h.last = time.Now()
	}
}

// took notes what a cycle found.
func (h *health) took(c *compaction.Cycle) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lag == nil {
		h.lag, h.failed = map[archive.Line]int64{}, map[archive.Line]error{}
	}
	for _, r := range c.Results {
		watermark := int64(0)
		if r.Catalog != nil {
			watermark = r.Catalog.Watermark
		}
		h.lag[r.Line] = max(r.Anchored+1-watermark, 0)
		delete(h.failed, r.Line)
	}
	for l, err := range c.Failed {
		h.failed[l] = err
	}
	h.s.halted, h.s.lag = 0, 0
	for _, err := range h.failed {
		if halted(err) {
			h.s.halted++
		}
	}
	for _, n := range h.lag {
		h.s.lag += n
	}
	if c.Standing == nil {
		return
	}
	h.s.oldest, h.s.overdue, h.s.open = compaction.Oldest(c.Standing, c.Now), 0, 0
	for i := range c.Standing {
		if c.Standing[i].Overdue {
			h.s.overdue++
		}
		if c.Standing[i].Open() {
			h.s.open++
		}
	}
}

// A readiness is what /readyz says.
type readiness struct {
	Ready bool   `json:"ready"`
	Why   string `json:"why,omitempty"`
	Lines int    `json:"lines"`
	Leads bool   `json:"leads"`
}

// lateCycles is how many cycles may be missed.
const lateCycles = 10

// ready says whether the process is ready.
func (h *health) ready(now time.Time) readiness {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := readiness{Lines: h.s.lines, Leads: h.s.leads}
	switch {
	case h.stopping:
		r.Why = "stopping"
	case h.last.IsZero() && h.err == nil:
		r.Why = "no cycle has ended yet"
	case h.err != nil:
		r.Why = h.err.Error()
	case now.Sub(h.last) > lateCycles*h.every+10*time.Minute:
		r.Why = "the last cycle ended " + now.Sub(h.last).Round(time.Second).String() + " ago"
	case h.s.halted > 0:
		r.Why = counted(int64(h.s.halted), "line") + " halted: the log says why"
	}
	r.Ready = r.Why == ""
	return r
}

// ServeReady answers /readyz: 200 or 503, and why.
func (h *health) ServeReady(w http.ResponseWriter, _ *http.Request) {
	r := h.ready(time.Now())
	daemon.Answer(w, r.Ready, r)
}

// ServeAlive answers /healthz.
func (h *health) ServeAlive(w http.ResponseWriter, _ *http.Request) {
	daemon.Answer(w, true, struct {
		Alive bool `json:"alive"`
	}{true})
}
