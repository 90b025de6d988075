package proof

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// governed reports whether it is known what control rows order.
func (v *verifier) governed() bool { return v.governs.Sealed() }

// govern reads the control logs, before anything is held against them. What is
// wrong with them is named when their lines are verified.
func (v *verifier) govern(ctx context.Context, s *survey) error {
	g := control.New()
	lines, err := v.controlLines(ctx, s)
	if err != nil {
		return err
	}
	o := v.o
	o.Progress, o.Saved, o.Topic, o.Partition, o.FromSeq, o.Expect, o.ExpectFrom, o.Witnesses, o.Since = nil, nil, "", nil, 0, nil, nil, nil, time.Time{}
	if len(lines) > 0 {
		c := newVerifier(v.src, o)
		c.root, c.rootSum, c.keys, c.survey = v.root, v.rootSum, v.keys, s
		results, err := c.lines(ctx, lines)
		if err != nil {
			return err
		}
		for _, res := range results {
			for _, row := range res.controls {
				g.Add(row)
			}
		}
	}
	g.Seal()
	v.governs = g
	return nil
}

// controlLines returns the lines that a control topic brings: that of the usual
// name, and where there is none whatever else looks like one. A wrong guess
// costs time, or a fault that is none, never one that is missed.
func (v *verifier) controlLines(ctx context.Context, s *survey) ([]*surveyLine, error) {
	var all []*surveyLine
	for _, l := range s.lines {
		if l.topic == chain.Escape(audit.ControlTopic) {
			all = append(all, l)
		}
	}
	if len(all) > 0 {
		return all, nil
	}
	for _, l := range s.lines {
		control, err := v.looksControl(ctx, l)
		if err != nil {
			return nil, err
		}
		if control {
			all = append(all, l)
		}
	}
	return all, nil
}

// looksControl looks at which kinds the first object that has some says that it
// has: a segment or, where there is none, a data file.
func (v *verifier) looksControl(ctx context.Context, l *surveyLine) (bool, error) {
	for o, err := range v.src.List(ctx, l.prefix("log"), "") {
		if err != nil {
			return false, fmt.Errorf("list segments: %w", err)
		}
		if control, sure, err := v.kindsOf(ctx, o.Key); sure || err != nil {
			return control, err
		}
	}
	for _, o := range l.data {
		if control, sure, err := v.kindsOf(ctx, o.Key); sure || err != nil {
			return control, err
		}
	}
	return l.catalogs > 0, nil
}

// kindsOf reads from the end of an object whether it has rows that control
// something. sure is false where it does not tell.
func (v *verifier) kindsOf(ctx context.Context, key string) (control, sure bool, err error) {
	tail, size, err := v.src.GetTail(ctx, key, 64<<10)
	if errors.Is(err, archive.ErrNotFound) || errors.Is(err, archive.ErrDamaged) {
		return false, false, nil // named where the line is read
	}
	if err != nil {
		return false, false, fmt.Errorf("read the end of %s: %w", key, err)
	}
	low, high, ok, err := parquet.TailBounds(tail, size, "kind")
	if err != nil || !ok {
		return false, false, nil
	}
	control = audit.IsControlKind(low) || audit.IsControlKind(high)
	return control, control || isData(low) || isData(high), nil
}

// govern takes in control rows of a segment or data file.
func (j *joiner) govern(rows []*control.Row, key string) {
	for _, c := range rows {
		if c.Unsigned != "" && j.controlSince != 0 && c.ArchivedAt > j.controlSince+anchorDelay.Microseconds() {
			j.fault(Fault{Kind: FaultSignature, Key: key, Ordinal: j.ordinal, Tenant: c.Tenant, Seq: &c.Seq, RecordID: c.ID, Text: "control keys are in force, and " + c.Unsigned})
		}
	}
	j.controls = append(j.controls, rows...)
}

// controlKeys notes from when on control keys are in force: in the line whose
// own anchors list some.
func (j *joiner) controlKeys(a *anchor) {
	j.rep.newest = a.Time.Time
	if j.controlSince == 0 && len(a.Keys.Control) > 0 && a.verdict.State == sign.Good {
		j.controlSince = a.Time.UnixMicro()
	}
}

// readControl reads a control row. One whose context says nothing that its kind
// says orders nothing; so does one whose context was erased.
func (v *verifier) readControl(row *chain.Row) *control.Row {
	r, _ := control.ParseRow(row)
	if v.keys.given {
		r.Unsigned = control.Unsigned(v.root.ArchiveID, v.keys.Ring, row)
	}
	return r
}

// versioned is a source that can list the versions of its objects.
type versioned interface {
	Versions(ctx context.Context, prefix string) iter.Seq2[archive.Version, error]
}

// deletedAll looks for objects that a receipt calls deleted: among what is there
// and, where the store has versions and lets them be listed, among what was.
func (v *verifier) deletedAll(ctx context.Context, r *Report) error {
	if len(v.governs.Deleted()) == 0 {
		return nil
	}
	found := faults{max: v.maxFaults}
	folders := map[string]bool{}
	for key := range v.governs.Deleted() {
		folder, _, _ := strings.Cut(key, "/")
		folders[folder+"/"] = true
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		looked, err := v.deletedVersions(ctx, folder, &found)
		if err == nil && !looked {
			err = v.deletedObjects(ctx, folder, &found)
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", folder, err)
		}
		r.versionsLeft = r.versionsLeft || !looked
	}
	r.Faults, r.FaultCount = append(r.Faults, found.list...), r.FaultCount+found.total
	return nil
}

func (v *verifier) deletedObjects(ctx context.Context, folder string, found *faults) error {
	for o, err := range v.src.List(ctx, folder, "") {
		if err != nil {
			return err
		}
		if said, ok := v.governs.Deleted()[o.Key]; ok {
			found.add(Fault{Kind: FaultErasure, Key: o.Key, Ordinal: -1, Text: fmt.Sprintf("the receipt of redaction %s says that the object was deleted, and it is there", said.Order)})
		}
	}
	return nil
}

// deletedVersions does the same for all versions. It reports false where they
// cannot be listed.
func (v *verifier) deletedVersions(ctx context.Context, folder string, found *faults) (looked bool, err error) {
	src, ok := v.src.(versioned)
	if !ok {
		return false, nil
	}
	for o, err := range src.Versions(ctx, folder) {
		if errors.Is(err, archive.ErrDenied) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		said, ok := v.governs.Deleted()[o.Key]
		if !ok || o.Marker {
			continue
		}
		what := "and it is there"
		if !o.Latest {
			what = fmt.Sprintf("and a version of it is there (%s)", Printable(o.ID))
		}
		found.add(Fault{Kind: FaultErasure, Key: o.Key, Ordinal: -1, Text: fmt.Sprintf("the receipt of redaction %s says that the object was deleted, %s", said.Order, what)})
	}
	return true, nil
}

// addStrays adds the strays of a line.
func (r *Report) addStrays(s strays, most int) {
	r.StrayCount += s.total
	r.Strays = append(r.Strays, s.list[:min(len(s.list), max(0, most-len(r.Strays)))]...)
}
