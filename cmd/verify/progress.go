package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/internal/reach"
)

// A progress tells how far a verification is: on a terminal by one line that
// changes, elsewhere, if it is asked for, by a line now and then.
type progress struct {
	w      io.Writer
	every  time.Duration // 0: never
	over   bool          // each line is written over the one before
	began  time.Time
	last   time.Time
	width  int // of the line before
	now    func() time.Time
	silent time.Duration // nothing is said of work that takes less
}

func newProgress(w io.Writer, asked bool) *progress {
	p := &progress{w: w, now: time.Now, silent: 2 * time.Second}
	switch {
	case reach.IsTerminal(w):
		p.every, p.over = 200*time.Millisecond, true
	case asked:
		p.every = 10 * time.Second
	}
	if asked {
		p.silent = 0
	}
	p.began = p.now()
	p.last = p.began
	return p
}

// update is told of every object.
func (p *progress) update(done, total, rows int64) {
	now := p.now()
	if p.every == 0 || now.Sub(p.last) < p.every || now.Sub(p.began) < p.silent {
		return
	}
	p.last = now
	line := fmt.Sprintf("verify: %d of %d objects, %d rows, %.0f rows/s", done, total, rows, float64(rows)/now.Sub(p.began).Seconds())
	if !p.over {
		fmt.Fprintln(p.w, line)
		return
	}
	fmt.Fprintf(p.w, "\r%-*s", p.width, line)
	p.width = len(line)
}

// end takes the changing line away.
func (p *progress) end() {
	if p.width > 0 {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", p.width))
	}
}
