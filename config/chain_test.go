package config_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/config"
)

var aLog = chain.Log{ArchiveID: "01KBCDEFGHJKMNPQRSTVWXYZ00", Tenant: "a/b", Topic: "audit.calls", TopicID: "AAAAAAAAAAAAAAAAAAAAAA", Partition: 3}

// A folder of keys gives each log what its own file holds, and nothing to others.
func TestKeyDir(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "audit.calls", "AAAAAAAAAAAAAAAAAAAAAA", "00003", "a~2Fb")
	want := bytes.Repeat([]byte{7}, 32)
	writeKey(t, file, hex.EncodeToString(want)+"\n")
	writeKey(t, filepath.Join(dir, "..data", "x"), "no key")
	keys, err := config.KeyDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if key, ok := keys(aLog); !ok || !bytes.Equal(key, want) {
		t.Errorf("%x, %v", key, ok)
	}
	other := aLog
	other.Tenant = "a"
	if keys.Has(other) {
		t.Error("a log without a file has a key")
	}
	writeKey(t, filepath.Join(filepath.Dir(file), "a"), hex.EncodeToString(want))
	if keys.Has(other) {
		t.Error("a log has got a key since it was asked for: its rows would have two")
	}

	for name, make := range map[string]func() string{
		"want 32 random bytes": func() string {
			writeKey(t, file, "short")
			return dir
		},
		"no folder":    func() string { return file },
		"no such file": func() string { return filepath.Join(dir, "nowhere") },
	} {
		if _, err := config.KeyDir(make()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func writeKey(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What is keyed needs a key, and a key is one: the settings say so before
// anything is begun.
func TestChainSettings(t *testing.T) {
	good := filepath.Join(t.TempDir(), "key")
	writeKey(t, good, strings.Repeat("0f", 32)+"\n")
	bad := good + ".bad"
	writeKey(t, bad, "hunter2")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--chain.keyed-topics=*"}, "chain.keyed-topics"},
		{[]string{"--chain.keyed-topics=*", "--chain.master-key-file=" + good}, ""},
		{[]string{"--chain.master-key-file=" + bad}, "chain.master-key"},
		{[]string{"--chain.keyed-topics=t,u", "--chain.key-dir=" + t.TempDir()}, ""},
		{[]string{"--chain.key-dir=" + good}, "chain.key-dir"},
	} {
		var s config.Ingest
		all := s.Sections()
		origins, err := config.Load(all, all, config.Input{Args: append([]string{"--topics=t", "--bucket=s3://bucket"}, c.args...)})
		if err == nil {
			err = s.Check(origins)
		}
		if err == nil {
			_, _, err = s.Chain.Keys(origins)
		}
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		case err != nil && strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%q: the secret is shown: %v", c.args, err)
		}
	}
}
