// Package jsondoc reads JSON documents that somebody else may have written, so
// that they say one thing to every reader or are refused.
package jsondoc

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// maxDepth bounds how deep a document may nest, and so the stack of its reader.
const maxDepth = 64

// A Document reads one JSON document, strictly: exact member names, no member
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
type Document struct {
	text  []byte
	at    int // index of the next byte
	depth int
	err   error
}

// A Field is a member that an object must have, or may have.
type Field struct {
	Name     string
	Read     func(*Document)
	Optional bool
}

// Read reads text as one object with the given fields.
func Read(text []byte, fields ...Field) error {
	d := &Document{text: text}
	d.Object(fields...)
	if d.space(); d.err == nil && d.at < len(d.text) {
		d.Fail("bytes after the document")
	}
	return d.err
}

// Failed reports whether something was wrong already.
func (d *Document) Failed() bool { return d.err != nil }

// Fail says what is wrong, unless something was before.
func (d *Document) Fail(format string, a ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, a...)
	}
}

// within runs read and puts where it was into its error.
func (d *Document) within(name string, read func(*Document)) {
	if d.err != nil {
		return
	}
	if read(d); d.err != nil {
		d.err = fmt.Errorf("%s: %w", name, d.err)
	}
}

// Object reads an object, and past the members that are in none of fields.
func (d *Document) Object(fields ...Field) { d.object(fields, (*Document).Skip) }

// Closed reads an object that must have no other members than fields.
func (d *Document) Closed(fields ...Field) {
	d.object(fields, func(d *Document) { d.Fail("no such member belongs there") })
}

func (d *Document) object(fields []Field, other func(*Document)) {
	seen := make([]string, 0, len(fields))
	var many map[string]bool // the same, once a search would cost more
	d.list('{', '}', func() {
		name := d.Str()
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
			d.Fail("member %q stands twice", name)
			return
		}
		if seen = append(seen, name); many != nil {
			many[name] = true
		}
		d.within(name, reader(fields, name, other))
	})
	for i := range fields {
		if d.err == nil && !fields[i].Optional && !twice(seen, many, fields[i].Name) {
			d.Fail("member %q is missing", fields[i].Name)
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

func reader(fields []Field, name string, other func(*Document)) func(*Document) {
	for i := range fields {
		if fields[i].Name == name {
			return fields[i].Read
		}
	}
	return other
}

// Array reads an array, with read for each of its items.
func (d *Document) Array(read func(*Document)) {
	n := 0
	d.list('[', ']', func() {
		if read(d); d.err != nil {
			d.err = fmt.Errorf("item %d: %w", n, d.err)
		}
		n++
	})
}

// Tuple reads an array of exactly as many items as there are readers.
func (d *Document) Tuple(reads ...func(*Document)) {
	n := 0
	d.Array(func(d *Document) {
		if n == len(reads) {
			d.Fail("more than %d items", n)
			return
		}
		reads[n](d)
		n++
	})
	if d.err == nil && n < len(reads) {
		d.Fail("%d items, want %d", n, len(reads))
	}
}

// list reads what stands between open and end, with item for each part.
func (d *Document) list(open, end byte, item func()) {
	if d.take(open); d.err != nil {
		return
	}
	if d.depth++; d.depth > maxDepth {
		d.Fail("nested deeper than %d", maxDepth)
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

// Skip reads past any value.
func (d *Document) Skip() {
	switch c := d.peek(); {
	case d.err != nil:
	case c == '{':
		d.Object()
	case c == '[':
		d.Array((*Document).Skip)
	case c == '"':
		d.Str()
	case c == '-' || '0' <= c && c <= '9':
		d.number()
	default:
		d.word()
	}
}

// Null reads null, and reports whether it stood there.
func (d *Document) Null() bool {
	if d.peek() != 'n' {
		return false
	}
	return d.literal("null")
}

// Boolean reads true or false.
func (d *Document) Boolean() bool {
	if d.peek() == 't' {
		return d.literal("true")
	}
	d.literal("false")
	return false
}

func (d *Document) word() {
	if d.peek() == 'n' {
		d.literal("null")
		return
	}
	d.Boolean()
}

func (d *Document) literal(want string) bool {
	if d.err == nil && len(d.text)-d.at >= len(want) && string(d.text[d.at:d.at+len(want)]) == want {
		d.at += len(want)
		return true
	}
	d.Fail("byte %d: not a value of the expected type", d.at)
	return false
}

// Integer reads an integer: no fraction, no exponent, within int64.
func (d *Document) Integer() int64 {
	text := d.number()
	if d.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || string(text) == "-0" {
		d.Fail("%.40q is not a plain integer", text)
	}
	return n
}

// Count reads an integer that is not negative.
func (d *Document) Count() int64 {
	n := d.Integer()
	if n < 0 {
		d.Fail("%d is negative", n)
	}
	return n
}

// Int32 reads an integer within int32.
func (d *Document) Int32() int32 {
	n := d.Integer()
	if int64(int32(n)) != n {
		d.Fail("%d is not within 32 bits", n)
	}
	return int32(n)
}

// Hash reads 64 lower-case hex digits.
func (d *Document) Hash() chain.Hash {
	text := d.Str()
	if d.err != nil {
		return chain.Hash{}
	}
	h, err := chain.ParseHash(text)
	if err != nil {
		d.Fail("%w", err)
	}
	return h
}

// NullHash reads a hash or null.
func (d *Document) NullHash() *chain.Hash {
	if d.Null() {
		return nil
	}
	h := d.Hash()
	return &h
}

// NullStr reads a string or null.
func (d *Document) NullStr() audit.Text {
	if d.Null() {
		return audit.Text{}
	}
	return audit.Str(d.Str())
}

// number reads a number and returns it as it is written.
func (d *Document) number() []byte {
	d.space()
	start := d.at
	d.eat("-")
	if !d.eat("0") && d.digits() == 0 {
		d.Fail("byte %d: not a number", start)
	}
	if d.eat(".") && d.digits() == 0 {
		d.Fail("byte %d: not a number", start)
	}
	if d.eat("e") || d.eat("E") {
		_ = d.eat("+") || d.eat("-")
		if d.digits() == 0 {
			d.Fail("byte %d: not a number", start)
		}
	}
	return d.text[start:d.at]
}

func (d *Document) digits() int {
	start := d.at
	for d.at < len(d.text) && '0' <= d.text[d.at] && d.text[d.at] <= '9' {
		d.at++
	}
	return d.at - start
}

func (d *Document) eat(c string) bool {
	if d.at < len(d.text) && d.text[d.at] == c[0] {
		d.at++
		return true
	}
	return false
}

// Str reads a string.
func (d *Document) Str() string {
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
func (d *Document) escaped(b []byte) string {
	for d.at < len(d.text) {
		c := d.text[d.at]
		d.at++
		switch {
		case c == '"':
			return d.valid(b)
		case c < 0x20:
			d.Fail("byte %d: control character in a string", d.at-1)
			return ""
		case c == '\\':
			if b = d.escape(b); d.err != nil {
				return ""
			}
		default:
			b = append(b, c)
		}
	}
	d.Fail("the document ends in a string")
	return ""
}

func (d *Document) valid(b []byte) string {
	if !utf8.Valid(b) {
		d.Fail("byte %d: string is not valid UTF-8", d.at)
		return ""
	}
	return string(b)
}

// escape reads what follows a backslash.
func (d *Document) escape(b []byte) []byte {
	if d.at == len(d.text) {
		d.Fail("the document ends in a string")
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
	d.Fail("byte %d: unknown escape", d.at-1)
	return b
}

// unicode reads what follows \u: one code unit, or a surrogate and its pair.
func (d *Document) unicode() rune {
	first := d.hex4()
	if !utf16.IsSurrogate(first) {
		return first
	}
	if d.eat(`\`) && d.eat("u") {
		if r := utf16.DecodeRune(first, d.hex4()); r != utf8.RuneError {
			return r
		}
	}
	d.Fail("byte %d: lone surrogate", d.at)
	return 0
}

func (d *Document) hex4() rune {
	if d.at+4 > len(d.text) {
		d.Fail("the document ends in a string")
		return 0
	}
	n, err := strconv.ParseUint(string(d.text[d.at:d.at+4]), 16, 16)
	if err != nil {
		d.Fail("byte %d: escape without four hex digits", d.at)
		return 0
	}
	d.at += 4
	return rune(n)
}

func (d *Document) space() {
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
func (d *Document) peek() byte {
	d.space()
	if d.err != nil || d.at == len(d.text) {
		return 0
	}
	return d.text[d.at]
}

// take reads one byte of the grammar.
func (d *Document) take(c byte) {
	if got := d.peek(); got != c && d.err == nil {
		if d.at == len(d.text) {
			d.Fail("the document ends early")
			return
		}
		d.Fail("byte %d: %q where %q belongs", d.at, got, c)
	}
	d.at++
}

// TimeLayout is how documents write a time: RFC 3339, UTC, six decimals.
const TimeLayout = "2006-01-02T15:04:05.000000Z"

// Constant reads a string that must be want.
func (d *Document) Constant(want string) {
	if got := d.Str(); d.err == nil && got != want {
		d.Fail("%.40q, this version reads %q", got, want)
	}
}

// Scheme reads the name of a hashing scheme.
func (d *Document) Scheme() string {
	s := d.Str()
	if d.err == nil && s != chain.SchemeV1 && s != chain.SchemeHMACv1 {
		d.Fail("%.40q is no known scheme", s)
	}
	return s
}

// Epoch reads the number of an epoch.
func (d *Document) Epoch() int32 {
	n := d.Int32()
	if n < 0 {
		d.Fail("%d is negative", n)
	}
	return n
}

// Hashes reads an array of hashes.
func (d *Document) Hashes() (all []chain.Hash) {
	d.Array(func(d *Document) { all = append(all, d.Hash()) })
	return all
}

// ULID reads a ULID: 26 characters of Crockford's base 32 in upper case, of
// which the first is at most 7.
func (d *Document) ULID() string {
	s := d.Str()
	ok := len(s) == 26 && s[0] <= '7'
	for i := 0; ok && i < len(s); i++ {
		c := s[i]
		ok = '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' && c != 'I' && c != 'L' && c != 'O' && c != 'U'
	}
	if d.err == nil && !ok {
		d.Fail("%.40q is no ULID", s)
	}
	return s
}

// Time reads a time as documents write it: UTC, exactly six decimals.
func (d *Document) Time() time.Time {
	s := d.Str()
	if d.err != nil {
		return time.Time{}
	}
	t, err := time.Parse(TimeLayout, s)
	if err != nil || t.Format(TimeLayout) != s {
		d.Fail("%.40q is no time in UTC with six decimals", s)
	}
	return t
}

// IsArray reports whether an array stands next.
func (d *Document) IsArray() bool { return d.peek() == '[' }

// IsObject reports whether an object stands next.
func (d *Document) IsObject() bool { return d.peek() == '{' }
