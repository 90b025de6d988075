//go:build it

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// A result is what an act came to.
type result struct {
	counts
	verify  int           // exit code
	recover time.Duration // from the end of the act until all that was in Kafka then is committed
}

// results are those of all acts, by name.
type results struct {
	names []string
	of    map[string][]result
}

func newResults(names []string) *results {
	return &results{names: names, of: map[string][]result{}}
}

func (r *results) add(name string, one result) {
	if !slices.Contains(r.names, name) {
		r.names = append(r.names, name)
	}
	r.of[name] = append(r.of[name], one)
}

// errWrong: rows are lost, repeated or invented, or verify is not content.
var errWrong = errors.New("the archive is not what it must be")

// verdict returns an error matching [errWrong] unless everything was right.
func (r *results) verdict() error {
	for name, all := range r.of {
		for _, one := range all {
			if !one.right() || one.verify != 0 {
				return fmt.Errorf("%w: after %s", errWrong, name)
			}
		}
	}
	return nil
}

// write prints the table.
func (r *results) write(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")+"\t") }
	fmt.Fprintln(w)
	line("act", "times", "records", "rows", "rejects", "duplicates", "repeats", "lost", "other", "verify", "median", "max")
	var all []result
	for _, name := range r.names {
		line(cells(name, r.of[name])...)
		all = append(all, r.of[name]...)
	}
	line(cells("all", all)...)
	t.Flush()
	fmt.Fprint(w, footnote)
}

const footnote = `
records: offsets that were archived until verify was content after the act; each is a row, a reject or a duplicate.
repeats: offsets or coordinates that are there twice; lost: records that Kafka delivers and the archive has not;
other: anything else that is wrong; verify: its worst exit code. median, max: the time to recover, from the end of
the act until all that was in Kafka by then is committed.
`

func cells(name string, all []result) []string {
	if len(all) == 0 {
		return []string{name, "0", "", "", "", "", "", "", "", "", "", ""}
	}
	var sum counts
	verify := 0
	var took []time.Duration
	for _, one := range all {
		sum.add(one.counts)
		verify = max(verify, one.verify)
		took = append(took, one.recover)
	}
	slices.Sort(took)
	row := []string{name, strconv.Itoa(len(all))}
	for _, n := range []int64{sum.records(), sum.rows, sum.rejects, sum.duplicates, sum.repeats, sum.lost, sum.other} {
		row = append(row, thousands(n))
	}
	return append(row, strconv.Itoa(verify), seconds(took[len(took)/2]), seconds(took[len(took)-1]))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// thousands returns a number with commas.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// A printer writes lines that begin with the time since the start.
type printer struct {
	begin time.Time

	mu sync.Mutex
	w  io.Writer
}

func (p *printer) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "%6.1f s  %s\n", time.Since(p.begin).Seconds(), fmt.Sprintf(format, args...))
}
