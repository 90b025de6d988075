//go:build it

package offline

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// bundle returns the proof of the row at an offset of calls.
func bundle(t *testing.T, w *world, offset int64, d proof.Disclosure) []byte {
	t.Helper()
	p, err := proof.NewProver(context.Background(), prooftest.Bucket(w.Objects()), proof.ProveOptions{Keys: ring(t, w)})
	if err != nil {
		t.Fatal(err)
	}
	f, err := p.Find(context.Background(), proof.Want{Topic: "audit.calls", Partition: &w.calls.Partition, Offset: &offset})
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.Bundle(d)
	if err != nil {
		t.Fatal(err)
	}
	text, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func ring(t *testing.T, w *world) *sign.Ring {
	t.Helper()
	r := new(sign.Ring)
	if err := r.Add(w.Signers[0].VKey(), sign.AllRoles, "given"); err != nil {
		t.Fatal(err)
	}
	return r
}

// checkBundle runs check.py on a bundle, and verify's own check beside it, which
// must end with the same code.
func checkBundle(t *testing.T, text []byte, vkey string) int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "row.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, code := python(t, "bundle", path, "--key", vkey)
	want := 1
	if b, err := proof.DecodeBundle(text); err == nil {
		r := new(sign.Ring)
		if err := r.Add(vkey, sign.AllRoles, "given"); err != nil {
			t.Fatal(err)
		}
		want = b.Check(proof.CheckOptions{Keys: r}).Exit
	}
	if code != want {
		t.Errorf("check.py ends with %d, verify with %d\n%s", code, want, out)
	}
	return code
}

// Rows check whole and with parts withheld, with Python alone, by a key that is
// known; by another key nobody vouches for them.
func TestCheckPyOnBundles(t *testing.T) {
	w := newWorld()
	vkey := w.Signers[0].VKey()
	for name, text := range map[string][]byte{
		"a row":           bundle(t, w, 3, proof.Disclosure{}),
		"parts withheld":  bundle(t, w, 0, proof.Disclosure{Withhold: chain.SlotSetOf(audit.SlotDecision), WithholdUser: true}),
		"a rejected row":  bundle(t, w, 8, proof.Disclosure{}),
		"a row with ext":  bundle(t, w, 9, proof.Disclosure{}),
		"the last before": bundle(t, w, 16, proof.Disclosure{}),
	} {
		t.Run(name, func(t *testing.T) {
			if code := checkBundle(t, text, vkey); code != 0 {
				t.Errorf("exit %d\n%s", code, text)
			}
			if code := checkBundle(t, text, prooftest.Signer("somebody").VKey()); code != 3 {
				t.Errorf("by another key: exit %d, want 3", code)
			}
		})
	}
}

// A bundle in which anything is changed is not accepted.
func TestCheckPyOnBadBundles(t *testing.T) {
	w := newWorld()
	good := bundle(t, w, 3, proof.Disclosure{})
	other := bundle(t, w, 4, proof.Disclosure{})
	for name, change := range map[string][2]string{
		"a header column": {`"status": "ok"`, `"status": "no"`},
		"a slot":          {`fallback-rung`, `fallback-rang`},
		"a user":          {`"id": "user-`, `"id": "usor-`},
		"the tree's size": {`"size": `, `"size": 1`},
		"the path":        {`"path": [`, `"path": ["` + w.calls.Logs["acme"].Head.String() + `",`},
		"the seq":         {`"seq": 1`, `"seq": 0`},
		"the tenant":      {`"tenant": "acme"`, `"tenant": "a/b"`},
		"a member twice":  {`"format":`, `"archiveId": "01KBCDEFGHJKMNPQRSTVWXYZ01", "format":`},
	} {
		t.Run(name, func(t *testing.T) {
			bad := bytes.Replace(good, []byte(change[0]), []byte(change[1]), 1)
			if bytes.Equal(bad, good) {
				t.Fatalf("no %s in %s", change[0], good)
			}
			if code := checkBundle(t, bad, w.Signers[0].VKey()); code != 1 {
				t.Errorf("exit %d, want 1", code)
			}
		})
	}
	for at := range 12 {
		i := len(good) * at / 12
		if code := checkBundle(t, flipped(good, i), w.Signers[0].VKey()); code == 0 && i != 0 {
			t.Errorf("byte %d flipped (%.40q): exit 0", i, good[i:])
		}
	}
	if bytes.Equal(good, other) {
		t.Error("two rows have one proof")
	}
}
