//go:build it

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// A row is one number beside another one.
type row struct{ what, ours, beside, ratio, peer string }

// A table is what a run prints.
type table struct {
	rows []row
	foot []string // machine, versions and sizes
}

var head = row{"what", "ledgerlake", "beside", "ratio", "what stands beside it"}

func (t *table) add(what, ours, beside, ratio, peer string) {
	t.rows = append(t.rows, row{what, ours, beside, ratio, peer})
}

// perCPU adds rows per CPU second, of ours and of what stands beside it. What is
// "" goes on with the row before.
func (t *table) perCPU(what string, rows int64, ours, beside time.Duration, peer string) {
	if what == "" {
		what = "the same"
	} else {
		what += ": rows a CPU second"
	}
	a, b := float64(rows)/ours.Seconds(), float64(rows)/beside.Seconds()
	t.add(what, thousands(int64(a)), thousands(int64(b)), ratio(a, b), peer)
}

// ratio says how many times as much as b a is.
func ratio(a, b float64) string {
	if b == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", a/b)
}

func mib(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// thousands writes a count for people: 12,345.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// print prints the table for a terminal.
func (t *table) print(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range append([]row{head}, t.rows...) {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", r.what, r.ours, r.beside, r.ratio, r.peer)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(t.foot, "\n"))
	return err
}

// markdown returns the table as Markdown.
func (t *table) markdown() string {
	var b strings.Builder
	line := func(r row) {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.what, r.ours, r.beside, r.ratio, r.peer)
	}
	line(head)
	line(row{"---", "---:", "---:", "---:", "---"})
	for _, r := range t.rows {
		line(r)
	}
	b.WriteString("\n")
	for _, f := range t.foot {
		fmt.Fprintf(&b, "- %s\n", f)
	}
	return b.String()
}

// The table stands between these lines of a page.
const (
	begins = "<!-- bench-all -->\n"
	ends   = "<!-- end of bench-all -->\n"
)

// replace puts the table into a page in place of the one that is there.
func (t *table) replace(path string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(page), begins)
	_, after, found := strings.Cut(rest, ends)
	if !ok || !found {
		return errors.New(path + " has no lines " + strings.TrimSpace(begins) + " and " + strings.TrimSpace(ends))
	}
	return os.WriteFile(path, []byte(before+begins+"\n"+t.markdown()+"\n"+ends+after), 0o644)
}
