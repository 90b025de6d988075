package audit

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// has says whether a row has a value in the column.
func (c *columnPlan) has(r *Record) bool {
	if c.text != nil {
		return c.text(r).Valid
	}
	return c.int(r).Valid
}

// appendTo appends the JSON text of the column's value, as producers write it.
func (c *columnPlan) appendTo(dst []byte, r *Record) []byte {
	if c.text != nil {
		return AppendString(dst, c.text(r).S)
	}
	n := c.int(r).N
	switch c.as {
	case asMillis:
		return AppendMillis(dst, n)
	case asTime, asTimeOrMillis:
		return append(AppendTime(append(dst, '"'), n), '"')
	}
	return strconv.AppendInt(dst, n, 10)
}

// AppendMillis appends microseconds as a decimal number of milliseconds, without
// zeros at its end: 812500 is 812.5.
func AppendMillis(dst []byte, micros int64) []byte {
	whole, frac := micros/1000, micros%1000
	if micros < 0 {
		dst = append(dst, '-')
		whole, frac = -whole, -frac
	}
	dst = strconv.AppendInt(dst, whole, 10)
	if frac == 0 {
		return dst
	}
	dst = append(dst, '.', byte('0'+frac/100), byte('0'+frac/10%10), byte('0'+frac%10))
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// AppendTime appends an instant, in microseconds since 1970-01-01 UTC, as
// producers write it: YYYY-MM-DDTHH:MM:SS.mmmZ, and with six decimals where
// three do not say it.
func AppendTime(dst []byte, micros int64) []byte {
	layout := plainTime
	if micros%1000 != 0 {
		layout = "2006-01-02T15:04:05.000000Z"
	}
	return time.UnixMicro(micros).UTC().AppendFormat(dst, layout)
}

// branch makes an opened node, without children, and returns its index.
func (x *restorer) branch(typ valueType) int {
	x.nodes = append(x.nodes, node{typ: typ, opened: true})
	return len(x.nodes) - 1
}

// add adds a child to an opened node, without looking whether there is one of
// the name. It returns the child.
func (x *restorer) add(at int, name string, text []byte) int {
	child := len(x.nodes)
	x.nodes = append(x.nodes, node{name: name, text: text})
	n := &x.nodes[at]
	if n.first == 0 {
		n.first = child
	} else {
		x.nodes[n.last].next = child
	}
	n.last, n.found = child, child
	return child
}

// set gives the member of an opened object that has the name a text; a new
// member, where there is none.
func (x *restorer) set(at int, name string, text []byte) {
	if child := x.child(at, name); child != 0 {
		x.nodes[child].text, x.nodes[child].opened = text, false
		return
	}
	x.add(at, name, text)
}

// objectIn returns the opened object that is a member of an opened object, a new
// one where there is none.
func (x *restorer) objectIn(at int, name string) int {
	child := x.child(at, name)
	if child == 0 {
		child = x.add(at, name, nil)
		x.nodes[child].typ, x.nodes[child].opened = typeObject, true
		return child
	}
	x.open(child)
	if n := &x.nodes[child]; n.typ != typeObject {
		*n = node{name: n.name, next: n.next, typ: typeObject, opened: true}
	}
	return child
}

// child returns the child of a node that a step of a path names, 0 if there is
// none: the member of the name, or the element of the number.
func (x *restorer) child(at int, name string) int {
	x.open(at)
	n := &x.nodes[at]
	switch {
	case !n.opened || n.first == 0:
		return 0
	case n.typ == typeArray:
		// The elements lie one behind the other.
		i, err := strconv.ParseUint(name, 10, 31)
		if err != nil || i > uint64(n.last-n.first) || strconv.FormatUint(i, 10) != name {
			return 0
		}
		return n.first + int(i)
	}
	if found := x.search(n.found, 0, name); found != 0 {
		n.found = found
		return found
	}
	if found := x.search(n.first, n.found, name); found != 0 {
		n.found = found
		return found
	}
	return 0
}

// search returns the first of the name among siblings from one on, up to
// another.
func (x *restorer) search(from, to int, name string) int {
	for i := from; i != 0 && i != to; i = x.nodes[i].next {
		if x.nodes[i].name == name {
			return i
		}
	}
	return 0
}

// open makes children of what the text of an object or array has in it. Other
// nodes stay as they are.
func (x *restorer) open(at int) {
	n := &x.nodes[at]
	if n.opened || n.text == nil {
		return
	}
	text := n.text[skipSpace(n.text, 0):]
	if len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return
	}
	n.opened, n.typ, n.text = true, typeObject, nil
	if text[0] == '[' {
		n.typ = typeArray
		for _, v := range elementsOf(text) {
			x.add(at, "", text[v.from:v.to])
		}
		return
	}
	for name, v := range membersOf(text) {
		x.add(at, unescaped(text[name.from:name.to]), text[v.from:v.to])
	}
	x.nodes[at].found = x.nodes[at].first
}

// write appends the text of a node.
func (x *restorer) write(dst []byte, n *node) []byte {
	if !n.opened {
		return appendCompact(dst, n.text)
	}
	open, end := byte('{'), byte('}')
	if n.typ == typeArray {
		open, end = '[', ']'
	}
	dst = append(dst, open)
	isRoot := n == &x.nodes[x.root]
	for i := n.first; i != 0; i = x.nodes[i].next {
		child := &x.nodes[i]
		if i != n.first {
			dst = append(dst, ',')
		}
		if n.typ == typeObject {
			dst = x.writeName(dst, child.name, isRoot)
		}
		dst = x.write(dst, child)
	}
	if isRoot && len(x.strange) > 0 {
		if n.first != 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, `"$prompts":{`...), x.strange...), '}')
	}
	return append(dst, end)
}

func (x *restorer) writeName(dst []byte, name string, top bool) []byte {
	dst = append(dst, '"')
	if top && (x.Reserve || len(x.strange) > 0) && strings.HasPrefix(name, "$") {
		dst = append(dst, '$')
	}
	return append(appendBetween(dst, name), '"', ':')
}

// AppendString appends s, which must be UTF-8, as a JSON string. It has the short
// escapes, so that no text becomes longer than what a producer wrote for it.
func AppendString(dst []byte, s string) []byte {
	return append(appendBetween(append(dst, '"'), s), '"')
}

func appendBetween(dst []byte, s string) []byte {
	from := 0
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' {
			dst = appendEscape(append(dst, s[from:i]...), c)
			from = i + 1
		}
	}
	return append(dst, s[from:]...)
}

// appendEscape appends a byte that a string cannot have as it is.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '\n':
		c = 'n'
	case '\r':
		c = 'r'
	case '\t':
		c = 't'
	case '\b':
		c = 'b'
	case '\f':
		c = 'f'
	case '"', '\\':
	default:
		return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
	}
	return append(dst, '\\', c)
}

// AppendRaw appends bytes from outside: as a JSON string, or as {"base64": …} where
// they are not UTF-8 or escapes would more than double them.
func AppendRaw(dst, b []byte) []byte {
	if utf8.Valid(b) {
		from := len(dst)
		if dst = AppendString(dst, share(b)); len(dst)-from <= 2*len(b)+64 {
			return dst
		}
		dst = dst[:from]
	}
	dst = append(dst, `{"base64":"`...)
	return append(base64.StdEncoding.AppendEncode(dst, b), `"}`...)
}

// appendCompact appends the text of a JSON value without the blanks that stand
// between its parts: it is one line then. It does not look at strings.
func appendCompact(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		switch text[i] {
		case ' ', '\n', '\t', '\r':
			i++
		case '"':
			end := skipString(text, i)
			dst = append(dst, text[i:end]...)
			i = end
		default:
			from := i
			for i++; i < len(text) && text[i] > '"'; i++ {
			}
			dst = append(dst, text[from:i]...)
		}
	}
	return dst
}
