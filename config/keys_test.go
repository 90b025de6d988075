package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/config"
)

const (
	someVKey  = "ledgerlake.example/anchors+7201904f+AQER5QWMAqxvLwnTYEg0mnBxho4cdMvVKWsHp5ZKY4R9"
	otherVKey = "ledgerlake.example/anchors+ab2a9847+AZr5p0k9UQpb6IuCr9mLHySDF3TpqAytTaFyWMHUL1Lv"
	// A private key that nobody uses.
	privateKey = "PRIVATE+KEY+witness.example/w1+3218362d+AQABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
)

func TestKeys(t *testing.T) {
	s, _, err := load(t, append([]string{"--anchor-key", "a.key,b.key"}, needed...), []string{"LEDGERLAKE_CONTROL_KEYS=" + someVKey}, `
anchor-keys: [`+someVKey+`, `+otherVKey+`]
anchor-kms-key: alias/ledgerlake
anchor-key-name: example.org/kms
anchor-key-life: 24h
kms: {region: eu-central-1, endpoint: "http://127.0.0.1:4566"}
`)
	if err != nil {
		t.Fatal(err)
	}
	k := s.Keys
	if !slices.Equal(k.Files, []string{"a.key", "b.key"}) || !slices.Equal(k.Control, []string{someVKey}) || !slices.Equal(k.Anchor, []string{someVKey, otherVKey}) ||
		k.KMS != (config.KMS{Key: "alias/ledgerlake", Region: "eu-central-1", Endpoint: "http://127.0.0.1:4566"}) || k.Name != "example.org/kms" || k.Life != 24*time.Hour {
		t.Errorf("%+v", k)
	}
}

// What is wrong with a key is said without the key: what was given in its place
// may be a private one.
func TestKeysThatAreNone(t *testing.T) {
	kms := []string{"--anchor-kms-key", "k", "--anchor-key-name", "n"}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--anchor-key", privateKey}, "anchor-key (flag --anchor-key): want one or more of: the path of a file with a private key"},
		{[]string{"--anchor-keys", privateKey}, "anchor-keys (flag --anchor-keys): want one or more of: a verifier key, as ledgerlake-verify keygen prints it (name+hash+data), or the name of a file with one on each line"},
		{[]string{"--catalog-keys", someVKey[:len(someVKey)-1]}, "catalog-keys (flag --catalog-keys): want one or more of: a verifier key"},
		{[]string{"--control-keys", someVKey + "," + someVKey}, "control-keys (flag --control-keys): want one or more of: a verifier key"},
		{[]string{"--anchor-kms-key", "k"}, "anchor-key-name: not set: anchor-kms-key needs it"},
		{[]string{"--anchor-key-name", "n"}, "anchor-key-name (flag --anchor-key-name): has no use without anchor-kms-key"},
		{[]string{"--anchor-key-life", "24h"}, "anchor-key-life (flag --anchor-key-life): has no use without anchor-kms-key"},
		{[]string{"--kms.region", "r"}, "kms.region (flag --kms.region): has no use without anchor-kms-key"},
		{[]string{"--kms.endpoint", "http://h:1"}, "kms.endpoint (flag --kms.endpoint): has no use without anchor-kms-key"},
		{append(kms, "--kms.endpoint", "h:1"), "kms.endpoint (flag --kms.endpoint): \"h:1\" is not allowed: want http://host:port"},
		{append(kms[:2:2], "--anchor-key-name", "a b"), "anchor-key-name (flag --anchor-key-name): \"a b\" is not allowed: want a name without spaces and without +"},
		{append(kms, "--anchor-key-life", "59m"), "anchor-key-life (flag --anchor-key-life): \"59m\" is not allowed: want a duration from 1h"},
	} {
		_, _, err := load(t, append(tt.args, needed...), nil, "")
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), privateKey[len(privateKey)-20:]) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}

// A verifier key may be given by the name of the file in which keygen left it.
func TestVKeysFromFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	two := write("two.vkey", "# ours\n"+someVKey+"\n\n"+otherVKey+"\n")
	s, _, err := load(t, append([]string{"--catalog-keys", two, "--control-keys", someVKey}, needed...), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{someVKey, otherVKey}; !slices.Equal(s.Keys.Catalog, want) {
		t.Errorf("got %q, want %q", s.Keys.Catalog, want)
	}
	for _, c := range []struct{ value, want string }{
		{two + "," + someVKey, "want one or more of: a verifier key"}, // twice
		{write("empty", "# nothing\n"), "no verifier key in the file"},
		{write("bad", someVKey+"\nPRIVATE+KEY+x+y+z\n"), "a line that is no verifier key"},
		{filepath.Join(dir, "absent"), "want one or more of: a verifier key"},
	} {
		_, _, err := load(t, append([]string{"--catalog-keys", c.value}, needed...), nil, "")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "PRIVATE+KEY") {
			t.Errorf("%s: got %v, want one with %q", filepath.Base(c.value), err, c.want)
		}
	}
}
