package proof

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash"
	"io"
)

// MaxJSONLLine is the longest line, in bytes, that a check of chained JSONL
// reads. A record has at most 16 MiB; escapes may make more of it.
const MaxJSONLLine = 64 << 20

// A JSONLReport is the answer to whether lines continue each other. Source:
// docs/jsonl.md.
type JSONLReport struct {
	OK              bool    `json:"ok"`
	FirstBrokenSeq  *int64  `json:"firstBrokenSeq"`  // null where OK
	LineCount       int64   `json:"lineCount"`       // also of lines that are broken
	ChainResetCount int64   `json:"chainResetCount"` // lines that start a new stretch
	Error           *string `json:"error"`           // null where OK
}

// A JSONLFile is what was found in one file.
type JSONLFile struct {
	Name string `json:"file"`
	JSONLReport
	Notes []string `json:"notes"`

	first, last jsonlEnd
}

// A jsonlEnd is the first or the last line of a file, as far as it was read.
type jsonlEnd struct {
	prev, hash, kind string
	seq              int64
}

// A jsonlCheck reads one file.
type jsonlCheck struct {
	r    *bufio.Reader
	hash hash.Hash
	key  []byte
	max  int
	buf  []byte // of a line that is longer than the reader's buffer
	sum  []byte
	crlf bool
	next int64 // seq that a line has which does not say
	prev string
	*JSONLFile
}

// errLineTooLong: the line has more bytes than the check reads.
var errLineTooLong = errors.New("the line is too long")

// errLineCut: the file ends inside a line.
var errLineCut = errors.New("the line is cut: it does not end in a line feed")

// CheckJSONL checks the chain of one file of chained JSONL, from any program.
// name is what the report calls it. A nil key checks SHA-256, any other
// HMAC-SHA256. The error is that of reading; all that is wrong with the file is
// in what is returned.
//
// After a broken line the rest is counted, not checked: nothing says any more
// what it must continue. Memory is bounded by [MaxJSONLLine].
func CheckJSONL(name string, r io.Reader, key []byte) (*JSONLFile, error) {
	return checkJSONL(name, r, key, MaxJSONLLine)
}

func checkJSONL(name string, r io.Reader, key []byte, maxLine int) (*JSONLFile, error) {
	c := &jsonlCheck{
		r: bufio.NewReaderSize(r, 64<<10), hash: jsonlHash(key), key: key, max: maxLine,
		JSONLFile: &JSONLFile{Name: name, JSONLReport: JSONLReport{OK: true}, Notes: []string{}},
	}
	for {
		text, err := c.line()
		switch {
		case errors.Is(err, io.EOF):
			c.end()
			return c.JSONLFile, nil
		case err != nil && !errors.Is(err, errLineTooLong) && !errors.Is(err, errLineCut):
			return nil, err
		}
		c.check(text, err)
	}
}

// line returns the next line without its line feed. io.EOF says that there is
// none; errLineTooLong and errLineCut say what is wrong with the one that is.
func (c *jsonlCheck) line() ([]byte, error) {
	c.buf = c.buf[:0]
	long := false
	for {
		part, err := c.r.ReadSlice('\n')
		long = long || len(c.buf)+len(part) > c.max+1
		whole := err == nil && len(c.buf) == 0
		if !whole && !long {
			c.buf = append(c.buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && !long && len(c.buf) == 0:
			return nil, io.EOF
		case errors.Is(err, io.EOF):
			return nil, errLineCut
		case err != nil:
			return nil, err
		case long:
			return nil, fmt.Errorf("%w: more than %d bytes", errLineTooLong, c.max)
		case whole:
			return part[:len(part)-1], nil
		}
		return c.buf[:len(c.buf)-1], nil
	}
}

// check checks the next line, which could not be read if err is set.
func (c *jsonlCheck) check(text []byte, err error) {
	c.LineCount++
	if err != nil {
		c.broken(c.next, err)
		return
	}
	if text, err = c.trim(text); err != nil {
		c.broken(c.next, err)
		return
	}
	l, err := parseJSONL(text)
	if !l.hasSeq {
		l.seq = c.next
	}
	c.next = l.seq + 1
	if err == nil && l.kind == jsonlReset {
		c.ChainResetCount++
	}
	if !c.OK {
		return
	}
	if err == nil {
		err = c.linked(&l)
	}
	if err != nil {
		c.broken(l.seq, err)
		return
	}
	c.prev = string(l.hash)
	c.last = jsonlEnd{l.prev, c.prev, l.kind, l.seq}
	if c.LineCount == 1 {
		c.first = c.last
	}
}

// trim takes the CR of a line's end away. A file has CR LF at the end of all of
// its lines or of none: a byte more or less is a byte changed.
func (c *jsonlCheck) trim(text []byte) ([]byte, error) {
	text, crlf := bytes.CutSuffix(text, []byte("\r"))
	if c.LineCount == 1 {
		c.crlf = crlf
	}
	switch {
	case crlf && !c.crlf:
		return nil, errors.New("the line ends in CR LF, those before it in LF")
	case !crlf && c.crlf:
		return nil, errors.New("the line ends in LF, those before it in CR LF")
	}
	return text, nil
}

// linked checks a line's hash, and that it continues the line before.
func (c *jsonlCheck) linked(l *jsonlLine) error {
	if c.sum = l.sum(c.hash, c.sum); !bytes.Equal(c.sum, l.hash) {
		return c.wrongHash(l)
	}
	switch {
	case l.prev == c.prev, l.kind == jsonlReset && l.prev == "":
		return nil
	case c.LineCount > 1:
		return fmt.Errorf("prevHash is %.70q, the line before has the hash %q", l.prev, c.prev)
	case l.kind == jsonlAnchor:
		return nil
	}
	return fmt.Errorf("the file begins behind a line with the hash %.70q, and not with a %s: its beginning is missing", l.prev, jsonlAnchor)
}

// wrongHash says what a line's hash would be right for.
func (c *jsonlCheck) wrongHash(l *jsonlLine) error {
	plain := c.key != nil && bytes.Equal(l.sum(jsonlHash(nil), nil), l.hash)
	switch {
	case plain:
		return errors.New("hash is right without a key: the line is not keyed, and was checked as keyed")
	case c.key != nil:
		return errors.New("hash is not that of the line under this key: the line was changed, or the key is another one")
	}
	return errors.New("hash is not that of the line: it was changed, or it is keyed and needs its key")
}

// broken notes what is wrong with a line, if nothing was wrong before.
func (f *JSONLFile) broken(seq int64, err error) {
	if !f.OK {
		return
	}
	text := fmt.Sprintf("line %d: %v", f.LineCount, err)
	f.OK, f.FirstBrokenSeq, f.Error = false, &seq, &text
}

// end says what the file leaves open.
func (c *jsonlCheck) end() {
	switch {
	case c.LineCount == 0:
		text := "the file has no lines: nothing could be verified"
		c.OK, c.Error = false, &text
	case !c.OK:
	case c.first.kind == jsonlAnchor && c.first.prev != "":
		c.note("continues a file whose last hash is %s", c.first.prev)
	}
	if c.OK && c.last.kind == jsonlMarker {
		c.note("goes on in a file that begins with a %s whose prevHash is %s", jsonlAnchor, c.last.hash)
	}
	if c.crlf {
		c.note("lines end in CR LF, which no hash covers")
	}
}

func (f *JSONLFile) note(format string, a ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, a...))
}
