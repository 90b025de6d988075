package render

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// MaxLine is the longest line that is read, in bytes: what a record, its key and its
// headers may have, as base64, is less.
const MaxLine = 64 << 20

// maxFaults bounds how many faults are told of; all are counted.
const maxFaults = 1000

// A LineFault is something that is wrong with exported lines.
type LineFault struct {
	File      string `json:"file"`
	Line      int64  `json:"line"` // from 1; of a hole, the line behind it
	Tenant    string `json:"tenant,omitempty"`
	Topic     string `json:"topic,omitempty"`
	Partition int32  `json:"partition"`
	Seq       int64  `json:"seq"` // -1: the line does not say
	Problem   string `json:"problem"`
}

// String returns the fault as one line.
func (f LineFault) String() string {
	at := fmt.Sprintf("%s: line %d", f.File, f.Line)
	if f.Seq < 0 {
		return at + ": " + f.Problem
	}
	return fmt.Sprintf("%s: %.80q in %.80q/%d, seq %d: %s", at, f.Tenant, f.Topic, f.Partition, f.Seq, f.Problem)
}

// A LineLog is what lines say of one log.
type LineLog struct {
	Tenant    string `json:"tenant"`
	Topic     string `json:"topic"`
	TopicID   string `json:"topicId"`
	Partition int32  `json:"partition"`
	Rows      int64  `json:"rows"`    // each once
	First     int64  `json:"first"`   // the lowest seq
	Last      int64  `json:"last"`    // the highest
	RowHash   string `json:"rowHash"` // of the last: what a head of the archive can be held against
}

// A LinesReport is what was found in exported lines.
type LinesReport struct {
	OK         bool  `json:"ok"`
	Lines      int64 `json:"lines"`
	Recomputed int64 `json:"recomputed"` // rows whose row_hash was computed from the line, and is right
	// Not are rows whose row_hash was not computed, by the reason: what a line says of
	// itself, which who changes it can say too. "erased", "scrubbed", "keyed" (its key
	// is not at hand), "large" (of more than 16 MiB).
	Not        map[string]int64 `json:"notRecomputed"`
	Repeats    int64            `json:"repeats"` // lines that are there once more, word for word of the chain
	FaultCount int64            `json:"faultCount"`
	Faults     []LineFault      `json:"faults"` // the first 1,000
	Logs       []LineLog        `json:"logs"`   // in the order in which they were met
}

// CheckOptions say what lines must be.
type CheckOptions struct {
	// Partial lets rows be missing, as in the answer to a query: what is there is
	// still checked, and so is that rows of a log that follow each other fit.
	Partial bool
	Keys    chain.Keys // of keyed logs; without one, the hashes of their rows are not recomputed
}

// A LineChecker checks lines that [NewJSONL] wrote, without the archive: of each
// log, that seq goes up by one, that each row's prevHash is the rowHash of the row
// before, and that the rowHash is that of the columns that the line shows. So a row
// that is missing, moved, put in, or changed in a column is found; docs/export-formats.md
// says what is not.
//
// The row hash is not recomputed where the line cannot show all that it covers: of
// rows that were erased, scrubbed, or of a log whose key is not at hand.
//
// What it keeps is a few numbers for each log, and two hashes for each hole.
type LineChecker struct {
	o       CheckOptions
	report  LinesReport
	logs    map[chain.Log]*lineLog
	order   []*lineLog
	hashers *chain.Hashers
}

// NewLineChecker returns a LineChecker.
func NewLineChecker(o CheckOptions) *LineChecker {
	return &LineChecker{o: o, report: LinesReport{Not: map[string]int64{}}, logs: map[chain.Log]*lineLog{}, hashers: chain.NewHashers(o.Keys)}
}

// A lineLog is where a log stands.
type lineLog struct {
	LineLog
	next  int64 // seq that is expected
	head  chain.Hash
	holes []hole // ascending
}

// A hole is a stretch of seq that is missing so far, and what it must fit between.
type hole struct {
	from, to int64          // inclusive
	before   chain.NullHash // rowHash of from-1; null where that was not seen
	behind   chain.Hash     // prevHash of to+1
	fault    LineFault      // where it was noticed
	filled   bool           // nothing is missing any more
}

// An exportedLine is what is read of a line.
type exportedLine struct {
	Envelope struct {
		ArchiveID       string   `json:"archiveId"`
		Tenant          string   `json:"tenant"`
		Topic           string   `json:"topic"`
		TopicID         string   `json:"topicId"`
		Partition       int32    `json:"partition"`
		Seq             *int64   `json:"seq"`
		Kind            string   `json:"kind"`
		Scheme          string   `json:"scheme"`
		Offset          *int64   `json:"offset"`
		KafkaTimestamp  string   `json:"kafkaTimestamp"`
		ArchivedAt      string   `json:"archivedAt"`
		PrevHash        hexHash  `json:"prevHash"`
		RowHash         hexHash  `json:"rowHash"`
		UserCommit      *hexHash `json:"userCommit"`
		PayloadCommit   hexHash  `json:"payloadCommit"`
		RedactionPolicy *string  `json:"redactionPolicy"`
	} `json:"$ledgerlake"`
	Redaction json.RawMessage `json:"$redaction"`
	Kind      json.RawMessage `json:"kind"`
}

// A hexHash is a hash as 64 hex digits in lower case.
type hexHash chain.Hash

// UnmarshalText reads the digits.
func (h *hexHash) UnmarshalText(text []byte) error {
	if len(text) != 2*len(h) || strings.ToLower(string(text)) != string(text) {
		return errors.New("a hash is not 64 hex digits in lower case")
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// Read checks the lines of one file, which continues those that were read before.
// The error is that of reading; what is wrong with lines is in the report.
func (c *LineChecker) Read(name string, r io.Reader) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	var buf []byte
	for n := int64(1); ; n++ {
		text, err := readLine(lines, buf[:0])
		buf = text
		switch {
		case errors.Is(err, io.EOF) && len(text) == 0:
			return nil
		case errors.Is(err, errLong):
			c.fault(LineFault{File: name, Line: n, Seq: -1, Problem: fmt.Sprintf("it is longer than %d bytes", MaxLine)})
		case err != nil && !errors.Is(err, io.EOF):
			return fmt.Errorf("%s: %w", name, err)
		case err != nil:
			c.fault(LineFault{File: name, Line: n, Seq: -1, Problem: "it does not end in a line feed: the file was cut"})
		}
		c.report.Lines++
		if err == nil {
			c.line(LineFault{File: name, Line: n, Seq: -1}, bytes.TrimSuffix(text, []byte("\r")))
		}
	}
}

var errLong = errors.New("the line is too long")

// readLine returns the next line without its line feed. With io.EOF it returns what
// is left.
func readLine(r *bufio.Reader, buf []byte) ([]byte, error) {
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(buf)+len(part) > MaxLine; !long {
			buf = append(buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long && (err == nil || errors.Is(err, io.EOF)):
			return buf[:0:0], errLong
		case err != nil:
			return buf, err
		default:
			return buf[:len(buf)-1], nil
		}
	}
}

func (c *LineChecker) fault(f LineFault) {
	c.report.FaultCount++
	if len(c.report.Faults) < maxFaults {
		c.report.Faults = append(c.report.Faults, f)
	}
}

// line checks one line; at says where it stands.
func (c *LineChecker) line(at LineFault, text []byte) {
	var l exportedLine
	if err := json.Unmarshal(text, &l); err != nil {
		at.Problem = fmt.Sprintf("it is no exported row: %v", err)
		c.fault(at)
		return
	}
	e := &l.Envelope
	if e.Seq == nil || e.RowHash == (hexHash{}) {
		if !rotates(l.Kind) { // a line that a chained file has for itself
			at.Problem = "it has no $ledgerlake: what is exported bare cannot be checked"
			c.fault(at)
		}
		return
	}
	at.Tenant, at.Topic, at.Partition, at.Seq = e.Tenant, e.Topic, e.Partition, *e.Seq
	if name := twice(text); name != "" {
		at.Problem = fmt.Sprintf("it says %.80q in two ways, of which readers take one or the other", name)
		c.fault(at)
	}
	c.place(at, &l)
	switch not, err := c.recompute(&l, text); {
	case err != nil:
		at.Problem = err.Error()
		c.fault(at)
	case not != "":
		c.report.Not[not]++
	default:
		c.report.Recomputed++
	}
}

// twice returns the name of a member of ours, or of one in $ledgerlake, that a line has
// twice or in other letters; "" if there is none.
func twice(text []byte) string {
	seen := map[string]bool{}
	for name, value := range audit.Members(text) {
		switch lower := fold(name); {
		case !strings.HasPrefix(name, "$") || strings.HasPrefix(name, "$$"):
		case seen[lower], lower != name && (lower == "$ledgerlake" || lower == "$redaction"):
			return name
		case lower == "$ledgerlake":
			seen[lower] = true
			in := map[string]bool{}
			for name := range audit.Members(value) {
				if in[fold(name)] {
					return name
				}
				in[fold(name)] = true
			}
		default:
			seen[lower] = true
		}
	}
	return ""
}

// fold returns what names have in common that encoding/json takes for the same.
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// place holds a line against the others of its log.
func (c *LineChecker) place(at LineFault, l *exportedLine) {
	e := &l.Envelope
	seq, prev, row := *e.Seq, chain.Hash(e.PrevHash), chain.Hash(e.RowHash)
	id := chain.Log{ArchiveID: e.ArchiveID, Tenant: e.Tenant, Topic: e.Topic, TopicID: e.TopicID, Partition: e.Partition}
	log := c.logs[id]
	if log == nil {
		log = &lineLog{LineLog: LineLog{Tenant: e.Tenant, Topic: e.Topic, TopicID: e.TopicID, Partition: e.Partition, First: seq}, next: seq}
		c.logs[id] = log
		c.order = append(c.order, log)
	} else if seq == log.next && prev != log.head && log.Rows > 0 {
		at.Problem = fmt.Sprintf("prevHash is %v, and not the rowHash %v of seq %d", prev, log.head, seq-1)
		c.fault(at)
	}
	switch {
	case seq < log.next:
		c.late(at, log, seq, prev, row)
		return
	case seq > log.next && !c.o.Partial:
		at.Problem = missing(log.next, seq-1)
		log.holes = append(log.holes, hole{from: log.next, to: seq - 1, before: chain.NullHash{Hash: log.head, Valid: true}, behind: prev, fault: at})
	}
	log.Rows++
	log.Last, log.RowHash = seq, hex.EncodeToString(row[:])
	log.next, log.head = seq+1, row
}

func missing(from, to int64) string {
	if from == to {
		return fmt.Sprintf("seq %d, in front of it, is missing", from)
	}
	return fmt.Sprintf("seq %d to %d, in front of it, are missing", from, to)
}

// late takes a row that stands behind one with a higher seq: it is out of order, or
// one that is there already.
func (c *LineChecker) late(at LineFault, log *lineLog, seq int64, prev, row chain.Hash) {
	i, _ := slices.BinarySearchFunc(log.holes, seq, func(h hole, seq int64) int { return cmp.Compare(h.to, seq) })
	if i == len(log.holes) || log.holes[i].from > seq || log.holes[i].filled {
		i = -1
	}
	switch {
	case seq == log.next-1 && row == log.head:
		c.report.Repeats++
		return
	case i < 0 && (c.o.Partial || seq >= log.First):
		at.Problem = fmt.Sprintf("it stands behind seq %d: it is out of order, or there twice", log.next-1)
		c.fault(at)
		return
	case i < 0:
		log.First = seq
		at.Problem = fmt.Sprintf("it stands behind seq %d: it is out of order", log.next-1)
		c.fault(at)
		log.Rows++
		return
	}
	h := log.holes[i]
	at.Problem = fmt.Sprintf("it stands behind seq %d: it is out of order", log.next-1)
	if h.from == seq && h.before.Valid && h.before.Hash != prev || h.to == seq && h.behind != row {
		at.Problem += ", and does not fit between its neighbours"
	}
	c.fault(at)
	log.Rows++
	switch left := h.without(seq, prev, row); len(left) {
	case 0:
		log.holes[i].filled = true
	case 1:
		log.holes[i] = left[0]
	default:
		log.holes = slices.Replace(log.holes, i, i+1, left...)
	}
}

// without returns what is left of a hole once a row of it was found.
func (h hole) without(seq int64, prev, row chain.Hash) (left []hole) {
	if h.from < seq {
		a := h
		a.to, a.behind = seq-1, prev
		left = append(left, a)
	}
	if seq < h.to {
		b := h
		b.from, b.before = seq+1, chain.NullHash{Hash: row, Valid: true}
		left = append(left, b)
	}
	for i := range left {
		left[i].fault.Problem = missing(left[i].from, left[i].to)
	}
	return left
}

// Report returns what was found in all that was read.
func (c *LineChecker) Report() *LinesReport {
	r := c.report
	r.Faults, r.Not = slices.Clone(r.Faults), maps.Clone(r.Not)
	for _, log := range c.order {
		r.Logs = append(r.Logs, log.LineLog)
		for _, h := range log.holes {
			if h.filled {
				continue
			}
			r.FaultCount++
			if len(r.Faults) < maxFaults {
				r.Faults = append(r.Faults, h.fault)
			}
		}
	}
	slices.SortStableFunc(r.Faults, func(a, b LineFault) int {
		if a.File != b.File {
			return 0
		}
		return int(a.Line - b.Line)
	})
	r.OK = r.FaultCount == 0
	return &r
}

// recompute computes the hash of a row from what its line shows. not says why the
// line does not show enough for that.
func (c *LineChecker) recompute(l *exportedLine, text []byte) (not string, err error) {
	e := &l.Envelope
	switch {
	case l.Redaction != nil:
		return "erased", nil
	case e.RedactionPolicy != nil && *e.RedactionPolicy != audit.PolicyNone:
		return "scrubbed", nil
	case len(text) > audit.MaxValueBytes:
		return "large", nil
	}
	scheme := e.Scheme
	if scheme == "" {
		scheme = chain.SchemeV1
	}
	h, err := c.hashers.For(scheme, chain.Log{ArchiveID: e.ArchiveID, Tenant: e.Tenant, Topic: e.Topic, TopicID: e.TopicID, Partition: e.Partition})
	if errors.Is(err, chain.ErrNoKey) {
		return "keyed", nil
	}
	if err != nil {
		return "", err
	}
	row, err := l.row(text)
	if err != nil {
		return "", err
	}
	if got := h.RowHash(row); got != chain.Hash(e.RowHash) {
		return "", fmt.Errorf("rowHash is %v, and %v by what the line says: something in it was changed", chain.Hash(e.RowHash), got)
	}
	return "", nil
}

// row returns the header columns and commitments of a line.
func (l *exportedLine) row(text []byte) (*chain.Row, error) {
	e := &l.Envelope
	row := &chain.Row{PrevHash: chain.Hash(e.PrevHash), PayloadCommit: chain.Hash(e.PayloadCommit)}
	if e.UserCommit != nil {
		row.UserCommit = chain.NullHash{Hash: chain.Hash(*e.UserCommit), Valid: true}
	}
	if err := l.columns(&row.Record, text); err != nil {
		return nil, err
	}
	row.TenantID, row.Topic, row.Partition, row.Seq = audit.Str(e.Tenant), audit.Str(e.Topic), audit.I64(int64(e.Partition)), audit.I64(*e.Seq)
	row.Kind = audit.Str(e.Kind)
	row.KafkaOffset, row.KafkaTimestamp, row.RedactionPolicy = audit.Int{}, audit.Int{}, audit.Text{}
	if e.Offset != nil {
		row.KafkaOffset = audit.I64(*e.Offset)
	}
	if e.RedactionPolicy != nil {
		row.RedactionPolicy = audit.Str(*e.RedactionPolicy)
	}
	for _, t := range []struct {
		text string
		to   *audit.Int
	}{{e.KafkaTimestamp, &row.KafkaTimestamp}, {e.ArchivedAt, &row.ArchivedAt}} {
		if t.text == "" {
			continue
		}
		micros, _, reason := audit.ParseTime(t.text)
		if reason != "" {
			return nil, fmt.Errorf("%.40q is no time", t.text)
		}
		*t.to = audit.I64(micros)
	}
	return row, nil
}

// columns fills in the columns that come from the producer's members.
func (l *exportedLine) columns(r *audit.Record, text []byte) error {
	e := &l.Envelope
	if audit.IsMadeKind(e.Kind) {
		return rejectedColumns(r, text, e.Kind)
	}
	d := audit.Decoder{Control: audit.IsControlKind(e.Kind)}
	m := &audit.Message{
		Topic: e.Topic, Partition: e.Partition, Timestamp: time.Unix(0, 0), Value: producers(text),
		Headers: []audit.MessageHeader{{Name: audit.HeaderTenant, Value: []byte(e.Tenant)}, {Name: audit.HeaderKind, Value: []byte(e.Kind)}},
	}
	if reject := d.Decode(r, m); reject != nil {
		return fmt.Errorf("what it says is no record: %w", reject)
	}
	return nil
}

// producers returns the object of a line without our members, and the producer's
// under their own names.
func producers(text []byte) []byte {
	o := object{[]byte{'{'}}
	for name, value := range audit.Members(text) {
		bare, ours := strings.CutPrefix(name, "$")
		if ours && !strings.HasPrefix(bare, "$") {
			continue
		}
		o.member(bare, value)
	}
	return append(o.b, '}')
}

// rejectedColumns fills in the columns of a row that no producer sent as it is.
func rejectedColumns(r *audit.Record, text []byte, kind string) error {
	*r = audit.Record{}
	if kind != audit.KindRejected {
		return nil
	}
	var o struct {
		RecordID, SessionID, TurnID, StageID, CreatedAt *string
		SeqWithinTurn                                   *int64
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return err
	}
	for _, t := range []struct {
		text *string
		to   *audit.Text
	}{{o.RecordID, &r.RecordID}, {o.SessionID, &r.SessionID}, {o.TurnID, &r.TurnID}, {o.StageID, &r.StageID}} {
		if t.text != nil {
			*t.to = audit.Str(*t.text)
		}
	}
	if o.SeqWithinTurn != nil {
		r.SeqWithinTurn = audit.I64(*o.SeqWithinTurn)
	}
	if o.CreatedAt != nil {
		micros, _, reason := audit.ParseTime(*o.CreatedAt)
		if reason != "" {
			return fmt.Errorf("createdAt: %.40q is no time", *o.CreatedAt)
		}
		r.CreatedAt = audit.I64(micros)
	}
	return nil
}
