//go:build it

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ledgerlake/ledgerlake/it/parts"
)

// An order is an erasure that was ordered.
type order struct {
	deed      *deed
	kind      string   // record, turn, session, user, place, offset
	args      []string // of its target
	slots     string   // "" is all of them
	hard      bool
	cancelled bool
	at        time.Time
	id        string
}

// kinds of targets.
var kinds = []string{"record", "turn", "session", "user", "place", "offset"}

// means reports whether the order means a deed.
func (o *order) means(d *deed) bool {
	of := o.deed
	if d.tenant != of.tenant {
		return false
	}
	if d.broken && o.kind != "offset" {
		return false // what of it can be read is ingest's to say
	}
	switch o.kind {
	case "record":
		return d.record == of.record
	case "turn":
		return d.turn == of.turn
	case "session":
		return d.session == of.session
	case "user":
		return d.user == of.user
	case "place":
		return d.session == of.session && d.turn == of.turn && d.stage == of.stage && d.within == of.within
	}
	return d.partition == of.partition && d.offset == of.offset
}

// order draws an order about something that was sent already.
func (t *trial) order(rng *rand.Rand, n int, topicID string) *order {
	for {
		t.deeds.mu.Lock()
		d := t.deeds.all[rng.IntN(len(t.deeds.all))]
		t.deeds.mu.Unlock()
		o := &order{deed: d, kind: kinds[n%len(kinds)], at: time.Now(), hard: n%29 == 7, cancelled: n%41 == 5}
		if n%17 == 3 && !o.hard {
			o.slots = "ext,prompts"
		}
		if d.broken || d.record == "" || d.turn == "" || d.stage == "" && o.kind == "place" || d.user == "" && o.kind == "user" || slices.Contains(t.offboards, d.tenant) {
			continue
		}
		switch o.kind {
		case "record":
			o.args = []string{"--record-id", d.record}
		case "turn":
			o.args = []string{"--turn", d.turn}
		case "session":
			o.args = []string{"--session", d.session}
		case "user":
			o.args = []string{"--user", d.user}
		case "place":
			o.args = []string{"--session", d.session, "--turn", d.turn, "--stage", d.stage, "--seq-within-turn", strconv.FormatInt(d.within, 10)}
		case "offset":
			o.args = []string{"--offset", fmt.Sprintf("%s/%s/%d/%d", topic, topicID, d.partition, d.offset)}
		}
		return o
	}
}

// compact runs a command of ledgerlake-compact to its end.
func (t *trial) compact(ctx context.Context, args ...string) (code int, stdout string, err error) {
	cmd := exec.CommandContext(ctx, parts.Binary("ledgerlake-compact"), args...)
	cmd.Env = parts.Environ(parts.Credentials())
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), out.String(), fmt.Errorf("%s: exit %d: %s%s", strings.Join(args, " "), exit.ExitCode(), out.String(), errs.String())
	}
	return 0, out.String(), err
}

// place are the flags that say where everything is.
func (t *trial) where() []string {
	return []string{"--brokers", t.kafka.Addr, "--bucket", t.url(), "--control-key", t.key("control"), "--key", t.vkeys["anchors"]}
}

func (t *trial) erase(ctx context.Context, o *order, n int) error {
	args := append([]string{"erase"}, t.where()...)
	args = append(append(args, "--tenant", o.deed.tenant, "--reason", "trial", "--request-ref", fmt.Sprintf("case %d", n), "--json", "--force"), o.args...)
	if o.slots != "" {
		args = append(args, "--slots", o.slots)
	}
	if o.hard {
		args = append(args, "--hard")
	}
	_, out, err := t.compact(ctx, args...)
	if err != nil {
		return err
	}
	var reply struct{ ID string }
	if err := json.Unmarshal([]byte(out), &reply); err != nil {
		return fmt.Errorf("erase --json: %w: %s", err, out)
	}
	o.id = reply.ID
	if o.cancelled {
		_, _, err = t.compact(ctx, append(append([]string{"cancel"}, t.where()...), "--tenant", o.deed.tenant, "--reason", "trial", o.id)...)
		if err != nil && strings.Contains(err.Error(), "it cannot be taken back any more") {
			o.cancelled, err = false, nil // a busy machine
		}
	}
	return err
}

// startCompact starts one more compactor.
func (t *trial) startCompact() error {
	p, err := t.start("ledgerlake-compact", append(append([]string{"run"}, t.where()...), "--topics", topic, "--compact.group", group+"-compact",
		"--catalog-key", t.key("catalogs"), "--purge-after", "10s", "--late-window", "20s", "--compact.every", "1s", "--compact.max-age", "2s", "--compact.min-segments", "16", "--compact.sweep-every", "5s", "--compact.sql-manifests", "--kafka.session-timeout", "6s", "--http.listen", "none")...)
	if err == nil {
		t.compacts = append(t.compacts, p)
	}
	return err
}

// everything sends the other records, orders erasures, and kills, stops and
// wakes compactors, all at once, with readers beside.
func (t *trial) everything(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range 2 {
		if err := t.startCompact(); err != nil {
			return err
		}
	}
	reading, stopReading := context.WithCancel(ctx)
	var reader sync.WaitGroup
	var readErr error
	reader.Go(func() { readErr = t.readers(reading) })
	var wg sync.WaitGroup
	errs := make([]error, 3)
	for i, do := range []func(context.Context) error{t.otherRecords, t.orderAll, t.killAll} {
		wg.Go(func() {
			if errs[i] = do(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	stopReading()
	reader.Wait()
	return errors.Join(append(errs, readErr)...)
}

func (t *trial) otherRecords(ctx context.Context) error {
	if err := t.produce(ctx, t.generator(t.seed+1), t.rows-t.rows*2/5, t.rows/90); err != nil {
		return err
	}
	return t.drained(ctx)
}

// killAll kills compactors at random moments; one of them, once, is stopped for
// longer than the grace, and woken.
func (t *trial) killAll(ctx context.Context) error {
	rng := rand.New(rand.NewPCG(t.seed, 3))
	for n := range t.kills {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(rng.Int64N(int64(4 * time.Second)))):
		}
		if n == t.kills/3 {
			if err := t.sleeper(ctx); err != nil {
				return err
			}
		}
		i := rng.IntN(len(t.compacts))
		p := t.compacts[i]
		if !p.Running() {
			return fmt.Errorf("a compactor has ended by itself: %s", p.Log)
		}
		p.Kill()
		t.compacts = slices.Delete(t.compacts, i, i+1)
		if err := t.startCompact(); err != nil {
			return err
		}
	}
	return nil
}

func (t *trial) sleeper(ctx context.Context) error {
	p := t.compacts[0]
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-time.After(t.grace * 3 / 2):
	}
	t.say("a compactor wakes up, after one and a half times the grace")
	return p.Signal(syscall.SIGCONT)
}
