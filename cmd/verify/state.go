package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ledgerlake/ledgerlake/proof"
)

// loadState reads a saved state; there is none where there is no such file.
func loadState(name string) (*proof.Saved, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := proof.DecodeSaved(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// saveState writes where a verification ended, whole or not at all. After a fault
// the file stays as it was.
func saveState(name string, r *proof.Report, at time.Time) error {
	s := r.Save(at)
	if name == "" || s == nil {
		return nil
	}
	text, err := s.Encode()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".state-*") // readable for its owner alone
	if err != nil {
		return fmt.Errorf("save the state: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("save the state: %w", err)
	}
	return nil
}
