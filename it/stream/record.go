//go:build it

package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// A native is what our JSON says of an event, as far as the trial asks.
type native struct {
	Event     string          `json:"event"`
	Tenant    string          `json:"tenant"`
	TopicID   string          `json:"topicId"`
	Partition int32           `json:"partition"`
	Seq       int64           `json:"seq"`
	PrevHash  string          `json:"prevHash,omitempty"`
	RowHash   string          `json:"rowHash,omitempty"`
	Kind      string          `json:"kind,omitempty"`
	Head      json.RawMessage `json:"head,omitempty"`
}

// A logName names a log.
type logName struct {
	tenant, topicID string
	partition       int32
}

type hash [32]byte

// truth is the hash of each row of each log, by seq.
type truth map[logName][]hash

// A record is what arrived of all logs.
type record struct {
	mu      sync.Mutex
	logs    map[logName]*logRecord
	sorted  bool // arrivals have no order
	rows    int64
	repeats int64
	heads   int64
	rewinds []rewind
	faults  []string
}

// A logRecord is what arrived of a log.
type logRecord struct {
	hashes  []hash // by seq; zero is none
	at      []time.Time
	next    int64 // no row in front of it is missing
	last    int64 // seq that came last
	rewinds int
}

// A rewind is where rows begin to come again.
type rewind struct {
	log       logName
	seq       int64
	first, at time.Time // when the row came; zero where nobody knows
}

func newRecord() *record { return &record{logs: map[logName]*logRecord{}} }

// fault notes what is wrong, the first times.
func (r *record) fault(format string, args ...any) {
	if len(r.faults) < 20 {
		r.faults = append(r.faults, fmt.Sprintf(format, args...))
	}
}

// seeAll takes note of events that arrived, in their order.
func (r *record) seeAll(text func([]byte) []byte, events [][]byte, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range events {
		r.see(text(one), at)
	}
}

// see takes note of an event that arrived, and returns it.
func (r *record) see(text []byte, at time.Time) *native {
	n := &native{}
	if err := json.Unmarshal(text, n); err != nil {
		r.fault("what is no event of ours: %v: %.200q", err, text)
		return n
	}
	switch n.Event {
	case "head":
		r.heads++
	case "record", "pointer":
		r.row(n, at)
	default:
		r.fault("an event %q", n.Event)
	}
	return n
}

func (r *record) row(n *native, at time.Time) {
	var sum hash
	if k, err := hex.Decode(sum[:], []byte(n.RowHash)); err != nil || k != len(sum) {
		r.fault("%s/%d has row_hash %q", n.Tenant, n.Seq, n.RowHash)
		return
	}
	name := logName{n.Tenant, n.TopicID, n.Partition}
	l := r.logs[name]
	if l == nil {
		l = &logRecord{last: -1}
		r.logs[name] = l
	}
	for int64(len(l.hashes)) <= n.Seq {
		l.hashes, l.at = append(l.hashes, hash{}), append(l.at, time.Time{})
	}
	r.rows++
	switch old := l.hashes[n.Seq]; {
	case old == hash{}:
		if n.Seq != l.next && !r.sorted {
			r.fault("%v: seq %d came when it was the turn of %d", name, n.Seq, l.next)
		}
		l.hashes[n.Seq], l.at[n.Seq] = sum, at
		for l.next < int64(len(l.hashes)) && l.hashes[l.next] != (hash{}) {
			l.next++
		}
	case old != sum:
		r.fault("%v: seq %d came with row_hash %x, and with %x", name, n.Seq, old, sum)
	default:
		r.repeats++
		if n.Seq != l.last+1 {
			l.rewinds++
			r.rewinds = append(r.rewinds, rewind{name, n.Seq, l.at[n.Seq], at})
		}
		l.at[n.Seq] = at
	}
	l.last = n.Seq
}

// hold requires that what arrived is what must be there: all of it, and nothing
// else.
func (r *record) hold(want truth) {
	for name, hashes := range want {
		l := r.logs[name]
		if l == nil {
			r.fault("%v: nothing came of %d rows", name, len(hashes))
			continue
		}
		missing, wrong := 0, 0
		for seq, sum := range hashes {
			switch {
			case seq >= len(l.hashes) || l.hashes[seq] == hash{}:
				missing++
			case l.hashes[seq] != sum:
				wrong++
			}
		}
		if missing+wrong > 0 || len(l.hashes) > len(hashes) {
			r.fault("%v: of %d rows %d are missing, %d are others, and %d are too many", name, len(hashes), missing, wrong, max(0, len(l.hashes)-len(hashes)))
		}
	}
	for name := range r.logs {
		if want[name] == nil {
			r.fault("%v: there is no such log", name)
		}
	}
}
