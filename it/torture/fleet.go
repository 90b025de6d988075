//go:build it

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ledgerlake/ledgerlake/it/parts"
)

// fleetSize is how many processes share the partitions.
const fleetSize = 3

// stopTimeout is how long a clean stop may take. It is longer than ingest's
// own limit by what a busy machine needs.
const stopTimeout = 30 * time.Second

// A fleet is the processes of a round that do one thing: ingest, or compact.
type fleet struct {
	program string
	fatal   string   // what a log says of a process that has given something up
	dir     string   // of logs
	args    []string // what all of them are started with
	members []*parts.Process
	started int
	seen    map[string]int // log -> bytes of it that were looked at
}

// start starts one more process. group are the arguments that say what it reads.
func (f *fleet) start(name string, group ...string) (*parts.Process, error) {
	f.started++
	log := filepath.Join(f.dir, fmt.Sprintf("%s-%03d-%s.log", f.program, f.started, name))
	args := append(append([]string{"run"}, f.args...), group...)
	return parts.Start(f.program, log, parts.Credentials(), parts.Binary("ledgerlake-"+f.program), args...)
}

// join starts one more member of the group.
func (f *fleet) join(group ...string) error {
	p, err := f.start("member", group...)
	if err == nil {
		f.members = append(f.members, p)
	}
	return err
}

// leave takes a random member out of the fleet and returns it, running.
func (f *fleet) leave(rng *rand.Rand) *parts.Process {
	i := rng.IntN(len(f.members))
	p := f.members[i]
	f.members = append(f.members[:i], f.members[i+1:]...)
	return p
}

// alive returns an error if a member has ended by itself, or has given up a
// partition.
func (f *fleet) alive() error {
	for _, p := range f.members {
		if err := f.sound(p); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) sound(p *parts.Process) error {
	if !p.Running() {
		return fmt.Errorf("%s ended by itself: %s", filepath.Base(p.Log), lastLines(p.Output(), 3))
	}
	text := p.Output()
	if fresh := text[f.seen[p.Log]:]; strings.Contains(fresh, f.fatal) {
		return fmt.Errorf("%s has given up: %s", filepath.Base(p.Log), linesWith(fresh, f.fatal))
	}
	f.seen[p.Log] = len(text)
	return nil
}

// kill ends all at once, also those that are stopped by a signal.
func (f *fleet) kill() {
	for _, p := range f.members {
		p.Kill()
	}
	f.members = nil
}

// stop ends all in good order: each by exit code 0.
func (f *fleet) stop() error {
	all := f.members
	f.members = nil
	return stop(all...)
}

// stop tells processes to end, all at once, and waits for their clean ends. A
// second signal would be a rude one.
func stop(all ...*parts.Process) error {
	var errs []error
	for _, p := range all {
		errs = append(errs, p.Signal(syscall.SIGTERM))
	}
	for _, p := range all {
		errs = append(errs, ended(p))
	}
	return errors.Join(errs...)
}

// ended waits for the clean end of a process that has been told to stop.
func ended(p *parts.Process) error {
	defer p.Kill()
	code, err := p.Wait(stopTimeout)
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d after SIGTERM: %s", code, lastLines(p.Output(), 3))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(p.Log), err)
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func linesWith(text, part string) string {
	var found []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return strings.Join(found, "\n")
}
