package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/proof"
)

// A good is a specimen that was verified: exit 0, all rows anchored.
type good struct {
	specimen
	subject *subject
	objects objects
}

func newGood(sp specimen) (*good, error) {
	g := &good{specimen: sp, subject: sp.build()}
	g.objects = g.subject.pack()
	r, err := g.subject.verify(bucketOf(g.objects), nil)
	if err != nil {
		return nil, err
	}
	if problem := unfit(r); problem != "" {
		return nil, fmt.Errorf("it is no archive to begin with: %s", problem)
	}
	if r, err = g.subject.verify(bucketOf(g.objects), g.subject.newest()); err != nil || r.ExitCode() != 0 {
		return nil, fmt.Errorf("it is not what its own anchors say: %v, %s", err, saying(r))
	}
	return g, nil
}

// unfit says why an archive is not one to begin with, or nothing.
func unfit(r *proof.Report) string {
	switch {
	case r.ExitCode() != 0:
		return saying(r)
	case r.Totals.Rows == 0:
		return "no rows"
	}
	for _, t := range r.Tenants() {
		if t.NotAnchored > 0 {
			return fmt.Sprintf("%d rows of %s are not anchored", t.NotAnchored, t.Tenant)
		}
	}
	return ""
}

// saying returns what a report says, in a line.
func saying(r *proof.Report) string {
	if r == nil {
		return "no report"
	}
	var faults []string
	for _, f := range r.Faults[:min(len(r.Faults), 3)] {
		faults = append(faults, f.String())
	}
	return fmt.Sprintf("exit %d; faults %q, less %q, looks %q", r.ExitCode(), faults, r.Less, r.Looks)
}

func (o objects) bytes() (n int) {
	for _, body := range o {
		n += len(body)
	}
	return n
}

// verdict returns the exit code of a verification.
func (g *good) verdict(src archive.Source, elsewhere bool) (int, string) {
	var places []proof.Place
	if elsewhere {
		places = g.subject.newest()
	}
	r, err := g.subject.verify(src, places)
	switch {
	case errors.Is(err, proof.ErrNoArchive):
		return 2, err.Error()
	case err != nil:
		return -1, err.Error()
	}
	return r.ExitCode(), saying(r)
}

// canFail tampers with nothing, in each of the ways that are counted, and
// requires that it is counted as missed. If it were not, no count would mean
// anything.
func (g *good) canFail() error {
	var t tally
	key := archive.RootKey
	g.flipOne(&t, bucketOf(g.objects), key, g.objects[key])
	g.attackOne(&t, attack{kind: "nothing", want: 1, do: (*subject).pack})
	g.attackOne(&t, attack{kind: "nothing", want: 1, elsewhere: true, do: (*subject).pack})
	if t.tried != 3 || t.missed != 3 {
		return fmt.Errorf("of 3 tamperings that change nothing %d were tried and %d counted as missed", t.tried, t.missed)
	}
	return nil
}

// flips returns the objects that bits are flipped in: all of them; but segments
// of the small specimen alone, for a segment does not know who signs. Where two
// keys sign, a flip in the name of one makes it a stranger's, beside one that is
// good: nothing is wrong with that.
func (g *good) flips() objects {
	all := maps.Clone(g.objects)
	if g.name == twoKeys {
		return nil
	}
	if g.name != small {
		maps.DeleteFunc(all, func(key string, _ []byte) bool { return strings.HasPrefix(key, "log/") })
	}
	return all
}

// flip flips a bit in every byte of those objects, or in a sample, evenly spread.
func (g *good) flip(t *tally, sample int, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	step := 1.0
	flips := g.flips()
	if total := flips.bytes(); sample > 0 && sample < total {
		step = float64(total) / float64(sample)
	}
	base := bucketOf(g.objects)
	next, passed := rng.Float64()*(step-1), 0
	parallel(func(do func(func())) {
		for _, key := range slices.Sorted(maps.Keys(flips)) {
			body := flips[key]
			for at := range body {
				if float64(passed) >= next {
					next += step
					bit := rng.IntN(8)
					do(func() {
						bad := bytes.Clone(body)
						bad[at] ^= 1 << bit
						g.flipOne(t, base, key, bad)
					})
				}
				passed++
			}
		}
	})
}

func (g *good) flipOne(t *tally, base *bucket, key string, bad []byte) {
	exit, said := g.verdict(base.with(key, bad), false)
	folder, _, _ := strings.Cut(key, "/")
	t.count("a bit flipped in "+kindOf[folder], exit == 1, func() string {
		at := 0
		for at < len(bad) && bad[at] == g.objects[key][at] {
			at++
		}
		return fmt.Sprintf("%s: byte %d of %s: %s", g.name, at, key, said)
	})
}

// kindOf names objects by the folder that they lie in.
var kindOf = map[string]string{archive.RootKey: "ledgerlake.json", "log": "segments", "anchor": "anchors", "key": "key notes", "catalog": "catalogs and their parts", "data": "data files"}

// attack makes all attacks.
func (g *good) attack(t *tally, all []attack) {
	parallel(func(do func(func())) {
		for _, a := range all {
			if a.on(g.name) {
				do(func() { g.attackOne(t, a) })
			}
		}
	})
}

func (g *good) attackOne(t *tally, a attack) {
	o := a.do(g.build())
	if o == nil {
		return // nothing to change
	}
	if a.kind != "nothing" && maps.EqualFunc(o, g.objects, bytes.Equal) {
		t.count(a.kind, false, func() string { return fmt.Sprintf("%s: %s: it changes nothing", g.name, a.name) })
		return
	}
	exit, said := g.verdict(bucketOf(o), a.elsewhere)
	t.count(a.kind, exit == a.want || exit == 1, func() string {
		return fmt.Sprintf("%s: %s: want exit %d: %s", g.name, a.name, a.want, said)
	})
}

// attacks are all attacks but flipped bits. How keys came to be good does not
// matter to what lies inside of segments.
func attacks() []attack {
	return slices.Concat(
		compactedAttacks(),
		onlyOf([]string{plain, certifiedKeys, introducedKey, keyed}, slices.Concat(objectAttacks(), anchorAttacks())...),
		onlyOf([]string{plain, keyed}, slices.Concat(rowAttacks(), tailAttacks())...),
		onlyOf([]string{plain}, fileAttacks()...))
}

// parallel runs what give is called with, as many at once as there are CPUs.
func parallel(give func(do func(func()))) {
	work := make(chan func(), 64)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for f := range work {
				f()
			}
		})
	}
	give(func(f func()) { work <- f })
	close(work)
	wg.Wait()
}
