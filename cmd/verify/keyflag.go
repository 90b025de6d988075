package main

import (
	"fmt"
	"os"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/internal/reach"
)

// addWitness adds the witness of a --witness flag: a vkey, or the name of a file
// with one on each line.
func addWitness(all *[]*sign.Witness, value string) error {
	text := value
	if reach.IsFile(value) {
		b, err := os.ReadFile(value)
		if err != nil {
			return err
		}
		text = string(b)
	}
	found := false
	for line := range sign.Lines(text) {
		w, err := sign.ParseWitness(line)
		if err != nil {
			return err
		}
		*all, found = append(*all, w), true
	}
	if !found {
		return fmt.Errorf("%s: there is no witness in it", value)
	}
	return nil
}
