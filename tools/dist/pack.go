package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A file is one of an archive.
type file struct {
	body []byte
	mode int64
}

// pack writes files below a folder into a tar.gz: in the order of their names, all of
// one time, of nobody.
func pack(path, folder string, files map[string]file, when time.Time) error {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		h := &tar.Header{Name: folder + "/" + name, Mode: f.mode, Size: int64(len(f.body)), ModTime: when, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.body); err != nil {
			return err
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return err
	}
	return os.WriteFile(path, packed.Bytes(), 0o644)
}

// writeSums writes the file that sha256sum -c reads.
func writeSums(dir string, names []string) (string, error) {
	var sums bytes.Buffer
	for _, name := range slices.Sorted(slices.Values(names)) {
		body, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(body), name)
	}
	return "SHA256SUMS", os.WriteFile(filepath.Join(dir, "SHA256SUMS"), sums.Bytes(), 0o644)
}
