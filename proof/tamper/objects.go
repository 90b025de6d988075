package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// objectAttacks take whole objects away, add some, move some, and lengthen and
// shorten them.
func objectAttacks() []attack {
	return slices.Concat(segmentAttacks(), movedAttacks(), extraAttacks(), lengthAttacks(), staleAttacks())
}

// on makes an attack on what lies in the bucket. do reports whether there was
// anything to do.
func on(kind, name string, do func(s *subject, o objects) bool) attack {
	return attack{kind: kind, name: name, want: 1, do: func(s *subject) objects {
		o := s.pack()
		if !do(s, o) {
			return nil
		}
		return o
	}}
}

func fromElsewhere(a attack) attack {
	a.elsewhere = true
	a.name += ", seen from another place"
	return a
}

func wanting(exit int, a attack) attack {
	a.want = exit
	return a
}

func segmentAttacks() (all []attack) {
	const kind = "segments dropped, repeated, swapped"
	for i := range segments {
		name := fmt.Sprintf("segment %d ", i)
		all = append(all,
			on(kind, name+"dropped", func(s *subject, o objects) bool { delete(o, s.calls.Key(i)); return true }),
			on(kind, name+"and all behind it dropped", func(s *subject, o objects) bool {
				for j := i; j < segments; j++ {
					delete(o, s.calls.Key(j))
				}
				return true
			}),
			on(kind, name+"repeated at the end", func(s *subject, o objects) bool { o[s.calls.Key(segments)] = o[s.calls.Key(i)]; return true }),
			attack{kind: kind, name: name + "dropped, those behind it moved up and linked anew, signed anew with the right key", want: 1, do: func(s *subject) objects {
				l := s.calls
				l.Segments = slices.Delete(l.Segments, i, i+1)
				for j, seg := range l.Segments {
					seg.Meta.Ordinal = int64(j)
				}
				l.Relink(0)
				l.Reanchor()
				if i == segments-1 {
					return nil // that is a cut tail
				}
				return s.pack()
			}})
		for j := range i {
			all = append(all, on(kind, fmt.Sprintf("segments %d and %d swapped", j, i), func(s *subject, o objects) bool {
				a, b := s.calls.Key(j), s.calls.Key(i)
				o[a], o[b] = o[b], o[a]
				return true
			}))
		}
	}
	return append(all, on(kind, "all objects but ledgerlake.json and the keys dropped", func(s *subject, o objects) bool {
		maps.DeleteFunc(o, func(key string, _ []byte) bool { return strings.HasPrefix(key, "log/") })
		return true
	}))
}

// movedAttacks put objects where they do not belong.
func movedAttacks() (all []attack) {
	const kind = "objects moved"
	move := func(name string, do func(s *subject) (from, to string)) {
		for _, left := range []bool{false, true} {
			text := name + ", moved"
			if left {
				text = name + ", copied"
			}
			all = append(all, on(kind, text, func(s *subject, o objects) bool {
				from, to := do(s)
				o[to] = o[from]
				if !left {
					delete(o, from)
				}
				return true
			}))
		}
	}
	at := func(l *prooftest.Line, topic string, partition int32) archive.Line {
		return archive.Line{Topic: topic, TopicID: l.TopicID, Partition: partition}
	}
	for i := range segments {
		name := fmt.Sprintf("segment %d ", i)
		move(name+"to another partition", func(s *subject) (string, string) {
			return s.calls.Key(i), archive.SegmentKey(s.other.Line, 1)
		})
		move(name+"to a partition that was not there", func(s *subject) (string, string) {
			return s.calls.Key(i), archive.SegmentKey(at(s.calls, s.calls.Topic, 7), 0)
		})
		move(name+"to another topic", func(s *subject) (string, string) {
			return s.calls.Key(i), archive.SegmentKey(at(s.calls, "other", 0), 0)
		})
	}
	for i := range segments - 1 {
		name := fmt.Sprintf("anchor %d ", i)
		move(name+"to another partition", func(s *subject) (string, string) { return s.calls.AnchorKey(i), s.other.AnchorKey(1) })
		move(name+"to a partition that was not there", func(s *subject) (string, string) {
			return s.calls.AnchorKey(i), archive.AnchorKey(at(s.calls, s.calls.Topic, 7), 0)
		})
	}
	return append(all,
		on(kind, "two partitions swapped whole", func(s *subject, o objects) bool {
			for i := range s.calls.Segments {
				delete(o, s.calls.Key(i))
			}
			for i := range s.calls.Anchors {
				delete(o, s.calls.AnchorKey(i))
			}
			o[s.calls.Key(0)], o[s.calls.AnchorKey(0)] = o[s.other.Key(0)], o[s.other.AnchorKey(0)]
			delete(o, s.other.Key(0))
			delete(o, s.other.AnchorKey(0))
			return true
		}),
		fromElsewhere(on(kind, "a partition taken away whole", func(s *subject, o objects) bool {
			delete(o, s.other.Key(0))
			delete(o, s.other.AnchorKey(0))
			return true
		})))
}

// extraAttacks add objects. Those that nothing lists and that continue no line
// are strays: named, exit 4.
func extraAttacks() (all []attack) {
	const kind = "extra objects"
	for _, key := range []string{
		"README", "ledgerlake.json.bak", "log/", "log/x", "log/audit.calls/x.parquet", "anchor/x.note", "key/x.note", "data/acme/x.parquet",
		"data/acme/day=2026-05-28/x.parquet", "catalog/x", "tmp/x",
	} {
		all = append(all, wanting(4, on(kind, key, func(_ *subject, o objects) bool { o[key] = []byte("x"); return true })))
	}
	all = append(all,
		wanting(4, on(kind, "a copy beside a segment", func(s *subject, o objects) bool {
			o[s.calls.Key(0)+".bak"] = o[s.calls.Key(0)]
			return true
		})),
		on(kind, "a key note that is none", func(_ *subject, o objects) bool {
			o["key/"+strings.Repeat("0", 64)+".note"] = []byte("x")
			return true
		}),
		on(kind, "a segment of other bytes behind the last", func(s *subject, o objects) bool {
			o[s.calls.Key(segments)] = []byte("PAR1PAR1")
			return true
		}),
		on(kind, "a segment that leaves a hole behind the last", func(s *subject, o objects) bool {
			o[s.calls.Key(segments+1)] = o[s.calls.Key(segments-1)]
			return true
		}))
	return all
}

// lengthAttacks put bytes behind objects and take some away.
func lengthAttacks() (all []attack) {
	const kind = "bytes behind the end, or missing there"
	for _, tail := range []string{"\x00", "\n", "PAR1", strings.Repeat("x", 1000)} {
		all = append(all, eachObject(kind, fmt.Sprintf("%.4q added", tail), func(body []byte) []byte { return append(slices.Clone(body), tail...) })...)
	}
	for _, n := range []int{1, 4, 8, 100} {
		all = append(all, eachObject(kind, fmt.Sprintf("%d bytes cut off", n), func(body []byte) []byte { return body[:len(body)-min(n, len(body))] })...)
	}
	all = append(all, eachObject(kind, "emptied", func([]byte) []byte { return nil })...)
	for i := range segments {
		all = append(all, attack{kind: kind, name: fmt.Sprintf("added behind the footer of segment %d, signed anew with the right key", i), want: 1, do: func(s *subject) objects {
			s.calls.Segments[i].Body = append(slices.Clone(s.calls.Segments[i].Body), "PAR1"...)
			s.calls.Relink(i + 1)
			s.calls.Reanchor()
			return s.pack()
		}})
	}
	return all
}

// eachObject makes a change of every object of the archive, one at a time.
func eachObject(kind, name string, do func([]byte) []byte) (all []attack) {
	const objectsMost = 24
	for i := range objectsMost {
		all = append(all, on(kind, name, func(_ *subject, o objects) bool {
			keys := slices.Sorted(maps.Keys(o))
			if i >= len(keys) {
				return false
			}
			o[keys[i]] = do(o[keys[i]])
			return true
		}))
	}
	return all
}

// staleAttacks put an older state back, of all or of a part: each of them was
// right once.
func staleAttacks() (all []attack) {
	const kind = "stale backups restored"
	for n := range segments - 1 { // anchors that are left
		name := fmt.Sprintf("with %d anchors", n)
		left := func(s *subject) int {
			if n == 0 {
				return 0
			}
			return []int{1, 3, 4}[n-1]
		}
		drop := func(s *subject, o objects, anchors, segs bool) {
			for i := left(s); segs && i < segments; i++ {
				delete(o, s.calls.Key(i))
			}
			for i := n; anchors && i < segments-1; i++ {
				delete(o, s.calls.AnchorKey(i))
			}
		}
		all = append(all,
			fromElsewhere(on(kind, name, func(s *subject, o objects) bool { drop(s, o, true, true); return true })),
			on(kind, name+", but segments alone", func(s *subject, o objects) bool { drop(s, o, false, true); return true }),
			fromElsewhere(attack{kind: kind, name: name + ", and gone on with", want: 1, do: func(s *subject) objects {
				s.calls.CutBack(left(s))
				for range segments {
					s.calls.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("a/b") })
				}
				s.anchor(s.calls)
				return s.pack()
			}}))
	}
	return all
}
