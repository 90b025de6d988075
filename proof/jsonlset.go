package proof

import (
	"fmt"
	"slices"
)

// A JSONLSet is the answer for several files: each alone, and all as one chain.
type JSONLSet struct {
	Keyed bool         `json:"keyed"` // checked as HMAC-SHA256
	Files []*JSONLFile `json:"files"` // as they were given
	Set   JSONLReport  `json:"set"`
	Order []string     `json:"order"` // names in the order of the chain, as far as it holds
	Looks []string     `json:"looks"` // nothing is wrong with these; somebody should look at them
	Exit  int          `json:"exit"`  // the process exits with it
}

// CheckJSONLSet says whether files that were checked by [CheckJSONL] are one
// chain: each but the first begins with a RotationAnchor behind the last line of
// another, and no two behind the same. One file is a set of one.
//
// Exit is 1 where a line is broken or the files are not one chain, 3 where a
// file has no lines, 4 where the chain was reset or where one end of a set is
// missing, else 0.
func CheckJSONLSet(files []*JSONLFile, keyed bool) *JSONLSet {
	s := &JSONLSet{Keyed: keyed, Files: files, Set: JSONLReport{OK: true}, Order: []string{}, Looks: []string{}}
	for _, f := range files {
		s.Set.LineCount += f.LineCount
		s.Set.ChainResetCount += f.ChainResetCount
	}
	chain := jsonlOrder(files)
	torn := false
	for i, f := range chain {
		s.Order = append(s.Order, f.Name)
		if i > 0 && f.begun() && !f.continues(chain[i-1]) {
			torn = true
			s.broken(&f.first.seq, fmt.Sprintf("%s does not continue %s: its prevHash is %.70q, the last hash there is %q", f.Name, chain[i-1].Name, f.first.prev, chain[i-1].last.hash))
		}
		if !f.OK {
			torn = torn || f.LineCount > 0
			s.broken(f.FirstBrokenSeq, f.Name+": "+*f.Error)
		}
	}
	s.look(chain)
	s.Exit = s.exit(torn)
	return s
}

// begun reports whether the file's first line is right in itself.
func (f *JSONLFile) begun() bool { return f.first.hash != "" }

// continues reports whether f may stand behind another file of a chain. A chain
// reset at its beginning owes nothing to what was before.
func (f *JSONLFile) continues(before *JSONLFile) bool {
	return follows(f, before) || f.resets()
}

func (f *JSONLFile) resets() bool { return f.first.kind == jsonlReset && f.first.prev == "" }

// jsonlOrder returns the files in the order of their chain: the root first, and
// behind each the file that continues it. What continues none of the files
// begins another stretch, in the order given, chain resets last.
func jsonlOrder(files []*JSONLFile) (chain []*JSONLFile) {
	left := slices.Clone(files)
	slices.SortStableFunc(left, func(a, b *JSONLFile) int {
		switch {
		case a.resets() == b.resets():
			return 0
		case b.resets():
			return -1
		}
		return 1
	})
	for len(left) > 0 {
		i := slices.IndexFunc(left, func(f *JSONLFile) bool { return !jsonlContinues(f, left) })
		for i = max(i, 0); i >= 0; {
			f := left[i]
			chain, left = append(chain, f), slices.Delete(left, i, i+1)
			i = slices.IndexFunc(left, func(next *JSONLFile) bool { return follows(next, f) })
		}
	}
	return chain
}

// jsonlContinues reports whether f continues one of the files.
func jsonlContinues(f *JSONLFile, files []*JSONLFile) bool {
	return slices.ContainsFunc(files, func(before *JSONLFile) bool { return before != f && follows(f, before) })
}

func follows(next, f *JSONLFile) bool {
	return next.first.prev != "" && next.first.prev == f.last.hash
}

func (s *JSONLSet) broken(seq *int64, text string) {
	if s.Set.OK {
		s.Set.OK, s.Set.FirstBrokenSeq, s.Set.Error = false, seq, &text
	}
}

// look names what is not wrong and yet no whole chain.
func (s *JSONLSet) look(chain []*JSONLFile) {
	if n := s.Set.ChainResetCount; n > 0 {
		s.Looks = append(s.Looks, fmt.Sprintf("%s: nothing says that what stood before it is whole", Count(n, "chain reset")))
	}
	if len(chain) < 2 || !s.Set.OK {
		return
	}
	if first := chain[0]; first.first.prev != "" {
		s.Looks = append(s.Looks, "the file before "+first.Name+" was not given: its last hash is "+first.first.prev)
	}
	if last := chain[len(chain)-1]; last.last.kind == jsonlMarker {
		s.Looks = append(s.Looks, "the file behind "+last.Name+" was not given: it ends with a "+jsonlMarker)
	}
}

func (s *JSONLSet) exit(torn bool) int {
	switch {
	case torn:
		return 1
	case !s.Set.OK || len(s.Files) == 0: // a file without lines
		return 3
	case len(s.Looks) > 0:
		return 4
	}
	return 0
}
