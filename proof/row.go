package proof

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// checkRow checks one row against its log, its kind and itself.
func (c *checker) checkRow(l *logDigest, row *chain.Row) {
	c.place(l, row)
	c.content(l, row)
	c.kind(l, row)
	c.link(l, row)
	c.erasure(l, row)
	if err := checkText(row); err != nil {
		c.rowFault(l, row, FaultColumn, err.Error())
	}
}

// place checks that the row is of the segment's line.
func (c *checker) place(l *logDigest, row *chain.Row) {
	m := c.meta
	switch {
	case row.Topic.S != m.Topic:
		c.rowFault(l, row, FaultColumn, "topic is not that of the segment")
	case row.TopicID.S != m.TopicID:
		c.rowFault(l, row, FaultColumn, "topic_id is not that of the segment")
	case row.Partition.N != int64(m.Partition):
		c.rowFault(l, row, FaultColumn, "partition is not that of the segment")
	case row.RepeatOf.Valid:
		c.rowFault(l, row, FaultColumn, "repeat_of is set, which only compaction does")
	}
	if !equalDerived(&row.Derived, row.Slots[audit.SlotDecision]) {
		c.rowFault(l, row, FaultColumn, "a derived column does not say what the decision slot says")
	}
}

// content recomputes commitments and row_hash from what is stored. Without the
// key of a keyed log it leaves row_hash out.
func (c *checker) content(l *logDigest, row *chain.Row) {
	if !row.RowSalt.Valid {
		c.rowFault(l, row, FaultState, "the row is erased; in a segment all rows are live")
		return
	}
	hasher, keyless := c.hasherOf(l)
	err := hasher.Check(row)
	var f *chain.Fault
	if !errors.As(err, &f) {
		return
	}
	switch {
	case f.Column == "row_hash" && keyless:
	case f.Column == "row_hash" && l.stated.Scheme == chain.SchemeHMACv1:
		c.rowFault(l, row, FaultRowHash, "row_hash is not the hash of the row's header, commitments and prev_hash under the key that was given for the log: the row was changed, or the key is another one")
	case f.Column == "row_hash":
		c.rowFault(l, row, FaultRowHash, "row_hash is not the hash of the row's header, commitments and prev_hash")
	case f.Column == "payload_commit":
		c.rowFault(l, row, FaultContent, "payload_commit is not the commitment to the row's slots")
	case f.Column == "user_commit":
		c.rowFault(l, row, FaultContent, "user_commit is not the commitment to the row's user_id")
	default:
		c.rowFault(l, row, FaultState, f.Error())
	}
}

// hasherOf returns the hasher of a log; the plain one where the log is keyed and
// its key was not given.
func (c *checker) hasherOf(l *logDigest) (h *chain.Hasher, keyless bool) {
	h, err := c.hashers.For(l.stated.Scheme, c.log(l.stated.Tenant))
	if err == nil {
		return h, false
	}
	h, _ = c.hashers.For(chain.SchemeV1, chain.Log{})
	return h, true
}

// link checks that the row follows the one before it in its log, and moves on.
func (c *checker) link(l *logDigest, row *chain.Row) {
	reset := row.Kind.S == audit.KindChainReset
	switch {
	case reset:
		c.reset(l, row)
	case row.PrevHash != l.head:
		c.rowFault(l, row, FaultLink, "prev_hash is not the row_hash of the row before it in its log")
		l.torn = true
	}
	if row.Seq.N != l.next {
		c.rowFault(l, row, FaultLink, fmt.Sprintf("seq %d stands where %d belongs", row.Seq.N, l.next))
		l.torn = true
	}
	c.epoch(l, row, reset)
	if l.rows > 0 && row.ArchivedAt.N < l.newest {
		c.rowFault(l, row, FaultTime, "archived_at is before that of the row before it in its log")
	}
	l.newest = row.ArchivedAt.N
	l.head, l.next = row.RowHash, row.Seq.N+1
	l.hashes = append(l.hashes, row.RowHash)
}

// epoch checks that the epoch changes where a chain-reset row stands, and only
// there. Whether the first row's fits the log is for the state of the line.
func (c *checker) epoch(l *logDigest, row *chain.Row, reset bool) {
	epoch := int32(row.Epoch.N)
	want := l.epoch
	if reset {
		want++
	}
	switch {
	case l.rows == 0:
		l.first = firstRow{reset, epoch, row.ArchivedAt.N, row.RecordID.S, offsetOf(row)}
	case epoch != want:
		c.rowFault(l, row, FaultReset, fmt.Sprintf("epoch %d stands where %d belongs", epoch, want))
	}
	l.epoch = epoch
}

// reset checks the first row of an epoch: its context says what came before,
// and its prev_hash is the genesis that commits to that.
func (c *checker) reset(l *logDigest, row *chain.Row) {
	c.d.resets++
	reason, head, size, voided, err := readReset(row.Slots[audit.SlotContext])
	switch {
	case err != nil:
		c.rowFault(l, row, FaultReset, "context: "+err.Error())
	case !slices.Equal(voided, c.meta.Voided):
		c.rowFault(l, row, FaultReset, "the row and the segment's metadata do not declare the same segments voided")
	case head != l.head || size != l.next:
		c.rowFault(l, row, FaultReset, fmt.Sprintf("the new epoch begins behind another row than the log's last one, seq %d", l.next-1))
	case row.PrevHash != chain.ResetGenesis(l.stated.Scheme, c.log(l.stated.Tenant), int32(row.Epoch.N), head, size, reason):
		c.rowFault(l, row, FaultReset, "prev_hash is not the genesis of the new epoch")
	default:
		return
	}
	l.torn = true
}

func readReset(context []byte) (reason audit.Text, head chain.Hash, size int64, voided []archive.Voided, err error) {
	err = readDocument(context,
		field{Name: "reason", Read: func(d *document) { reason = d.NullStr() }},
		field{Name: "previousHead", Read: func(d *document) { head = d.Hash() }},
		field{Name: "previousSize", Read: func(d *document) { size = d.Count() }},
		field{Name: "voided", Read: func(d *document) { voided = readVoided(d) }})
	return reason, head, size, voided, err
}

// kind checks what a row's kind asks of its columns.
func (c *checker) kind(l *logDigest, row *chain.Row) {
	kind, fault := row.Kind.S, func(k FaultKind, text string) { c.rowFault(l, row, k, text) }
	control, data := audit.IsControlKind(kind), isData(kind)
	c.d.data = c.d.data || data
	if control && c.d.control == nil {
		c.d.control = &Fault{Kind: FaultColumn, Key: c.o.key, Line: &c.at, Ordinal: c.o.ordinal, Text: "a control row in a line of data rows"}
		locate(c.d.control, row)
	}
	if control {
		c.d.controls = append(c.d.controls, c.v.readControl(row))
	}
	switch {
	case kind == audit.KindRejected:
		c.rejected(l, row)
	case kind == audit.KindGap:
		c.gap(l, row)
	case !control && !data && kind != audit.KindChainReset:
		fault(FaultColumn, fmt.Sprintf("kind %.40q is unknown", kind))
	}
	if made := isMade(kind); made == row.KafkaOffset.Valid || made == row.KafkaTimestamp.Valid {
		fault(FaultColumn, "kafka_offset and kafka_timestamp are null in rows that ingest made and nowhere else")
	}
	if data != row.RedactionPolicy.Valid && (control || data || isMade(kind) || kind == audit.KindRejected) {
		fault(FaultColumn, "redaction_policy is null in rejected, made and control rows and nowhere else")
	}
	if row.Slots[audit.SlotRaw] != nil && kind != audit.KindRejected {
		fault(FaultColumn, "raw is set, which only rejected rows have")
	}
	if data && audit.IsReservedTenant(row.TenantID.S) {
		fault(FaultColumn, "a producer's row in the log of a reserved tenant")
	}
}

// rejected checks that a rejected row describes the record that it keeps.
func (c *checker) rejected(l *logDigest, row *chain.Row) {
	r, err := readReject(row.Slots[audit.SlotContext])
	if err != nil {
		c.rowFault(l, row, FaultReject, "context: "+err.Error())
		return
	}
	c.d.rejects[r.reason]++
	if err := r.check(row.Slots[audit.SlotRaw]); err != nil {
		c.rowFault(l, row, FaultReject, err.Error())
	}
}

// A reject is what the context of a rejected row says of its record.
type reject struct {
	reason string
	size   int64       // bytes
	sum    *chain.Hash // nil where the value was null
}

func readReject(context []byte) (r reject, err error) {
	err = readDocument(context,
		field{Name: "reason", Read: func(d *document) {
			if r.reason = d.Str(); !d.Failed() && !slices.Contains(audit.Reasons, audit.Reason(r.reason)) {
				d.Fail("%.40q is no known class", r.reason)
			}
		}},
		field{Name: "detail", Read: func(d *document) { d.Str() }},
		field{Name: "size", Read: func(d *document) { r.size = d.Count() }},
		field{Name: "sha256", Read: func(d *document) { r.sum = d.NullHash() }},
		field{Name: "key", Optional: true, Read: (*document).Skip}, // both are left out where they are too large
		field{Name: "headers", Optional: true, Read: func(d *document) { d.Array((*document).Skip) }})
	return r, err
}

// check compares a reject with the bytes that were kept. Without them only a
// null value, or one of more than 16 MiB, is right.
func (r reject) check(raw []byte) error {
	switch {
	case r.sum == nil && (raw != nil || r.size != 0):
		return errors.New("context has no sha256, which is so for a null value only, and there is something of one")
	case r.sum == nil:
		return nil
	case raw == nil && r.size <= audit.MaxValueBytes:
		return errors.New("raw is null, and the record was neither null nor larger than 16 MiB")
	case raw == nil:
		return nil
	case int64(len(raw)) != r.size:
		return fmt.Errorf("raw has %d bytes, context says %d", len(raw), r.size)
	case *r.sum != sha256.Sum256(raw):
		return errors.New("raw does not have the sha256 that context states")
	}
	return nil
}

// gap checks that a gap row tells of a lost stretch of its segment, and that
// no other one does.
func (c *checker) gap(l *logDigest, row *chain.Row) {
	g, err := readGapRow(row.Slots[audit.SlotContext])
	switch {
	case err != nil:
		c.rowFault(l, row, FaultGap, "context: "+err.Error())
	case !c.lost[g]:
		c.rowFault(l, row, FaultGap, fmt.Sprintf("the row tells of offsets %d to %d, which are no lost gap of the segment", g[0], g[1]))
	default:
		delete(c.lost, g)
	}
	if row.TenantID.S != audit.TenantPartition {
		c.rowFault(l, row, FaultGap, fmt.Sprintf("a gap row outside the log of tenant %s", audit.TenantPartition))
	}
}

// readGapRow reads which offsets a gap row tells of.
func readGapRow(context []byte) (g [2]int64, err error) {
	err = readDocument(context,
		field{Name: "from", Read: func(d *document) { g[0] = d.Count() }},
		field{Name: "to", Read: func(d *document) { g[1] = d.Count() }},
		field{Name: "cause", Read: func(d *document) { d.Str() }})
	return g, err
}

// erasure names a row that a receipt calls erased, and that is still there.
func (c *checker) erasure(l *logDigest, row *chain.Row) {
	if l.names == nil {
		return
	}
	if names := l.names.At(row.Seq.N); len(names) > 0 && row.RowSalt.Valid {
		if how, text := judgeErasure(c.v.governs.Tenant(row.TenantID.S), row, chain.Live, names, nil); how == disordered {
			c.rowFault(l, row, FaultErasure, text)
		}
	}
}

// equalDerived derives the columns that repeat the decision slot again.
func equalDerived(stored *audit.Derived, decision []byte) bool {
	want := audit.Derive(decision)
	return stored.RequestedModel == want.RequestedModel && stored.SelectedReason == want.SelectedReason &&
		stored.RungOrdinal == want.RungOrdinal && slices.Equal(stored.FallbackChain, want.FallbackChain) &&
		(stored.FallbackChain == nil) == (want.FallbackChain == nil)
}

// checkText returns an error naming the first column whose text is not valid
// UTF-8. The slot raw is bytes.
func checkText(row *chain.Row) error {
	for i := range audit.Header {
		if text := audit.Header[i].Text; text != nil && !utf8.ValidString(text(&row.Record).S) {
			return fmt.Errorf("%s is not valid UTF-8", audit.Header[i].Name)
		}
	}
	for s := range audit.SlotRaw {
		if !utf8.Valid(row.Slots[s]) {
			return fmt.Errorf("%s is not valid UTF-8", s)
		}
	}
	if !utf8.ValidString(row.UserID.S) {
		return errors.New("user_id is not valid UTF-8")
	}
	return nil
}

// isData reports whether a producer's record can give rows of a kind.
func isData(kind string) bool {
	switch kind {
	case audit.KindCall, audit.KindDecision, audit.KindLLMRequest, audit.KindLLMResponse, audit.KindToolCall, audit.KindWorldMutation,
		audit.KindPolicyDecision, audit.KindSourceChainReset, audit.KindSourceRotation, audit.KindQueueDropped:
		return true
	}
	return false
}

// isMade reports whether rows of a kind have no offset, for ingest itself makes
// them of nothing that Kafka delivered. A rejected row has one.
func isMade(kind string) bool { return kind == audit.KindGap || kind == audit.KindChainReset }
