package redact

import (
	"bytes"

	"github.com/ledgerlake/ledgerlake/audit"
)

// Same reports whether a stored row, which may be scrubbed by whatever policy,
// could be what that policy made of an unscrubbed record: their content is equal
// ([audit.Record.ContentHash]), where a mark in the stored row may stand for any
// text, at least one byte of a string, of the record.
//
// It is how a repeat is told from a conflict where policies changed in between,
// and the rules of the other policy are not to be had. It takes time in
// proportion to the two.
func Same(stored, record *audit.Record) bool {
	if !sameColumns(*stored, *record) {
		return false
	}
	for s := range audit.NumSlots {
		a, b := stored.Slots[s], record.Slots[s]
		if s == audit.SlotExt {
			a, b = extContent(stored), extContent(record)
		}
		if (a == nil) != (b == nil) || !couldBe(a, b) {
			return false
		}
	}
	return true
}

func sameColumns(a, b audit.Record) bool {
	a.Slots, b.Slots = [audit.NumSlots][]byte{}, [audit.NumSlots][]byte{}
	return a.ContentHash() == b.ContentHash()
}

// extContent returns what is content of ext as one text.
func extContent(r *audit.Record) (text []byte) {
	if !r.ExtContent(func(name string, value []byte) {
		text = append(append(append(append(text, '"'), name...), '"', ':'), value...)
		text = append(text, '\n')
	}) {
		return r.Slots[audit.SlotExt]
	}
	return text
}

// couldBe reports whether text is pattern with something in place of each mark.
// No mark stands for a quote that is not escaped: none reaches beyond its string.
func couldBe(pattern, text []byte) bool {
	from, to := nextMark(pattern, 0)
	if !bytes.HasPrefix(text, pattern[:from]) {
		return false
	}
	text = text[from:]
	for from < len(pattern) {
		next, after := nextMark(pattern, to)
		for next == to && next < len(pattern) { // marks side by side are as one
			to = after
			next, after = nextMark(pattern, to)
		}
		literal, last := pattern[to:next], next == len(pattern)
		n, ok := gap(text, literal, last)
		if !ok {
			return false
		}
		text = text[n+len(literal):]
		from, to = next, after
	}
	return len(text) == 0
}

// gap returns how many bytes of a text a mark stands for that a literal follows:
// as few as may be, or all but the literal where that is the last.
func gap(text, literal []byte, last bool) (int, bool) {
	n := 0
	switch {
	case last:
		n = len(text) - len(literal)
	case len(text) > 0:
		n = 1 + bytes.Index(text[1:], literal)
	}
	if n < 1 || !bytes.HasPrefix(text[n:], literal) {
		return 0, false
	}
	return n, stringEnd(text[:n], -1) == n
}
