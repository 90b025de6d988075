package redact

import (
	"bytes"
	"unicode/utf8"
)

// A nameAt is a member name of a JSON text, and which object it is in.
type nameAt struct {
	object int
	at     span
}

// numberNames gives numbers to marks in member names that became equal within an
// object: no object may name a member twice.
func numberNames(text []byte) []byte {
	names := markedNames(text)
	numbers := map[objectName]int{} // 0: not met yet; else the next number
	for _, n := range names {
		numbers[n.in(text)] = 0
	}
	var out []byte
	done := 0
	for _, n := range names {
		is := n.in(text)
		if numbers[is]++; numbers[is] == 1 {
			continue
		}
		name, ok := numbered(numbers, is, text[n.at.from:n.at.to])
		if !ok {
			continue // it was there twice before
		}
		out = append(append(out, text[done:n.at.from]...), name...)
		done = n.at.to
	}
	return append(out, text[done:]...)
}

// numbered numbers the last mark of a name so that no other member of the object
// has it. It reports false where that mark has a number already.
func numbered(numbers map[objectName]int, is objectName, name []byte) ([]byte, bool) {
	from, to := nextMark(name, bytes.LastIndex(name, []byte(markOpen)))
	if from == len(name) || bytes.IndexByte(name[from:to], '~') >= 0 {
		return nil, false
	}
	for n := numbers[is]; ; n++ {
		other := append(appendNumbered(bytes.Clone(name[:from]), name[from:to], n), name[to:]...)
		if _, taken := numbers[objectName{is.object, unescaped(other)}]; !taken {
			numbers[is] = n
			return other, true
		}
	}
}

type objectName struct {
	object int
	name   string
}

func (n *nameAt) in(text []byte) objectName {
	return objectName{n.object, unescaped(text[n.at.from:n.at.to])}
}

// unescaped returns what stands between the quotes of a string, its escapes
// resolved.
func unescaped(in []byte) string {
	if bytes.IndexByte(in, '\\') < 0 {
		return string(in)
	}
	var out []byte
	for i := 0; i < len(in); {
		r, n := runeAt(in[i:])
		out = utf8.AppendRune(out, r)
		i += n
	}
	return string(out)
}

// markedNames lists the member names of a valid JSON text that have marks.
func markedNames(text []byte) (names []nameAt) {
	type open struct {
		object int // 0: an array
		name   bool
	}
	var stack []open
	top := func() *open {
		if len(stack) == 0 {
			return &open{}
		}
		return &stack[len(stack)-1]
	}
	objects := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			objects++
			stack = append(stack, open{object: objects, name: true})
		case '[':
			stack = append(stack, open{})
		case '}', ']':
			stack = stack[:max(0, len(stack)-1)]
		case ',':
			top().name = top().object > 0
		case ':':
			top().name = false
		case '"':
			end := stringEnd(text, i)
			if top().name && bytes.Contains(text[i:end], []byte(markOpen)) {
				names = append(names, nameAt{top().object, span{i + 1, end}})
			}
			i = end
		}
	}
	return names
}
