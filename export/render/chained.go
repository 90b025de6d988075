package render

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/export"
)

// The kinds of lines that a chained log has for itself. Source: docs/jsonl.md.
const (
	rotationMarker = "RotationMarker"
	rotationAnchor = "RotationAnchor"
)

// NewChained returns a writer of chained JSONL: each line is bound to the one
// before, and all of them are one chain, in the order in which rows come:
//
//	{ the producer's members, "$ledgerlake": {…}, "prevHash": hash of the line before, "hash": … }
//	hash = hex(SHA-256(prevHash line with "hash":""))        HMAC-SHA256 with o.Key
//
// An interaction entry has members prevHash and hash of its own, from the log that
// it comes from, whose lines were other bytes. They are kept in $ledgerlake as
// source, and so is the kind of a RotationMarker or RotationAnchor of that log,
// which as a line is of kind source-rotation: the files here are not its files. A
// ChainReset stays one, and counts as one when the log is checked.
//
// A file ends before it is longer than FileBytes, with a RotationMarker; the next
// begins with a RotationAnchor. A single line may be longer. Without rows there is
// one file, which is empty.
func NewChained(create Create, o Options) Writer {
	c := &chained{create: create, o: o, limit: o.FileBytes, sum: sha256.New()}
	if o.Key != nil {
		c.sum = hmac.New(sha256.New, o.Key)
	}
	if c.limit == 0 {
		c.limit = ChainedBytes
	}
	return c
}

type chained struct {
	create Create
	o      Options
	limit  int64
	sum    hash.Hash

	files  int
	file   io.WriteCloser // nil: none is open
	w      *bufio.Writer
	size   int64  // of the file
	rows   int64  // of the file
	prev   []byte // hash of the line before, in hex
	row    []byte
	line   []byte
	source []byte
}

func (c *chained) Write(r *export.Row) error {
	var err error
	if c.row, err = AppendJSON(c.row[:0], r, c.o); err != nil {
		return err
	}
	c.line = c.unlinked(c.line[:0])
	if c.rows > 0 && c.size+int64(len(c.line)+2*sealBytes+len(markerLine)) > c.limit {
		if err := c.rotate(); err != nil {
			return err
		}
	}
	if c.file == nil {
		if err := c.begin(); err != nil {
			return err
		}
	}
	c.rows++
	return c.put(c.line)
}

// unlinked appends the line of the row at hand without what linked it in the log
// that it comes from.
func (c *chained) unlinked(dst []byte) []byte {
	source, line := object{append(c.source[:0], '{')}, object{append(dst, '{')}
	for name, value := range audit.Members(c.row) {
		switch {
		case name == "prevHash" || name == "hash":
			source.name(name)
			source.b = append(source.b, value...)
			continue
		case name == "kind" && rotates(value):
			source.name(name)
			source.b = append(source.b, value...)
			value = []byte(`"` + audit.KindSourceRotation + `"`)
		}
		line.member(name, value)
		if name == "$ledgerlake" && len(source.b) > 1 {
			line.b = append(append(appendMember(line.b, "source"), source.b...), '}', '}')
		}
	}
	c.source = source.b
	return append(line.b, '}')
}

// rotates says whether a line of a kind would end or begin a file.
func rotates(kind []byte) bool {
	var text string
	return json.Unmarshal(kind, &text) == nil && (text == rotationMarker || text == rotationAnchor)
}

// member appends a member with a text as its value. Names are those of a text that
// is valid already.
func (o *object) member(name string, value []byte) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = calm(audit.AppendString(o.b, name), len(o.b))
	o.b = append(append(o.b, ':'), value...)
}

// Lines of files.
const (
	markerLine = `{"kind":"` + rotationMarker + `"}`
	anchorLine = `{"kind":"` + rotationAnchor + `"}`
	sealBytes  = len(`,"prevHash":"","hash":""`) + 4*sha256.Size + len("\n")
)

// put seals a line, an object without prevHash and hash, and writes it.
func (c *chained) put(line []byte) error {
	line = appendMember(line, "prevHash")
	line = append(append(append(line, '"'), c.prev...), `","hash":""}`...)
	cut := len(line) - len(`"}`)
	c.sum.Reset()
	c.sum.Write(c.prev)
	c.sum.Write(line)
	c.prev = hex.AppendEncode(c.prev[:0], c.sum.Sum(nil))
	c.size += int64(len(line) + len(c.prev) + len("\n"))
	_, err := c.w.Write(line[:cut])
	for _, part := range [][]byte{c.prev, line[cut:], {'\n'}} {
		if err == nil {
			_, err = c.w.Write(part)
		}
	}
	return err
}

// rotate ends the file, and begins the one that continues it.
func (c *chained) rotate() error {
	if err := c.put([]byte(markerLine)); err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	if err := c.begin(); err != nil {
		return err
	}
	return c.put([]byte(anchorLine))
}

func (c *chained) begin() error {
	c.files++
	c.size, c.rows = 0, 0
	f, err := c.create(c.files)
	if err != nil {
		return err
	}
	c.file, c.w = f, bufio.NewWriterSize(f, 64<<10)
	return nil
}

func (c *chained) end() error {
	err := errors.Join(c.w.Flush(), c.file.Close())
	c.file = nil
	return err
}

// Flush hands on what was written.
func (c *chained) Flush() error {
	if c.file == nil {
		return nil
	}
	return c.w.Flush()
}

func (c *chained) Close() error {
	if c.file == nil && c.files > 0 {
		return nil
	}
	if c.file == nil {
		if err := c.begin(); err != nil {
			return err
		}
	}
	return c.end()
}
