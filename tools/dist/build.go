package main

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A binary is one built command.
type binary struct {
	path string
	body []byte
}

// build builds the commands of a target from go.mod alone, as make build does.
func (r *release) build(ctx context.Context, goos, arch, dir string) (all []binary, err error) {
	for _, name := range r.commands {
		path := filepath.Join(dir, "ledgerlake-"+name)
		if goos == "windows" {
			path += ".exe"
		}
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+r.version, "-o", path, "./cmd/"+name)
		c.Dir = r.root
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOOS="+goos, "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0")
		if out, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build ./cmd/%s: %w: %s", name, err, bytes.TrimSpace(out))
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := isStatic(goos, body); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		all = append(all, binary{path, body})
	}
	return all, nil
}

// errDynamic: a binary would not run on a machine, or in an image, without a C library.
var errDynamic = errors.New("is not static: something needs cgo")

// isStatic refuses a binary for Linux that asks for a dynamic linker or for a library.
// What other systems run is always linked to the system's own.
func isStatic(goos string, body []byte) error {
	if goos != "linux" {
		return nil
	}
	f, err := elf.NewFile(bytes.NewReader(body))
	if err != nil {
		return err
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			return errDynamic
		}
	}
	if libraries, err := f.ImportedLibraries(); err == nil && len(libraries) > 0 {
		return fmt.Errorf("%w: %s", errDynamic, strings.Join(libraries, ", "))
	}
	return nil
}
