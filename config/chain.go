package config

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ledgerlake/ledgerlake/chain"
)

// Chain says which logs are keyed, and by what.
type Chain struct {
	KeyedTopics []string // "*" is all
	MasterKey   Secret
	KeyDir      string // "" is none
}

func (c *Chain) settings() []Setting {
	return []Setting{
		{
			Name: "chain.keyed-topics", Help: "The topics whose logs begin keyed: row_hash is an HMAC, which who has only the bucket can neither check nor make. * is all. A log that has begun goes on as it did, keyed or not.",
			Value: texts(&c.KeyedTopics, "TOPIC", "the name of a Kafka topic, or *", func(s string) bool { return s == "*" || isTopic(s) }),
		},
		{
			Name: "chain.master-key", Help: "The key of which the key of each keyed log is made: 32 random bytes or more, as hex or base64. Who loses it can check no keyed log any more, and ingest adds nothing to one.",
			Value: secret(&c.MasterKey),
		},
		{
			Name: "chain.key-dir", Help: "A folder with a file for each log that has a key of its own: TOPIC/TOPIC-ID/PARTITION/TENANT, escaped as in the keys of segments, with 32 random bytes or more as hex or base64. It goes before the master key.",
			Value: text(&c.KeyDir, "FOLDER", "a folder", notEmpty),
		},
	}
}

func (c *Chain) rules() []rule {
	return []rule{{
		len(c.KeyedTopics) > 0 && c.MasterKey.IsZero() && c.KeyDir == "", "chain.keyed-topics",
		"needs a key: give chain.master-key-file (or chain.master-key in the environment or the file), or chain.key-dir",
	}}
}

// Keys returns the master key, and the keys of single logs; nil where they are
// not set.
func (c *Chain) Keys(origins Origins) (master []byte, logs chain.Keys, err error) {
	if !c.MasterKey.IsZero() {
		if master, err = chain.ParseKey(c.MasterKey.Reveal()); err != nil {
			return nil, nil, &Error{Name: "chain.master-key", Source: origins["chain.master-key"], Fault: err.Error()}
		}
	}
	if c.KeyDir != "" {
		if logs, err = KeyDir(c.KeyDir); err != nil {
			return nil, nil, &Error{Name: "chain.key-dir", Source: origins["chain.key-dir"], Fault: err.Error()}
		}
	}
	return master, logs, nil
}

// KeyDir returns the keys in a folder, whose files [chain.LogKeyFile] names. All
// that are there are checked at once; each is read once, and a log whose file
// comes later has no key until the next start.
func KeyDir(path string) (chain.Keys, error) {
	if err := checkKeyFiles(path); err != nil {
		return nil, err
	}
	var known sync.Map // chain.Log → []byte, nil where there is no file
	return func(l chain.Log) ([]byte, bool) {
		if key, ok := known.Load(l); ok {
			return key.([]byte), key.([]byte) != nil
		}
		key, err := readKeyFile(filepath.Join(path, filepath.FromSlash(chain.LogKeyFile(l))))
		if err != nil {
			key = nil // gone, or changed, since it was checked: as good as none
		}
		l.Tenant = strings.Clone(l.Tenant) // which may be a part of a page
		actual, _ := known.LoadOrStore(l, key)
		return actual.([]byte), actual.([]byte) != nil
	}, nil
}

// checkKeyFiles reads every file below a folder as a key.
func checkKeyFiles(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no folder", path)
	}
	return filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if rel, _ := filepath.Rel(path, name); d.IsDir() || rel[0] == '.' { // what Kubernetes keeps beside a secret
			return nil
		}
		if _, err := readKeyFile(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

func readKeyFile(path string) ([]byte, error) {
	text, err := readSecretFile(path)
	if err != nil {
		return nil, err
	}
	return chain.ParseKey(text)
}
