//go:build it

package quickstart

import (
	"strings"
	"testing"
)

// A block counts as done only where each of its commands succeeds, and what it
// leaves in the shell is there for the next one.
func TestShell(t *testing.T) {
	s, err := newShell(t.TempDir(), []string{"PATH=/usr/bin:/bin"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	steps := []struct {
		how      func(string) (string, int, error)
		commands string
		said     string
		code     int
	}{
		{s.paste, "export A=1\nmkdir inner\ncd inner", "", 0},
		{s.paste, "sleep 100 &", "", 0},
		{s.ask, "echo $A in $(basename $PWD)", "1 in inner\n", 0},
		{s.ask, "cat; exit 3", "", 3},
		{s.ask, "A=2; echo gone >&2", "gone\n", 0},
		{s.paste, "echo $A; kill $(jobs -p); wait", "1\n", 0},
		{s.paste, "echo first\nfalse\necho second", "first\n", 1},
	}
	for _, step := range steps {
		said, code, err := step.how(step.commands)
		if err != nil || code != step.code || !strings.HasSuffix(said, step.said) || step.said == "" && said != "" {
			t.Errorf("%q: said %q and ended with %d (%v), want %q and %d", step.commands, said, code, err, step.said, step.code)
		}
	}
	if _, _, err := s.paste("true"); err == nil {
		t.Error("a shell that has ended goes on")
	}
}

func TestBlocks(t *testing.T) {
	page := "# A\n\n## 1. B\n\n```sh\none\n```\n\n<!-- until x y -->\n<!-- exit 4 -->\n```sh\ntwo\nthree\n```\n\n```json\n{}\n```\n"
	all, err := blocks(page)
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	if want := (block{section: "1. B", commands: "one\n"}); all[0] != want {
		t.Errorf("%+v, want %+v", all[0], want)
	}
	if want := (block{section: "1. B", commands: "two\nthree\n", until: "x y", exit: 4}); all[1] != want {
		t.Errorf("%+v, want %+v", all[1], want)
	}
	if _, err := blocks("<!-- untill x -->\n```sh\none\n```\n"); err == nil {
		t.Error("a comment with a mistake in it is passed over")
	}
}
