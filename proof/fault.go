package proof

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ledgerlake/ledgerlake/chain"
)

// A FaultKind is the class of a fault: what does not hold.
type FaultKind string

// The kinds of faults, from the outside of an object to the inside of a row.
const (
	FaultRoot        FaultKind = "root"        // ledgerlake.json is missing or malformed
	FaultMissing     FaultKind = "missing"     // a segment or an anchor that must be there is not
	FaultHash        FaultKind = "hash"        // the object's bytes are not those that another document states
	FaultMisplaced   FaultKind = "misplaced"   // the object says that it belongs elsewhere
	FaultUnreadable  FaultKind = "unreadable"  // the object cannot be read as what it should be
	FaultLayout      FaultKind = "layout"      // the Parquet file has holes, statistics or columns that the format forbids
	FaultMetadata    FaultKind = "metadata"    // metadata disagrees with itself or with the rows
	FaultCoverage    FaultKind = "coverage"    // an offset is not accounted for exactly once
	FaultLink        FaultKind = "link"        // a row or segment does not continue its log
	FaultTree        FaultKind = "tree"        // the tree's size or frontier is not that of the rows
	FaultContent     FaultKind = "content"     // what a row holds is not what was committed to
	FaultRowHash     FaultKind = "row-hash"    // row_hash is not that of the row
	FaultState       FaultKind = "state"       // a row is in a state that it cannot be in
	FaultColumn      FaultKind = "column"      // a column disagrees with its log, its kind or its slot
	FaultReject      FaultKind = "reject"      // a rejected row does not describe its record
	FaultGap         FaultKind = "gap"         // lost offsets and gap rows do not match
	FaultDuplicate   FaultKind = "duplicate"   // a duplicate repeats no row
	FaultTime        FaultKind = "time"        // archived_at goes back, or lies far behind its anchor
	FaultReset       FaultKind = "reset"       // an epoch does not begin as the format says
	FaultSignature   FaultKind = "signature"   // a note was not signed by the key that its signature names, or by no good key
	FaultIndependent FaultKind = "independent" // the archive is not what a head from an independent place says
	FaultCatalog     FaultKind = "catalog"     // a catalog disagrees with itself, with the version before it or with control rows
	FaultErasure     FaultKind = "erasure"     // something went from a row that nobody ordered, or is there though a receipt says that it went
	FaultAnchor      FaultKind = "anchor"      // an anchor disagrees with what was recomputed
)

// A Fault is one thing that does not hold, and where: the first row that it
// touches, as far as that is known.
type Fault struct {
	Kind     FaultKind `json:"kind"`
	Key      string    `json:"key"`            // of the object
	Line     *Line     `json:"line,omitempty"` // nil for objects of no line
	Ordinal  int64     `json:"ordinal"`        // of the segment, or of the last one before the fault; -1 if none
	Tenant   string    `json:"tenant,omitempty"`
	Seq      *int64    `json:"seq,omitempty"`      // the first one touched
	RecordID string    `json:"recordId,omitempty"` // of that row, where it can be read and has one
	Offset   *int64    `json:"offset,omitempty"`   // in Kafka
	Text     string    `json:"text"`
	More     int64     `json:"more,omitempty"`    // further faults of this kind in this log and segment
	Touches  []Touched `json:"touches,omitempty"` // logs of a segment whose rows could not be read
}

// A Touched is what a segment that is missing or could not be read holds of one
// log: by its own metadata, which is not proved, or by the segments around it.
type Touched struct {
	Tenant string `json:"tenant"`
	Seq    int64  `json:"seq"` // the first one
	Rows   int64  `json:"rows"`
}

// A Line names one partition of one topic in a report.
type Line struct {
	Topic     string `json:"topic"`
	TopicID   string `json:"topicId"`
	Partition int32  `json:"partition"`
}

// String returns topic/partition.
func (l Line) String() string { return fmt.Sprintf("%s/%d", Printable(l.Topic), l.Partition) }

// Where returns the object and, as far as they are known, the tenant, the first
// row and its offset that the fault touches, as one line of text.
func (f Fault) Where() string {
	var b strings.Builder
	b.WriteString(Printable(f.Key))
	sep := ": "
	add := func(format string, a any) {
		fmt.Fprintf(&b, sep+format, a)
		sep = ", "
	}
	if f.Tenant != "" {
		add("tenant %s", name(f.Tenant))
	}
	if f.Seq != nil {
		add("seq %d", *f.Seq)
	}
	if f.RecordID != "" {
		add("record %s", Printable(f.RecordID))
	}
	if f.Offset != nil {
		add("offset %d", *f.Offset)
	}
	return b.String()
}

// String returns the fault as one line of text.
func (f Fault) String() string {
	text := f.Where() + ": " + f.Text
	if f.More > 0 {
		text += fmt.Sprintf(" (and %d more like it in this segment)", f.More)
	}
	if len(f.Touches) > 0 {
		text += "; it touches " + touched(f.Touches)
	}
	return text
}

func touched(all []Touched) string {
	const most = 5
	parts := make([]string, 0, most+1)
	for i, t := range all {
		if i == most {
			parts = append(parts, Count(int64(len(all)-most), "more log"))
			break
		}
		parts = append(parts, fmt.Sprintf("%s from seq %d (%s)", name(t.Tenant), t.Seq, Count(t.Rows, "row")))
	}
	return strings.Join(parts, ", ")
}

// name returns a tenant as a person reads it: as it is, or quoted where it is
// empty or holds what a terminal should not see.
func name(tenant string) string {
	if tenant == "" {
		return `""`
	}
	return Printable(tenant)
}

// Count returns a number and what it counts, which gets an s unless it is one.
func Count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatInt(n, 10) + " " + what + "s"
}

// Printable returns s, quoted where it holds what a terminal should not see:
// an archive under suspicion does not get to write on it.
func Printable(s string) string {
	for _, r := range s {
		if r == '\uFFFD' || !strconv.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return s
}

// short returns enough of a hash to tell it from others.
func short(h chain.Hash) string { return h.String()[:12] + "…" }

// faults is a bounded list of faults.
type faults struct {
	list  []Fault
	total int64
	max   int
}

func (fs *faults) add(f Fault) {
	fs.total += 1 + f.More
	if len(fs.list) < fs.max {
		fs.list = append(fs.list, f)
	}
}
