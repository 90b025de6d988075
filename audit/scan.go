package audit

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/bits"
	"unicode/utf8"
)

// A valueType is the type of a JSON value.
type valueType uint8

const (
	typeNull valueType = iota
	typeFalse
	typeTrue
	typeNumber
	typeString
	typeArray
	typeObject
)

// A span is a stretch of a text, in bytes: from is in it, to is not.
type span struct{ from, to uint32 }

// A member is one member of an object.
type member struct {
	name    span // between the quotes, as written
	decoded span // of a name with escapes: its place in scanner.decoded
	value   span
	subs    span // of an object that is a member of the root: its members in scanner.subs
	typ     valueType
	escaped bool // a string with escapes
}

// An openName is a member name of an object that has not ended yet: where it
// stands in the text or, if bit 31 of to is set, without its escapes in
// scanner.decoded, there after 4 bytes that say where it stands in the text.
type openName struct{ from, to uint32 }

const inDecoded = 1 << 31

// A scanner checks one JSON text (RFC 8259) in a single pass, and indexes what
// a mapping asks for: the members of the root, and those of its members that
// groupNames lists. All else it only checks.
//
// It is stricter than the grammar: an object names no member twice, names being
// compared after their escapes are resolved; all text is UTF-8; a surrogate
// comes in pairs; nesting ends at [MaxDepth]; no more than [MaxMembers] members
// are to be indexed. Beside the index it needs up to 2 bytes for each byte of
// the text, for the names of the objects that are open. The index is good until
// the next scan. A scanner is not for concurrent use.
type scanner struct {
	text    []byte
	base    int // bytes of the value that stand before text
	i       int // next byte
	root    valueType
	top     []member
	subs    []member
	names   []openName
	decoded []byte // names that had escapes, without them
	table   []uint32
	group   bool // the member of the root that is being read is a group
	escaped bool // the last string had escapes
	fault   *Reject

	unbounded bool // index any number of members
}

var byteOrderMark = []byte{0xEF, 0xBB, 0xBF}

// scan checks text and indexes it. Positions in a Reject count from the
// beginning of the value, in which base bytes stand before text.
func (s *scanner) scan(text []byte, base int) *Reject { return s.scanFrom(text, base, 1) }

// scanFrom is scan for a text of which an object or array would be the depth-th
// level.
func (s *scanner) scanFrom(text []byte, base, depth int) *Reject {
	s.reset(text, base)
	if at := firstBadUTF8(text); at >= 0 {
		s.fail(ReasonInvalidUnicode, at, "not UTF-8")
		return s.fault
	}
	if bytes.HasPrefix(text, byteOrderMark) {
		s.fail(ReasonInvalidJSON, 0, "byte order mark")
		return s.fault
	}
	s.space()
	typ, ok := s.value(depth)
	s.space()
	if ok && s.i < len(text) {
		s.fail(ReasonInvalidJSON, s.i, "data after the value")
	}
	s.root = typ
	return s.fault
}

func (s *scanner) reset(text []byte, base int) {
	s.text, s.base, s.i, s.fault = text, base, 0, nil
	s.top, s.subs, s.names, s.decoded = s.top[:0], s.subs[:0], s.names[:0], s.decoded[:0]
}

// fail notes a fault at byte i of the text. It returns false.
func (s *scanner) fail(reason Reason, i int, what string) bool {
	s.fault = &Reject{Reason: reason, Detail: fmt.Sprintf("byte %d: %s", s.base+i, what)}
	return false
}

// failHere is fail at the next byte, for text that the grammar does not allow.
func (s *scanner) failHere(what string) bool {
	if s.i >= len(s.text) {
		what = "the text ends too early"
	}
	return s.fail(ReasonInvalidJSON, s.i, what)
}

// firstBadUTF8 returns the index of the first byte that is not UTF-8, or -1. A
// character that the end cuts in two is none: such a text was cut, and a scan
// finds that it ends too early.
func firstBadUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b) && utf8.FullRune(b[i:]); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// peek returns the next byte, and 0, which no grammar rule allows, at the end.
func (s *scanner) peek() byte {
	if s.i < len(s.text) {
		return s.text[s.i]
	}
	return 0
}

func (s *scanner) space() { s.i = skipSpace(s.text, s.i) }

// value reads the value that begins at the next byte. An object or array there
// would be the depth-th level of the text.
func (s *scanner) value(depth int) (valueType, bool) {
	switch c := s.peek(); c {
	case '"':
		_, ok := s.str()
		return typeString, ok
	case '{':
		return typeObject, s.object(depth)
	case '[':
		return typeArray, s.array(depth)
	case 't':
		return typeTrue, s.literal("true")
	case 'f':
		return typeFalse, s.literal("false")
	case 'n':
		return typeNull, s.literal("null")
	default:
		if c == '-' || isDigit(c) {
			return typeNumber, s.number()
		}
		return typeNull, s.failHere("no value begins so")
	}
}

func (s *scanner) literal(want string) bool {
	if rest := s.text[s.i:]; len(rest) < len(want) || string(rest[:len(want)]) != want {
		return s.fail(ReasonInvalidJSON, s.i, "no value begins so")
	}
	s.i += len(want)
	return true
}

func (s *scanner) object(depth int) bool {
	if depth > MaxDepth {
		return s.fail(ReasonTooDeep, s.i, fmt.Sprintf("more than %d levels", MaxDepth))
	}
	open := len(s.names)
	s.i++
	s.space()
	if s.peek() == '}' {
		s.i++
		return true
	}
	for {
		if !s.member(depth) {
			return false
		}
		s.space()
		switch s.peek() {
		case ',':
			s.i++
			s.space()
		case '}':
			s.i++
			return s.unique(open)
		default:
			return s.failHere("neither , nor } after a member")
		}
	}
}

// member reads one member of an object at a level of depth.
func (s *scanner) member(depth int) bool {
	if s.peek() != '"' {
		return s.failHere("no member name begins so")
	}
	var m member
	var ok bool
	if m.name, ok = s.str(); !ok {
		return false
	}
	m.decoded = s.push(m.name)
	s.space()
	if s.peek() != ':' {
		return s.failHere("no : after a member name")
	}
	s.i++
	s.space()
	if depth == 1 {
		s.group = s.peek() == '{' && groupNames[string(s.nameOf(&m))]
	}
	m.value.from, m.subs.from = uint32(s.i), uint32(len(s.subs))
	if m.typ, ok = s.value(depth + 1); !ok {
		return false
	}
	m.value.to, m.subs.to = uint32(s.i), uint32(len(s.subs))
	m.escaped = m.typ == typeString && s.escaped
	return s.index(depth, m)
}

// index puts a member into the index, if it belongs there.
func (s *scanner) index(depth int, m member) bool {
	switch {
	case depth == 1:
		s.top = append(s.top, m)
	case depth == 2 && s.group:
		s.subs = append(s.subs, m)
	default:
		return true
	}
	if len(s.top)+len(s.subs) > MaxMembers && !s.unbounded {
		return s.fail(ReasonTooLarge, int(m.name.from)-1, fmt.Sprintf("more than %d members", MaxMembers))
	}
	return true
}

// push puts the name that was just read on the stack of open names. It returns
// where the name stands without its escapes, if it has any.
func (s *scanner) push(name span) (decoded span) {
	if !s.escaped {
		s.names = append(s.names, openName(name))
		return span{}
	}
	s.decoded = binary.LittleEndian.AppendUint32(s.decoded, name.from-1)
	decoded.from = uint32(len(s.decoded))
	s.decoded = appendUnescaped(s.decoded, s.text[name.from:name.to])
	decoded.to = uint32(len(s.decoded))
	s.names = append(s.names, openName{decoded.from, decoded.to | inDecoded})
	return decoded
}

// open returns a name of the stack, without escapes.
func (s *scanner) open(n openName) []byte {
	if n.to&inDecoded != 0 {
		return s.decoded[n.from : n.to&^inDecoded]
	}
	return s.text[n.from:n.to]
}

// position returns where in the text a name of the stack stands.
func (s *scanner) position(n openName) int {
	if n.to&inDecoded != 0 {
		return int(binary.LittleEndian.Uint32(s.decoded[n.from-4:]))
	}
	return int(n.from) - 1
}

// nameSeed keeps whoever writes records from choosing names that collide. No
// result depends on it.
var nameSeed = maphash.MakeSeed()

// fewNames is up to how many names comparing each with each is cheapest.
const fewNames = 16

// unique checks the names of the object that ends here, which are those on the
// stack from open on, and takes them off.
func (s *scanner) unique(open int) bool {
	names := s.names[open:]
	s.names = s.names[:open]
	twice := s.twiceOfMany
	if len(names) <= fewNames {
		twice = s.twiceOfFew
	}
	if i := twice(names); i >= 0 {
		return s.fail(ReasonDuplicateKey, s.position(names[i]), "an object names this member twice")
	}
	return true
}

// twiceOfFew returns the index of the first name that repeats an earlier one,
// or -1.
func (s *scanner) twiceOfFew(names []openName) int {
	for i := 1; i < len(names); i++ {
		n := s.open(names[i])
		for _, earlier := range names[:i] {
			if o := s.open(earlier); len(n) == len(o) && string(n) == string(o) {
				return i
			}
		}
	}
	return -1
}

// twiceOfMany is twiceOfFew in linear time: an open hash table of indexes, at
// most half full; 0 is an empty place.
func (s *scanner) twiceOfMany(names []openName) int {
	size := 1 << bits.Len(uint(2*len(names)-1))
	if cap(s.table) < size {
		s.table = make([]uint32, size)
	}
	table := s.table[:size]
	clear(table)
	for i := range names {
		n := s.open(names[i])
		at := maphash.Bytes(nameSeed, n) & uint64(size-1)
		for ; table[at] != 0; at = (at + 1) & uint64(size-1) {
			if bytes.Equal(n, s.open(names[table[at]-1])) {
				return i
			}
		}
		table[at] = uint32(i + 1)
	}
	return -1
}

func (s *scanner) array(depth int) bool {
	if depth > MaxDepth {
		return s.fail(ReasonTooDeep, s.i, fmt.Sprintf("more than %d levels", MaxDepth))
	}
	s.i++
	s.space()
	if s.peek() == ']' {
		s.i++
		return true
	}
	for {
		if _, ok := s.value(depth + 1); !ok {
			return false
		}
		s.space()
		switch s.peek() {
		case ',':
			s.i++
			s.space()
		case ']':
			s.i++
			return true
		default:
			return s.failHere("neither , nor ] after an element")
		}
	}
}

// str reads a string, and returns the span between its quotes.
func (s *scanner) str() (span, bool) {
	s.escaped = false
	from := s.i + 1
	for i := from; ; {
		i = skipPlain(s.text, i)
		switch {
		case i == len(s.text):
			return span{}, s.fail(ReasonInvalidJSON, i, "the text ends inside a string")
		case s.text[i] == '"':
			s.i = i + 1
			return span{uint32(from), uint32(i)}, true
		case s.text[i] != '\\':
			return span{}, s.fail(ReasonInvalidJSON, i, "control character in a string")
		}
		n, ok := s.escape(i)
		if !ok {
			return span{}, false
		}
		s.escaped = true
		i += n
	}
}

// escape checks the escape at byte i and returns its length.
func (s *scanner) escape(i int) (int, bool) {
	rest := s.text[i:]
	if len(rest) > 1 && bytes.IndexByte([]byte(`"\/bfnrt`), rest[1]) >= 0 {
		return 2, true
	}
	r, ok := unit(rest)
	switch {
	case !ok:
		return 0, s.fail(ReasonInvalidJSON, i, "no such escape")
	case !isSurrogate(r):
		return 6, true
	}
	if low, ok := unit(rest[6:]); ok && isHigh(r) && isLow(low) {
		return 12, true
	}
	return 0, s.fail(ReasonInvalidUnicode, i, "lone surrogate")
}

func isSurrogate(r rune) bool { return isHigh(r) || isLow(r) }
func isHigh(r rune) bool      { return 0xD800 <= r && r <= 0xDBFF }
func isLow(r rune) bool       { return 0xDC00 <= r && r <= 0xDFFF }
func isDigit(c byte) bool     { return '0' <= c && c <= '9' }

func (s *scanner) number() bool {
	if s.peek() == '-' {
		s.i++
	}
	if s.peek() == '0' {
		s.i++
	} else if !s.digits() {
		return s.failHere("no digit where a number needs one")
	}
	if s.peek() == '.' {
		s.i++
		if !s.digits() {
			return s.failHere("no digit where a number needs one")
		}
	}
	if s.peek()|0x20 == 'e' {
		s.i++
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		if !s.digits() {
			return s.failHere("no digit where a number needs one")
		}
	}
	return true
}

// digits reads digits, and says whether there was one.
func (s *scanner) digits() bool {
	from := s.i
	for isDigit(s.peek()) {
		s.i++
	}
	return s.i > from
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// skipPlain returns the index of the first byte from i on that is a quote, a
// backslash or a control character, or len(b). It looks at 8 bytes at a time:
// (x-1)&^x has the high bit of a byte set where the byte was 0, and the lowest
// such bit is never wrong.
func skipPlain(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		hit := (quote-ones)&^quote | (slash-ones)&^slash | (x-ones*0x20)&^x
		if hit &= highs; hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < 0x20 {
			break
		}
	}
	return i
}

// nameOf returns the name of an indexed member, without escapes.
func (s *scanner) nameOf(m *member) []byte {
	if m.decoded.to > 0 {
		return s.decoded[m.decoded.from:m.decoded.to]
	}
	return s.text[m.name.from:m.name.to]
}

// ownName is nameOf in memory that the next scan leaves alone.
func (s *scanner) ownName(m *member) string {
	if name := s.nameOf(m); m.decoded.to > 0 {
		return string(name)
	}
	return share(s.text[m.name.from:m.name.to])
}

// raw returns the value of an indexed member as it was written.
func (s *scanner) raw(m *member) []byte { return s.text[m.value.from:m.value.to:m.value.to] }

// stringOf returns the text of an indexed member that is a string. It shares memory
// with the text where the string has no escapes.
func (s *scanner) stringOf(m *member) string {
	in := s.text[m.value.from+1 : m.value.to-1]
	if m.escaped {
		return string(appendUnescaped(nil, in))
	}
	return share(in)
}

// find returns the member of the root that has the name, or nil.
func (s *scanner) find(name string) *member {
	for i := range s.top {
		if m := &s.top[i]; string(s.nameOf(m)) == name {
			return m
		}
	}
	return nil
}
