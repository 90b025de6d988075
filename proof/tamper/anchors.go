package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// anchors is how many anchors the line has that most attacks are made on.
const anchors = 3

// anchorAttacks change anchors, their signatures, and the keys behind them.
func anchorAttacks() []attack {
	return slices.Concat(orderAttacks(), documentAttacks(), shorterAttacks(), signatureAttacks(), keyAttacks())
}

func orderAttacks() (all []attack) {
	const kind = "anchors dropped, repeated, swapped"
	for i := range anchors {
		name := fmt.Sprintf("anchor %d ", i)
		drop := on(kind, name+"dropped", func(s *subject, o objects) bool { delete(o, s.calls.AnchorKey(i)); return true })
		if i < anchors-1 { // the newest one leaves rows that no anchor covers: seen from elsewhere, below
			all = append(all, drop)
		}
		all = append(all,
			on(kind, name+"repeated at the end", func(s *subject, o objects) bool {
				o[s.calls.AnchorKey(anchors)] = o[s.calls.AnchorKey(i)]
				return true
			}),
			on(kind, name+"replaced by that of another archive", func(s *subject, o objects) bool {
				o[s.calls.AnchorKey(i)] = foreign().pack()[s.calls.AnchorKey(i)]
				return true
			}))
		for j := range i {
			all = append(all, on(kind, fmt.Sprintf("anchors %d and %d swapped", j, i), func(s *subject, o objects) bool {
				a, b := s.calls.AnchorKey(j), s.calls.AnchorKey(i)
				o[a], o[b] = o[b], o[a]
				return true
			}))
		}
	}
	return append(all,
		on(kind, "a line of another archive, signed by the same key", func(s *subject, o objects) bool {
			for key, body := range foreign().pack() {
				if strings.HasPrefix(key, "log/") || strings.HasPrefix(key, "anchor/") {
					o[key] = body
				}
			}
			return true
		}),
		wanting(3, attack{kind: kind, name: "all anchors taken away", want: 1, do: func(s *subject) objects {
			s.calls.Anchors, s.other.Anchors = nil, nil
			return s.pack()
		}}),
		wanting(3, attack{kind: kind, name: "all anchors of a line taken away", want: 1, do: func(s *subject) objects {
			s.other.Anchors = nil
			return s.pack()
		}}),
		fromElsewhere(attack{kind: kind, name: "another archive in its place, signed by the same key", want: 3, do: func(*subject) objects { return foreign().pack() }}),
	)
}

// foreign is another archive whose anchors the same key signs.
func foreign() *subject {
	s := newSubject("01KBCDEFGHJKMNPQRSTVWXYZ02")
	s.sign(prooftest.Signer(longLived))
	s.fill(func(*prooftest.Batch) {})
	return s
}

// documentAttacks change each member of an anchor, and sign it and those behind
// it with the right key: what is left to see it is what was recomputed.
func documentAttacks() (all []attack) {
	var zero chain.Hash
	edit := func(kind, name string, n int, do func(doc map[string]any)) {
		all = append(all, attack{kind: kind, name: fmt.Sprintf("anchor %d: %s, signed anew with the right key", n, name), want: 1, do: func(s *subject) objects {
			a := s.calls.Anchors[n]
			a.Doc = plainly(a.Doc)
			do(a.Doc)
			a.Encode()
			relinkAnchors(s.calls, n+1)
			return s.pack()
		}})
	}
	const empty = "hashes left empty"
	for n := range anchors {
		edit(empty, "archiveSha256 empty", n, func(d map[string]any) { d["archiveSha256"] = zero })
		edit(empty, "hash of a segment empty", n, func(d map[string]any) { first(d, "segments")["sha256"] = zero })
		edit(empty, "head empty", n, func(d map[string]any) { first(d, "heads")["head"] = zero })
		edit(empty, "root empty", n, func(d map[string]any) { first(d, "heads")["root"] = zero })
		edit(empty, "frontier empty", n, func(d map[string]any) { first(d, "heads")["frontier"] = []any{} })
		if n > 0 {
			edit(empty, "previous empty", n, func(d map[string]any) { d["previous"] = zero })
			edit(empty, "previous null", n, func(d map[string]any) { d["previous"] = nil })
		}
		const kind = "anchors that say what is not so"
		for _, member := range []string{"archiveId", "topic", "topicId"} {
			edit(kind, member, n, func(d map[string]any) { d[member] = "x" })
		}
		for _, member := range []string{"partition", "number", "ordinal"} {
			edit(kind, member, n, func(d map[string]any) { d[member] = d[member].(float64) + 1 })
		}
		edit(kind, "full", n, func(d map[string]any) { d["full"] = !d["full"].(bool) })
		edit(kind, "time long ago", n, func(d map[string]any) { d["time"] = "2020-01-01T00:00:00.000000Z" })
		for _, member := range []string{"firstOffset", "nextOffset", "rows", "made", "duplicates", "gaps"} {
			edit(kind, "totals."+member, n, func(d map[string]any) { add(d["totals"].(map[string]any), member) })
			edit(kind, "segments."+member, n, func(d map[string]any) { add(first(d, "segments"), member) })
		}
		edit(kind, "segments.bytes", n, func(d map[string]any) { add(first(d, "segments"), "bytes") })
		edit(kind, "segments.ordinal", n, func(d map[string]any) { add(first(d, "segments"), "ordinal") })
		edit(kind, "a segment not listed", n, func(d map[string]any) { d["segments"] = d["segments"].([]any)[1:] })
		edit(kind, "a head not listed", n, func(d map[string]any) { d["heads"] = d["heads"].([]any)[1:] })
		edit(kind, "a head twice", n, func(d map[string]any) { d["heads"] = append(d["heads"].([]any), first(d, "heads")) })
		edit(kind, "epoch", n, func(d map[string]any) { add(first(d, "heads"), "epoch") })
		edit(kind, "scheme", n, func(d map[string]any) {
			h := first(d, "heads")
			h["scheme"] = map[any]string{chain.SchemeV1: chain.SchemeHMACv1, chain.SchemeHMACv1: chain.SchemeV1}[h["scheme"]]
		})
		edit(kind, "a checkpoint of another size", n, func(d map[string]any) {
			c := first(d, "checkpoints")
			c["note"] = strings.Replace(c["note"].(string), "\n", "\n1", 1)
		})
		edit(kind, "a checkpoint given to another tenant", n, func(d map[string]any) { first(d, "checkpoints")["tenant"] = "globex" })
	}
	return all
}

// plainly returns a document as JSON's own types.
func plainly(doc map[string]any) (plain map[string]any) {
	text, err := json.Marshal(doc)
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	if err != nil {
		panic(err)
	}
	return plain
}

func first(doc map[string]any, list string) map[string]any {
	return doc[list].([]any)[0].(map[string]any)
}

func add(doc map[string]any, member string) { doc[member] = doc[member].(float64) + 1 }

// relinkAnchors makes the anchors from n on anew, so that each states the hash of
// the one before.
func relinkAnchors(l *prooftest.Line, n int) {
	for i := n; i < len(l.Anchors); i++ {
		text, _ := cutNote(l.Anchors[i-1].Body)
		l.Anchors[i].Doc["previous"] = archive.TextHash(strings.TrimSuffix(text, "\n"))
		l.Anchors[i].Encode()
	}
}

// shorterAttacks sign, with the right key, that a log is shorter than an anchor
// before says.
func shorterAttacks() (all []attack) {
	const kind = "a shorter head signed again"
	for n := range anchors {
		next := func(name string, do func(s *subject, a *prooftest.Anchor, old map[string]any)) {
			all = append(all, attack{kind: kind, name: fmt.Sprintf("behind the newest anchor, %s of anchor %d", name, n), want: 1, do: func(s *subject) objects {
				s.anchor(s.calls)
				a := s.calls.Anchors[anchors]
				old := plainly(s.calls.Anchors[n].Doc)
				a.Doc = plainly(a.Doc)
				do(s, a, old)
				a.Encode()
				return s.pack()
			}})
		}
		if n < anchors-1 {
			next("the heads", func(_ *subject, a *prooftest.Anchor, old map[string]any) { a.Doc["heads"] = old["heads"] })
			next("heads and totals", func(_ *subject, a *prooftest.Anchor, old map[string]any) {
				a.Doc["heads"], a.Doc["totals"] = old["heads"], old["totals"]
			})
			next("all", func(_ *subject, a *prooftest.Anchor, old map[string]any) {
				for _, m := range []string{"heads", "totals", "ordinal", "segments"} {
					a.Doc[m] = old[m]
				}
			})
			next("all, segments behind it dropped,", func(s *subject, a *prooftest.Anchor, old map[string]any) {
				for _, m := range []string{"heads", "totals", "ordinal"} {
					a.Doc[m] = old[m]
				}
				a.Doc["segments"] = []any{}
				s.calls.Segments = s.calls.Segments[:int(old["ordinal"].(float64))+1]
			})
		}
		all = append(all, fromElsewhere(attack{kind: kind, name: fmt.Sprintf("of %d segments, the rest dropped", n), want: 1, do: func(s *subject) objects {
			s.calls.CutBack(n)
			s.anchor(s.calls)
			return s.pack()
		}}))
	}
	return all
}

// signatureAttacks change what stands below an anchor's text.
func signatureAttacks() (all []attack) {
	const kind, wrong = "signatures changed", "wrong key or key id"
	edit := func(kind, name string, exit int, do func(s *subject, n int, line string) string) {
		for n := range anchors {
			all = append(all, wanting(exit, on(kind, fmt.Sprintf("anchor %d: %s", n, name), func(s *subject, o objects) bool {
				key := s.calls.AnchorKey(n)
				text, line := cutNote(o[key])
				changed := do(s, n, line)
				o[key] = []byte(text + changed)
				return changed != line
			})))
		}
	}
	by := func(signer *sign.Signer, text string) string {
		_, line := cutNote(prooftest.Signed(text, signer))
		return line
	}
	edit(kind, "taken away", 3, func(*subject, int, string) string { return "" })
	edit(kind, "of another anchor", 1, func(s *subject, n int, _ string) string {
		_, line := cutNote(s.calls.Anchors[(n+1)%anchors].Body)
		return line
	})
	edit(kind, "of another text", 1, func(s *subject, n int, _ string) string { return by(s.calls.Anchors[n].Signers[0], "x\n") })
	edit(kind, "all zero", 1, func(_ *subject, _ int, line string) string { return mend(line, func(b []byte) { clear(b[4:]) }) })
	edit(kind, "with S + L, which is the same number", 1, func(_ *subject, _ int, line string) string { return mend(line, addOrder) })
	edit(kind, "base64 with bits behind its end", 1, func(_ *subject, _ int, line string) string {
		i := strings.LastIndex(line, "=") // 68 bytes end in one =
		c := line[i-1]
		const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
		return line[:i-1] + string(digits[strings.IndexByte(digits, c)^1]) + line[i:]
	})
	edit(kind, "base64 without its end", 1, func(_ *subject, _ int, line string) string { return strings.Replace(line, "=", "", 1) })
	edit(kind, "with CR LF", 1, func(_ *subject, _ int, line string) string { return strings.Replace(line, "\n", "\r\n", 1) })
	edit(kind, "with a space more", 1, func(_ *subject, _ int, line string) string { return strings.Replace(line, " ", "  ", 1) })
	edit(kind, "given twice", 1, func(_ *subject, _ int, line string) string { return line + line })
	edit(wrong, "another key id", 1, func(_ *subject, _ int, line string) string { return mend(line, func(b []byte) { b[0] ^= 1 }) })
	edit(wrong, "another name", 1, func(_ *subject, _ int, line string) string { return strings.Replace(line, " ", " x", 1) })
	edit(wrong, "of a stranger", 1, func(s *subject, n int, _ string) string {
		text, _ := cutNote(s.calls.Anchors[n].Body)
		return by(prooftest.Signer(stranger), strings.TrimSuffix(text, "\n"))
	})
	edit(wrong, "of a stranger, under the right name and key id", 1, func(s *subject, n int, line string) string {
		text, _ := cutNote(s.calls.Anchors[n].Body)
		right := raw(line)
		theirs := by(prooftest.Signer(stranger), strings.TrimSuffix(text, "\n"))
		return mend(strings.Replace(theirs, stranger, strings.Fields(line)[1], 1), func(b []byte) { copy(b[:4], right[:4]) })
	})
	return all
}

// raw returns the bytes of a signature line: key id, then signature.
func raw(line string) []byte {
	b, err := base64.StdEncoding.DecodeString(strings.Fields(line)[2])
	if err != nil {
		panic(err)
	}
	return b
}

// mend changes the bytes of a signature line.
func mend(line string, do func([]byte)) string {
	f := strings.Fields(line)
	b := raw(line)
	do(b)
	return f[0] + " " + f[1] + " " + base64.StdEncoding.EncodeToString(b) + "\n"
}

// addOrder adds the order of Ed25519's group to the number S of a signature: a
// verifier that does not compare S with it takes both. RFC 8032, 5.1.7.
func addOrder(b []byte) {
	order := []byte{0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 31: 0x10}
	carry := 0
	for i, o := range order {
		n := int(b[36+i]) + int(o) + carry
		b[36+i], carry = byte(n), n>>8
	}
}

// keyAttacks are on the keys that other keys vouch for.
func keyAttacks() (all []attack) {
	const kind = "keys"
	certified := func(name string, do func(s *subject, o objects)) {
		all = append(all, attack{kind: kind, of: []string{certifiedKeys}, name: name, want: 1, do: func(s *subject) objects {
			o := s.pack()
			do(s, o)
			return o
		}})
	}
	for i := range 2 {
		note := func(s *subject) string { return sign.KeyNoteKey(s.signers[i].VKey()) }
		certified(fmt.Sprintf("key note %d dropped", i), func(s *subject, o objects) { delete(o, note(s)) })
		certified(fmt.Sprintf("key note %d replaced by the other", i), func(s *subject, o objects) {
			o[note(s)] = o[sign.KeyNoteKey(s.signers[1-i].VKey())]
		})
		certified(fmt.Sprintf("key note %d with more time", i), func(s *subject, o objects) {
			o[note(s)] = []byte(strings.Replace(string(o[note(s)]), `"notAfter":"2026`, `"notAfter":"2027`, 1))
		})
		certified(fmt.Sprintf("key note %d signed by a stranger", i), func(s *subject, o objects) {
			s.Certify(s.signers[i], prooftest.Signer(stranger))
			o[note(s)] = s.KeyNotes[note(s)]
		})
		certified(fmt.Sprintf("key note %d of another archive", i), func(s *subject, o objects) {
			f := foreign()
			f.Certify(s.signers[i], prooftest.Signer(longLived))
			o[note(s)] = f.KeyNotes[note(s)]
		})
	}
	for n := range anchors {
		for i := range 2 {
			all = append(all, attack{kind: kind, of: []string{twoKeys}, name: fmt.Sprintf("anchor %d: signature %d of two is wrong", n, i), want: 1, do: func(s *subject) objects {
				text, lines := cutNote(s.calls.Anchors[n].Body)
				both := strings.SplitAfter(lines, "\n")
				both[i] = mend(both[i], func(b []byte) { b[40] ^= 1 })
				s.calls.Anchors[n].Body = []byte(text + strings.Join(both, ""))
				return s.pack()
			}})
		}
	}
	last := func(s *subject, by *sign.Signer, at time.Time) *prooftest.Anchor {
		s.signers = []*sign.Signer{by}
		s.anchor(s.calls)
		a := s.calls.Anchors[anchors]
		if !at.IsZero() {
			a.Doc["time"] = at.UTC().Format(archive.TimeLayout)
			a.Encode()
		}
		return a
	}
	certified("an anchor by a key whose time is over", func(s *subject, o objects) {
		a := last(s, s.signers[1], time.UnixMicro(prooftest.Start).Add(25*time.Hour))
		o[s.calls.AnchorKey(anchors)] = a.Body
	})
	certified("an anchor by a key that a certified key certifies", func(s *subject, o objects) {
		theirs := prooftest.Signer(stranger)
		s.Certify(theirs, s.signers[0])
		o[sign.KeyNoteKey(theirs.VKey())] = s.KeyNotes[sign.KeyNoteKey(theirs.VKey())]
		o[s.calls.AnchorKey(anchors)] = last(s, theirs, time.Time{}).Body
	})
	certified("an anchor by a key that nothing certifies", func(s *subject, o objects) {
		o[s.calls.AnchorKey(anchors)] = last(s, prooftest.Signer(stranger), time.Time{}).Body
	})
	return append(all,
		attack{kind: kind, of: []string{introducedKey}, name: "an anchor by a key that no anchor introduces", want: 1, do: func(s *subject) objects {
			last(s, prooftest.Signer(stranger), time.Time{})
			return s.pack()
		}},
		attack{kind: kind, of: []string{introducedKey}, name: "a key that introduces itself", want: 1, do: func(s *subject) objects {
			theirs := prooftest.Signer(stranger)
			s.Keys.Anchor = []string{theirs.VKey()}
			last(s, theirs, time.Time{})
			return s.pack()
		}})
}
