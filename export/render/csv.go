package render

import (
	"bufio"
	"bytes"
	"io"
	"unicode/utf8"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/export"
)

// guard goes in front of text that a spreadsheet would take for a formula.
const guard = '\''

// NewCSV returns a writer of RFC 4180: a line of names, then one record a row;
// lines end in CR LF, and a cell that has a comma, a semicolon, a quote or a line
// break is in quotes. Null is an empty cell, and empty text "". The error matches
// [ErrColumn].
//
// Text that begins with one of = + - @ TAB CR LF, their full-width forms or ' gets
// a ' in front: a spreadsheet shows it, and runs nothing. So a cell of text that
// begins with ' has one too many: without it, it is what was archived. Numbers and
// times never have one.
func NewCSV(w io.Writer, o Options) (Writer, error) {
	picked, err := pick(o.Columns)
	if err != nil {
		return nil, err
	}
	c := &csv{w: bufio.NewWriterSize(w, 64<<10), columns: picked}
	for i := range picked {
		c.cell(i, []byte(picked[i].name), true)
	}
	return c, c.end()
}

type csv struct {
	w       *bufio.Writer
	columns []column
	buf     []byte // the line
	value   []byte // the cell
}

func (c *csv) Write(r *export.Row) error {
	for i := range c.columns {
		var valid bool
		c.value, valid = c.columns[i].append(c.value[:0], r)
		if valid && c.columns[i].text && guarded(c.value) {
			c.value = append(c.value, 0)
			copy(c.value[1:], c.value)
			c.value[0] = guard
		}
		c.cell(i, c.value, valid)
	}
	return c.end()
}

// cell appends the i-th cell of the line.
func (c *csv) cell(i int, value []byte, valid bool) {
	if i > 0 {
		c.buf = append(c.buf, ',')
	}
	switch {
	case !valid:
	case len(value) == 0 || bytes.ContainsAny(value, ",;\"\r\n\t") || value[0] == ' ' || value[len(value)-1] == ' ':
		c.buf = append(c.buf, '"')
		for {
			at := bytes.IndexByte(value, '"')
			if at < 0 {
				break
			}
			c.buf = append(append(c.buf, value[:at]...), '"', '"')
			value = value[at+1:]
		}
		c.buf = append(append(c.buf, value...), '"')
	default:
		c.buf = append(c.buf, value...)
	}
}

func (c *csv) end() error {
	c.buf = append(c.buf, '\r', '\n')
	_, err := c.w.Write(c.buf)
	c.buf = c.buf[:0]
	return err
}

// Flush hands on what was written.
func (c *csv) Flush() error { return c.w.Flush() }

func (c *csv) Close() error { return c.w.Flush() }

// guarded says whether a cell of text needs a guard. Source: OWASP, CSV
// Injection.
func guarded(value []byte) bool {
	r, _ := utf8.DecodeRune(value)
	switch r {
	case '=', '+', '-', '@', '\t', '\r', '\n', guard, '＝', '＋', '－', '＠':
		return len(value) > 0
	}
	return false
}

// appendCellBytes appends the bytes of a rejected record.
func appendCellBytes(dst, b []byte) []byte {
	if utf8.Valid(b) {
		return append(dst, b...)
	}
	return audit.AppendRaw(dst, b)
}
