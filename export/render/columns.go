package render

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
)

// ErrColumn: there is no column of that name, or it is named twice.
var ErrColumn = errors.New("no such column")

// A column is one column of csv and table.
type column struct {
	name string
	// append appends the cell of a row, and reports false, with dst as it was,
	// where it is null.
	append func(dst []byte, r *export.Row) ([]byte, bool)
	text   bool // what a producer or an operator wrote: it could be anything
}

// columns are those of docs/format.md, section 3, without salts, and then some
// of our own.
var columns = allColumns()

func allColumns() []column {
	var all []column
	for i := range audit.Header {
		all = append(all, headerColumn(&audit.Header[i]))
		if audit.Header[i].Name == "latency_us" {
			all = append(all, column{name: "latency_ms", append: appendLatency})
		}
	}
	all = append(all, textColumn("user_id", func(r *export.Row) audit.Text { return r.UserID }))
	for s := range audit.NumSlots {
		all = append(all, slotColumn(s))
	}
	return append(
		all,
		textColumn("requested_model", func(r *export.Row) audit.Text { return r.RequestedModel }),
		textColumn("selected_reason", func(r *export.Row) audit.Text { return r.SelectedReason }),
		numberColumn("rung_ordinal", func(r *export.Row) audit.Int { return r.RungOrdinal }),
		column{name: "fallback_chain", append: appendChain},
		textColumn("topic_id", func(r *export.Row) audit.Text { return r.TopicID }),
		numberColumn("epoch", func(r *export.Row) audit.Int { return r.Epoch }),
		numberColumn("repeat_of", func(r *export.Row) audit.Int { return r.RepeatOf }),
		hashColumn("prev_hash", func(r *export.Row) chain.NullHash { return chain.NullHash{Hash: r.PrevHash, Valid: true} }),
		hashColumn("row_hash", func(r *export.Row) chain.NullHash { return chain.NullHash{Hash: r.RowHash, Valid: true} }),
		hashColumn("payload_commit", func(r *export.Row) chain.NullHash { return chain.NullHash{Hash: r.PayloadCommit, Valid: true} }),
		hashColumn("user_commit", func(r *export.Row) chain.NullHash { return r.UserCommit }),
		textColumn("redaction", func(r *export.Row) audit.Text { return r.Redaction }),
		textColumn("redaction_id", func(r *export.Row) audit.Text { return r.RedactionID }),
		column{name: "gated", append: appendGated},
		column{name: "verified", append: appendVerified},
	)
}

// Columns returns the names of all columns of csv, in their order.
func Columns() []string {
	var names []string
	for i := range columns {
		names = append(names, columns[i].name)
	}
	return names
}

// pick returns the columns of the names; all of them for none.
func pick(names []string) ([]column, error) {
	if names == nil {
		return columns, nil
	}
	var picked []column
	seen := map[string]bool{}
	for _, name := range names {
		i := indexOf(name)
		switch {
		case i < 0:
			return nil, fmt.Errorf("%w: %q: use some of %s", ErrColumn, name, strings.Join(Columns(), ", "))
		case seen[name]:
			return nil, fmt.Errorf("%w: %q is named twice", ErrColumn, name)
		}
		seen[name] = true
		picked = append(picked, columns[i])
	}
	if len(picked) == 0 {
		return nil, fmt.Errorf("%w: none is named", ErrColumn)
	}
	return picked, nil
}

func indexOf(name string) int {
	for i := range columns {
		if columns[i].name == name {
			return i
		}
	}
	return -1
}

func headerColumn(c *audit.Column) column {
	switch {
	case c.Text != nil:
		return textColumn(c.Name, func(r *export.Row) audit.Text { return *c.Text(&r.Record) })
	case c.Type == audit.Time:
		return column{name: c.Name, append: func(dst []byte, r *export.Row) ([]byte, bool) {
			n := c.Int(&r.Record)
			if !n.Valid {
				return dst, false
			}
			return audit.AppendTime(dst, n.N), true
		}}
	}
	return numberColumn(c.Name, func(r *export.Row) audit.Int { return *c.Int(&r.Record) })
}

func textColumn(name string, of func(*export.Row) audit.Text) column {
	return column{name: name, text: true, append: func(dst []byte, r *export.Row) ([]byte, bool) {
		t := of(r)
		return append(dst, t.S...), t.Valid
	}}
}

func numberColumn(name string, of func(*export.Row) audit.Int) column {
	return column{name: name, append: func(dst []byte, r *export.Row) ([]byte, bool) {
		n := of(r)
		if !n.Valid {
			return dst, false
		}
		return strconv.AppendInt(dst, n.N, 10), true
	}}
}

func hashColumn(name string, of func(*export.Row) chain.NullHash) column {
	return column{name: name, append: func(dst []byte, r *export.Row) ([]byte, bool) {
		h := of(r)
		if !h.Valid {
			return dst, false
		}
		return hex.AppendEncode(dst, h.Hash[:]), true
	}}
}

// slotColumn is a slot as its JSON text, as it is stored; raw is text where it is
// UTF-8, else {"base64": …}.
func slotColumn(s audit.Slot) column {
	return column{name: s.String(), text: true, append: func(dst []byte, r *export.Row) ([]byte, bool) {
		switch b := r.Slots[s]; {
		case b == nil:
			return dst, false
		case s == audit.SlotRaw:
			return appendCellBytes(dst, b), true
		default:
			return append(dst, b...), true
		}
	}}
}

func appendLatency(dst []byte, r *export.Row) ([]byte, bool) {
	if !r.LatencyUS.Valid {
		return dst, false
	}
	return audit.AppendMillis(dst, r.LatencyUS.N), true
}

func appendChain(dst []byte, r *export.Row) ([]byte, bool) {
	if r.FallbackChain == nil {
		return dst, false
	}
	return appendTexts(dst, r.FallbackChain), true
}

func appendGated(dst []byte, r *export.Row) ([]byte, bool) {
	return append(dst, strings.Join(r.Gated, " ")...), len(r.Gated) > 0
}

func appendVerified(dst []byte, r *export.Row) ([]byte, bool) {
	return strconv.AppendBool(dst, r.Checked), true
}
