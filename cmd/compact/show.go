package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/compaction"
	"github.com/ledgerlake/ledgerlake/config"
)

// plan is the command that prints what passes would do.
func plan(ctx context.Context, in invocation) error {
	var c config.Compact
	var json bool
	t, done, err := look(ctx, in, &c, config.Printing(&json), planHelp)
	if done || err != nil {
		return err
	}
	e := t.engine(compaction.Events{}, false)
	g := t.governor(e, false)
	lines, err := g.Lines(ctx)
	if err != nil {
		return err
	}
	duties, err := g.Duties(ctx, lines)
	if err != nil {
		return err
	}
	var plans []*compaction.Plan
	var failed []error
	for _, l := range lines {
		p, err := e.Plan(ctx, l, duties[l])
		if err != nil {
			failed = append(failed, fmt.Errorf("%s/%d: %w", l.Topic, l.Partition, err))
			continue
		}
		plans = append(plans, p)
	}
	expiries, err := g.Expiries(ctx, "")
	if err != nil {
		failed = append(failed, fmt.Errorf("retention: %w", err))
	}
	if err := t.writePlans(in.stdout, plans, expiries, json); err != nil {
		return err
	}
	return errors.Join(failed...)
}

func (t *tool) writePlans(w io.Writer, plans []*compaction.Plan, expiries []*compaction.Expiry, json bool) error {
	if json {
		return writeJSON(w, map[string]any{"lines": orNone(plans), "expiries": expiriesOf(expiries)})
	}
	for _, p := range plans {
		if err := writePlan(w, p); err != nil {
			return err
		}
	}
	return writeExpiries(w, expiries)
}

func orNone[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// writePlan prints what a pass would do to a line.
func writePlan(w io.Writer, p *compaction.Plan) error {
	var b strings.Builder
	say := func(format string, a ...any) { fmt.Fprintf(&b, "  "+format+"\n", a...) }
	fmt.Fprintf(&b, "%s: catalog version %d, watermark %d, anchored up to segment %d\n", lineName(p.Line), p.Version, p.Watermark, p.Anchored)
	if p.Compact.Why != "" {
		say("compact segments %d to %d (%s, %s): %s", p.Compact.From, p.Compact.To-1, counted(p.Compact.Rows, "row"), config.FormatBytes(p.Compact.Bytes), p.Compact.Why)
	} else if p.Waiting > 0 {
		say("%s wait: too few, and too young", counted(p.Waiting, "anchored segment"))
	}
	for _, o := range p.Orders {
		say("order %s of tenant %q: %s to %s: %s", o.ID, o.Tenant, orDash(o.From), orDash(o.To), o.Why)
	}
	for _, s := range p.Look {
		say("look into %s for orders %s (%s, %s)", strings.Join(s.Keys, ", "), strings.Join(s.Orders, ", "), counted(s.Rows, "row"), config.FormatBytes(s.Bytes))
	}
	for _, s := range p.Drop {
		say("drop rows %d to %d of tenant %q by cut %s (%s, %s)", s.From, s.To-1, s.Tenant, s.Cut, counted(s.Rows, "row"), config.FormatBytes(s.Bytes))
	}
	for _, s := range p.Merge {
		say("merge %s of tenant %q, %s (%s, %s): %s", counted(int64(len(s.Keys)), "file"), s.Tenant, s.Day, counted(s.Rows, "row"), config.FormatBytes(s.Bytes), s.Why)
	}
	if n := int64(len(p.Delete)); n > 0 {
		say("delete %s that the grace is over for", counted(n, "object"))
	}
	if p.Holds {
		say("list other holds")
	}
	if p.Nothing() {
		say("nothing to do")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// A statusJSON is one line, as --json prints it.
type statusJSON struct {
	lineJSON
	Version  int64            `json:"version"` // -1: never compacted
	Time     *time.Time       `json:"time,omitempty"`
	Segments int64            `json:"segments"`
	Anchored int64            `json:"anchored"`
	Files    int64            `json:"files"`
	Rows     int64            `json:"rows"`
	Bytes    int64            `json:"bytes"`
	Doomed   int64            `json:"doomed"`
	Cuts     int64            `json:"cuts"`
	Holds    int64            `json:"holds"`
	Orders   map[string]int64 `json:"orders"`
	Err      string           `json:"error,omitempty"`
}

// status is the command that prints how far each line is.
func status(ctx context.Context, in invocation) error {
	var c config.Compact
	var json bool
	t, done, err := look(ctx, in, &c, config.Printing(&json), statusHelp)
	if done || err != nil {
		return err
	}
	all, err := t.looker().Status(ctx)
	if err != nil {
		return err
	}
	rows := [][]string{{"line", "version", "written", "segments waiting", "anchored of them", "data files", "rows", "bytes", "doomed", "cuts", "holds", "orders"}}
	list := []statusJSON{}
	var failed []error
	for i := range all {
		s := &all[i]
		list = append(list, statusOf(s))
		if s.Err != nil {
			failed = append(failed, fmt.Errorf("%s/%d: %w", s.Line.Topic, s.Line.Partition, s.Err))
		}
		rows = append(rows, statusRow(s))
	}
	if json {
		err = writeJSON(in.stdout, map[string]any{"lines": list})
	} else {
		err = table(in.stdout, rows)
	}
	return errors.Join(append(failed, err)...)
}

// statusRow is one line of the table. Where its catalog cannot be read, what else
// is known would mislead.
func statusRow(s *compaction.LineStatus) []string {
	if s.Err != nil && s.Version < 0 {
		return slices.Concat([]string{lineName(s.Line), "fault"}, slices.Repeat([]string{"-"}, 10))
	}
	version := "-"
	if s.Version >= 0 {
		version = fmt.Sprint(s.Version)
	}
	return []string{
		lineName(s.Line), version, stamp(s.Time), fmt.Sprint(s.Segments), fmt.Sprint(s.Anchored), fmt.Sprint(s.Files), fmt.Sprint(s.Rows),
		config.FormatBytes(s.Bytes), fmt.Sprint(s.Doomed), fmt.Sprint(s.Cuts), fmt.Sprint(s.Holds), states(s.Orders),
	}
}

func statusOf(s *compaction.LineStatus) statusJSON {
	j := statusJSON{
		lineJSON: lineJSON(s.Line), Version: s.Version, Segments: s.Segments, Anchored: s.Anchored, Files: s.Files, Rows: s.Rows, Bytes: s.Bytes,
		Doomed: s.Doomed, Cuts: s.Cuts, Holds: s.Holds, Orders: s.Orders,
	}
	if !s.Time.IsZero() {
		j.Time = &s.Time
	}
	if j.Orders == nil {
		j.Orders = map[string]int64{}
	}
	if s.Err != nil {
		j.Err = s.Err.Error()
	}
	return j
}

func states(counts map[string]int64) string {
	var words []string
	for _, state := range []string{archive.RedactionGated, archive.RedactionPurged, archive.RedactionGone, archive.RedactionReceipted} {
		if n := counts[state]; n > 0 {
			words = append(words, fmt.Sprint(n, " ", state))
		}
	}
	return orDash(strings.Join(words, ", "))
}

// versions is the command that lists what the store keeps besides the newest
// version of each object.
func versions(ctx context.Context, in invocation) error {
	var c config.Compact
	var json bool
	t, done, err := look(ctx, in, &c, config.Printing(&json), versionsHelp)
	if done || err != nil {
		return err
	}
	all, err := t.residue(ctx)
	if err != nil {
		return err
	}
	if json {
		err = writeJSON(in.stdout, map[string]any{"versions": all})
	} else {
		rows := [][]string{{"object", "what", "id", "bytes", "since"}}
		for _, v := range all {
			rows = append(rows, []string{v.Key, v.What, v.ID, fmt.Sprint(v.Bytes), stamp(v.Since)})
		}
		err = table(in.stdout, rows)
	}
	if err == nil && len(all) > 0 {
		return fmt.Errorf("%w: %s besides the newest versions: what was erased may stand in them", errOverdue, counted(int64(len(all)), "copy or upload"))
	}
	return err
}

// A copyJSON is something that the store keeps besides the newest version of an
// object.
type copyJSON struct {
	Key   string    `json:"key"`
	What  string    `json:"what"` // old version, deletion marker or unfinished upload
	ID    string    `json:"id"`
	Bytes int64     `json:"bytes"`
	Since time.Time `json:"since"`
}

// holding are the folders whose objects hold rows.
var holdingRows = []string{archive.LogPrefix, archive.DataPrefix}

func (t *tool) residue(ctx context.Context) ([]copyJSON, error) {
	all := []copyJSON{}
	for _, prefix := range holdingRows {
		for v, err := range t.bucket.Versions(ctx, prefix) {
			if err != nil {
				return nil, fmt.Errorf("versions of %s: %w", prefix, err)
			}
			switch {
			case v.Marker:
				all = append(all, copyJSON{v.Key, "deletion marker", v.ID, v.Size, v.Modified})
			case !v.Latest:
				all = append(all, copyJSON{v.Key, "old version", v.ID, v.Size, v.Modified})
			}
		}
		for u, err := range t.bucket.Uploads(ctx, prefix) {
			if err != nil {
				return nil, fmt.Errorf("uploads of %s: %w", prefix, err)
			}
			all = append(all, copyJSON{u.Key, "unfinished upload", u.ID, 0, u.Begun})
		}
	}
	slices.SortStableFunc(all, func(a, b copyJSON) int { return strings.Compare(a.Key, b.Key) })
	return all, nil
}
