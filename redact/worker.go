package redact

import (
	"bytes"
	"slices"
	"sync"
	"unicode/utf8"
)

// A worker scrubs texts by the rules of a tenant. It is borrowed for one record.
type worker struct {
	rules  *ruleSet
	budget int64
	subject
	folding     folded // the memory of texts that are not plain
	text, spare []byte // what a text has become, and what it was
	out         []byte // what a slot has become so far
	done        int    // of the slot, how much out says
	renamed     bool   // a member name has changed
	stack       []level
	name        folded            // scratch
	known       map[string]uint64 // the keyed rules for a member name
	of          *ruleSet          // whose known are
}

var workers = sync.Pool{New: func() any { return &worker{known: map[string]uint64{}} }}

// bigBuffer is the size above which a buffer is not kept for the next record.
const bigBuffer = 64 << 10

// borrow returns a worker for slots of so many bytes.
func borrow(rules *ruleSet, size int) *worker {
	w := workers.Get().(*worker)
	w.rules, w.budget = rules, minBudget+passes*int64(size)
	if w.of != rules {
		clear(w.known)
		w.of = rules
	}
	return w
}

func (w *worker) release() {
	w.subject = subject{matches: w.matches[:0]}
	if cap(w.folding.b)+cap(w.folding.at)+cap(w.text)+cap(w.spare)+cap(w.out)+cap(w.stack)+cap(w.matches) > bigBuffer {
		*w = worker{known: map[string]uint64{}}
	}
	workers.Put(w)
}

// begin begins a slot.
func (w *worker) begin() {
	w.out, w.done, w.renamed, w.stack = w.out[:0], 0, false, w.stack[:0]
}

// How much keyed rules may look at in a record: so many bytes, and each byte of
// its slots so often. A string of 64 KiB may have 100 matches.
const (
	minBudget = 8 << 20
	passes    = 8
)

// maxRounds is how often a text is looked at again after something in it was
// replaced. Most have nothing more to find the first time.
const maxRounds = 4

// scrubbed returns what the rules make of a text, and whether that is another
// one. It is good until the next call.
func (w *worker) scrubbed(in []byte) ([]byte, bool) {
	text, changed := in, false
	for range maxRounds {
		if !w.look(text) {
			return text, changed
		}
		w.spare = w.replaced(w.spare[:0], text)
		w.text, w.spare = w.spare, w.text
		text, changed = w.text, true
	}
	if !w.look(text) {
		return text, true
	}
	w.text = appendMark(w.text[:0], w.rules.names[w.matches[0].rule])
	return w.text, true
}

// look reports whether the rules find something in a text, in w.matches.
func (w *worker) look(text []byte) bool {
	w.matches = w.matches[:0]
	if len(text) < w.rules.digits && w.keyed == 0 {
		return false // no character stands for more digits than it has bytes
	}
	may, plain := w.rules.may(text)
	if !may && w.keyed == 0 {
		return false
	}
	w.subject.budget = &w.budget
	switch {
	case !plain:
		w.folding.fold(text)
		maskMarks(w.folding.b)
		w.folded = w.folding
	case bytes.Contains(text, []byte(markOpen)):
		w.folding.b = append(w.folding.b[:0], text...)
		maskMarks(w.folding.b)
		w.folded = folded{b: w.folding.b}
	default:
		w.folded = folded{b: text}
	}
	for i, r := range w.rules.rules {
		r.find(&w.subject, i)
	}
	w.locate()
	return len(w.matches) > 0
}

// locate makes places in the text of the matches' places in the folded one, in
// order, those that overlap together.
func (w *worker) locate() {
	slices.SortStableFunc(w.matches, func(a, b match) int { return a.from - b.from })
	n := 0
	for _, m := range w.matches {
		m.from, m.to = w.place(m.from, m.to)
		if n > 0 && m.from < w.matches[n-1].to {
			last := &w.matches[n-1]
			last.to, last.rule = max(last.to, m.to), min(last.rule, m.rule)
			continue
		}
		w.matches[n] = m
		n++
	}
	w.matches = w.matches[:n]
}

// replaced appends a text with marks in place of the matches. All other bytes
// stay.
func (w *worker) replaced(dst, text []byte) []byte {
	done := 0
	for _, m := range w.matches {
		dst = append(dst, text[done:m.from]...)
		dst = appendMark(dst, w.rules.names[m.rule])
		done = m.to
	}
	return append(dst, text[done:]...)
}

// A ruleSet is the rules for a tenant.
type ruleSet struct {
	rules  []rule
	names  []string // in marks
	keyed  uint64   // which rules are keyed
	digits int      // that a text must have for the others to find something
}

// may reports whether a text can have something that needs no member's name: as
// many digits, counting all that could be one. plain is true where the text has
// neither escapes nor characters beyond ASCII.
func (rs *ruleSet) may(text []byte) (may, plain bool) {
	sum := uint64(0)
	for _, c := range text {
		sum += weights[c]
	}
	n, odd := int(sum&maxWeight), sum > maxWeight
	if n < rs.digits && odd {
		n += maxDigits * bytes.Count(text, []byte(`\u`))
	}
	return n >= rs.digits, !odd
}

// What a byte adds to a sum: in the low half how many digits the character that
// it begins can stand for, in the high half 1 where it is no plain ASCII.
const (
	maxWeight = 1<<32 - 1
	maxDigits = 2 // of one character: ⑳
)

var weights = func() (w [256]uint64) {
	for c := range w {
		switch {
		case isDigit(byte(c)):
			w[c] = 1
		case c >= utf8.RuneSelf || c < ' ' || c == '\\':
			w[c] = maxWeight + 1
		}
	}
	for lead, digits := range map[byte]uint64{0xC2: 1, 0xD9: 1, 0xDB: 1, 0xDF: 1, 0xE0: 1, 0xE1: 1, 0xE2: 2, 0xE3: 2, 0xEA: 1, 0xEF: 1, 0xF0: 1} {
		w[lead] += digits
	}
	return w
}()
