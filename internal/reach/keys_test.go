package reach

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/chain"
)

// The flags give the keys that ingest makes rows with: a log's own, and else what
// the master key gives.
func TestLogKeyFlags(t *testing.T) {
	dir := t.TempDir()
	l := chain.Log{ArchiveID: "01KBCDEFGHJKMNPQRSTVWXYZ00", Tenant: "acme", Topic: "t", TopicID: "AAAAAAAAAAAAAAAAAAAAAA"}
	own, master := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	put := func(name string, key []byte) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(hex.EncodeToString(key)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("keys/"+chain.LogKeyFile(l), own)
	file, short := put("master", master), put("short", master[:31])
	other := l
	other.Tenant = "globex"
	keys, err := (&LogKeys{master: file, dir: dir + "/keys"}).Keys()
	if err != nil {
		t.Fatal(err)
	}
	for log, want := range map[chain.Log][]byte{l: own, other: chain.LogKey(master, other)} {
		if key, ok := keys(log); !ok || !bytes.Equal(key, want) {
			t.Errorf("%s: %x", log.Tenant, key)
		}
	}
	if keys, err := (&LogKeys{}).Keys(); keys != nil || err != nil {
		t.Errorf("without flags: %v", err)
	}
	for want, k := range map[string]*LogKeys{
		"--master-key: " + short + ": 31 bytes": {master: short},
		"--master-key: open":                    {master: dir + "/none"},
		"--log-key-dir: ":                       {dir: file},
	} {
		if _, err := k.Keys(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
