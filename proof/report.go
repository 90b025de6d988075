package proof

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// The tiers of what a verification proves. Each holds only with those above it.
const (
	TierNone = "none" // there is a fault, or nothing to prove
	TierT0   = "T0"   // consistent in itself
	TierT1   = "T1"   // signed by a known key
	TierT2   = "T2"   // at least as long as a head from an independent place
	TierT3   = "T3"   // witnessed
)

// A Report is what a verification found.
type Report struct {
	Tier      string        `json:"tier"`
	ArchiveID string        `json:"archiveId"`
	Tenant    string        `json:"tenant,omitempty"` // the only one that was asked for; so are these:
	Topic     string        `json:"topic,omitempty"`
	Partition *int32        `json:"partition,omitempty"`
	FromSeq   int64         `json:"fromSeq,omitempty"`
	Since     *time.Time    `json:"since,omitempty"`
	Exit      int           `json:"exit"`    // what [Report.ExitCode] returns
	Objects   int64         `json:"objects"` // in the archive, of every kind
	Totals    Totals        `json:"totals"`
	Keys      []KeyReport   `json:"keys"` // that are good, given ones and those that they vouch for
	Lines     []*LineReport `json:"lines"`

	Faults     []Fault `json:"faults"`     // the first ones of each line
	FaultCount int64   `json:"faultCount"` // all of them

	Strays     []string `json:"strays"` // keys, the first ones
	StrayCount int64    `json:"strayCount"`

	Less  []string `json:"less"`  // why not all that was asked for could be verified
	Looks []string `json:"looks"` // what is proved and should be looked at
	Notes []string `json:"notes"` // what changes nothing

	Proved    []string `json:"proved"`    // in plain words
	NotProved []string `json:"notProved"` // what the tier leaves open

	notes     noteCounts // of key notes
	partial   bool       // only a part of the rows was asked for
	root      *chain.Hash
	given     []string // vkeys
	linesLeft int64    // that were not asked for

	versionsLeft bool // objects were deleted, and it could not be looked for old versions of them

	introduced []sign.KeyInfo
}

func (r *Report) fault(f Fault) {
	r.Faults = append(r.Faults, f)
	r.FaultCount++
}

// Totals are sums over all lines.
type Totals struct {
	Segments   int64            `json:"segments"`
	Bytes      int64            `json:"bytes"` // of segments
	Rows       int64            `json:"rows"`
	Made       int64            `json:"made"` // rows that ingest itself made
	Duplicates int64            `json:"duplicates"`
	Gaps       map[string]int64 `json:"gaps"`    // offsets, by cause
	Kinds      map[string]int64 `json:"kinds"`   // rows that were checked, by kind
	Rejects    map[string]int64 `json:"rejects"` // rejected rows that were checked, by reason
	Resets     int64            `json:"resets"`  // chain-reset rows
	Anchors    int64            `json:"anchors"`
	Voided     int64            `json:"voided"`   // segments that a chain reset declared void
	Catalogs   int64            `json:"catalogs"` // versions
	DataFiles  int64            `json:"dataFiles"`
	DataBytes  int64            `json:"dataBytes"`
	Erasures
}

func newTotals() Totals {
	return Totals{Gaps: map[string]int64{}, Kinds: map[string]int64{}, Rejects: map[string]int64{}}
}

func (t *Totals) add(o *Totals) {
	t.Segments += o.Segments
	t.Bytes += o.Bytes
	t.Rows += o.Rows
	t.Made += o.Made
	t.Duplicates += o.Duplicates
	t.Resets += o.Resets
	t.Anchors += o.Anchors
	t.Voided += o.Voided
	t.Catalogs += o.Catalogs
	t.DataFiles += o.DataFiles
	t.DataBytes += o.DataBytes
	t.Erasures.add(o.Erasures)
	addAll(t.Gaps, o.Gaps)
	addAll(t.Kinds, o.Kinds)
	addAll(t.Rejects, o.Rejects)
}

func addAll(to, from map[string]int64) {
	for k, n := range from {
		to[k] += n
	}
}

// A LineReport is what was found of one line.
type LineReport struct {
	Line
	Totals
	FirstOffset int64 `json:"firstOffset"`
	NextOffset  int64 `json:"nextOffset"` // after the last one accounted for
	// Anchored is the last segment that an anchor covers, -1 if none does.
	Anchored int64 `json:"anchored"`
	// Watermark is the first segment that was not compacted; nil where nothing
	// was.
	Watermark *int64      `json:"watermark,omitempty"`
	Proved    bool        `json:"proved"` // every segment was read and follows the one before
	Logs      []LogReport `json:"logs"`   // in the order of tenants

	// Tier of the line's rows up to those that Signed covers. A line without rows
	// has the tier that the others have.
	Tier string `json:"tier"`
	// Signed is the newest anchor that a good key signed. It vouches for all of
	// the line up to its segment: the anchors before it too, whose hashes it
	// holds. nil where there is none.
	Signed *SignedAnchor `json:"signed"`
	// Independent is the newest anchor that a place that was given has too.
	Independent *IndependentAnchor `json:"independent,omitempty"`
	// Saved is where an earlier verification ended, from which this one went on.
	Saved *SavedPoint `json:"saved,omitempty"`
	// Passed are segments, and their rows, that were hashed and not decoded: only
	// later ones were asked for.
	Passed Passed `json:"passed"`

	strays     strays
	lingering  strays    // objects that nothing lists, or that were doomed after the receipt, with rows that it calls erased
	locked     strays    // objects with rows that a receipt calls erased, of which it says that they could not go
	openCuts   int64     // cuts whose control rows no anchor covers yet
	newest     time.Time // of the newest anchor
	signatures int64
	keyed      int64
	notes      noteCounts
	less       []string
	at         *SavedLine // at the newest anchor
	catalogs   int64
	logs       map[string]*logState
}

// An IndependentAnchor is an anchor that an independent place has as well. All
// rows that it covers, and all that the anchors before it cover, are the same.
type IndependentAnchor struct {
	Number  int64  `json:"number"`
	Ordinal int64  `json:"ordinal"`
	Source  string `json:"source"`
}

// A SignedAnchor is an anchor that a good key signed.
type SignedAnchor struct {
	Number  int64        `json:"number"`
	Ordinal int64        `json:"ordinal"` // of the last segment that it covers
	Time    archive.Time `json:"time"`
	SHA256  chain.Hash   `json:"sha256"` // of its text
	By      []string     `json:"by"`     // vkeys
}

// A KeyReport is a key that was good in this verification, and where it came
// from.
type KeyReport struct {
	VKey     string     `json:"vkey"`
	Roles    []string   `json:"roles"` // anchor, catalog, control
	Source   string     `json:"source"`
	NotAfter *time.Time `json:"notAfter,omitempty"` // of what a certified key signs
}

func keyReports(ring *sign.Ring) []KeyReport {
	all := []KeyReport{}
	for _, k := range ring.Keys() {
		r := KeyReport{VKey: k.VKey, Roles: roleNames(k.Roles), Source: k.Source}
		if !k.NotAfter.IsZero() {
			r.NotAfter = &k.NotAfter
		}
		all = append(all, r)
	}
	return all
}

func roleNames(roles sign.Role) []string {
	list := []string{}
	for _, r := range []struct {
		role sign.Role
		name string
	}{{sign.Anchor, "anchor"}, {sign.Catalog, "catalog"}, {sign.Control, "control"}} {
		if roles&r.role != 0 {
			list = append(list, r.name)
		}
	}
	return list
}

// noteCounts are notes by what their signatures were worth. Without a key none
// is judged.
type noteCounts struct {
	good, unsigned, unknown int64
}

func (c *noteCounts) count(v sign.Verdict) {
	switch v.State {
	case sign.Good:
		c.good++
	case sign.Unsigned:
		c.unsigned++
	case sign.Unknown:
		c.unknown++
	}
}

func (c *noteCounts) add(o noteCounts) {
	c.good += o.good
	c.unsigned += o.unsigned
	c.unknown += o.unknown
}

// A LogReport is what was found of one log that was asked for.
type LogReport struct {
	Tenant      string     `json:"tenant"`
	Scheme      string     `json:"scheme"`
	Epoch       int32      `json:"epoch"`
	FirstSeq    int64      `json:"firstSeq"` // of the first row that was seen
	Rows        int64      `json:"rows"`     // that were seen
	Rejected    int64      `json:"rejected"`
	Duplicates  int64      `json:"duplicates"`
	Size        int64      `json:"size"` // the next row's seq
	Head        chain.Hash `json:"head"`
	Root        chain.Hash `json:"root"`
	NotAnchored int64      `json:"notAnchored"` // rows that no anchor covers
	Signed      int64      `json:"signed"`      // size at the newest anchor that a good key signed
	// Independent is the size up to which the log was compared with an
	// independent place; 0 if it was not.
	Independent int64       `json:"independent"`
	Witnessed   []Witnessed `json:"witnessed,omitempty"` // of each witness the newest cosignature
	// CheckedFrom is the seq from which on rows were decoded; those before it
	// were asked for neither by seq nor by time.
	CheckedFrom int64  `json:"checkedFrom"`
	Tier        string `json:"tier"`
	Proved      bool   `json:"proved"` // every row from seq 0, or a cut, on was checked and follows the one before
}

// A TenantReport sums up the logs of one tenant.
type TenantReport struct {
	Tenant                                        string
	Logs, Rows, Rejected, Duplicates, NotAnchored int64
	Proved                                        bool
}

// Tenants sums up the logs by tenant, in the order of their names.
func (r *Report) Tenants() []TenantReport {
	by := map[string]*TenantReport{}
	for _, line := range r.Lines {
		for _, l := range line.Logs {
			t := by[l.Tenant]
			if t == nil {
				t = &TenantReport{Tenant: l.Tenant, Proved: true}
				by[l.Tenant] = t
			}
			t.Logs++
			t.Rows += l.Rows
			t.Rejected += l.Rejected
			t.Duplicates += l.Duplicates
			t.NotAnchored += l.NotAnchored
			t.Proved = t.Proved && l.Proved
		}
	}
	all := make([]TenantReport, 0, len(by))
	for _, name := range slices.Sorted(maps.Keys(by)) {
		all = append(all, *by[name])
	}
	return all
}

// ExitCode returns the verdict; the first that holds:
//
//	1  tampered or damaged: there is a fault
//	3  nothing, or less than was asked for, could be verified: there is no
//	   segment, no log of the tenant that was asked for, no key, a line without
//	   an anchor by a good key, a keyed log
//	4  proved, with something to look at: lost offsets, chain resets, strays,
//	   erasures and cuts that are not receipted or anchored yet
//	0  all that was asked for is proved
//
// That a verification cannot run (2) is an error of [Verify].
func (r *Report) ExitCode() int {
	switch {
	case r.FaultCount > 0:
		return 1
	case len(r.Less) > 0:
		return 3
	case len(r.Looks) > 0:
		return 4
	}
	return 0
}

// sum fills in what follows from the lines.
func (v *verifier) sum(s *survey, r *Report) {
	r.Totals = newTotals()
	notes := r.notes
	for _, l := range r.Lines {
		r.Totals.add(&l.Totals)
		notes.add(l.notes)
	}
	r.Keys = keyReports(v.keys.Ring)
	r.partial, r.root = v.partial(), v.rootSum
	r.splitKeys(v)
	r.tiers()
	r.Less = slices.Concat(r.less(s), v.unsigned(r, notes), r.Less, v.unwitnessed(r))
	if r.Less == nil {
		r.Less = []string{}
	}
	r.Looks = append(r.looks(), v.openOrders(r)...)
	r.Notes = slices.Concat(r.remarks(s, notes), r.compacted(), r.Notes)
	v.claims(r)
	r.Exit = r.ExitCode()
}

// splitKeys parts the keys that were given from those that anchors introduced.
func (r *Report) splitKeys(v *verifier) {
	r.given = []string{}
	given := map[string]bool{}
	for _, k := range v.o.Keys.Keys() {
		given[k.VKey] = true
		r.given = append(r.given, k.VKey)
	}
	for _, k := range v.keys.Keys() {
		if !given[k.VKey] && k.NotAfter.IsZero() {
			r.introduced = append(r.introduced, k)
		}
	}
}

// tier says what is proved of a log, up to the newest anchor of its line by a
// good key; of a log that none covers yet, nothing but that it is consistent.
//
// A line that was compared with an anchor of an independent place was compared
// whole, also where that one is older than the log.
func (l *LogReport) tier(whole bool) string {
	switch {
	case !l.Proved:
		return TierNone
	case l.Signed == 0:
		return TierT0
	case l.Independent == 0 && !whole:
		return TierT1
	case len(l.Witnessed) == 0:
		return TierT2
	}
	return TierT3
}

// tier says what is proved of a line: what holds for each log that an anchor by
// a good key covers.
func (l *LineReport) tier() string {
	switch {
	case !l.Proved:
		return TierNone
	case !l.covered():
		return TierT0
	}
	least := ""
	for i := range l.Logs {
		if log := &l.Logs[i]; log.Signed > 0 && (least == "" || log.Tier < least) {
			least = log.Tier
		}
	}
	if least == "" || least == TierNone {
		least = TierT1
	}
	return least
}

// tiers says what is proved of each line, and of all of them.
func (r *Report) tiers() {
	r.Tier = ""
	for _, l := range r.Lines {
		for i := range l.Logs {
			l.Logs[i].Tier = l.Logs[i].tier(l.Independent != nil)
		}
		l.Tier = l.tier()
		if l.Rows > 0 && l.Proved && (r.Tier == "" || l.Tier < r.Tier) {
			r.Tier = l.Tier
		}
	}
	if r.Tier == "" || r.FaultCount > 0 {
		r.Tier = TierNone
	}
	for _, l := range r.Lines {
		if l.Rows == 0 {
			l.Tier = r.Tier
		}
	}
}

// unsigned says what was not signed, where consistency alone was not asked for.
func (v *verifier) unsigned(r *Report, notes noteCounts) []string {
	var all reasons
	switch {
	case v.o.Unsigned || r.nothing():
		return nil
	case !v.keys.given:
		all.addIf(true, "no key was given: no signature was checked, and whoever can write to the bucket could have made all of it (give --key, or ask for consistency alone with --allow-unsigned)")
		return all
	}
	var without []string
	for _, l := range r.Lines {
		if l.Rows > 0 && !l.covered() {
			without = append(without, l.Line.String())
		}
	}
	all.addIf(len(without) > 0, "no anchor by a good key in %s: %s", Count(int64(len(without)), "line"), some(without))
	all.addIf(len(without) == 0 && r.Tenant != "" && r.signedRows() == 0, "no anchor by a good key covers a row of tenant %s", name(r.Tenant))
	all.addIf(notes.unsigned > 0 && v.keys.signed, "%s without a signature, while others are signed", Count(notes.unsigned, "note"))
	all.addIf(notes.unknown > 0, "%s signed by none of the keys that were given", Count(notes.unknown, "note"))
	return all
}

// covered reports whether an anchor by a good key covers anything of the line.
func (l *LineReport) covered() bool { return l.Signed != nil && l.Signed.Ordinal >= 0 }

// signedRows returns how many of the rows that were asked for an anchor by a good
// key covers.
func (r *Report) signedRows() (n int64) {
	for _, l := range r.Lines {
		for i := range l.Logs {
			n += l.Logs[i].Signed
		}
	}
	return n
}

// unwitnessed says which logs no witness vouches for, where some were given.
func (v *verifier) unwitnessed(r *Report) []string {
	if len(v.o.Witnesses) == 0 {
		return nil
	}
	var without []string
	for _, l := range r.Lines {
		for i := range l.Logs {
			if log := &l.Logs[i]; log.Signed > 0 && len(log.Witnessed) == 0 {
				without = append(without, name(log.Tenant)+" in "+l.Line.String())
			}
		}
	}
	var all reasons
	all.addIf(len(without) > 0, "no checkpoint with a cosignature by a given witness of %s: %s", Count(int64(len(without)), "log"), some(without))
	return all
}

// some joins the first few names of a list.
func some(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// less says why not all that was asked for could be verified.
func (r *Report) less(s *survey) []string {
	var all reasons
	logs, keyed := 0, int64(0)
	for _, l := range r.Lines {
		logs += len(l.Logs)
		keyed += l.keyed
	}
	all.addIf(r.nothing() && r.linesLeft == 0, "there is no segment: nothing could be verified")
	all.addIf(r.nothing() && r.linesLeft > 0, "there is no segment of the topic and partition that were asked for: nothing could be verified")
	all.addIf(!r.nothing() && r.Tenant != "" && logs == 0, "tenant %s has no log in this archive: nothing could be verified", name(r.Tenant))
	for _, l := range r.Lines {
		all = append(all, l.less...)
	}
	all.addIf((r.FromSeq > 0 || r.Since != nil) && r.checkedRows() == 0 && !r.nothing(), "no row stands behind where the rows that were asked for begin: nothing of them could be verified")
	all.addIf(keyed > 0, "%s: without the key row_hash is not checked", Count(keyed, "keyed log"))
	return all.list()
}

// checkedRows returns how many rows were read and checked, not hashed alone.
func (r *Report) checkedRows() (n int64) {
	for _, k := range r.Totals.Kinds {
		n += k
	}
	return n
}

// RowsPassed returns how many rows were hashed, and not read, for they lie before
// what was asked for.
func (r *Report) RowsPassed() (n int64) {
	for _, l := range r.Lines {
		n += l.Passed.Rows
	}
	return n
}

// nothing reports whether there is nothing that rows could stand in.
func (r *Report) nothing() bool { return r.Totals.Segments == 0 && r.Totals.DataFiles == 0 }

// looks says what is proved and should be looked at.
func (r *Report) looks() []string {
	var all reasons
	t := &r.Totals
	lost := t.Gaps[archive.GapLost]
	all.addIf(lost > 0, "gap: Kafka had lost %s before they were archived", Count(lost, "offset"))
	all.addIf(t.Resets > 0 || t.Voided > 0, "chain reset: %s begun anew by an operator's order, %s void", Count(t.Resets, "log"), Count(t.Voided, "segment"))
	all.addIf(r.StrayCount > 0, "stray: %s that no document lists and that continue no line", Count(r.StrayCount, "object"))
	return all.list()
}

// remarks says what changes nothing.
func (r *Report) remarks(s *survey, notes noteCounts) []string {
	var all reasons
	var signatures int64
	for _, l := range r.Lines {
		signatures += l.signatures
	}
	anchors := r.Totals.Anchors
	judged := notes.good + notes.unsigned + notes.unknown
	all.addIf(anchors > 0 && len(r.Keys) == 0, "%s with %s: compared with what was recomputed, signatures not checked: T0", Count(anchors, "anchor"), Count(signatures, "signature"))
	all.addIf(judged > 0 && len(r.Keys) > 0, "%s: %d signed by a good key, %d not signed, %d signed by none of the keys", Count(judged, "note"), notes.good, notes.unsigned, notes.unknown)
	for _, t := range r.Tenants() {
		all.addIf(anchors > 0 && t.NotAnchored > 0, "%s of %s not anchored yet", Count(t.NotAnchored, "row"), name(t.Tenant))
	}
	all.addIf(anchors == 0 && !r.nothing(), "not anchored: there are no anchors, so that nothing shows whether the newest segments of each line are missing or were changed")
	all.addIf(r.Tenant != "", "only tenant %s was asked for: rows of other tenants were counted and their objects hashed, but not checked", name(r.Tenant))
	all.addIf(s.keys > 0 && len(r.Keys) == 0, "%s: signatures not checked", Count(s.keys, "key note"))
	all.addIf(s.exports > 0, "%s of exporters: no evidence, not read", Count(s.exports, "object"))
	all.addIf(s.manifests > 0, "%s for engines of SQL: no evidence, not read", Count(s.manifests, "manifest"))
	return all.list()
}

// reasons are lines of a report.
type reasons []string

func (r *reasons) addIf(holds bool, format string, a ...any) {
	if holds {
		*r = append(*r, fmt.Sprintf(format, a...))
	}
}

// list returns the lines, and an empty list rather than none.
func (r reasons) list() []string { return append([]string{}, r...) }

// sortFaults puts faults in the order of lines, ordinals and rows.
func sortFaults(all []Fault) {
	seq := func(f Fault) int64 {
		if f.Seq == nil {
			return -1
		}
		return *f.Seq
	}
	slices.SortStableFunc(all, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(seq(a), seq(b)))
	})
}
