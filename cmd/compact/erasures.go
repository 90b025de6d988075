package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/compaction"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/control"
)

// An erasureJSON is one order, as --json prints it.
type erasureJSON struct {
	Tenant     string          `json:"tenant"`
	ID         string          `json:"id"`
	State      string          `json:"state"`
	Why        string          `json:"why,omitempty"`
	Archived   time.Time       `json:"archived"`
	Due        time.Time       `json:"due"`    // from then on it is carried out
	Within     time.Time       `json:"within"` // until then it is to be receipted
	Overdue    bool            `json:"overdue"`
	Receipts   int             `json:"receipts"`
	Receipted  *time.Time      `json:"receipted,omitempty"` // the newest
	Expiry     bool            `json:"expiry"`
	Target     string          `json:"target,omitempty"`
	RequestRef string          `json:"requestRef,omitempty"`
	Lines      []orderLineJSON `json:"lines"`
}

type orderLineJSON struct {
	lineJSON
	State string `json:"state"`
}

// A listing is what erasures is asked for.
type listing struct {
	tenant string
	open   bool
	json   bool
}

func (l *listing) section() config.Section {
	return config.Listing(&l.tenant, &l.open, &l.json)
}

// erasures is the command that prints how orders stand.
func erasures(ctx context.Context, in invocation) error {
	var c config.Compact
	var l listing
	t, done, err := look(ctx, in, &c, l.section(), erasuresHelp)
	if done || err != nil {
		return err
	}
	all, err := t.looker().Standing(ctx)
	if err != nil {
		return err
	}
	var shown []erasureJSON
	overdue := 0
	for i := range all {
		if s := &all[i]; (l.tenant == "" || s.Order.Tenant == l.tenant) && (!l.open || s.Open()) {
			shown = append(shown, erasureOf(s))
			if s.Overdue {
				overdue++
			}
		}
	}
	if err := l.print(in, shown); err != nil {
		return err
	}
	if overdue > 0 {
		return fmt.Errorf("%w: %s not receipted within %s", errOverdue, counted(int64(overdue), "order"), config.FormatPeriod(c.ErasureWithin))
	}
	return nil
}

// look opens the archive for a command that only reads it.
func look(ctx context.Context, in invocation, c *config.Compact, own config.Section, help string) (t *tool, done bool, err error) {
	origins, done, err := load(in, c, own, looking, help)
	if done || err != nil {
		return nil, done, err
	}
	if t, err = newTool(ctx, in, c, origins, nil); err != nil {
		return nil, false, err
	}
	return t, false, t.open(ctx)
}

func erasureOf(s *compaction.Standing) erasureJSON {
	o := s.Order
	e := erasureJSON{
		Tenant: o.Tenant, ID: o.ID, State: s.State, Why: s.Why, Archived: time.UnixMicro(o.ArchivedAt).UTC(), Due: s.DueAt, Within: s.Promise,
		Overdue: s.Overdue, Expiry: s.Expiry, Lines: []orderLineJSON{},
	}
	for _, r := range o.Rounds {
		if r.Anchored {
			e.Receipts++
		}
	}
	if o.Receipted > 0 {
		at := time.UnixMicro(o.Receipted).UTC()
		e.Receipted = &at
	}
	if r := o.Redaction; r != nil {
		if e.Target = targetWords(&r.Target); r.RequestRef != nil {
			e.RequestRef = *r.RequestRef
		}
	}
	for _, l := range s.Lines {
		state := l.State
		if state == "" {
			state = compaction.StateOrdered
		}
		e.Lines = append(e.Lines, orderLineJSON{lineJSON(l.Line), state})
	}
	return e
}

// targetWords says by what an order goes. It may name a person: it is printed,
// never logged.
func targetWords(t *control.Target) string {
	var words []string
	add := func(name string, v *string) {
		if v != nil {
			words = append(words, name+" "+printable(*v))
		}
	}
	add("record", t.Record)
	add("session", t.Session)
	add("turn", t.Turn)
	add("stage", t.Stage)
	add("user", t.User)
	if t.Within != nil {
		words = append(words, fmt.Sprint("seq within turn ", *t.Within))
	}
	if t.Log != nil {
		words = append(words, fmt.Sprintf("%s/%d", printable(t.Log.Topic), t.Log.Partition))
	}
	if t.Offset != nil {
		words = append(words, fmt.Sprint("offset ", *t.Offset))
	}
	if t.Before != nil {
		words = append(words, fmt.Sprint("below seq ", *t.Before))
	}
	return strings.Join(words, ", ")
}

// print prints the orders, a line each, and those of their lines that are behind.
func (l *listing) print(in invocation, all []erasureJSON) error {
	if l.json {
		if all == nil {
			all = []erasureJSON{}
		}
		return writeJSON(in.stdout, map[string]any{"erasures": all})
	}
	rows := [][]string{{"tenant", "id", "state", "archived", "due", "to be receipted by", "receipts", "request", "target"}}
	for i := range all {
		e := &all[i]
		state := e.State
		if e.Overdue {
			state += " OVERDUE"
		}
		if e.Why != "" {
			state += ": " + e.Why
		}
		rows = append(rows, []string{
			printable(e.Tenant), e.ID, state, stamp(e.Archived), stamp(e.Due), stamp(e.Within), fmt.Sprint(e.Receipts), printable(e.RequestRef), e.Target,
		})
		for _, line := range e.Lines {
			if e.State != compaction.StateClosed && line.State != archive.RedactionReceipted {
				rows = append(rows, []string{"", "  " + lineName(archive.Line(line.lineJSON)), line.State})
			}
		}
	}
	if len(rows) == 1 {
		_, err := fmt.Fprintln(in.stdout, "no orders")
		return err
	}
	return table(in.stdout, rows)
}
