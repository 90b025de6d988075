//go:build it

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/it/oracle"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// An act breaks something. It returns when what it broke is whole again, as far
// as that is for others to do than ingest.
type act struct {
	name string
	do   func(*round, context.Context) error
}

// acts are all that a round does, each once.
var acts = []act{
	{"kill -9 of an ingest", (*round).killOne},
	{"kill -9 of every ingest", (*round).killAll},
	{"SIGSTOP beyond the session, then SIGCONT", (*round).sleepOne},
	{"SIGTERM of an ingest", (*round).stopOne},
	{"broker restart, clean", func(r *round, ctx context.Context) error { return r.restartBroker(ctx, r.kafka.Stop) }},
	{"broker restart, kill -9", func(r *round, ctx context.Context) error { return r.restartBroker(ctx, killed(r.kafka)) }},
	{"store restart, kill -9", (*round).restartStore},
	{"replies of the store dropped", withFault(time.Minute, faults3.Rule{Every: 3, Fault: faults3.LostReply()})},
	{"store 300 ms slower", withFault(time.Minute, faults3.Rule{Fault: faults3.Slow(300 * time.Millisecond)})},
	{"connections to the store reset", withFault(time.Minute, faults3.Rule{Every: 3, Fault: faults3.Torn()}, faults3.Rule{Every: 3, Fault: faults3.Lost()})},
	{"store answers 503", withFault(90*time.Second, faults3.Rule{Fault: faults3.SlowDown()})},
	{"store's disk full", (*round).fillDisk},
	{"group offset set back", (*round).setBack},
	{"two by hand at one partition", (*round).byHand},
	{"kill -9 of a compactor", (*round).killCompactor},
	{"kill -9 of every compactor", (*round).killCompactors},
	{"SIGSTOP of a compactor beyond the grace", (*round).sleepCompactor},
}

func actNames() []string {
	var names []string
	for _, a := range acts {
		names = append(names, a.name)
	}
	return append(names, last.name)
}

// pause waits for d, or until ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// moment waits for a random time of up to a second: when it happens is what is
// tried.
func (r *round) moment(ctx context.Context) error {
	return pause(ctx, time.Duration(r.rng.Int64N(int64(time.Second))))
}

// busy waits for a moment in which the store is slow, so that whoever is hit
// has something on its way and more that waits. calm ends it.
func (r *round) busy(ctx context.Context) (calm func(), err error) {
	r.front.Add(faults3.Rule{Op: faults3.Put, Times: faults3.Always, Fault: faults3.Slow(200 * time.Millisecond)})
	return r.front.Clear, r.moment(ctx)
}

// killOne kills a member, and starts another one some time later.
func (r *round) killOne(ctx context.Context) error {
	calm, err := r.busy(ctx)
	defer calm()
	if err != nil {
		return err
	}
	r.fleet.leave(r.rng).Kill()
	if err := r.moment(ctx); err != nil {
		return err
	}
	return r.join()
}

func (r *round) killAll(ctx context.Context) error {
	calm, err := r.busy(ctx)
	defer calm()
	if err != nil {
		return err
	}
	r.fleet.kill()
	return r.joinAll()
}

// sleepOne lets a member sleep until the group has given its partitions to the
// others and they have gone on, and then wakes it up in the belief that they
// are its own.
func (r *round) sleepOne(ctx context.Context) error {
	calm, err := r.busy(ctx)
	defer calm()
	if err != nil {
		return err
	}
	zombie := r.fleet.leave(r.rng)
	if err := zombie.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	calm()
	err = r.leftBy(ctx, fleetSize-1)
	if err == nil {
		err = pause(ctx, r.long(30*time.Second)/2)
	}
	r.fleet.members = append(r.fleet.members, zombie)
	return errors.Join(err, zombie.Signal(syscall.SIGCONT))
}

// leftBy waits until the group has n members and shares all partitions among
// them.
func (r *round) leftBy(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		members, state := r.members(ctx)
		if members == n && state == "Stable" {
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("the group has not come down to %d members: %d, %s: %w", n, members, state, err)
		}
	}
}

// members returns how many members the group has, and its state, by the one of
// two requests that goes with its protocol.
func (r *round) members(ctx context.Context) (int, string) {
	admin := kadm.NewClient(r.client)
	if r.brokerShares {
		groups, _ := admin.DescribeConsumerGroups(ctx, r.name)
		return len(groups[r.name].Members), groups[r.name].State
	}
	groups, _ := admin.DescribeGroups(ctx, r.name)
	return len(groups[r.name].Members), groups[r.name].State
}

// stopOne stops a member in good order, which has to leave nothing to do, and
// starts another one.
func (r *round) stopOne(ctx context.Context) error {
	if err := r.moment(ctx); err != nil {
		return err
	}
	if err := stop(r.fleet.leave(r.rng)); err != nil {
		return err
	}
	return r.join()
}

func killed(k *parts.Kafka) func() error { return func() error { k.Kill(); return nil } }

func (r *round) restartBroker(ctx context.Context, stop func() error) error {
	if err := r.moment(ctx); err != nil {
		return err
	}
	if err := stop(); err != nil {
		return err
	}
	if err := r.moment(ctx); err != nil {
		return err
	}
	return r.kafka.Start()
}

func (r *round) restartStore(ctx context.Context) error {
	if err := r.moment(ctx); err != nil {
		return err
	}
	r.store.Kill()
	if err := r.moment(ctx); err != nil {
		return err
	}
	return r.store.Start()
}

// withFault returns the act that has some of the requests to the store meet a
// fault, for as long as d or, in the short form, some seconds.
func withFault(d time.Duration, rules ...faults3.Rule) func(*round, context.Context) error {
	return func(r *round, ctx context.Context) error {
		for _, rule := range rules {
			rule.Times = faults3.Always
			r.front.Add(rule)
		}
		defer r.front.Clear()
		return r.suffer(ctx, r.long(d))
	}
}

// suffer lets d pass. In one of two cases a member is killed meanwhile, so that
// another one starts under what is wrong.
func (r *round) suffer(ctx context.Context, d time.Duration) error {
	if r.rng.IntN(2) == 0 {
		return pause(ctx, d)
	}
	if err := pause(ctx, d/3); err != nil {
		return err
	}
	r.fleet.leave(r.rng).Kill()
	if err := r.join(); err != nil {
		return err
	}
	return pause(ctx, d-d/3)
}

// fillDisk leaves the store without room. Where it has no disk of its own, the
// proxy answers as a full store does, after it has passed on half of the object.
func (r *round) fillDisk(ctx context.Context) error {
	if r.disk == nil {
		return withFault(time.Minute, faults3.Rule{Op: faults3.Put, Fault: faults3.Full()})(r, ctx)
	}
	if err := r.disk.fill(); err != nil {
		return err
	}
	err := r.suffer(ctx, r.long(time.Minute))
	return errors.Join(err, r.disk.free())
}

// setBack sets the group's offsets to half of what they are, while nobody is
// there to notice.
func (r *round) setBack(ctx context.Context) error {
	if err := r.fleet.stop(); err != nil {
		return err
	}
	at, err := r.group.Committed(ctx, r.name)
	if err != nil {
		return err
	}
	var back kadm.Offsets
	for p := range int32(partitions) {
		back.AddOffset(r.name, p, at[fmt.Sprintf("%s/%d", r.name, p)]/2, -1)
	}
	if err := kadm.NewClient(r.client).CommitAllOffsets(ctx, r.name, back); err != nil {
		return err
	}
	return r.joinAll()
}

// byHand has two more processes write the line of a partition that the group
// has as well: three writers that know nothing of each other, each with batches
// of its own size, and a store that is now faster to one and now to another.
// Both must get as far as Kafka was when they began.
func (r *round) byHand(ctx context.Context) error {
	r.front.Add(faults3.Rule{Op: faults3.Put, Every: 3, Times: faults3.Always, Fault: faults3.Slow(30 * time.Millisecond)})
	r.front.Add(faults3.Rule{Op: faults3.Put, Every: 2, Times: faults3.Always, Fault: faults3.Slow(10 * time.Millisecond)})
	defer r.front.Clear()
	ends, err := r.ends(ctx)
	if err != nil {
		return err
	}
	place := fmt.Sprintf("%s/%d", r.name, r.rng.IntN(partitions))
	both := map[string]*parts.Process{} // by group
	defer func() {
		for _, p := range both {
			p.Kill()
		}
	}()
	for i, rows := range []string{"3", "100"} {
		group := fmt.Sprintf("%s-by-hand-%d", r.name, i)
		if both[group], err = r.fleet.start("by-hand", "--assign", place, "--group", group, "--batch.rows", rows); err != nil {
			return err
		}
	}
	if err := pause(ctx, 2*r.long(30*time.Second)); err != nil {
		return err
	}
	for group, p := range both {
		if err := r.comeTo(ctx, p, group, place, ends[number(strings.TrimPrefix(place, r.name+"/"))]); err != nil {
			return err
		}
	}
	return stop(slices.Collect(maps.Values(both))...)
}

// comeTo waits until a process that works by hand has committed up to end, or
// for as long as a recovery may take.
func (r *round) comeTo(ctx context.Context, p *parts.Process, group, place string, end int64) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		at, err := oracle.Group{Client: r.client, Name: group}.Committed(ctx, r.name)
		if err == nil && at[place] >= end {
			return nil
		}
		if err := r.fleet.sound(p); err != nil {
			return err
		}
		if pause(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("%s has come to offset %d of %s, want %d at least: %w", filepath.Base(p.Log), at[place], place, end, cmp.Or(err, ctx.Err()))
		}
	}
}
