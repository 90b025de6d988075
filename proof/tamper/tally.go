package main

import (
	"fmt"
	"io"
	"sync"
	"text/tabwriter"
)

// A tally counts tamperings by kind. It may be used by several goroutines.
type tally struct {
	mu            sync.Mutex
	kinds         []string // in the order of their first one
	by            map[string]*count
	tried, missed int
	first         []string // of those that were missed
}

type count struct{ tried, detected int }

// mostMissed is how many missed ones are named.
const mostMissed = 50

func (t *tally) count(kind string, detected bool, missed func() string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[string]*count{}
	}
	c := t.by[kind]
	if c == nil {
		c = &count{}
		t.by[kind] = c
		t.kinds = append(t.kinds, kind)
	}
	c.tried++
	t.tried++
	if detected {
		c.detected++
		return
	}
	if t.missed++; len(t.first) < mostMissed {
		t.first = append(t.first, kind+": "+missed())
	}
}

// print prints a line for each kind, and what was missed.
func (t *tally) print(w io.Writer) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tab, "tried\tdetected\t  \n")
	for _, kind := range t.kinds {
		c := t.by[kind]
		fmt.Fprintf(tab, "%d\t%d\t  %s\n", c.tried, c.detected, kind)
	}
	fmt.Fprintf(tab, "%d\t%d\t  %s\n", t.tried, t.tried-t.missed, "all")
	_ = tab.Flush()
	for _, text := range t.first {
		fmt.Fprintf(w, "MISSED %s\n", text)
	}
	if t.missed > 0 {
		fmt.Fprintf(w, "FAILED: %d of %d were missed\n", t.missed, t.tried)
		return
	}
	fmt.Fprintf(w, "all %d detected; tampering with nothing was counted as missed, as it must be\n", t.tried)
}
