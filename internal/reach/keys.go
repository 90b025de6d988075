package reach

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/config"
)

// AddKey adds the keys of a --key flag to a ring: a vkey, or the name of a file
// with one on each line. Empty lines and those that begin with # are none.
func AddKey(ring *sign.Ring, value string) error {
	if err := noPrivateKey(value); err != nil {
		return err
	}
	if err := ring.Add(value, sign.AllRoles, "given"); err == nil {
		return nil
	} else if strings.Contains(value, "+") && !IsFile(value) {
		return err
	}
	text, err := os.ReadFile(value)
	if err != nil {
		return fmt.Errorf("neither a vkey nor a file with vkeys: %w", err)
	}
	return addKeys(ring, string(text), value)
}

func addKeys(ring *sign.Ring, text, file string) error {
	found := false
	for line := range sign.Lines(text) {
		if err := noPrivateKey(line); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := ring.Add(line, sign.AllRoles, "given, in "+file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		found = true
	}
	if !found {
		return fmt.Errorf("%s: there is no key in it", file)
	}
	return nil
}

func noPrivateKey(text string) error {
	if strings.HasPrefix(text, "PRIVATE+KEY+") {
		return errors.New("that is a private key; give the public one, which keygen prints")
	}
	return nil
}

// IsFile reports whether a file has the name.
func IsFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// LogKeys are what flags say of the keys of keyed logs.
type LogKeys struct{ master, dir string }

// LogKeysHelp is the part of a command's help on these flags.
const LogKeysHelp = `  --master-key FILE
        The key of which those of keyed logs are made, as hex or base64: what chain.master-key is to ingest. Without it
        all of a keyed log but row_hash is checked, and the exit code is 3 at best.
  --log-key-dir FOLDER
        A folder with a key for each log that has its own: what chain.key-dir is to ingest.
`

// Define adds the flags.
func (k *LogKeys) Define(f *Flags) {
	f.StringVar(&k.master, "master-key", "", "")
	f.StringVar(&k.dir, "log-key-dir", "", "")
}

// Keys reads them; nil where no flag was given.
func (k *LogKeys) Keys() (keys chain.Keys, err error) {
	if k.dir != "" {
		if keys, err = config.KeyDir(k.dir); err != nil {
			return nil, fmt.Errorf("--log-key-dir: %w", err)
		}
	}
	if k.master == "" {
		return keys, nil
	}
	master, err := KeyFile(k.master)
	if err != nil {
		return nil, fmt.Errorf("--master-key: %w", err)
	}
	return keys.Or(chain.MasterKeys(master)), nil
}

// KeyFile reads a key of HMAC-SHA256 from a file: see [chain.ParseKey].
func KeyFile(name string) ([]byte, error) {
	secret, err := config.NewFileSecret(name)
	if err != nil {
		return nil, err
	}
	key, err := chain.ParseKey(secret.Reveal())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return key, nil
}

// RawKeyFile reads the key of a chained JSONL log from a file: its bytes, without a
// line feed at their end.
func RawKeyFile(name string) ([]byte, error) {
	key, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	key, _ = bytes.CutSuffix(key, []byte("\n"))
	key, _ = bytes.CutSuffix(key, []byte("\r"))
	if len(key) == 0 {
		return nil, errors.New("the key is empty")
	}
	return key, nil
}
