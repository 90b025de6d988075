package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// canary runs a binary on an archive as files, good and then bad: what is proved
// of the library must be so of what people run.
func canary(binary string) error {
	s := specimens()[1].build()
	good, key := s.pack(), s.keys[0]
	flipped := with(good, s.calls.Key(1), func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	rebuilt := specimens()[1].build()
	rebuilt.calls.Segments[1].Rows[0].Status.S += "x"
	rebuild(rebuilt.calls, prooftest.Signer(stranger))
	for _, c := range []struct {
		name    string
		objects objects
		args    []string
		want    int
	}{
		{"a good archive", good, []string{"--key", key}, 0},
		{"a good archive without its key", good, nil, 3},
		{"a good archive under a stranger's key", good, []string{"--key", prooftest.Signer(stranger).VKey()}, 3},
		{"a flipped bit", flipped, []string{"--key", key}, 1},
		{"a cut tail", with(good, s.calls.Key(segments-1), nil), []string{"--key", key}, 1},
		{"a changed row under new hashes, signed by a stranger", rebuilt.pack(), []string{"--key", key}, 1},
		{"nothing", objects{}, []string{"--key", key}, 2},
	} {
		if err := runOn(binary, c.objects, c.want, c.args...); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// with returns other objects: one is changed, or taken away if do is nil.
func with(o objects, key string, do func([]byte) []byte) objects {
	changed := objects{}
	for k, body := range o {
		if k != key {
			changed[k] = body
		} else if do != nil {
			changed[k] = do(append([]byte{}, body...))
		}
	}
	return changed
}

// runOn runs a binary on objects and requires an exit code.
func runOn(binary string, o objects, want int, args ...string) error {
	dir, err := os.MkdirTemp("", "tamper")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for key, body := range o {
		path := filepath.Join(dir, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, body, 0o644); err != nil {
			return err
		}
	}
	out, err := exec.Command(binary, append(args, dir)...).CombinedOutput()
	exit := 0
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		exit = failed.ExitCode()
	} else if err != nil {
		return err
	}
	if exit != want {
		return fmt.Errorf("exit %d, want %d:\n%s", exit, want, out)
	}
	return nil
}
