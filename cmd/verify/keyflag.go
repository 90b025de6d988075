package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive/sign"
)

// addKey adds the keys of a --key flag to a ring: a vkey, or the name of a file
// with one on each line. Empty lines and those that begin with # are none.
func addKey(ring *sign.Ring, value string) error {
	if err := noPrivateKey(value); err != nil {
		return err
	}
	if err := ring.Add(value, sign.AllRoles, "given"); err == nil {
		return nil
	} else if strings.Contains(value, "+") && !isFile(value) {
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
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
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

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// addWitness adds the witness of a --witness flag: a vkey, or the name of a file
// with one on each line.
func addWitness(all *[]*sign.Witness, value string) error {
	text := value
	if isFile(value) {
		b, err := os.ReadFile(value)
		if err != nil {
			return err
		}
		text = string(b)
	}
	found := false
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
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
