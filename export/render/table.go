package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"github.com/ledgerlake/ledgerlake/export"
)

// TableColumns are the columns of a table unless options say otherwise.
var TableColumns = []string{
	"created_at", "kind", "session_id", "turn_id", "seq_within_turn", "stage_id", "model_id", "tool_name", "status", "latency_ms", "input_tokens", "output_tokens", "seq", "redaction_id",
}

const (
	tableRows = 500 // after so many the widths of columns are set anew
	tableCell = 60  // characters of a cell
)

// NewTable returns a writer of a table for people: one line a row, the cells
// below each other. Null is "-", and what is longer than 60 characters ends in an
// ellipsis. Characters that do not print, move the cursor or turn the direction of
// text are written as \n, \u{202e}, and a backslash as \\. The error matches
// [ErrColumn].
func NewTable(w io.Writer, o Options) (Writer, error) {
	names := o.Columns
	if names == nil {
		names = TableColumns
	}
	picked, err := pick(names)
	if err != nil {
		return nil, err
	}
	t := &table{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), columns: picked}
	var title []string
	for i := range picked {
		title = append(title, strings.ToUpper(picked[i].name))
	}
	_, err = fmt.Fprintln(t.w, strings.Join(title, "\t"))
	return t, err
}

type table struct {
	w       *tabwriter.Writer
	columns []column
	rows    int
	line    []byte
	value   []byte
}

func (t *table) Write(r *export.Row) error {
	t.line = t.line[:0]
	for i := range t.columns {
		if i > 0 {
			t.line = append(t.line, '\t')
		}
		var valid bool
		if t.value, valid = t.columns[i].append(t.value[:0], r); !valid {
			t.value = append(t.value[:0], '-')
		}
		t.line = appendCell(t.line, t.value)
	}
	t.line = append(t.line, '\n')
	if _, err := t.w.Write(t.line); err != nil {
		return err
	}
	if t.rows++; t.rows%tableRows == 0 {
		return t.w.Flush()
	}
	return nil
}

// Flush hands on what was written. The widths of columns are set anew behind it.
func (t *table) Flush() error { return t.w.Flush() }

func (t *table) Close() error { return t.w.Flush() }

// appendCell appends a cell as it may be shown on a terminal.
func appendCell(dst, value []byte) []byte {
	for n := 0; len(value) > 0; n++ {
		if n == tableCell {
			return append(dst, "…"...)
		}
		r, size := utf8.DecodeRune(value)
		dst = appendShown(dst, r, value[:size])
		value = value[size:]
	}
	return dst
}

func appendShown(dst []byte, r rune, as []byte) []byte {
	switch {
	case r == utf8.RuneError && len(as) == 1:
		return fmt.Appendf(dst, `\x%02x`, as[0])
	case r == '\\':
		return append(dst, `\\`...)
	case r == '\n':
		return append(dst, `\n`...)
	case r == '\r':
		return append(dst, `\r`...)
	case r == '\t':
		return append(dst, `\t`...)
	case unicode.IsPrint(r):
		return append(dst, as...)
	}
	dst = append(dst, `\u{`...)
	return append(strconv.AppendInt(dst, int64(r), 16), '}')
}
