package redact

import "regexp"

// keyed finds what a pattern matches in the values of members whose names match
// another one.
type keyed struct {
	key     *regexp.Regexp // of the whole name
	pattern *regexp.Regexp // never matches nothing
}

// find looks for one match after the other. Each look is linear in the text, and
// could be at all of it; where that adds up to more than the budget, the text
// goes as a whole.
func (k *keyed) find(s *subject, number int) {
	if s.keyed>>number&1 == 0 || len(s.b) == 0 {
		return
	}
	most := max(0, int(*s.budget/int64(len(s.b))))
	found := k.pattern.FindAllIndex(s.b, most+1)
	*s.budget -= int64(len(s.b)) * int64(len(found)+1)
	if len(found) > most {
		s.add(0, len(s.b), number)
		return
	}
	for _, at := range found {
		if !isMasked(s.b[at[0]:at[1]]) {
			s.add(at[0], at[1], number)
		}
	}
}
