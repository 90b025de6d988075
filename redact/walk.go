package redact

import "iter"

// A level is an object or array that is open.
type level struct {
	object bool
	name   bool // a member name comes next
	key    key  // that holds again behind it
}

// A key is the member that values are of.
type key struct {
	name  span   // as it is written
	keyed uint64 // the keyed rules that are for it
}

// A span is a stretch of a slot's text.
type span struct{ from, to int }

// json returns what the rules make of a JSON text: of the strings in it, values
// and member names; numbers stay. It returns in itself where that is the same.
// paths says that the names of the outermost object are wire paths, in which the
// last part is the member's name.
func (w *worker) json(in []byte, paths bool) []byte {
	w.begin()
	if may, _ := w.rules.may(in); !may && w.rules.keyed == 0 {
		return in
	}
	var k key
	for i := 0; i < len(in); {
		switch c := in[i]; c {
		case '{', '[':
			w.stack = append(w.stack, level{object: c == '{', name: c == '{', key: k})
		case '}', ']':
			k = w.close()
		case ',':
			w.expectName(true)
		case ':':
			w.expectName(false)
		case '"':
			end := stringEnd(in, i)
			k = w.str(in, span{i + 1, end}, k, paths)
			i = end
		}
		i++
	}
	if len(w.out) == 0 {
		return in
	}
	w.out = append(w.out, in[w.done:]...)
	if w.renamed {
		w.out = numberNames(w.out)
	}
	return w.out
}

// close ends an object or array, and returns the key that holds again.
func (w *worker) close() key {
	n := len(w.stack)
	if n == 0 {
		return key{}
	}
	k := w.stack[n-1].key
	w.stack = w.stack[:n-1]
	return k
}

func (w *worker) expectName(is bool) {
	if n := len(w.stack); n > 0 && w.stack[n-1].object {
		w.stack[n-1].name = is
	}
}

// str scrubs a string, which stands between its quotes, and returns the key that
// holds behind it.
func (w *worker) str(in []byte, at span, k key, paths bool) key {
	if n := len(w.stack); n > 0 && w.stack[n-1].name {
		w.subject.key, w.keyed = nil, 0
		if w.put(in, at) {
			w.renamed = true
		}
		if paths && n == 1 {
			at = lastOfPath(in, at)
		}
		return key{at, w.keyedFor(in[at.from:at.to])}
	}
	w.subject.key, w.keyed = in[k.name.from:min(k.name.to, k.name.from+maxKnownBytes)], k.keyed
	w.put(in, at)
	return k
}

// put appends what a text has become, and what stands before it; nothing where it
// is the same. It reports whether it is another.
func (w *worker) put(in []byte, at span) bool {
	text, changed := w.scrubbed(in[at.from:at.to])
	if changed {
		w.out = append(append(w.out, in[w.done:at.from]...), text...)
		w.done = at.to
	}
	return changed
}

// maxKnown bounds the names that a worker knows, and maxKnownBytes how long they
// are, and how much of a name is searched for words.
const (
	maxKnown      = 4096
	maxKnownBytes = 128
)

// keyedFor returns the keyed rules that are for a member name as it is written.
func (w *worker) keyedFor(name []byte) uint64 {
	if w.rules.keyed == 0 {
		return 0
	}
	known, ok := w.known[string(name)]
	if !ok {
		w.name.fold(name)
		known = w.rules.keyedFor(w.name.b)
		if len(w.known) == maxKnown {
			clear(w.known)
		}
		if len(name) <= maxKnownBytes {
			w.known[string(name)] = known
		}
	}
	return known
}

// keyedFor returns the keyed rules that are for a folded member name.
func (rs *ruleSet) keyedFor(name []byte) (set uint64) {
	for i, r := range rs.rules {
		if k, ok := r.(*keyed); ok && k.key.Match(name) {
			set |= 1 << i
		}
	}
	return set
}

// lastOfPath returns the last part of a wire path.
func lastOfPath(in []byte, at span) span {
	for i := at.to - 1; i >= at.from; i-- {
		if in[i] == '.' {
			return span{i + 1, at.to}
		}
	}
	return at
}

// stringEnd returns the index of the quote that ends the string whose opening
// quote is at i, or len(b).
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return len(b)
}

// membersOf yields the members of the text of a JSON object: the name, as it is
// written, and where the value stands.
func membersOf(text []byte) iter.Seq2[string, span] {
	return func(yield func(string, span) bool) {
		depth, name := 0, ""
		from := -1 // of the value that is being read
		for i := 0; i < len(text); i++ {
			switch c := text[i]; {
			case c == '"':
				end := stringEnd(text, i)
				if depth == 1 && from < 0 {
					name = string(text[i+1 : end])
				}
				i = end
			case c == ':' && depth == 1 && from < 0:
				from = i + 1
			case c == '{' || c == '[':
				depth++
			case (c == ',' || c == '}') && depth == 1 && from >= 0:
				if !yield(name, span{from, i}) {
					return
				}
				from = -1
				fallthrough
			default:
				if c == '}' || c == ']' {
					depth--
				}
			}
		}
	}
}
