package main

import (
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// An attack changes a subject and returns what then lies in the bucket; nil says
// that it has nothing to change there.
type attack struct {
	kind, name string
	of         []string // the specimens that it is made on
	elsewhere  bool     // the verifier has copies of the newest anchors from another place
	want       int      // exit
	do         func(*subject) objects
}

// on reports whether the attack is made on a specimen.
func (a *attack) on(specimen string) bool { return slices.Contains(a.of, specimen) }

// A change changes rows or metadata of a segment. It reports whether there was
// anything to change.
type change struct {
	name string
	do   func(s *subject, l *prooftest.Line, seg *prooftest.Segment) bool
}

// A cover is how far an attacker covers up a change of segment i.
type cover struct {
	name      string
	elsewhere bool
	want      int
	do        func(s *subject, l *prooftest.Line, i int)
}

// hiding are the covers that leave the hashes of rows as they are.
var hiding = []cover{
	{"", false, 1, func(_ *subject, l *prooftest.Line, i int) { l.Segments[i].Encode() }},
	{", later segments linked anew", false, 1, func(_ *subject, l *prooftest.Line, i int) {
		l.Segments[i].Encode()
		l.Relink(i + 1)
	}},
	{", anchors signed anew with the right key", false, 1, func(_ *subject, l *prooftest.Line, i int) {
		l.Segments[i].Encode()
		l.Relink(i + 1)
		l.Reanchor()
	}},
}

// rehashing are the covers of somebody who computes all hashes anew. Only heads
// from another place show that where the keys were stolen too, or where every
// anchor was taken away.
var rehashing = []cover{
	{", all hashes made anew", false, 1, func(_ *subject, l *prooftest.Line, _ int) { l.Restamp() }},
	{", anchors made anew under their old signatures", false, 1, func(_ *subject, l *prooftest.Line, _ int) {
		l.Restamp()
		old := l.Anchors
		l.Reanchor()
		for i, a := range l.Anchors {
			text, _ := cutNote(a.Body)
			_, signatures := cutNote(old[i].Body)
			a.Body = []byte(text + signatures)
		}
	}},
	{", anchors signed by a stranger", false, 1, func(_ *subject, l *prooftest.Line, _ int) { rebuild(l, prooftest.Signer(stranger)) }},
	{", anchors without signatures", false, 3, func(_ *subject, l *prooftest.Line, _ int) { rebuild(l) }},
	{", anchors without signatures, seen from another place", true, 1, func(_ *subject, l *prooftest.Line, _ int) { rebuild(l) }},
	{", anchors signed anew with the right key, seen from another place", true, 1, func(_ *subject, l *prooftest.Line, _ int) {
		l.Restamp()
		l.Reanchor()
	}},
}

// rebuild makes a line anew with other signers.
func rebuild(l *prooftest.Line, signers ...*sign.Signer) {
	l.Restamp()
	signBy(l, signers...)
	l.Reanchor()
}

func signBy(l *prooftest.Line, signers ...*sign.Signer) {
	for _, a := range l.Anchors {
		a.Signers = signers
	}
}

// onlyOf says on which specimens attacks are made that do not say it themselves.
func onlyOf(specimens []string, all ...attack) []attack {
	for i := range all {
		if all[i].of == nil {
			all[i].of = specimens
		}
	}
	return all
}

// covered returns each change of each segment under each cover.
func covered(kind string, changes []change, covers ...cover) (all []attack) {
	for i := range segments {
		for _, ch := range changes {
			for _, co := range covers {
				all = append(all, attack{kind: kind, name: ch.name + co.name, elsewhere: co.elsewhere, want: co.want, do: func(s *subject) objects {
					if !ch.do(s, s.calls, s.calls.Segments[i]) {
						return nil
					}
					co.do(s, s.calls, i)
					return s.pack()
				}})
			}
		}
	}
	return all
}

// segments is how many segments the line has that most attacks are made on.
const segments = 4

// cutNote parts a note's text, with the empty line behind it, from its
// signatures.
func cutNote(body []byte) (text, signatures string) {
	i := strings.LastIndex(string(body), "\n\n") + 2
	return string(body[:i]), string(body[i:])
}
