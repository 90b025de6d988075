package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive/sign"
)

// generate runs keygen.
func generate(args ...string) (code int, stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	code, err = run(context.Background(), append([]string{"keygen"}, args...), nil, &out, &errs)
	return code, out.String(), errs.String(), err
}

// What keygen prints is the public half of what it keeps, and nothing of the
// other half.
func TestKeygen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.key")
	code, vkey, stderr, err := generate("--name", "example.org/a", "--out", file)
	if code != 0 || err != nil || stderr != "" {
		t.Fatalf("%d, %v, %q", code, err, stderr)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := sign.NewSigner(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if signer.Name() != "example.org/a" || vkey != signer.VKey()+"\n" {
		t.Errorf("%q is printed, %q is kept", vkey, signer.VKey())
	}
	body, err := sign.Sign("x\n", signer)
	if err != nil {
		t.Fatal(err)
	}
	n, err := sign.Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	var ring sign.Ring
	if err := addKey(&ring, strings.TrimSpace(vkey)); err != nil || ring.Check(n, sign.Anchor, time.Time{}).State != sign.Good {
		t.Errorf("the verifier does not take it: %v", err)
	}
	if _, got, _, err := generate("--vkey", file); err != nil || got != vkey {
		t.Errorf("--vkey: %q, %v", got, err)
	}
}

func TestKeygenKeepsWhatIsThere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.key")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, _, err := generate("--name", "a", "--out", file)
	if code != exitCannotRun || err == nil || stdout != "" || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("%d, %v, %q", code, err, stdout)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "precious" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestKeygenPrintsTheKeyWhereItIsAskedTo(t *testing.T) {
	_, skey, vkey, err := generate("--name", "a", "--out", "-")
	if err != nil {
		t.Fatal(err)
	}
	if signer, err := sign.NewSigner(skey); err != nil || signer.VKey()+"\n" != vkey {
		t.Errorf("%q: %v", vkey, err)
	}
}

func TestKeygenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.key")
	for _, args := range [][]string{
		{},
		{"--name", "a"},
		{"--out", file},
		{"--name", "a", "--out", file, "more"},
		{"--name", "a", "--out", file, "--vkey", file},
		{"--nam", "a", "--out", file},
		{"--name", "", "--out", file},
	} {
		if code, _, _, err := generate(args...); code != exitCannotRun || !errors.Is(err, errUsage) {
			t.Errorf("%q: %d, %v", args, code, err)
		}
	}
	for _, name := range []string{"a b", "a+b"} {
		if _, _, _, err := generate("--name", name, "--out", file); !errors.Is(err, sign.ErrKey) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, _, _, err := generate("--name", "a", "--out", filepath.Join(file, "b")); err == nil {
		t.Error("a file in no folder")
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("something was written")
	}
	if _, stdout, _, err := generate("--help"); err != nil || stdout != keygenHelp {
		t.Errorf("%v", err)
	}
}
