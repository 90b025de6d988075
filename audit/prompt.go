package audit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// promptNames are the members that hold the text of LLM calls.
var promptNames = []string{"prompt", "prompts", "messages", "systemPrompt", "completion", "completions", "responseText"}

// DefaultPromptPaths lists the members whose values are prompts: promptNames at
// the top level, in call, and in each element of calls. Source:
// docs/format.md, section 3.3.
var DefaultPromptPaths = defaultPromptPaths()

func defaultPromptPaths() []string {
	var paths []string
	for _, prefix := range []string{"", "call.", "calls[]."} {
		for _, name := range promptNames {
			paths = append(paths, prefix+name)
		}
	}
	return paths
}

// ErrPromptPath is matched by every error of [CheckPromptPaths].
var ErrPromptPath = errors.New("bad prompt path")

// CheckPromptPaths returns an error matching [ErrPromptPath] if paths cannot be
// [Decoder.PromptPaths]. A path is member names joined by ".", each followed by
// a "[]" for every array to look into; in a name "." and "~" and a leading "$"
// are written ~2E, ~7E and ~24. A path cannot name what fills a column or a
// slot.
func CheckPromptPaths(paths []string) error {
	for _, path := range paths {
		if slices.Contains(strings.Split(path, "."), "") || strings.HasPrefix(path, "[]") {
			return fmt.Errorf("%w: %q names no member", ErrPromptPath, path)
		}
		for _, s := range shapes {
			if s.takes(path) {
				return fmt.Errorf("%w: %q fills a column or a slot", ErrPromptPath, path)
			}
		}
	}
	return nil
}

// takes says whether a path names a member that the shape puts into a column
// or a slot, or takes apart.
func (s *shape) takes(path string) bool {
	name, sub, nested := strings.Cut(path, ".")
	p := s.members[name]
	if p != nil && nested {
		return p.subs[sub] != nil
	}
	return p != nil && !p.kept
}

// A promptNode is one step of the prompt paths: what to look for in a value.
type promptNode struct {
	prompt  bool // the value is a prompt
	members map[string]*promptNode
	each    *promptNode // for every element
}

func compilePrompts(paths []string) *promptNode {
	root := &promptNode{}
	for _, path := range paths {
		root.at(path).prompt = true
	}
	return root
}

// at returns the node of a path, new if need be.
func (n *promptNode) at(path string) *promptNode {
	for name := range strings.SplitSeq(path, ".") {
		bare := strings.TrimRight(name, "[]")
		n = n.toMember(unescapePathName(bare))
		for range (len(name) - len(bare)) / 2 {
			n = n.toEach()
		}
	}
	return n
}

func (n *promptNode) toMember(name string) *promptNode {
	if n.members == nil {
		n.members = map[string]*promptNode{}
	}
	if n.members[name] == nil {
		n.members[name] = &promptNode{}
	}
	return n.members[name]
}

func (n *promptNode) toEach() *promptNode {
	if n.each == nil {
		n.each = &promptNode{}
	}
	return n.each
}

var pathEscapes = strings.NewReplacer("~2E", ".", "~7E", "~", "~24", "$")

func unescapePathName(name string) string { return pathEscapes.Replace(name) }

// member returns the node of a member of n's value, nil if no path leads there.
func (n *promptNode) member(name []byte) *promptNode {
	if n == nil {
		return nil
	}
	return n.members[string(name)]
}

// A lifter takes prompts out of values, and notes them under their paths.
type lifter struct {
	prompts objectText
	path    []byte // of the value at hand, as it stands in a JSON string
	count   int    // prompts taken out so far
}

// value appends a value with the prompts taken out that n leads to. The value
// stands at l.path. All other bytes stay as they are.
func (l *lifter) value(dst, value []byte, n *promptNode) []byte {
	switch {
	case n == nil || string(value) == "null":
		return append(dst, value...)
	case n.prompt:
		return l.lift(dst, value)
	case value[0] == '{' && n.members != nil:
		return l.object(dst, value, n)
	case value[0] == '[' && n.each != nil:
		return l.array(dst, value, n)
	}
	return append(dst, value...)
}

// lift takes out a value and appends what stands in its place.
func (l *lifter) lift(dst, value []byte) []byte {
	l.count++
	l.prompts.member(string(l.path), value)
	dst = append(dst, `{"promptBytes":`...)
	dst = strconv.AppendInt(dst, int64(len(value)), 10)
	return append(dst, '}')
}

func (l *lifter) object(dst, object []byte, n *promptNode) []byte {
	done, here := uint32(0), len(l.path)
	for name, value := range membersOf(object) {
		plain := unescaped(object[name.from:name.to])
		next := n.members[plain]
		if next == nil {
			continue
		}
		l.path = appendPathName(append(l.path, '.'), plain)
		dst = append(dst, object[done:value.from]...)
		dst = l.value(dst, object[value.from:value.to], next)
		done = value.to
		l.path = l.path[:here]
	}
	return append(dst, object[done:]...)
}

func (l *lifter) array(dst, array []byte, n *promptNode) []byte {
	done, here := uint32(0), len(l.path)
	for i, value := range elementsOf(array) {
		l.path = strconv.AppendInt(append(l.path, '.'), int64(i), 10)
		dst = append(dst, array[done:value.from]...)
		dst = l.value(dst, array[value.from:value.to], n.each)
		done = value.to
		l.path = l.path[:here]
	}
	return append(dst, array[done:]...)
}

// slot returns a slot's value with the prompts taken out; the value itself, and
// no copy, if there are none.
func (l *lifter) slot(value []byte, n *promptNode) []byte {
	if n == nil {
		return value
	}
	before := l.count
	if lifted := l.value(nil, value, n); l.count > before {
		return slices.Clip(lifted)
	}
	return value
}
