package main

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// Objects are what lies in a bucket, by keys.
type objects map[string][]byte

// A specimen is a kind of archive that is tampered with. Each call of build
// makes it anew, the same to the byte.
type specimen struct {
	name  string
	build func() *subject
}

// A subject is one archive at hand. Attacks change it as they like.
type subject struct {
	*prooftest.Archive
	calls, other *prooftest.Line
	control      *prooftest.Line // nil where there is none
	keys         []string        // that the verifier is given
	signers      []*sign.Signer
	together     bool // all of them sign each anchor
}

// The keys of the archives, and one that nobody trusts.
const (
	longLived  = "ledgerlake.example/root"
	shortLived = "ledgerlake.example/ingest"
	stranger   = "ledgerlake.example/stranger"
)

// The specimens.
const (
	small         = "small"
	plain         = "signed"
	keyed         = "keyed"
	certifiedKeys = "certified keys"
	introducedKey = "introduced key"
	twoKeys       = "two keys at once"
	compacted     = "compacted"
)

// specimens are small, for every byte of them is one verification. All but the
// smallest have two lines, several tenants, and all that a segment can hold
// without giving a verifier something to look at.
func specimens() []specimen {
	return []specimen{
		{small, func() *subject {
			s := newSubject(prooftest.ID)
			s.sign(prooftest.Signer(longLived))
			for range 2 {
				s.calls.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("a/b"); b.Duplicate("acme", 0) })
				s.anchor(s.calls)
			}
			return s
		}},
		{plain, func() *subject {
			s := newSubject(prooftest.ID)
			s.sign(prooftest.Signer(longLived))
			s.fill(func(*prooftest.Batch) {})
			return s
		}},
		{certifiedKeys, func() *subject {
			s := newSubject(prooftest.ID)
			root := prooftest.Signer(longLived)
			s.sign(prooftest.Signer(shortLived+"1"), prooftest.Signer(shortLived+"2"))
			for _, key := range s.signers {
				s.Certify(key, root)
			}
			s.fill(func(*prooftest.Batch) {})
			s.keys = []string{root.VKey()}
			return s
		}},
		{introducedKey, func() *subject {
			s := newSubject(prooftest.ID)
			s.sign(prooftest.Signer(longLived), prooftest.Signer(longLived+"2"))
			s.Keys.Anchor = []string{s.signers[1].VKey()}
			s.fill(func(*prooftest.Batch) {})
			s.keys = s.keys[:1]
			return s
		}},
		{twoKeys, func() *subject {
			s := newSubject(prooftest.ID)
			s.sign(prooftest.Signer(longLived), prooftest.Signer(longLived+"2"))
			s.together = true
			s.fill(func(*prooftest.Batch) {})
			return s
		}},
		{compacted, func() *subject { return compactedSubject(func(*subject, *prooftest.Compaction) {}) }},
		{keyed, func() *subject {
			s := newSubject(prooftest.ID)
			s.sign(prooftest.Signer(longLived))
			s.fill(func(b *prooftest.Batch) { b.Keyed("acme") })
			return s
		}},
	}
}

func newSubject(id string) *subject {
	a := prooftest.NewWithID(id)
	return &subject{Archive: a, calls: a.Line("audit.calls", 0), other: a.Line("audit.calls", 1)}
}

// sign says who signs: anchor n is signed by signer n, or the last one.
func (s *subject) sign(signers ...*sign.Signer) {
	s.signers = signers
	for _, k := range signers {
		s.keys = append(s.keys, k.VKey())
	}
}

// fill writes the lines: four segments and one, three anchors and one. No row is
// behind the last anchor.
func (s *subject) fill(first func(*prooftest.Batch)) {
	fills := []func(*prooftest.Batch){
		func(b *prooftest.Batch) {
			first(b)
			b.Call("acme")
			b.Call("a/b")
			b.Call("acme")
			b.Duplicate("acme", 0)
		},
		func(b *prooftest.Batch) {
			b.Skip(1, archive.GapControl)
			b.Reject("acme", audit.ReasonInvalidUnicode, []byte("{\xff"))
			b.Call("a/b")
			b.Skip(2, archive.GapCompacted)
		},
		func(b *prooftest.Batch) { b.Call("acme"); b.Call("acme"); b.Duplicate("a/b", 1) },
		func(b *prooftest.Batch) {
			b.Reject(audit.TenantUnattributed, audit.ReasonNullValue, nil)
			b.Call("acme")
		},
	}
	for i, f := range fills {
		s.calls.Segment(f)
		if i != 1 { // anchor 1 covers two segments
			s.anchor(s.calls)
		}
	}
	s.other.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("globex") })
	s.anchor(s.other)
}

func (s *subject) anchor(l *prooftest.Line) {
	s.Signers = s.signers
	if !s.together {
		s.Signers = s.signers[min(len(l.Anchors), len(s.signers)-1):][:1]
	}
	l.Anchor()
}

// pack returns what lies in the bucket.
func (s *subject) pack() objects { return s.Objects() }

// verify verifies objects as the owner of the subject would, who knows its keys;
// with elsewhere also against copies of anchors in another place.
func (s *subject) verify(src archive.Source, elsewhere []proof.Place) (*proof.Report, error) {
	ring := &sign.Ring{}
	for _, k := range s.keys {
		if err := ring.Add(k, sign.AllRoles, "given"); err != nil {
			return nil, err
		}
	}
	keys := func(chain.Log) ([]byte, bool) { return prooftest.LogKey, true }
	return proof.Verify(context.Background(), src, proof.Options{Keys: ring, LogKeys: keys, ExpectFrom: elsewhere})
}

// newest returns a place that has a copy of each line's newest anchor, as Kafka
// has.
func (s *subject) newest() []proof.Place {
	return []proof.Place{{Name: "a copy elsewhere", Notes: func(context.Context) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			for _, l := range []*prooftest.Line{s.calls, s.other, s.control} {
				if l != nil && len(l.Anchors) > 0 && !yield(l.Anchors[len(l.Anchors)-1].Body, nil) {
					return
				}
			}
		}
	}}}
}

// A bucket holds objects, to be read only. Those that verify share none of it.
type bucket struct {
	objects objects
	keys    []string // in order
	key     string   // of the object that lies there instead
	body    []byte
}

func bucketOf(o objects) *bucket {
	return &bucket{objects: o, keys: slices.Sorted(maps.Keys(o))}
}

// with returns the same with one object changed.
func (b *bucket) with(key string, body []byte) *bucket {
	return &bucket{b.objects, b.keys, key, body}
}

func (b *bucket) at(key string) []byte {
	if key == b.key {
		return b.body
	}
	return b.objects[key]
}

// Get implements [archive.Source].
func (b *bucket) Get(_ context.Context, key string) ([]byte, error) {
	body, ok := b.objects[key]
	if !ok {
		return nil, fmt.Errorf("get %s: %w", key, archive.ErrNotFound)
	}
	if key == b.key {
		body = b.body
	}
	return append([]byte{}, body...), nil
}

// GetTail implements [archive.Source].
func (b *bucket) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	body, err := b.Get(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	size := int64(len(body))
	return body[size-min(n, size):], size, nil
}

// List implements [archive.Source].
func (b *bucket) List(_ context.Context, prefix, after string) iter.Seq2[archive.Object, error] {
	return func(yield func(archive.Object, error) bool) {
		for _, key := range b.keys {
			if strings.HasPrefix(key, prefix) && key > after && !yield(archive.Object{Key: key, Size: int64(len(b.at(key)))}, nil) {
				return
			}
		}
	}
}
