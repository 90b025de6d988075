package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/internal/reach"
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
	if err := reach.AddKey(&ring, strings.TrimSpace(vkey)); err != nil || ring.Check(n, sign.Anchor, time.Time{}).State != sign.Good {
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
		{"--name", "a", "--vkey", file},
		{"--public", file},
		{"--name", "a", "--public", file, "--out", file},
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

// The vkey of a key that is elsewhere, in KMS for one, needs its public half
// alone, in any of the usual forms.
func TestKeygenOfPublicKeys(t *testing.T) {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p256, err := x509.MarshalPKIXPublicKey(other.Public())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"DER":       {der, sign.VKey("a", public) + "\n"},
		"base64":    {[]byte(base64.StdEncoding.EncodeToString(der) + "\n"), sign.VKey("a", public) + "\n"},
		"PEM":       {pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), sign.VKey("a", public) + "\n"},
		"P-256":     {p256, ""},
		"cut":       {der[:len(der)-1], ""},
		"something": {[]byte("x"), ""},
	} {
		file := filepath.Join(t.TempDir(), "public")
		if err := os.WriteFile(file, c.text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, got, _, err := generate("--name", "a", "--public", file)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
