package audit

import (
	"crypto/sha256"
	"hash"
	"math"
	"strconv"
	"sync"
)

// A Fingerprint is the first 16 bytes of a SHA-256: two that are equal are of
// equal things.
type Fingerprint [16]byte

// CoordinateColumns are the columns on which [Record.Coordinates] depends.
var CoordinateColumns = []string{
	"tenant_id", "kind", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn",
}

// Coordinates returns the fingerprint of what tells a row from all others of
// its tenant, by which a repeat of it is known:
//
//	call                                session_id, turn_id, stage_id, seq_within_turn
//	decision                            turn_id
//	interaction, administrative entry   turn_id, seq_within_turn, kind
//	control                             record_id
//
// It returns false for a row without them: one that is rejected, made or
// erased hard, and an administrative entry that belongs to no trace. Equal
// coordinates under different titles of the list are different. It depends on
// columns alone, so it is the same for a row that is read back.
func (r *Record) Coordinates() (Fingerprint, bool) {
	buf := make([]byte, 0, 320)
	buf = append(buf, "ledgerlake.coordinates.v1\n"...)
	buf = appendText(buf, r.TenantID)
	switch kind := r.Kind.S; {
	case kind == KindCall:
		if !r.SessionID.Valid || !r.TurnID.Valid || !r.StageID.Valid || !r.SeqWithinTurn.Valid {
			return Fingerprint{}, false
		}
		buf = append(buf, "call\n"...)
		buf = appendText(appendText(appendText(buf, r.SessionID), r.TurnID), r.StageID)
		buf = appendInt(buf, r.SeqWithinTurn)
	case kind == KindDecision:
		if !r.TurnID.Valid {
			return Fingerprint{}, false
		}
		buf = append(buf, "decision\n"...)
		buf = appendText(buf, r.TurnID)
	case IsControlKind(kind):
		if !r.RecordID.Valid {
			return Fingerprint{}, false
		}
		buf = append(buf, "control\n"...)
		buf = appendText(buf, r.RecordID)
	default:
		if IsMadeKind(kind) || !r.TurnID.Valid || !r.SeqWithinTurn.Valid {
			return Fingerprint{}, false
		}
		buf = append(buf, "entry\n"...)
		buf = appendText(appendInt(appendText(buf, r.TurnID), r.SeqWithinTurn), r.Kind)
	}
	return fingerprintOf(sha256.Sum256(buf)), true
}

func fingerprintOf(sum [32]byte) Fingerprint { return Fingerprint(sum[:16]) }

// appendText appends a column so that no two lists of columns have equal bytes.
// It is T of docs/format.md, section 2.
func appendText(dst []byte, t Text) []byte {
	if !t.Valid {
		return append(dst, "n,"...)
	}
	return appendCounted(dst, t.S)
}

func appendCounted[T string | []byte](dst []byte, b T) []byte {
	dst = append(dst, 's')
	dst = strconv.AppendInt(dst, int64(len(b)), 10)
	dst = append(dst, ':')
	dst = append(dst, b...)
	return append(dst, ',')
}

func appendInt(dst []byte, i Int) []byte {
	if !i.Valid {
		return append(dst, "n,"...)
	}
	dst = append(dst, 'i')
	dst = strconv.AppendInt(dst, i.N, 10)
	return append(dst, ',')
}

// The header columns that are content: 8 to 30 of docs/format.md, but for
// record_id and created_at, which a producer may choose anew for a repeat.
const (
	firstContentColumn = 7
	endOfContent       = 30
)

func isContent(column string) bool { return column != "record_id" && column != "created_at" }

// A digest is a SHA-256 under way, and a buffer to write to it from.
type digest struct {
	hash hash.Hash
	buf  []byte
	sum  [sha256.Size]byte
}

var digests = sync.Pool{New: func() any { return &digest{hash: sha256.New()} }}

// ContentHash returns the fingerprint of what a row says: two rows of equal
// coordinates and equal content are the same record, sent twice. Content is
// header columns 8 to 30 but record_id and created_at, the user, and the slots;
// of ext all but $headers, $key, recordId and the member that created_at comes
// by. It depends on stored columns alone, and a row that was erased has another
// content than it had.
func (r *Record) ContentHash() Fingerprint {
	d := digests.Get().(*digest)
	defer digests.Put(d)
	d.hash.Reset()
	d.buf = append(d.buf[:0], "ledgerlake.content.v1\n"...)
	for i := firstContentColumn; i < endOfContent; i++ {
		switch c := &Header[i]; {
		case !isContent(c.Name):
		case c.Text != nil:
			d.buf = appendText(d.buf, *c.Text(r))
		default:
			d.buf = appendInt(d.buf, *c.Int(r))
		}
	}
	d.buf = appendText(d.buf, r.UserID)
	for s := range NumSlots {
		if s == SlotExt {
			d.writeExt(r)
		} else {
			d.writeSlot(r.Slots[s])
		}
	}
	d.flush()
	d.hash.Sum(d.sum[:0])
	return fingerprintOf(d.sum)
}

func (d *digest) flush() {
	d.hash.Write(d.buf)
	d.buf = d.buf[:0]
}

// writeSlot writes a slot as appendText would, without a copy of a large one.
func (d *digest) writeSlot(slot []byte) {
	if slot == nil {
		d.buf = append(d.buf, "n,"...)
		return
	}
	d.buf = append(d.buf, 's')
	d.buf = strconv.AppendInt(d.buf, int64(len(slot)), 10)
	d.buf = append(d.buf, ':')
	if len(slot) > bigBuffer {
		d.flush()
		d.hash.Write(slot)
	} else {
		d.buf = append(d.buf, slot...)
	}
	d.buf = append(d.buf, ',')
}

// writeExt writes what is content of ext, member by member; one without such
// members as null. An ext that no decoder made is content as a whole.
func (d *digest) writeExt(r *Record) {
	w := workspaces.Get().(*workspace)
	defer w.release()
	if !w.scanExt(r) {
		d.writeSlot(r.Slots[SlotExt])
		return
	}
	created := shapeOf(r.Kind.S).created
	written := false
	for i := range w.scan.top {
		m := &w.scan.top[i]
		if name := w.scan.nameOf(m); isExtContent(name, created) {
			d.buf = append(d.buf, 'm')
			d.buf = appendCounted(d.buf, name)
			d.writeSlot(w.scan.raw(m))
			written = true
		}
	}
	if !written {
		d.writeSlot(nil)
	}
}

// ExtContent calls f for each member of ext that is content, as
// [Record.ContentHash] has it: with its name, and its value as it is written. It
// reports false, and calls nothing, where ext is null or not the text of an
// object that a decoder would let pass.
func (r *Record) ExtContent(f func(name string, value []byte)) bool {
	w := workspaces.Get().(*workspace)
	defer w.release()
	if !w.scanExt(r) {
		return false
	}
	created := shapeOf(r.Kind.S).created
	for i := range w.scan.top {
		m := &w.scan.top[i]
		if name := w.scan.nameOf(m); isExtContent(name, created) {
			f(string(name), w.scan.raw(m))
		}
	}
	return true
}

// scanExt scans a record's ext, and reports whether it is an object.
func (w *workspace) scanExt(r *Record) bool {
	ext := r.Slots[SlotExt]
	return ext != nil && len(ext) <= math.MaxInt32 && w.scan.scan(ext, 0) == nil && w.scan.root == typeObject
}

// isExtContent says whether a member of ext is content; created is the member
// that created_at comes by.
func isExtContent(name []byte, created string) bool {
	switch string(name) {
	case "$headers", "$key", "recordId", created:
		return false
	}
	return true
}
