package main

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

// aliveWithin is how long a process that lives takes at most to say how it
// stands.
const aliveWithin = 5 * time.Second

// health answers whoever asks how this process is.
//
// Alive is one that answers, and whose locks are not held for ever. A store or
// brokers that are away, credentials that are refused and a partition that has
// stopped are no reason to kill it: a new process would be no better off, and
// the other partitions would pay for it.
//
// Ready is one that is a member of its group and keeps up: of no partition
// something that was read has waited longer than readyAge to become durable.
type health struct {
	readyAge time.Duration
	stands   atomic.Pointer[func() pipeline.Status] // nil before the bucket has answered
	stopping atomic.Bool
}

// begin has the answers be about an ingest.
func (h *health) begin(status func() pipeline.Status) { h.stands.Store(&status) }

// A readiness is what /readyz says.
type readiness struct {
	Ready      bool       `json:"ready"`
	Why        string     `json:"why,omitempty"` // not, as a whole
	Partitions int        `json:"partitions"`
	NotReady   []notReady `json:"notReady,omitempty"`
}

// A notReady is a partition for which the process is not ready.
type notReady struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Why       string `json:"why"`
}

// status returns how the ingest stands, and that it does not yet.
func (h *health) status() pipeline.Status {
	if status := h.stands.Load(); status != nil {
		return (*status)()
	}
	return pipeline.Status{}
}

// ready says whether the process is ready.
func (h *health) ready(now time.Time) readiness {
	st := h.status()
	r := readiness{Partitions: len(st.Partitions)}
	switch {
	case h.stopping.Load():
		r.Why = "stopping"
	case h.stands.Load() == nil:
		r.Why = "the bucket has not answered yet"
	case !st.Joined:
		r.Why = "no partitions assigned yet"
	}
	for i := range st.Partitions {
		p := &st.Partitions[i]
		if why := h.late(p, now); why != "" {
			r.NotReady = append(r.NotReady, notReady{p.Line.Topic, p.Line.Partition, why})
		}
	}
	r.Ready = r.Why == "" && r.NotReady == nil
	return r
}

// late says why a partition is not as it should be, "" if it is: idle, or with a
// commit that is young enough, or with something to do (or to start from) since
// a moment ago.
func (h *health) late(p *pipeline.PartitionStatus, now time.Time) string {
	waits := now.Sub(p.Pending)
	switch {
	case p.Stopped != nil:
		return "stopped: " + p.Stopped.Error()
	case p.Pending.IsZero(), waits <= h.readyAge:
		return ""
	case p.Starting:
		return "not started after " + waits.Round(time.Second).String() + ": the bucket or Kafka has not said where it goes on"
	case p.LastCommit.IsZero():
		return "nothing durable yet, and something has been waiting for " + waits.Round(time.Second).String()
	case now.Sub(p.LastCommit) <= h.readyAge:
		return ""
	}
	return "nothing durable for " + now.Sub(p.LastCommit).Round(time.Second).String() + ", and something is waiting"
}

// ServeReady answers /readyz: 200 or 503, and why.
func (h *health) ServeReady(w http.ResponseWriter, _ *http.Request) {
	r := h.ready(time.Now())
	daemon.Answer(w, r.Ready, r)
}

// ServeAlive answers /healthz.
func (h *health) ServeAlive(w http.ResponseWriter, _ *http.Request) {
	answered := make(chan struct{})
	go func() { h.status(); close(answered) }()
	alive := true
	select {
	case <-answered:
	case <-time.After(aliveWithin):
		alive = false
	}
	daemon.Answer(w, alive, struct {
		Alive bool `json:"alive"`
	}{alive})
}
