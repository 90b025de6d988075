//go:build it

// Package offline runs the two programs of proof/offline, which check an
// archive without the product, beside verify: on good archives and on bad ones.
package offline

import (
	"bytes"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/it/parts"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A bad is one way to damage or to forge an archive. Signatures, the layout of
// files and what is said in JSON below a column are not SQL's to check: such a
// change is blind to it, and docs/verify-without-ledgerlake.md says so.
type bad struct {
	name   string
	blind  bool
	change func(w *world)
}

// signedAnew covers a change of a segment of calls as the holder of the key can:
// each segment states the hash of the one before, and anchors are made anew.
func signedAnew(i int, change func(s *prooftest.Segment)) func(*world) {
	return func(w *world) {
		s := w.calls.Segments[i]
		change(s)
		s.Encode()
		w.calls.Relink(i + 1)
		w.calls.Reanchor()
	}
}

func object(change func(w *world, objects map[string][]byte)) func(*world) {
	return func(w *world) { w.last = func(objects map[string][]byte) { change(w, objects) } }
}

var bads = []bad{
	// What a hand in the bucket can do.
	{"a bit of a page", false, object(func(w *world, o map[string][]byte) { o[w.calls.Key(1)] = flipped(o[w.calls.Key(1)], 700) })},
	{"a bit of a footer", false, object(func(w *world, o map[string][]byte) {
		o[w.calls.Key(2)] = flipped(o[w.calls.Key(2)], len(o[w.calls.Key(2)])-900)
	})},
	{"bytes behind the end", false, object(func(w *world, o map[string][]byte) {
		o[w.calls.Key(2)] = append(slices.Clone(o[w.calls.Key(2)]), "more"...)
	})},
	{"a segment is gone", false, object(func(w *world, o map[string][]byte) { delete(o, w.calls.Key(3)) })},
	{"the tail is cut below an anchor", false, object(func(w *world, o map[string][]byte) { delete(o, w.calls.Key(5)); delete(o, w.calls.Key(6)) })},
	{"two segments change places", false, object(func(w *world, o map[string][]byte) {
		o[w.other.Key(1)], o[w.other.Key(2)] = o[w.other.Key(2)], o[w.other.Key(1)]
	})},
	{"a segment of another partition", false, object(func(w *world, o map[string][]byte) { o[w.calls.Key(6)] = o[w.other.Key(2)] })},
	{"an anchor is gone", false, object(func(w *world, o map[string][]byte) { delete(o, w.other.AnchorKey(1)) })},
	{"a head in an anchor", false, object(func(w *world, o map[string][]byte) {
		key := w.calls.AnchorKey(1)
		o[key] = bytes.Replace(o[key], []byte(w.calls.Logs["a/b"].Head.String()), []byte(w.calls.Logs["東京"].Head.String()), 1)
	})},
	{"ledgerlake.json", false, object(func(w *world, o map[string][]byte) {
		o[archive.RootKey] = bytes.Replace(o[archive.RootKey], []byte("2026-05-28"), []byte("2026-05-29"), 1)
	})},
	{"a whole line built anew without the key", false, func(w *world) {
		w.calls.Segments[0].Rows[0].Status = audit.Str("error")
		w.calls.Restamp()
	}},
	{"a signature", true, object(func(w *world, o map[string][]byte) {
		key := w.calls.AnchorKey(1)
		at := bytes.LastIndexByte(o[key], ' ') + 20
		o[key] = slices.Clone(o[key])
		o[key][at] = map[bool]byte{true: 'B', false: 'A'}[o[key][at] == 'A']
	})},
	{"anchors of one line signed by another key", true, func(w *world) {
		for _, a := range w.other.Anchors {
			a.Signers = []*sign.Signer{prooftest.Signer("mallory")}
		}
		w.other.Reanchor()
	}},

	// What the holder of the key can do, and rows, chain and tree still show.
	{"a header column", false, signedAnew(1, func(s *prooftest.Segment) { s.Rows[0].Status = audit.Str("error") })},
	{"a slot", false, signedAnew(2, func(s *prooftest.Segment) { s.Rows[1].Slots[audit.SlotFamilyLock] = []byte(`{"byokActive":true}`) })},
	{"the bytes of a reject", false, signedAnew(2, func(s *prooftest.Segment) { s.Rows[0].Slots[audit.SlotRaw] = []byte("{\xfe\x00") })},
	{"a user_id", false, signedAnew(0, func(s *prooftest.Segment) { s.Rows[3].UserID = audit.Str("somebody-else") })},
	{"two rows change places", false, signedAnew(0, func(s *prooftest.Segment) { s.Rows[3], s.Rows[4] = s.Rows[4], s.Rows[3] })},
	{"a row is dropped, its offset called a gap", false, signedAnew(0, func(s *prooftest.Segment) {
		s.Meta.Gaps = append(s.Meta.Gaps, archive.Gap{From: s.Rows[3].KafkaOffset.N, To: s.Rows[3].KafkaOffset.N + 1, Cause: archive.GapCompacted})
		s.Rows = slices.Delete(s.Rows, 3, 4)
		s.Meta.Rows--
		s.Meta.Logs[0].Rows--
	})},
	{"a row stands twice", false, signedAnew(6, func(s *prooftest.Segment) {
		s.Rows = append(s.Rows, s.Rows[1])
		s.Meta.Rows++
		s.Meta.Logs[0].Rows++
	})},
	{"a row is given to another tenant", false, signedAnew(3, func(s *prooftest.Segment) {
		s.Rows[0].TenantID = audit.Str("a/b")
		s.Meta.Logs[0].Rows--
		s.Meta.Logs[1].Rows++
	})},
	{"a row is erased, and no control row says so", false, signedAnew(1, func(s *prooftest.Segment) {
		r := &s.Rows[0]
		r.RowSalt, r.Slots = chain.NullHash{}, [audit.NumSlots][]byte{}
		r.RedactionID = audit.Str("01KBCDEFGHJKMNPQRSTV000000")
		r.Redaction = audit.Str(`{"redacted":true,"id":"01KBCDEFGHJKMNPQRSTV000000","slots":"*"}`)
	})},
	{"the chain ends in a frontier that is not its own", false, signedAnew(5, func(s *prooftest.Segment) {
		for i := range s.Meta.Logs {
			s.Meta.Logs[i].Frontier[0][0] ^= 1
		}
	})},
	{"offsets that nothing accounts for", false, signedAnew(3, func(s *prooftest.Segment) { s.Meta.Gaps[1].To -= 2 })},
	{"time goes back", false, func(w *world) {
		w.calls.Segments[5].Rows[0].ArchivedAt.N = prooftest.Start - 1
		w.calls.Restamp()
		w.calls.Reanchor()
	}},
	{"a derived column", true, signedAnew(1, func(s *prooftest.Segment) { s.Rows[0].SelectedReason = audit.Str("family-lock") })},
	{"a checkpoint of another log", true, func(w *world) {
		list := w.calls.Anchors[1].Doc["checkpoints"].([]any)
		first, second := list[0].(map[string]any), list[1].(map[string]any)
		first["note"] = second["note"]
		w.calls.Anchors[1].Encode()
	}},
	{"bytes in a hole of the newest file", true, object(func(w *world, o map[string][]byte) {
		key := w.calls.Key(6)
		body := o[key]
		footer := len(body) - 8 - int(body[len(body)-8]) - int(body[len(body)-7])<<8
		o[key] = slices.Concat(body[:footer], []byte("what a reader passes over"), body[footer:])
	})},
}

func flipped(body []byte, at int) []byte {
	body = slices.Clone(body)
	body[at] ^= 4
	return body
}

// Verify, check.py and check.sql say the same of a good archive, and of each bad
// one: SQL but for what it cannot see, where it must then not have seen it, or
// the list is wrong.
func TestProgramsAgreeWithVerify(t *testing.T) {
	vkey := prooftest.Signer(keyName).VKey()
	good := check(t, newWorld().objects(), vkey)
	if good.verify != 4 || good.python != 4 || !all(good.sql, true) {
		t.Fatalf("the good archive: %+v", good)
	}
	for _, b := range bads {
		t.Run(b.name, func(t *testing.T) {
			w := newWorld()
			b.change(w)
			c := check(t, w.objects(), vkey)
			if c.verify != 1 || c.python != 1 {
				t.Errorf("verify %d, check.py %d, want 1", c.verify, c.python)
			}
			if !all(c.sql, b.blind) {
				t.Errorf("check.sql finds no fault: %v, want %v of each DuckDB", c.sql, b.blind)
			}
			if t.Failed() {
				t.Log(c.details)
			}
		})
	}
}

// Without a key nothing is proved but that the archive is consistent in itself.
func TestCheckPyAsksForAKey(t *testing.T) {
	dir := files(t, newWorld().objects())
	for args, code := range map[string]int{"": 3, "--allow-unsigned": 4, "--key=" + prooftest.Signer("somebody").VKey(): 3} {
		argv := []string{"archive", dir}
		if args != "" {
			argv = append(argv, args)
		}
		if out, got := python(t, argv...); got != code {
			t.Errorf("%q: exit %d, want %d\n%s", args, got, code, out)
		}
	}
}

// The archives of an independent writer: what archive.json says (of the compacted
// one less, for whether an erasure was ordered is not checked), and with any bit
// flipped but in the newest segment, which nothing vouches for yet, exit 1.
func TestCheckPyOnGoldenArchives(t *testing.T) {
	const vkey = "ledgerlake.example/anchors+7201904f+AQER5QWMAqxvLwnTYEg0mnBxho4cdMvVKWsHp5ZKY4R9"
	for name, good := range map[string]int{"plain": 4, "compacted": 3} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(parts.Root(), "proof", "testdata", "golden", name))); err != nil {
			t.Fatal(err)
		}
		out, code := python(t, "archive", dir, "--key", vkey)
		if code != good || !strings.Contains(out, "acme: 9 rows, head f61faea108db444fc9b1029718ca471df599743c88e06a7cf185bf2a6324cffa, root 211e84989632914cc71a43af854f3a053ee79a0b962315d749a71f0bb3eca437") {
			t.Fatalf("%s: exit %d, want %d\n%s", name, code, good, out)
		}
		for _, d := range parts.DuckDBs() {
			_, err := d.Query("SET VARIABLE archive = '"+dir+"'", script(t))
			if compacted := err != nil && strings.Contains(err.Error(), "was compacted"); compacted != (name == "compacted") || !compacted && err != nil {
				t.Errorf("check.sql on %s: %v", name, err)
			}
		}
		if flips := flipSome(t, dir, vkey); flips < 20 {
			t.Errorf("%s: %d flips are few", name, flips)
		}
	}
}

// flipSome flips bits of every object of an archive, one at a time, and requires
// exit 1. It returns how many.
func flipSome(t *testing.T, dir, vkey string) (flips int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Base(path) == "00000000000000000006.parquet" {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i := range 2 {
			at := (len(body) - 1) * (2*i + 1) / 4
			if err := os.WriteFile(path, flipped(body, at), 0o600); err != nil {
				return err
			}
			if out, code := python(t, "archive", dir, "--key", vkey); code != 1 {
				t.Errorf("%s, byte %d: exit %d\n%s", path, at, code, out)
			}
			flips++
		}
		return os.WriteFile(path, body, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return flips
}

// A keyed log is proved with its key, and with nothing else: without it all but
// row_hash is checked (exit 3), and another key is a fault.
func TestCheckPyOnKeyedLogs(t *testing.T) {
	short := prooftest.LogKey
	prooftest.LogKey = []byte("a key of a test, as long as a key has to be")
	defer func() { prooftest.LogKey = short }()
	a := prooftest.New()
	key := prooftest.Signer(keyName)
	a.Signers, a.Keys.Anchor = []*sign.Signer{key}, []string{key.VKey()}
	l := a.Line("audit.calls", 0)
	l.Segment(func(b *prooftest.Batch) { b.Keyed("acme"); b.Call("acme"); b.Call("globex"); b.Call("acme") })
	l.Anchor()
	dir, keys := files(t, a.Objects()), t.TempDir()
	log := chain.Log{ArchiveID: a.ID, Tenant: "acme", Topic: l.Topic, TopicID: l.TopicID}
	path := filepath.Join(keys, filepath.FromSlash(chain.LogKeyFile(log)))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, text string
		code       int
	}{
		{"the key", hex.EncodeToString(prooftest.LogKey), 0},
		{"another key", strings.Repeat("ab", 32), 1},
		{"no key", "", 3},
		{"what is no key", "short", 2},
	} {
		if err := os.WriteFile(path, []byte(c.text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"archive", dir, "--key", key.VKey(), "--log-key-dir", keys}
		if c.text == "" {
			args = args[:4]
		}
		if out, code := python(t, args...); code != c.code {
			t.Errorf("%s: exit %d, want %d\n%s", c.name, code, c.code, out)
		}
	}
	master := filepath.Join(keys, "master")
	if err := os.WriteFile(master, []byte(strings.Repeat("cd", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := python(t, "archive", dir, "--key", key.VKey(), "--master-key", master); code != 1 {
		t.Errorf("a master key that is not its own: exit %d, want 1\n%s", code, out)
	}
}

// The key of a log follows from the master key as chain has it.
func TestCheckPyMakesKeysOfLogs(t *testing.T) {
	log := chain.Log{ArchiveID: prooftest.ID, Tenant: "東京", Topic: "audit.calls", TopicID: "kTq2VqYJQ0mFvY8v2b3m0A", Partition: 3}
	master := bytes.Repeat([]byte{7}, 32)
	program := `import core; print(core.log_key(bytes([7]) * 32, core.log_text("` + log.ArchiveID + `", "東京", "audit.calls", "` + log.TopicID + `", 3)).hex())`
	cmd := exec.Command(parts.Python("LEDGERLAKE_IT_PYTHON15", "py15"), "-B", "-c", program)
	cmd.Dir = programs()
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != hex.EncodeToString(chain.LogKey(master, log)) {
		t.Errorf("%v: %s", err, out)
	}
}
