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
	names := namesOf(text)
	count := map[objectName]int{}
	for _, n := range names {
		count[n.in(text)]++
	}
	var out []byte
	done := 0
	first := map[objectName]bool{}
	for _, n := range names {
		is := n.in(text)
		if count[is] == 1 || !first[is] {
			first[is] = true
			continue
		}
		numbered, ok := numberFree(count, is.object, text[n.at.from:n.at.to])
		if !ok {
			continue // it was there twice before
		}
		out = append(append(out, text[done:n.at.from]...), numbered...)
		done = n.at.to
	}
	return append(out, text[done:]...)
}

// numberFree numbers the last mark of a name so that no other member of the
// object has it. It reports false where the name has no mark.
func numberFree(count map[objectName]int, object int, name []byte) ([]byte, bool) {
	at := bytes.LastIndex(name, []byte(markOpen))
	if at < 0 {
		return nil, false
	}
	from, to := nextMark(name, at)
	if from == len(name) || bytes.IndexByte(name[from:to], '~') >= 0 {
		return nil, false
	}
	for n := 2; ; n++ {
		numbered := append(appendNumbered(bytes.Clone(name[:from]), name[from:to], n), name[to:]...)
		is := objectName{object, unescaped(numbered)}
		if count[is] == 0 {
			count[is]++
			return numbered, true
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

// namesOf lists the member names of a valid JSON text.
func namesOf(text []byte) (names []nameAt) {
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
			if top().name {
				names = append(names, nameAt{top().object, span{i + 1, end}})
			}
			i = end
		}
	}
	return names
}
