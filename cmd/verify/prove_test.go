package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A caseStudy is a signed archive as a folder, and a folder for what is made of
// it.
type caseStudy struct {
	target, out string
	key         string
	anchors     []string // files
}

func newCase(t *testing.T) *caseStudy {
	t.Helper()
	signer := prooftest.Signer("key.example/one")
	c := &caseStudy{out: t.TempDir(), key: signer.VKey()}
	c.target = lay(t, func(a *prooftest.Archive, l *prooftest.Line) {
		a.Signers = []*sign.Signer{signer}
		l.Anchor()
		l.Segment(func(b *prooftest.Batch) { b.Large("acme"); b.Large("acme"); b.Call("東京") })
		l.Anchor()
		for i := range l.Anchors {
			c.anchors = append(c.anchors, l.AnchorKey(i))
		}
	})
	for i, key := range c.anchors {
		c.anchors[i] = filepath.Join(c.target, filepath.FromSlash(key))
	}
	return c
}

func (c *caseStudy) file(name string) string { return filepath.Join(c.out, name) }

// runs runs the command with these arguments alone.
func runs(args ...string) (code int, stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	code, err = run(context.Background(), args, nil, &out, &errs)
	return code, out.String(), errs.String(), err
}

// want runs the command and requires an exit code and words on stdout or stderr.
func want(t *testing.T, code int, says string, args ...string) string {
	t.Helper()
	got, out, stderr, err := runs(args...)
	if err != nil {
		stderr += err.Error()
	}
	if got != code || !strings.Contains(out+stderr, says) {
		t.Errorf("%q: exit %d, want %d and %q: %s%s", args, got, code, says, out, stderr)
	}
	return out
}

// The way of a proof: made from the archive, checked without it, by the key that
// somebody has; in part, as a person reads it, and not at all where it was
// changed.
func TestAProofFromMakingToChecking(t *testing.T) {
	c := newCase(t)
	file := c.file("call.json")
	want(t, 0, "signed by a key that was given, or introduced; ", "prove", "--tenant", "acme", "--seq", "5", c.target, "--key", c.key, "-o", file, "--withhold", "ext,decision", "--withhold-user")
	out := want(t, 0, "OK: 1 row of archive "+prooftest.ID+" proved (T1)", "proof", file, "--key", c.key)
	for _, line := range []string{"record_id            01KBCDEFGHJKMNPQRSTV", "decision             (withheld or erased; commitment ", "user_id, which is withheld", `family_lock          {"resolverPath":"matrix"`} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in %s", line, out)
		}
	}
	want(t, 3, "NOT signed by a key", "prove", "--tenant", "acme", "--seq", "5", c.target, "--key", prooftest.Signer("key.example/two").VKey(), "-o", c.file("other.json"))
	want(t, 0, "no key was given", "prove", "--tenant", "acme", "--seq", "5", c.target, "-o", c.file("other.json"))
	want(t, 3, "INCOMPLETE", "proof", file)
	want(t, 3, "INCOMPLETE", "proof", file, "--key", prooftest.Signer("key.example/two").VKey())
	var r struct {
		Exit     int
		SignedBy []string
	}
	if err := json.Unmarshal([]byte(want(t, 0, "", "proof", "--json", file, "--key", c.key)), &r); err != nil || r.Exit != 0 || len(r.SignedBy) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(body), `"status": "ok"`, `"status": "ko"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, 1, "FAULT: row 5: rowHash is not the hash of header", "proof", file, "--key", c.key)

	forge(t, c.anchors[1])
	want(t, 1, "tampered with or damaged", "prove", "--tenant", "acme", "--seq", "5", c.target, "--key", c.key, "-o", c.file("forged.json"))
	if _, err := os.Stat(c.file("forged.json")); err == nil {
		t.Error("a proof that does not hold was written")
	}
}

// forge takes the signatures of an anchor, and of the checkpoints in it, away
// from what they signed.
func forge(t *testing.T, name string) {
	t.Helper()
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	bad := regexp.MustCompile(`key\.example/one \S{12}`).ReplaceAllStringFunc(string(body), func(s string) string { return s[:len(s)-2] + "AA" })
	if err := os.WriteFile(name, []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A row is named by its record id, its seq or its offset.
func TestRow(t *testing.T) {
	c := newCase(t)
	for _, name := range [][]string{{"01KBCDEFGHJKMNPQRSTV000009"}, {"--tenant", "acme", "--seq", "5"}, {"--offset", "9", "--topic", "audit.calls", "--partition", "0"}} {
		out := want(t, 0, "OK: 1 row", append(append([]string{"row"}, name...), c.target, "--key", c.key)...)
		if !strings.Contains(out, "row 5 of tenant acme in audit.calls/0") || !strings.Contains(out, "user_id              user-1002") {
			t.Error(out)
		}
	}
	want(t, 3, "no such row", "row", "01KBCDEFGHJKMNPQRSTV999999", c.target)
	want(t, 3, "no such row", "row", "--tenant", "nobody", "--seq", "0", c.target)
	want(t, 3, "no anchor covers it yet", "row", "--tenant", "acme", "--seq", "70", c.target)
	want(t, 3, "no such row", "row", "--offset", "3", c.target) // a repeat
	want(t, 3, "INCOMPLETE", "row", "--tenant", "acme", "--seq", "5", c.target)
}

// A case goes into one file, which checks without the archive.
func TestAPackFromMakingToChecking(t *testing.T) {
	c := newCase(t)
	zip := c.file("case.zip")
	want(t, 0, "7 rows in 1 range", "pack", c.target, "--tenant", "acme", "--key", c.key, "-o", zip)
	want(t, 0, "OK: 7 rows of archive", "proof", zip, "--key", c.key)
	want(t, 3, "INCOMPLETE", "proof", zip)
	want(t, 3, "no such row", "pack", c.target, "--tenant", "acme", "--turn", "none", "-o", c.file("none.zip"))
	if _, err := os.Stat(c.file("none.zip")); err == nil {
		t.Error("a pack without rows was written")
	}
	body, err := os.ReadFile(zip)
	if err != nil {
		t.Fatal(err)
	}
	body[len(body)/3] ^= 1
	if err := os.WriteFile(zip, body, 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, 1, "FAULT: ", "proof", zip, "--key", c.key)
}

// Two anchors are shown to be of one log: from the archive, from tiles, and by a
// proof that was kept.
func TestConsistencyAndTiles(t *testing.T) {
	c := newCase(t)
	tiles, kept := c.file("tiles"), c.file("kept.json")
	want(t, 0, "7 rows, of them 7 new; checkpoint of anchor 1, signed by 1 good key", "tiles", "--tenant", "acme", c.target, tiles, "--key", c.key)
	want(t, 0, "7 rows, of them 0 new", "tiles", "--tenant", "acme", c.target, tiles)
	old, newer := c.anchors[0], c.anchors[1]
	want(t, 0, "the tree of 7 rows continues that of 5", "consistency", old, newer, c.target, "--tenant", "acme", "--key", c.key, "-o", kept)
	want(t, 0, "OK: ", "consistency", old, "newest", c.target, "--tenant", "acme", "--key", c.key)
	want(t, 0, "OK: ", "consistency", old, newer, "--tiles", tiles, "--tenant", "acme", "--key", c.key)
	want(t, 0, "OK: ", "consistency", old, newer, "--proof", kept, "--tenant", "acme", "--key", c.key)
	want(t, 0, "OK: ", "consistency", old, filepath.Join(tiles, "checkpoint"), "--proof", kept, "--tenant", "acme", "--key", c.key)
	want(t, 3, "INCOMPLETE", "consistency", old, newer, "--proof", kept, "--tenant", "acme")
	want(t, 1, "FAULT", "consistency", newer, newer, "--proof", kept, "--tenant", "acme", "--key", c.key)
	want(t, 1, "FAULT", "consistency", old, newer, "--proof", kept, "--tenant", "東京", "--key", c.key)
	want(t, 2, "other way round", "consistency", newer, old, c.target, "--tenant", "acme")
	want(t, 2, "--tenant", "consistency", old, newer, c.target)
	want(t, 0, "in a tree of 7 rows", "prove", "--newest", "--tiles", tiles, "--tenant", "acme", "--seq", "0", c.target)
}

// keys tells which keys signed what.
func TestKeys(t *testing.T) {
	c := newCase(t)
	want(t, 0, "signed anchors 0 to 1 of audit.calls/0: 2", "keys", c.target, "--key", c.key)
	want(t, 3, "NOT GOOD: not known", "keys", c.target)
	want(t, 3, "no key, and no signature", "keys", lay(t, good))
	body, err := os.ReadFile(c.anchors[1])
	if err != nil {
		t.Fatal(err)
	}
	body[60] ^= 1
	if err := os.WriteFile(c.anchors[1], body, 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, 1, "FORGED in its name: 1", "keys", c.target, "--key", c.key)
}

// What is asked for in a way that cannot be is said, and nothing is done.
func TestProofCommandsThatCannotRun(t *testing.T) {
	c := newCase(t)
	for _, args := range [][]string{
		{"prove"},
		{"prove", c.target},
		{"prove", "not-an-id", c.target},
		{"prove", "--seq", "5", c.target},
		{"prove", "--seq", "-5", "--tenant", "acme", c.target},
		{"prove", "--tenant", "acme", "--seq", "5", c.target, "--withhold", "nonsense"},
		{"prove", "--tenant", "acme", "--seq", "5", c.target, "--withhold", "ext", "--disclose", "ext"},
		{"prove", "--tenant", "acme", "--seq", "5", c.target, "--key", "nonsense"},
		{"prove", "--tenant", "acme", "--seq", "5", c.target, "--tiles", c.out},
		{"prove", "--tenant", "acme", "--seq", "5", t.TempDir()},
		{"row", "--tenant", "acme", c.target, "x", "y"},
		{"pack", c.target},
		{"pack", c.target, "--tenant", "acme", "--from", "yesterday"},
		{"proof"},
		{"proof", c.file("none")},
		{"proof", c.file("none"), c.file("none")},
		{"consistency", c.anchors[0], c.anchors[1]},
		{"consistency", c.anchors[0], c.anchors[1], c.target, "--tiles", c.out},
		{"tiles", c.target, c.out},
		{"keys"},
	} {
		code, out, _, err := runs(args...)
		if code != exitCannotRun || err == nil || out != "" {
			t.Errorf("%q: exit %d, %v: %s", args, code, err, out)
		}
	}
}

// Every command has help with its exit codes.
func TestHelpOfCommands(t *testing.T) {
	for _, c := range commands() {
		code, out, _, err := runs(c.name, "--help")
		if code != 0 || err != nil || !strings.Contains(out, c.name) && c.name != "archive" || !strings.Contains(strings.ToLower(out), "exit codes") {
			t.Errorf("%s: exit %d, %v: %s", c.name, code, err, out)
		}
		if _, all, _, _ := runs("--help"); !strings.Contains(all, "  "+c.name+" ") {
			t.Errorf("help does not list %s", c.name)
		}
	}
}
