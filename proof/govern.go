package proof

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// governed reports whether it is known what control rows order.
func (v *verifier) governed() bool { return v.governs != nil && v.governs.sealed }

// govern reads the control logs, before anything is held against them. What is
// wrong with them is named when their lines are verified.
func (v *verifier) govern(ctx context.Context, s *survey) error {
	g := newGovernance()
	lines, err := v.controlLines(ctx, s)
	if err != nil {
		return err
	}
	o := v.o
	o.Progress, o.Saved, o.Topic, o.Partition, o.FromSeq, o.Expect, o.ExpectFrom, o.Witnesses, o.Since = nil, nil, "", nil, 0, nil, nil, nil, time.Time{}
	if len(lines) > 0 {
		c := newVerifier(v.src, o)
		c.root, c.rootSum, c.keys = v.root, v.rootSum, v.keys
		results, err := c.lines(ctx, lines)
		if err != nil {
			return err
		}
		for _, res := range results {
			for _, row := range res.controls {
				g.add(row)
			}
		}
	}
	g.seal()
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
func (j *joiner) govern(rows []*controlRow, key string) {
	for _, c := range rows {
		if c.unsigned != "" && j.controlSince != 0 && c.at > j.controlSince+anchorDelay.Microseconds() {
			j.fault(Fault{Kind: FaultSignature, Key: key, Ordinal: j.ordinal, Tenant: c.tenant, Seq: &c.seq, RecordID: c.id, Text: "control keys are in force, and " + c.unsigned})
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

// controlSigned says why the signature of a control row does not count. It
// stands in ext, which keeps the record's headers, and holds the hash of the
// value, so that it is checked also where the context is gone.
func (v *verifier) controlSigned(row *chain.Row) string {
	if !v.keys.given {
		return ""
	}
	ext := row.Slots[audit.SlotExt]
	if ext == nil && !row.RowSalt.Valid {
		return "" // it may have gone with the rest
	}
	note, err := signatureIn(ext)
	if err != nil {
		return "the row has no signature"
	}
	n, err := sign.Parse([]byte(note))
	if err != nil {
		return "its signature is no note"
	}
	if !v.signsControl(n.Text, row) {
		return "its signature is of another record"
	}
	if v.keys.Check(n, sign.Control, time.UnixMicro(row.ArchivedAt.N)).State != sign.Good {
		return "it is signed by no good control key"
	}
	return ""
}

// signsControl reports whether a text is the one that a control key signs for
// the row.
func (v *verifier) signsControl(text string, row *chain.Row) bool {
	context := row.Slots[audit.SlotContext]
	want := chain.ControlText(v.root.ArchiveID, row.TenantID.S, row.Kind.S, row.RecordID.S, context)
	if context != nil {
		return text == want
	}
	at := strings.LastIndexByte(strings.TrimSuffix(want, "\n"), '\n') + 1
	return len(text) == len(want) && text[:at] == want[:at] && isHex64(strings.TrimSuffix(text[at:], "\n"))
}

// signatureHeader is the header of a control record that holds its signature.
const signatureHeader = "ledgerlake-signature"

// signatureIn returns the signature among the headers that ext keeps.
func signatureIn(ext []byte) (note string, err error) {
	found := 0
	err = readDocument(ext, field{Name: "$headers", Read: func(d *document) {
		d.Array(func(d *document) {
			name := ""
			d.Tuple(func(d *document) { name = d.Str() }, func(d *document) {
				if name != signatureHeader {
					d.Skip()
					return
				}
				note = d.Str()
				found++
			})
		})
	}})
	if err == nil && found != 1 {
		err = errors.New("no signature")
	}
	return note, err
}

// deletedAll looks for objects that a receipt calls deleted.
func (v *verifier) deletedAll(ctx context.Context, r *Report) error {
	if len(v.governs.deleted) == 0 {
		return nil
	}
	found := faults{max: v.maxFaults}
	folders := map[string]bool{}
	for key := range v.governs.deleted {
		folder, _, _ := strings.Cut(key, "/")
		folders[folder+"/"] = true
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		for o, err := range v.src.List(ctx, folder, "") {
			if err != nil {
				return fmt.Errorf("list %s: %w", folder, err)
			}
			if order, ok := v.governs.deleted[o.Key]; ok {
				found.add(Fault{Kind: FaultErasure, Key: o.Key, Ordinal: -1, Text: fmt.Sprintf("the receipt of redaction %s says that the object was deleted, and it is there", order)})
			}
		}
	}
	r.Faults, r.FaultCount = append(r.Faults, found.list...), r.FaultCount+found.total
	return nil
}

// addStrays adds the strays of a line.
func (r *Report) addStrays(s strays, most int) {
	r.StrayCount += s.total
	r.Strays = append(r.Strays, s.list[:min(len(s.list), max(0, most-len(r.Strays)))]...)
}
