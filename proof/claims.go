package proof

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

// TierText says in words what a tier means of rows.
func TierText(tier string) string {
	switch tier {
	case TierT0:
		return "consistent in themselves"
	case TierT1:
		return "consistent and signed by a known key"
	case TierT2:
		return "consistent, signed by a known key, and no shorter than an independent head"
	case TierT3:
		return "consistent, signed by a known key, no shorter than an independent head, and witnessed"
	}
	return "not proved"
}

// TierWords returns the tier, and how many rows it does not reach yet.
func (r *Report) TierWords() string {
	var left int64
	for _, l := range r.Lines {
		for i := range l.Logs {
			left += l.Logs[i].Size - l.Logs[i].Signed
		}
	}
	if !r.reaches(TierT1) || left == 0 {
		return r.Tier
	}
	return fmt.Sprintf("%s, but for %s that no signed anchor covers yet", r.Tier, Count(left, "row"))
}

// claims fills in what was proved and what was not, in plain words.
func (v *verifier) claims(r *Report) {
	r.Proved, r.NotProved = []string{}, []string{}
	if r.FaultCount == 0 && !r.nothing() {
		r.Proved = v.proved(r)
	}
	r.NotProved = v.notProved(r)
}

func (v *verifier) proved(r *Report) []string {
	whose := "every row of a segment"
	if r.Tenant != "" {
		whose += " of tenant " + Printable(r.Tenant)
	}
	all := reasons{
		whose + ": its content against its commitments, its hash against the row before it, its place in the log's tree",
		"every Kafka offset between a line's first and last: it is a row, a counted repeat, or a gap, and only one of these",
		"every segment: its hash against what the next one of its line says; and every object: that it has a place",
	}
	all.addIf(r.Totals.DataFiles > 0, "every row of a data file, as far as it was not erased: the same, against all heads that anchors state; what is missing was dropped by an archived retention-cut, what went from a row was ordered, and what a receipt names is gone")
	signed, by := int64(0), []string{}
	for _, l := range r.Lines {
		if l.Signed != nil {
			signed++
			by = append(by, l.Signed.By...)
		}
	}
	all.addIf(signed > 0, "%s up to the newest anchor that a known key signed, with all anchors before it: signed by %s", Count(signed, "line"), some(keyNames(by)))
	passed, before := r.RowsPassed(), int64(0)
	var began time.Time // of the oldest verification that one of these rows was read by
	for _, l := range r.Lines {
		if l.Saved != nil {
			before += l.Saved.Rows
			if began.IsZero() || l.Saved.Began.Before(began) {
				began = l.Saved.Began
			}
		}
	}
	all.addIf(passed > 0, "of %s before what was asked for: the hash of their segments, as anchors state it, and that heads and counts follow each other; they were not decoded", Count(passed, "row"))
	all.addIf(before > 0, "%s by verifications from %s to %s, whose state was given: of these nothing but the listing was looked at now", Count(before, "row"), began.UTC().Format(time.RFC3339), savedTime(v.o.Saved))
	n := int64(0)
	for _, l := range r.Lines {
		for i := range l.Logs {
			if l.Logs[i].Independent > 0 {
				n++
			}
		}
	}
	all.addIf(n > 0, "%s: compared with heads from an independent place", Count(n, "log"))
	return all
}

func savedTime(s *Saved) string {
	if s == nil {
		return "none"
	}
	return s.Time.UTC().Format(time.RFC3339)
}

func (v *verifier) notProved(r *Report) []string {
	var all reasons
	if r.nothing() {
		return []string{}
	}
	other := int64(0)
	for _, l := range r.Lines {
		for i := range l.Logs {
			other += l.Logs[i].CheckedFrom
		}
	}
	all.addIf(other > 0, "what is in %s before those that were asked for: they were hashed, not decoded", Count(other, "row"))
	all.addIf(r.Topic != "" || r.Partition != nil, "anything of other lines: %s was not read", Count(r.linesLeft, "line"))
	all.addIf(!r.reaches(TierT1), "that nobody made all of it anew: whoever owns the bucket can, unless anchors are signed by a key that you know")
	all.addIf(r.reaches(TierT1) && !r.reaches(TierT2), "that nothing is missing behind the newest anchors that are there, or that no other history was signed with the same key: that takes a head from an independent place")
	all.addIf(!r.reaches(TierT2), "that a whole line, and with it a tenant, is there")
	all.addIf(!r.reaches(TierT1), "that nothing is missing at the end: no later segment says what the newest one of each line must be")
	all.addIf(!r.reaches(TierT1), "what "+archive.RootKey+" says beside the archive's id")
	return all.list()
}

// reaches reports whether what was verified has a tier.
func (r *Report) reaches(tier string) bool { return r.Tier != TierNone && r.Tier >= tier }

// keyNames returns the names of vkeys, each once.
func keyNames(vkeys []string) []string {
	names := make([]string, 0, len(vkeys))
	for _, k := range vkeys {
		name, _, _ := strings.Cut(k, "+")
		if name = Printable(name); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
