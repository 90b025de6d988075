package main

import (
	"strings"
	"testing"
)

// Every specimen is right to begin with, and of each the check can fail:
// tampering with nothing is counted as missed.
func TestSpecimensAreRightAndTheCheckCanFail(t *testing.T) {
	for _, sp := range specimens() {
		t.Run(sp.name, func(t *testing.T) {
			t.Parallel()
			g, err := newGood(sp)
			if err != nil {
				t.Fatal(err)
			}
			if err := g.canFail(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A file that is taken apart and put together again is no fault, nor is a
// segment of two row groups: what attacks do to them is what is seen.
func TestFilesPutTogetherAreRight(t *testing.T) {
	for name, remake := range map[string]func(*subject) []byte{
		"one row group":  func(s *subject) []byte { return openFile(s.calls.Segments[0].Body).encode(nil) },
		"two row groups": func(s *subject) []byte { return inGroups(s.calls.Segments[0], 1).encode(nil) },
	} {
		g, err := newGood(specimens()[1])
		if err != nil {
			t.Fatal(err)
		}
		s := g.build()
		s.calls.Segments[0].Body = remake(s)
		s.calls.Relink(1)
		s.calls.Reanchor()
		if exit, said := g.verdict(bucketOf(s.pack()), false); exit != 0 {
			t.Errorf("%s: %s", name, said)
		}
	}
}

// Attacks of each kind have something to change.
func TestAttacksHaveSomethingToChange(t *testing.T) {
	did := map[string]bool{}
	for _, sp := range specimens() {
		for _, a := range attacks() {
			if !did[a.kind] && a.on(sp.name) {
				did[a.kind] = a.do(sp.build()) != nil
			}
		}
	}
	for kind, ok := range did {
		if !ok {
			t.Errorf("%s: nothing", kind)
		}
	}
}

// What is missed is counted, named, and fails the run.
func TestTallyNamesWhatIsMissed(t *testing.T) {
	var c tally
	c.count("a", true, func() string { t.Error("asked for what was detected"); return "" })
	c.count("b", false, func() string { return "byte 7" })
	var out strings.Builder
	c.print(&out)
	for _, want := range []string{"MISSED b: byte 7", "FAILED: 1 of 2 were missed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q does not say %q", out.String(), want)
		}
	}
}
