package sqlview

import "github.com/ledgerlake/ledgerlake/audit"

// A kind is the type of a column, as docs/format.md has it.
type kind int

const (
	text kind = iota
	binary
	int32Kind
	int64Kind
	timestamp
	list // of texts
	double
	boolean
	date
)

// A column is one of an archive's objects.
type column struct {
	name string
	kind kind
}

// columns are all columns of an object: header, slots, chain, derived. Source:
// docs/format.md, section 3.
var columns = func() (all []column) {
	kinds := map[audit.ColumnType]kind{audit.String: text, audit.Int32: int32Kind, audit.Int64: int64Kind, audit.Time: timestamp}
	for _, h := range audit.Header {
		all = append(all, column{h.Name, kinds[h.Type]})
	}
	for s := range audit.NumSlots {
		k := text
		if s == audit.SlotRaw {
			k = binary
		}
		all = append(all, column{s.String(), k})
	}
	for _, name := range []string{"prev_hash", "row_hash", "payload_commit", "user_commit", "row_salt", "user_salt"} {
		all = append(all, column{name, binary})
	}
	for _, name := range []string{"user_id", "residual", "redaction", "redaction_id", "topic_id"} {
		all = append(all, column{name, text})
	}
	return append(all, column{"epoch", int32Kind}, column{"requested_model", text}, column{"selected_reason", text},
		column{"rung_ordinal", int64Kind}, column{"fallback_chain", list}, column{"repeat_of", int64Kind})
}()
