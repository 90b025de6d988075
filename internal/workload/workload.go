// Package workload generates audit records as a fleet of agents would send
// them: turns of many tenants, interleaved, each a plan, a loop of tools, an
// answer and a close, with the fallbacks, cascades, interrupts, subagents,
// interaction logs and decisions that happen on the way.
//
//	turn = [decision] anchor-plan { tool-loop | rung | cascade | interrupt | subagent } synthesize post-turn
//	       beside it, in one turn of five: llm-request, llm-response, tool-call, world-mutation, policy-decision entries
//
// Records are of four classes, and a caller who counts them by class knows
// what an archive of them must hold:
//
//	class      what it is                                        becomes
//	Good       a record with coordinates of its own              a row
//	Repeat     a good record once more, perhaps under a new id   a duplicate, no row
//	Broken     a record with exactly one fault                   a rejected row, of reason Record.Reason
//	Conflict   coordinates of a good record, other content       a rejected row, reason conflict
//
// The package is pure: equal fields of a Generator give equal records on every
// machine, byte for byte. It imports the standard library alone, so that tests
// and benchmarks of every room may use it.
//
// # What it does not do
//
// It sends nothing, and it does not know partitions: whoever sends the records
// puts them there by key. Broken records show one fault of each reason that a
// producer can cause at a usual size; they are no fuzzer.
package workload

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A Class says what a record is to an archive.
type Class int

// The classes of records.
const (
	Good     Class = iota // becomes a row
	Repeat                // repeats a good record; no row
	Broken                // cannot be archived as it is; becomes a rejected row
	Conflict              // contradicts a good record; becomes a rejected row
)

// String returns the class's name in lower case.
func (c Class) String() string { return [...]string{"good", "repeat", "broken", "conflict"}[c] }

// A Record is one Kafka record to be sent, and what is known about it.
//
// Key, Value and Headers belong to the caller but must not be changed: a later
// repeat may share them.
type Record struct {
	Tenant  string // whose turn it is, even where a broken record says otherwise
	Key     []byte // the tenant's id
	Value   []byte // JSON; nil is a tombstone
	Headers []Header
	Time    time.Time // when the producer made it
	Class   Class
	Kind    string // of the record before it was broken, as rows spell it
	Reason  string // of a broken or conflicting record: the class of its reject
}

// A Header is one header of a record.
type Header struct {
	Name  string
	Value []byte
}

// A Generator makes records without end. Its fields are settings, to be left
// alone after the first call of Next. It is not safe for concurrent use.
type Generator struct {
	Broken    float64       // share of records with a fault, from 0 to 1; default 0
	Repeats   float64       // share of records that repeat one of the last 512 good ones; default 0
	Conflicts float64       // share of records that contradict one of them; default 0
	Start     time.Time     // of the first record; default [Epoch]
	Step      time.Duration // mean time between two records; default 1 ms

	seed    uint64
	rng     *rand.Rand
	idRNG   *rand.Rand // of its own: how many ids share a millisecond must not move anything else
	tenants []*tenant
	now     time.Time
	turns   int
	ulids   ulids
	recent  [512]Record // good ones, a ring
	good    int
	scratch []byte
}

// Epoch is the time of the first record where Start is not set.
var Epoch = time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)

// New returns a generator of good records of the given number of tenants, at
// least 1. Another seed gives other sessions, turns and record ids.
func New(seed uint64, tenants int) *Generator {
	g := &Generator{
		Start: Epoch, Step: time.Millisecond,
		seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), idRNG: rand.New(rand.NewPCG(seed, 2)),
	}
	for i := range max(tenants, 1) {
		g.tenants = append(g.tenants, &tenant{id: TenantID(i)})
	}
	return g
}

// TenantID returns the id of tenant i, from 0: a few readable names, then
// numbered ones.
func TenantID(i int) string {
	names := [...]string{"acme", "globex", "initech", "umbrella", "hooli", "stark-industries", "wayne.enterprises", "tyrell corp"}
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("tenant-%04d", i)
}

// Next returns the next record.
func (g *Generator) Next() Record {
	g.tick()
	roll := g.rng.Float64()
	if g.good > 0 && roll < g.Repeats {
		return g.repeat()
	}
	roll -= g.Repeats
	if g.good > 0 && roll >= 0 && roll < g.Conflicts {
		return g.conflict()
	}
	roll -= g.Conflicts
	r := g.fresh()
	if roll >= 0 && roll < g.Broken {
		return g.damage(r)
	}
	g.recent[g.good%len(g.recent)] = r
	g.good++
	return r
}

// tick moves the clock on by a random time of mean Step.
func (g *Generator) tick() {
	if g.now.IsZero() {
		g.now = g.Start
		return
	}
	g.now = g.now.Add(time.Duration(2 * g.rng.Float64() * float64(g.Step)))
}

// fresh returns the next record of some tenant's turn. The first tenants are
// the busy ones, as it is in life.
func (g *Generator) fresh() Record {
	n := len(g.tenants)
	t := g.tenants[min(g.rng.IntN(n), g.rng.IntN(n))]
	if len(t.steps) == 0 {
		g.beginTurn(t)
	}
	s := t.steps[0]
	t.steps = t.steps[1:]
	return g.record(t, s)
}

// older returns one of the last good records.
func (g *Generator) older() Record {
	return g.recent[g.rng.IntN(min(g.good, len(g.recent)))]
}

// chance reports true with probability p.
func (g *Generator) chance(p float64) bool { return g.rng.Float64() < p }

// pick returns one of the values.
func pick[T any](g *Generator, of []T) T { return of[g.rng.IntN(len(of))] }

// between returns a number from lo to hi, both included.
func (g *Generator) between(lo, hi int) int { return lo + g.rng.IntN(hi-lo+1) }
