package main

import (
	"fmt"

	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/config"
)

// A logKeys is what flags say of the keys of keyed logs.
type logKeys struct{ master, dir string }

// logKeysHelp is the part of a command's help on these flags.
const logKeysHelp = `  --master-key FILE
        The key of which those of keyed logs are made, as hex or base64: what chain.master-key is to ingest. Without it
        all of a keyed log but row_hash is checked, and the exit code is 3 at best.
  --log-key-dir FOLDER
        A folder with a key for each log that has its own: what chain.key-dir is to ingest.
`

func (k *logKeys) define(f *flags) {
	f.StringVar(&k.master, "master-key", "", "")
	f.StringVar(&k.dir, "log-key-dir", "", "")
}

// keys reads them; nil where no flag was given.
func (k *logKeys) keys() (keys chain.Keys, err error) {
	if k.dir != "" {
		if keys, err = config.KeyDir(k.dir); err != nil {
			return nil, fmt.Errorf("--log-key-dir: %w", err)
		}
	}
	if k.master == "" {
		return keys, nil
	}
	secret, err := config.NewFileSecret(k.master)
	if err != nil {
		return nil, fmt.Errorf("--master-key: %w", err)
	}
	master, err := chain.ParseKey(secret.Reveal())
	if err != nil {
		return nil, fmt.Errorf("--master-key: %s: %w", k.master, err)
	}
	return keys.Or(chain.MasterKeys(master)), nil
}
