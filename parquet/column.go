package parquet

import (
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A kind is a column's type: physical, logical and in Go.
type kind uint8

const (
	kindText   kind = iota // BYTE_ARRAY, String
	kindBinary             // BYTE_ARRAY
	kindInt32              // INT32
	kindInt64              // INT64
	kindTime               // INT64, TIMESTAMP(MICROS, UTC)
	kindHash               // FIXED_LEN_BYTE_ARRAY(32)
	kindList               // LIST of kindText, in three levels
)

// size returns how many bytes a value takes, or 0 where each has its own length.
func (k kind) size() int {
	switch k {
	case kindInt32:
		return 4
	case kindInt64, kindTime:
		return 8
	case kindHash:
		return hashSize
	default:
		return 0
	}
}

// A column is one column of docs/format.md, section 3. Exactly one of its
// accessors is set.
type column struct {
	name     string
	kind     kind
	required bool
	// sealed keeps values out of everything but data pages: no statistics, no
	// bounds, no dictionary.
	sealed bool
	// dict writes a dictionary: for columns of few values. Ids are written
	// plain, for a dictionary would be as long as the column.
	dict bool
	// bloom allows a bloom filter. Never on hashes: DuckDB 1.5 answers an
	// equality on a binary column wrongly by it.
	bloom bool

	text func(*chain.Row) *audit.Text
	num  func(*chain.Row) *audit.Int
	slot func(*chain.Row) *[]byte
	hash func(*chain.Row) *chain.Hash
	null func(*chain.Row) *chain.NullHash // a hash that may be null
	list func(*chain.Row) *[]string
}

// unbounded reports whether a column has no bounds: sealed ones must not, and
// in a list nobody looks for any.
func (c *column) unbounded() bool { return c.sealed || c.kind == kindList }

// columns are all columns of an object, in the order in which they are written:
// header, slots, chain, derived.
var columns = func() []column {
	all := headerColumns()
	all = append(all, slotColumns()...)
	all = append(all, chainColumns...)
	return append(all, derivedColumns...)
}()

// columnByName maps a column's name to its place in columns.
var columnByName = func() map[string]int {
	m := make(map[string]int, len(columns))
	for i := range columns {
		m[columns[i].name] = i
	}
	return m
}()

// ids are the text columns whose values hardly repeat.
var ids = map[string]bool{"record_id": true, "session_id": true, "turn_id": true, "parent_turn_id": true}

func headerColumns() []column {
	kinds := map[audit.ColumnType]kind{
		audit.String: kindText, audit.Int32: kindInt32, audit.Int64: kindInt64, audit.Time: kindTime,
	}
	var all []column
	for _, h := range audit.Header {
		c := column{name: h.Name, kind: kinds[h.Type], required: h.Required}
		if h.Text != nil {
			c.bloom, c.dict = true, !ids[h.Name]
			c.text = func(r *chain.Row) *audit.Text { return h.Text(&r.Record) }
		} else {
			c.num = func(r *chain.Row) *audit.Int { return h.Int(&r.Record) }
		}
		all = append(all, c)
	}
	return all
}

func slotColumns() []column {
	var all []column
	for s := range audit.NumSlots {
		c := column{name: s.String(), kind: kindText, sealed: true}
		if s == audit.SlotRaw {
			c.kind = kindBinary
		}
		c.slot = func(r *chain.Row) *[]byte { return &r.Slots[s] }
		all = append(all, c)
	}
	return all
}

var chainColumns = []column{
	{name: "prev_hash", kind: kindHash, required: true, sealed: true, hash: func(r *chain.Row) *chain.Hash { return &r.PrevHash }},
	{name: "row_hash", kind: kindHash, required: true, sealed: true, hash: func(r *chain.Row) *chain.Hash { return &r.RowHash }},
	{name: "payload_commit", kind: kindHash, required: true, sealed: true, hash: func(r *chain.Row) *chain.Hash { return &r.PayloadCommit }},
	{name: "user_commit", kind: kindHash, sealed: true, null: func(r *chain.Row) *chain.NullHash { return &r.UserCommit }},
	{name: "row_salt", kind: kindHash, sealed: true, null: func(r *chain.Row) *chain.NullHash { return &r.RowSalt }},
	{name: "user_salt", kind: kindHash, sealed: true, null: func(r *chain.Row) *chain.NullHash { return &r.UserSalt }},
	{name: "user_id", kind: kindText, sealed: true, bloom: true, text: func(r *chain.Row) *audit.Text { return &r.UserID }},
	{name: "residual", kind: kindText, sealed: true, text: func(r *chain.Row) *audit.Text { return &r.Residual }},
	{name: "redaction", kind: kindText, sealed: true, text: func(r *chain.Row) *audit.Text { return &r.Redaction }},
	{name: "redaction_id", kind: kindText, dict: true, bloom: true, text: func(r *chain.Row) *audit.Text { return &r.RedactionID }},
}

var derivedColumns = []column{
	{name: "topic_id", kind: kindText, required: true, dict: true, bloom: true, text: func(r *chain.Row) *audit.Text { return &r.TopicID }},
	{name: "epoch", kind: kindInt32, required: true, num: func(r *chain.Row) *audit.Int { return &r.Epoch }},
	{name: "requested_model", kind: kindText, dict: true, bloom: true, text: func(r *chain.Row) *audit.Text { return &r.RequestedModel }},
	{name: "selected_reason", kind: kindText, dict: true, bloom: true, text: func(r *chain.Row) *audit.Text { return &r.SelectedReason }},
	{name: "rung_ordinal", kind: kindInt64, num: func(r *chain.Row) *audit.Int { return &r.RungOrdinal }},
	{name: "fallback_chain", kind: kindList, list: func(r *chain.Row) *[]string { return &r.FallbackChain }},
	{name: "repeat_of", kind: kindInt64, num: func(r *chain.Row) *audit.Int { return &r.RepeatOf }},
}
