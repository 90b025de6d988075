//go:build it

package main

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A mood is how a receiver behaves, as its proxy has it.
type mood int

// The moods.
const (
	calm      mood = iota
	refuses        // no connections; 503
	stalls         // nothing passes, in neither direction; then all of it does
	throttles      // 128 KiB a second; 429 with Retry-After
	halves         // takes a part of what is sent, and breaks off, or refuses the rest
	loses          // takes all, and its answer is lost
)

// foul are all moods but the first.
var foul = []mood{refuses, stalls, throttles, halves, loses}

// A weather is the mood of a receiver, which changes every few seconds between
// calm and another one. All of them come, in a random order, before one comes again.
type weather struct {
	rng  *rand.Rand
	quit chan struct{}
	done sync.WaitGroup

	mu      sync.Mutex
	mood    mood
	changed chan struct{} // closed by the next change
	hits    map[mood]int  // connections and requests that were met
	spells  []spell       // that are over; whole once it has ended
}

// A spell is a time of a foul mood.
type spell struct{ from, to time.Time }

func newWeather(rng *rand.Rand) *weather {
	return &weather{rng: rng, quit: make(chan struct{}), changed: make(chan struct{}), hits: map[mood]int{}}
}

// begin has moods change, until end.
func (w *weather) begin() {
	w.done.Go(func() {
		var next []mood
		for {
			if !w.keeps(time.Second/2, 2*time.Second) {
				return
			}
			if len(next) == 0 {
				next = slices.Clone(foul)
				w.rng.Shuffle(len(next), func(i, j int) { next[i], next[j] = next[j], next[i] })
			}
			from := time.Now()
			w.set(next[0])
			next = next[1:]
			more := w.keeps(time.Second/2, 3*time.Second)
			w.set(calm)
			w.spells = append(w.spells, spell{from, time.Now()})
			if !more {
				return
			}
		}
	})
}

// keeps waits between least and most, and reports whether there is to be more.
func (w *weather) keeps(least, most time.Duration) bool {
	select {
	case <-time.After(least + time.Duration(w.rng.Int64N(int64(most-least)))):
		return true
	case <-w.quit:
		return false
	}
}

// end has it be calm from now on.
func (w *weather) end() {
	close(w.quit)
	w.done.Wait()
	w.set(calm)
}

func (w *weather) set(m mood) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mood = m
	close(w.changed)
	w.changed = make(chan struct{})
}

// now returns the mood, and what is closed when it changes.
func (w *weather) now() (mood, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mood, w.changed
}

// met notes that a connection or a request met a mood.
func (w *weather) met(m mood) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hits[m]++
}

// all returns how many connections and requests met each foul mood, and all.
func (w *weather) all() (each []int, sum int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range foul {
		each = append(each, w.hits[m])
		sum += w.hits[m]
	}
	return each, sum
}
