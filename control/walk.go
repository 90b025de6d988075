package control

import (
	"fmt"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// An objectRows is what one segment or data file of a control line says.
type objectRows struct {
	ordinal int64 // of a segment; -1 for a data file
	voided  []archive.Voided
	rows    []linkedRow
	broken  error // why it says nothing
}

// A linkedRow is a row with its place in its log.
type linkedRow struct {
	log        chain.Log
	scheme     string
	seq        int64
	epoch      int32
	prev, hash chain.Hash
	wrong      error // why its content is not what its hash commits to
	reset      *archive.Reset
	row        *Row // nil where it is no control row
}

func (lr *lineReader) dataFile(body []byte, f *archive.CatalogFile) (*objectRows, error) {
	file, m, err := archive.OpenDataFile(body, f)
	if err != nil {
		return nil, err
	}
	return lr.rows(file, &objectRows{ordinal: -1}, func(string) string { return m.Scheme })
}

func (lr *lineReader) segment(body []byte, ordinal int64) (*objectRows, error) {
	file, err := archive.OpenForeignSegment(body)
	if err != nil {
		return nil, err
	}
	text, _ := file.Metadata()
	m, err := archive.DecodeSegment(text)
	if err != nil {
		return nil, err
	}
	if m.Line() != lr.line || m.Ordinal != ordinal {
		return nil, fmt.Errorf("it says that it is segment %d of %s/%d", m.Ordinal, m.Topic, m.Partition)
	}
	schemes := make(map[string]string, len(m.Logs))
	for i := range m.Logs {
		schemes[m.Logs[i].Tenant] = m.Logs[i].Scheme
	}
	return lr.rows(file, &objectRows{ordinal: ordinal, voided: m.Voided}, func(tenant string) string { return schemes[tenant] })
}

func (lr *lineReader) rows(file *parquet.File, o *objectRows, scheme func(tenant string) string) (*objectRows, error) {
	hashers := chain.NewHashers(lr.r.o.LogKeys)
	for row, err := range file.Rows() {
		if err != nil {
			return nil, err
		}
		o.rows = append(o.rows, lr.linked(hashers, row, scheme(row.TenantID.S)))
	}
	return o, nil
}

func (lr *lineReader) linked(hashers *chain.Hashers, row *chain.Row, scheme string) linkedRow {
	w := linkedRow{scheme: scheme, seq: row.Seq.N, epoch: int32(row.Epoch.N), prev: row.PrevHash, hash: row.RowHash}
	w.log = chain.Log{ArchiveID: lr.r.o.Root.ArchiveID, Tenant: row.TenantID.S, Topic: lr.line.Topic, TopicID: lr.line.TopicID, Partition: lr.line.Partition}
	hasher, err := hashers.For(scheme, w.log)
	if err == nil {
		err = hasher.Check(row)
	}
	if err == nil && lineOf(row) != lr.line {
		err = fmt.Errorf("it is a row of %s/%d", row.Topic.S, row.Partition.N)
	}
	w.wrong = err
	if row.Kind.S == audit.KindChainReset {
		if w.reset, err = archive.ParseReset(row.Slots[audit.SlotContext]); err != nil {
			w.wrong = err
		}
	}
	if audit.IsControlKind(row.Kind.S) {
		w.row, _ = ParseRow(row) // one that says nothing orders nothing
		if !lr.ring.Empty() {
			w.row.Unsigned = Unsigned(lr.r.o.Root.ArchiveID, lr.ring, row)
		}
	}
	return w
}

// A logWalk goes along the rows of one log.
type logWalk struct {
	anchored archive.AnchorHead // what the anchor states; the zero head where it states nothing
	begun    bool
	proved   bool // the anchor's head was met
	size     int64
	head     chain.Hash
	fault    error
	rows     []*Row // with those behind a fault, which nothing vouches for
	good     int    // of rows: those in front of the fault
}

func (l *logWalk) add(w *linkedRow) {
	if l.follow(w); l.fault == nil && w.row != nil {
		l.good++
	}
	if w.row != nil {
		l.rows = append(l.rows, w.row)
	}
}

// follow moves the head to a row.
func (l *logWalk) follow(w *linkedRow) {
	if l.fault != nil {
		return
	}
	if !l.begun {
		l.begun, l.head = true, chain.Genesis(w.scheme, w.log)
	}
	switch {
	case w.seq != l.size:
		l.fault = fmt.Errorf("seq %d stands where %d belongs", w.seq, l.size)
	case w.wrong != nil:
		l.fault = fmt.Errorf("seq %d: %w", w.seq, w.wrong)
	case w.prev != l.before(w):
		l.fault = fmt.Errorf("seq %d does not follow the row before it", w.seq)
	}
	if l.fault != nil {
		return
	}
	l.size, l.head = w.seq+1, w.hash
	l.meet()
}

// before returns what the prev_hash of a row must be.
func (l *logWalk) before(w *linkedRow) chain.Hash {
	if w.reset == nil {
		return l.head
	}
	if w.reset.PreviousHead != l.head || w.reset.PreviousSize != l.size {
		return chain.Hash{}
	}
	return chain.ResetGenesis(w.scheme, w.log, w.epoch, l.head, l.size, w.reset.Reason)
}

// meet holds the head against the anchor, where it is the one of which it speaks.
func (l *logWalk) meet() {
	switch {
	case l.size != l.anchored.Size:
	case l.head != l.anchored.Head:
		l.fault = fmt.Errorf("its head at size %d is not the one that the newest anchor states", l.size)
	default:
		l.proved = true
	}
}

// end returns what is wrong with the log up to where the anchor leads: what is
// wrong behind it nobody has signed yet.
func (l *logWalk) end() error {
	switch {
	case l.proved, l.anchored.Size == 0:
		return nil
	case l.fault != nil:
		return l.fault
	}
	return fmt.Errorf("it has %d rows, and the newest anchor states %d: restore what is missing", l.size, l.anchored.Size)
}
