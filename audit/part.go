package audit

import "sync"

var parts = sync.Pool{New: func() any { return new(scanner) }}

// CheckPart returns why no record could have text as one of its values, nil if it
// could: see [MaxDepth] and the reasons of JSON. An object or array there would be
// the depth-th level of the record; depth is 2 at least. Positions in the Reject
// count from the beginning of text.
func CheckPart(text []byte, depth int) *Reject {
	s := parts.Get().(*scanner)
	defer func() {
		s.release()
		parts.Put(s)
	}()
	s.unbounded = true // only a record counts its members
	s.group = false
	return s.scanFrom(text, 0, depth)
}
