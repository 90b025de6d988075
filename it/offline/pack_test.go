//go:build it

package offline

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/it/parts"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/offline"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// pack returns the pack of all anchored rows of a tenant, and its files.
func pack(t *testing.T, w *world, tenant string) ([]byte, map[string][]byte) {
	t.Helper()
	p, err := proof.NewProver(context.Background(), prooftest.Bucket(w.Objects()), proof.ProveOptions{Keys: ring(t, w)})
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string][]byte{}
	for _, name := range offline.PackChecker {
		if programs[name], err = offline.Programs.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	k, err := p.Pack(context.Background(), proof.PackWant{Want: proof.Want{Tenant: tenant}}, proof.Disclosure{WithholdUser: true}, programs)
	if err != nil {
		t.Fatal(err)
	}
	body, err := k.Zip()
	if err != nil {
		t.Fatal(err)
	}
	return body, unzip(t, body)
}

func unzip(t *testing.T, body []byte) map[string][]byte {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if all[f.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// A pack checks as a zip and as a folder, there also by the program that it
// brings along, any number of times.
func TestCheckPyOnPacks(t *testing.T) {
	w := newWorld()
	body, all := pack(t, w, "acme")
	vkey := w.Signers[0].VKey()
	path := filepath.Join(t.TempDir(), "case.zip")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	folder := files(t, all)
	for _, target := range []string{path, folder} {
		if out, code := python(t, "pack", target, "--key", vkey); code != 0 || !strings.Contains(out, " rows are shown") {
			t.Errorf("%s: exit %d\n%s", target, code, out)
		}
		if out, code := python(t, "pack", target); code != 3 {
			t.Errorf("%s, without a key: exit %d\n%s", target, code, out)
		}
	}
	for range 2 {
		cmd := exec.Command(parts.Python("LEDGERLAKE_IT_PYTHON15", "py15"), "check.py", "pack", ".", "--key", vkey)
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("its own program: %v\n%s", err, out)
		}
	}
}

// A pack in which a file is changed, gone or added is not accepted; nor is one
// whose manifest was made to fit, where rows or hashes are others.
func TestCheckPyOnBadPacks(t *testing.T) {
	w := newWorld()
	for name, c := range map[string]struct {
		sealed bool // the manifest fits
		change func(t *testing.T, all map[string][]byte)
	}{
		"a row": {true, func(t *testing.T, all map[string][]byte) { swap(t, all, "rows.jsonl", `"ok"`, `"no"`) }},
		"a slot": {true, func(t *testing.T, all map[string][]byte) {
			swap(t, all, "rows.jsonl", `fallback-rung`, `fallback-rang`)
		}},
		"a row twice": {true, func(t *testing.T, all map[string][]byte) {
			all["rows.jsonl"] = append(all["rows.jsonl"], all["rows.jsonl"]...)
		}},
		"where a range lies": {true, func(t *testing.T, all map[string][]byte) {
			swap(t, all, "ranges/0000.json", `"first": 0`, `"first": 1`)
		}},
		"a range's log": {true, func(t *testing.T, all map[string][]byte) { swap(t, all, "ranges/0000.json", `"acme"`, `"a/b"`) }},
		"the archive's id": {true, func(t *testing.T, all map[string][]byte) {
			swap(t, all, "manifest.json", prooftest.ID, prooftest.ID[:25]+"2")
		}},
		"rows that are gone": {false, func(t *testing.T, all map[string][]byte) { delete(all, "rows.jsonl") }},
		"a file that is new": {false, func(t *testing.T, all map[string][]byte) { all["notes.txt"] = []byte("more") }},
		"a README":           {false, func(t *testing.T, all map[string][]byte) { all["README.txt"] = []byte("all is well") }},
	} {
		t.Run(name, func(t *testing.T) {
			_, all := pack(t, w, "acme")
			c.change(t, all)
			if c.sealed {
				seal(t, all)
			}
			out, code := python(t, "pack", files(t, all), "--key", w.Signers[0].VKey())
			if code != 1 || strings.Contains(out, "not in the manifest") == c.sealed {
				t.Errorf("exit %d, want 1\n%s", code, out)
			}
		})
	}
}

// seal makes the manifest fit.
func seal(t *testing.T, all map[string][]byte) {
	t.Helper()
	var m struct {
		Format    string           `json:"format"`
		ArchiveID string           `json:"archiveId"`
		Files     []map[string]any `json:"files"`
	}
	if err := json.Unmarshal(all["manifest.json"], &m); err != nil {
		t.Fatal(err)
	}
	m.Files = nil
	for name, body := range all {
		if name != "manifest.json" {
			m.Files = append(m.Files, map[string]any{"name": name, "bytes": len(body), "sha256": fmt.Sprintf("%x", sha256.Sum256(body))})
		}
	}
	all["manifest.json"], _ = json.Marshal(m)
}

func swap(t *testing.T, all map[string][]byte, file, old, by string) {
	t.Helper()
	body := bytes.ReplaceAll(all[file], []byte(old), []byte(by))
	if bytes.Equal(body, all[file]) {
		t.Fatalf("%s has no %s: %.300s", file, old, body)
	}
	all[file] = body
}
