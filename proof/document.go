package proof

import (
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// maxDepth bounds how deep a document may nest, and so the stack of its reader.
const maxDepth = 64

// A document reads one JSON document, strictly: exact member names, no member
// twice in an object (two readers could take two values), valid UTF-8, no lone
// surrogates, integers as plain digits, nothing after the end. Members that it
// is not asked for are read past, as strictly.
//
// It reads what an attacker wrote, in one pass and without a tree, so that its
// memory is bounded by the document. The first error stands in err, and no
// method does anything after it.
//
// encoding/json is unfit here: it takes names in any case and the last of two
// equal members, and replaces bad UTF-8.
type document struct {
	text  []byte
	at    int // index of the next byte
	depth int
	err   error
}

// A field is a member that an object must have, or may have.
type field struct {
	name     string
	read     func(*document)
	optional bool
}

// readDocument reads text as one object with the given fields.
func readDocument(text []byte, fields ...field) error {
	d := &document{text: text}
	d.object(fields...)
	if d.space(); d.err == nil && d.at < len(d.text) {
		d.fail("bytes after the document")
	}
	return d.err
}

func (d *document) fail(format string, a ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, a...)
	}
}

// within runs read and puts where it was into its error.
func (d *document) within(name string, read func(*document)) {
	if d.err != nil {
		return
	}
	if read(d); d.err != nil {
		d.err = fmt.Errorf("%s: %w", name, d.err)
	}
}

// object reads an object.
func (d *document) object(fields ...field) {
	seen := make([]string, 0, len(fields))
	var many map[string]bool // the same, once a search would cost more
	d.list('{', '}', func() {
		name := d.str()
		if d.take(':'); d.err != nil {
			return
		}
		if many == nil && len(seen) >= 32 {
			many = make(map[string]bool)
			for _, s := range seen {
				many[s] = true
			}
		}
		if twice(seen, many, name) {
			d.fail("member %q stands twice", name)
			return
		}
		if seen = append(seen, name); many != nil {
			many[name] = true
		}
		d.within(name, reader(fields, name))
	})
	for i := range fields {
		if d.err == nil && !fields[i].optional && !twice(seen, many, fields[i].name) {
			d.fail("member %q is missing", fields[i].name)
		}
	}
}

func twice(seen []string, many map[string]bool, name string) bool {
	if many != nil {
		return many[name]
	}
	for _, s := range seen {
		if s == name {
			return true
		}
	}
	return false
}

func reader(fields []field, name string) func(*document) {
	for i := range fields {
		if fields[i].name == name {
			return fields[i].read
		}
	}
	return (*document).skip
}

// array reads an array, with read for each of its items.
func (d *document) array(read func(*document)) {
	n := 0
	d.list('[', ']', func() {
		if read(d); d.err != nil {
			d.err = fmt.Errorf("item %d: %w", n, d.err)
		}
		n++
	})
}

// tuple reads an array of exactly as many items as there are readers.
func (d *document) tuple(reads ...func(*document)) {
	n := 0
	d.array(func(d *document) {
		if n == len(reads) {
			d.fail("more than %d items", n)
			return
		}
		reads[n](d)
		n++
	})
	if d.err == nil && n < len(reads) {
		d.fail("%d items, want %d", n, len(reads))
	}
}

// list reads what stands between open and end, with item for each part.
func (d *document) list(open, end byte, item func()) {
	if d.take(open); d.err != nil {
		return
	}
	if d.depth++; d.depth > maxDepth {
		d.fail("nested deeper than %d", maxDepth)
		return
	}
	defer func() { d.depth-- }()
	if d.peek() == end {
		d.at++
		return
	}
	for d.err == nil {
		if item(); d.err != nil {
			return
		}
		if d.peek() == end {
			d.at++
			return
		}
		d.take(',')
	}
}

// skip reads past any value.
func (d *document) skip() {
	switch c := d.peek(); {
	case d.err != nil:
	case c == '{':
		d.object()
	case c == '[':
		d.array((*document).skip)
	case c == '"':
		d.str()
	case c == '-' || '0' <= c && c <= '9':
		d.number()
	default:
		d.word()
	}
}

// null reads null, and reports whether it stood there.
func (d *document) null() bool {
	if d.peek() != 'n' {
		return false
	}
	return d.literal("null")
}

// boolean reads true or false.
func (d *document) boolean() bool {
	if d.peek() == 't' {
		return d.literal("true")
	}
	d.literal("false")
	return false
}

func (d *document) word() {
	if d.peek() == 'n' {
		d.literal("null")
		return
	}
	d.boolean()
}

func (d *document) literal(want string) bool {
	if d.err == nil && len(d.text)-d.at >= len(want) && string(d.text[d.at:d.at+len(want)]) == want {
		d.at += len(want)
		return true
	}
	d.fail("byte %d: not a value of the expected type", d.at)
	return false
}

// integer reads an integer: no fraction, no exponent, within int64.
func (d *document) integer() int64 {
	text := d.number()
	if d.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || string(text) == "-0" {
		d.fail("%.40q is not a plain integer", text)
	}
	return n
}

// count reads an integer that is not negative.
func (d *document) count() int64 {
	n := d.integer()
	if n < 0 {
		d.fail("%d is negative", n)
	}
	return n
}

// int32 reads an integer within int32.
func (d *document) int32() int32 {
	n := d.integer()
	if int64(int32(n)) != n {
		d.fail("%d is not within 32 bits", n)
	}
	return int32(n)
}

// hash reads 64 lower-case hex digits.
func (d *document) hash() chain.Hash {
	text := d.str()
	if d.err != nil {
		return chain.Hash{}
	}
	h, err := chain.ParseHash(text)
	if err != nil {
		d.fail("%w", err)
	}
	return h
}

// nullHash reads a hash or null.
func (d *document) nullHash() *chain.Hash {
	if d.null() {
		return nil
	}
	h := d.hash()
	return &h
}

// nullStr reads a string or null.
func (d *document) nullStr() audit.Text {
	if d.null() {
		return audit.Text{}
	}
	return audit.Str(d.str())
}

// number reads a number and returns it as it is written.
func (d *document) number() []byte {
	d.space()
	start := d.at
	d.eat("-")
	if !d.eat("0") && d.digits() == 0 {
		d.fail("byte %d: not a number", start)
	}
	if d.eat(".") && d.digits() == 0 {
		d.fail("byte %d: not a number", start)
	}
	if d.eat("e") || d.eat("E") {
		_ = d.eat("+") || d.eat("-")
		if d.digits() == 0 {
			d.fail("byte %d: not a number", start)
		}
	}
	return d.text[start:d.at]
}

func (d *document) digits() int {
	start := d.at
	for d.at < len(d.text) && '0' <= d.text[d.at] && d.text[d.at] <= '9' {
		d.at++
	}
	return d.at - start
}

func (d *document) eat(c string) bool {
	if d.at < len(d.text) && d.text[d.at] == c[0] {
		d.at++
		return true
	}
	return false
}

// str reads a string.
func (d *document) str() string {
	if d.take('"'); d.err != nil {
		return ""
	}
	start := d.at
	for d.at < len(d.text) && d.text[d.at] != '"' && d.text[d.at] != '\\' && d.text[d.at] >= 0x20 {
		d.at++
	}
	plain := d.text[start:d.at]
	if d.at < len(d.text) && d.text[d.at] == '"' {
		d.at++
		return d.valid(plain)
	}
	return d.escaped(append([]byte(nil), plain...))
}

// escaped reads the rest of a string that has escapes, behind what is read
// already.
func (d *document) escaped(b []byte) string {
	for d.at < len(d.text) {
		c := d.text[d.at]
		d.at++
		switch {
		case c == '"':
			return d.valid(b)
		case c < 0x20:
			d.fail("byte %d: control character in a string", d.at-1)
			return ""
		case c == '\\':
			if b = d.escape(b); d.err != nil {
				return ""
			}
		default:
			b = append(b, c)
		}
	}
	d.fail("the document ends in a string")
	return ""
}

func (d *document) valid(b []byte) string {
	if !utf8.Valid(b) {
		d.fail("byte %d: string is not valid UTF-8", d.at)
		return ""
	}
	return string(b)
}

// escape reads what follows a backslash.
func (d *document) escape(b []byte) []byte {
	if d.at == len(d.text) {
		d.fail("the document ends in a string")
		return b
	}
	c := d.text[d.at]
	d.at++
	switch c {
	case '"', '\\', '/':
		return append(b, c)
	case 'b':
		return append(b, '\b')
	case 'f':
		return append(b, '\f')
	case 'n':
		return append(b, '\n')
	case 'r':
		return append(b, '\r')
	case 't':
		return append(b, '\t')
	case 'u':
		return utf8.AppendRune(b, d.unicode())
	}
	d.fail("byte %d: unknown escape", d.at-1)
	return b
}

// unicode reads what follows \u: one code unit, or a surrogate and its pair.
func (d *document) unicode() rune {
	first := d.hex4()
	if !utf16.IsSurrogate(first) {
		return first
	}
	if d.eat(`\`) && d.eat("u") {
		if r := utf16.DecodeRune(first, d.hex4()); r != utf8.RuneError {
			return r
		}
	}
	d.fail("byte %d: lone surrogate", d.at)
	return 0
}

func (d *document) hex4() rune {
	if d.at+4 > len(d.text) {
		d.fail("the document ends in a string")
		return 0
	}
	n, err := strconv.ParseUint(string(d.text[d.at:d.at+4]), 16, 16)
	if err != nil {
		d.fail("byte %d: escape without four hex digits", d.at)
		return 0
	}
	d.at += 4
	return rune(n)
}

func (d *document) space() {
	for d.at < len(d.text) {
		switch d.text[d.at] {
		case ' ', '\t', '\n', '\r':
			d.at++
		default:
			return
		}
	}
}

// peek returns the next byte that is no space, 0 at the end.
func (d *document) peek() byte {
	d.space()
	if d.err != nil || d.at == len(d.text) {
		return 0
	}
	return d.text[d.at]
}

// take reads one byte of the grammar.
func (d *document) take(c byte) {
	if got := d.peek(); got != c && d.err == nil {
		if d.at == len(d.text) {
			d.fail("the document ends early")
			return
		}
		d.fail("byte %d: %q where %q belongs", d.at, got, c)
	}
	d.at++
}
