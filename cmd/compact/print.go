package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/compaction"
	"github.com/ledgerlake/ledgerlake/config"
)

// A lineJSON names a line.
type lineJSON struct {
	Topic     string `json:"topic"`
	TopicID   string `json:"topicId"`
	Partition int32  `json:"partition"`
}

// An extentJSON is how much something is. Times are those of archived_at, or of
// days.
type extentJSON struct {
	Rows  int64      `json:"rows"`
	Files int64      `json:"files"`
	Bytes int64      `json:"bytes"`
	From  *time.Time `json:"from,omitempty"`
	To    *time.Time `json:"to,omitempty"`
}

func extentOf(x compaction.Extent) extentJSON {
	j := extentJSON{Rows: x.Rows, Files: x.Files, Bytes: x.Bytes}
	if !x.From.IsZero() {
		j.From, j.To = &x.From, &x.To
	}
	return j
}

func extentWords(x compaction.Extent) string {
	s := fmt.Sprintf("%s in %s of %s", counted(x.Rows, "row"), counted(x.Files, "object"), config.FormatBytes(x.Bytes))
	if !x.From.IsZero() {
		s += ", archived from " + x.From.Format(time.RFC3339) + " to " + x.To.Format(time.RFC3339)
	}
	return s
}

func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatInt(n, 10) + " " + what + "s"
}

// A foundJSON is what an order means in one line.
type foundJSON struct {
	lineJSON
	extentJSON
	Erased int64 `json:"erased"`
	Held   int64 `json:"held"`
}

// found prints what an order means now.
func (p *placing) found(all []compaction.Found) {
	var sum compaction.Extent
	for _, f := range all {
		p.told.Found = append(p.told.Found, foundJSON{lineJSON(f.Line), extentOf(f.Extent), f.Erased, f.Held})
		sum.Rows, sum.Files, sum.Bytes = sum.Rows+f.Rows, sum.Files+f.Files, sum.Bytes+f.Bytes
	}
	if p.order.JSON {
		return
	}
	for _, f := range all {
		text := fmt.Sprintf("%s: %s", lineName(f.Line), extentWords(f.Extent))
		if f.Erased > 0 {
			text += fmt.Sprintf("; of %s nothing is left to take", counted(f.Erased, "more row"))
		}
		if f.Held > 0 {
			text += fmt.Sprintf("; a legal hold keeps %d of them", f.Held)
		}
		_, _ = fmt.Fprintln(p.out, text)
	}
	_, _ = fmt.Fprintf(p.out, "meant now: %s\n", extentWords(sum))
	if p.order.User != "" && p.order.Tenant != audit.TenantUnattributed {
		_, _ = fmt.Fprintf(p.out, "Not looked at: rejected records whose tenant could not be known. They need an order of their own: --tenant %s\n", audit.TenantUnattributed)
	}
}

func lineName(l archive.Line) string {
	return fmt.Sprintf("%s/%d (%s)", printable(l.Topic), l.Partition, printable(l.TopicID))
}

// printable shows what somebody else wrote so that a terminal only shows it.
func printable(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` {
		return q
	}
	return s
}

// table prints rows in columns.
func table(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush() // has the error of any write before
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}
