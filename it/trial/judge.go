//go:build it

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/it/oracle"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// orderAll orders all erasures, by four people at once, with a hold that is set
// and lifted, and two tenants that leave.
func (t *trial) orderAll(ctx context.Context) error {
	rng := rand.New(rand.NewPCG(t.seed, 2))
	lines, err := archive.Lines(ctx, t.store)
	if err != nil {
		return err
	}
	topicID := ""
	for _, l := range lines {
		if l.Topic == topic {
			topicID = l.TopicID
		}
	}
	t.offboards = []string{t.deeds.all[0].tenant}
	half := t.deeds.all[len(t.deeds.all)/2:]
	other := slices.IndexFunc(half, func(d *deed) bool { return !t.leaves(d.tenant) })
	if other < 0 {
		return errors.New("all records are of one tenant")
	}
	held := half[other] // of a tenant that is held when it leaves, rows stay and are erased
	if err := t.hold(ctx, "hold", held.tenant); err != nil {
		return err
	}
	for n := range t.erasures {
		t.orders = append(t.orders, t.order(rng, n, topicID))
	}
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for worker := range errs {
		wg.Go(func() {
			for n := worker; n < len(t.orders) && ctx.Err() == nil && errs[worker] == nil; n += len(errs) {
				t.orders[n].at = time.Now()
				errs[worker] = t.erase(ctx, t.orders[n], n)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	t.say("%d erasures are ordered", len(t.orders))
	if err := t.hold(ctx, "release", held.tenant); err != nil {
		return err
	}
	t.offboarded = time.Now()
	for _, tenant := range t.offboards {
		if _, _, err := t.compact(ctx, append(append([]string{"offboard"}, t.where()...), "--tenant", tenant, "--reason", "trial", "--yes")...); err != nil {
			return err
		}
	}
	return nil
}

// anchorLag is within what a record is archived and anchored: a tenant leaves up
// to the newest anchor.
const anchorLag = 15 * time.Second

// hold sets or lifts the hold of a tenant.
func (t *trial) hold(ctx context.Context, verb, tenant string) error {
	_, _, err := t.compact(ctx, append(append([]string{verb}, t.where()...), "--tenant", tenant, "--all", "--reason", "trial")...)
	return err
}

// readers read, until ctx is done, snapshot after snapshot: no row twice, none
// missing between two, and the tree of each log the one that it was.
func (t *trial) readers(ctx context.Context) error {
	for n := 0; ; n++ {
		if ctx.Err() != nil {
			t.say("a reader read the archive %d times", n)
			return nil
		}
		next, first := map[logName]int64{}, map[logName]int64{}
		err := t.read(ctx, func(s *seen) error {
			want, ok := next[s.name]
			if !ok {
				want, first[s.name] = s.seq, s.seq // a cut may have taken what was before
			}
			if s.seq != want {
				return fmt.Errorf("%w: a reader saw seq %d of %v behind %d", errWrong, s.seq, s.name, want-1)
			}
			next[s.name] = s.seq + 1
			if old := t.evidence.hashes[s.name]; s.seq < int64(len(old)) && old[s.seq] != s.hash {
				return fmt.Errorf("%w: a reader saw another row_hash at seq %d of %v", errWrong, s.seq, s.name)
			}
			return nil
		})
		if ctx.Err() != nil {
			continue
		}
		if err != nil {
			return err
		}
		for name, hashes := range t.evidence.hashes {
			if next[name] < int64(len(hashes)) || first[name] > 0 && !t.leaves(name.tenant) {
				return fmt.Errorf("%w: a reader saw %v from %d to %d, of %d rows and more", errWrong, name, first[name], next[name], len(hashes))
			}
		}
	}
}

func (t *trial) leaves(tenant string) bool { return slices.Contains(t.offboards, tenant) }

// rest waits until every request is closed, then stops everything cleanly.
func (t *trial) rest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	last := ""
	for {
		code, out, err := t.compact(ctx, "erasures", "--json", "--bucket", t.url(), "--key", t.vkeys["anchors"], "--purge-after", "10s", "--late-window", "20s")
		if err != nil && code != 4 {
			return err
		}
		open, total, err := openOf(out)
		if err != nil {
			return err
		}
		if open == 0 && total >= len(t.orders) {
			break
		}
		if text := fmt.Sprintf("%d of %d requests are open", open, total); text != last {
			t.say("%s", text)
			last = text
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d requests are open after %v", open, total, patience)
		case <-time.After(5 * time.Second):
		}
	}
	for _, p := range append(t.compacts, t.ingests...) {
		if code, err := p.Stop(time.Minute); err != nil || code != 0 {
			return fmt.Errorf("%s: exit %d after SIGTERM: %w", p.Log, code, err)
		}
	}
	t.compacts, t.ingests = nil, nil
	return nil
}

// openOf counts requests that are not closed, cancelled ones aside.
func openOf(out string) (open, total int, err error) {
	var reply struct {
		Erasures []struct{ State string }
	}
	if err := json.Unmarshal([]byte(out), &reply); err != nil {
		return 0, 0, fmt.Errorf("erasures --json: %w: %.200s", err, out)
	}
	for _, e := range reply.Erasures {
		if e.State != "closed" && e.State != "cancelled" {
			open++
		}
	}
	return open, len(reply.Erasures), nil
}

// verify asks verify, which also holds the archive against the early anchors.
func (t *trial) verify(context.Context) error {
	args := []string{"--key", t.vkeys["anchors"]}
	for _, file := range t.evidence.anchors {
		args = append(args, "--expect", file)
	}
	v, err := oracle.Verify(t.url(), parts.Credentials(), args...)
	if err != nil {
		return err
	}
	t.say("verify: exit %d\n%s", v.Code, v.Stdout)
	if v.Code != oracle.Proved {
		return fmt.Errorf("%w: verify: exit %d: %s", errWrong, v.Code, v.Stderr)
	}
	return nil
}

// after holds each row against what was sent and ordered, and against the hashes
// and proofs of before.
func (t *trial) after(ctx context.Context) error {
	at := make(map[place]*deed, len(t.deeds.all))
	for _, d := range t.deeds.all {
		at[place{d.partition, d.offset}] = d
	}
	hashes := map[logName][]chain.Hash{}
	var rows, erased int64
	err := t.read(ctx, func(s *seen) error {
		old := t.evidence.hashes[s.name]
		if hashes[s.name] == nil {
			hashes[s.name] = append([]chain.Hash{}, old[:min(s.seq, int64(len(old)))]...)
		}
		if int64(len(hashes[s.name])) == s.seq {
			hashes[s.name] = append(hashes[s.name], s.hash)
		}
		if s.seq < int64(len(old)) && old[s.seq] != s.hash {
			return fmt.Errorf("%w: row_hash of seq %d of %v has changed", errWrong, s.seq, s.name)
		}
		rows++
		d := at[s.at]
		if d == nil {
			return nil // of the control topic, or made
		}
		must, may := t.ordered(d)
		switch {
		case s.state == chain.Live && must != nil:
			return fmt.Errorf("%w: %s/%d is as it was sent, and %s %s by %q was ordered", errWrong, s.name.tenant, s.seq, must.id, must.kind, must.args)
		case s.state != chain.Live && !may:
			return fmt.Errorf("%w: %s/%d (%s) is %v, and nobody ordered that", errWrong, s.name.tenant, s.seq, s.kind, s.state)
		case s.state == chain.Live && s.mark != d.markText():
			return fmt.Errorf("%w: %s/%d has mark %q, not %q", errWrong, s.name.tenant, s.seq, s.mark, d.markText())
		}
		if s.state != chain.Live {
			erased++
		}
		return nil
	})
	if err != nil {
		return err
	}
	for name, h := range t.evidence.heads {
		var tree chain.Tree
		all := hashes[name]
		if int64(len(all)) < h.Size && t.leaves(name.tenant) {
			continue
		}
		for _, sum := range all[:h.Size] {
			tree.Append(sum)
		}
		if tree.Root() != h.Root {
			return fmt.Errorf("%w: the first %d rows of %v do not give the root that was signed before", errWrong, h.Size, name)
		}
	}
	for record, file := range t.evidence.proofs {
		v, err := oracle.Verify(file, nil, "proof", "--key", t.vkeys["anchors"])
		if err != nil {
			return err
		}
		if v.Code != oracle.Proved {
			return fmt.Errorf("%w: the proof of %s that was made before: exit %d: %s%s", errWrong, record, v.Code, v.Stdout, v.Stderr)
		}
	}
	t.say("%d rows, of which something is erased of %d; %d logs have the roots that were signed before; %d proofs of before check", rows, erased, len(t.evidence.heads), len(t.evidence.proofs))
	return nil
}

// ordered returns the order by which a row must not be as it was sent, if there
// is one, and whether something may be gone.
func (t *trial) ordered(d *deed) (must *order, may bool) {
	for _, o := range t.orders {
		if !o.means(d) {
			continue
		}
		may = true // also where the order was taken back too late
		if !o.cancelled && d.at.Before(o.at.Add(-5*time.Second)) {
			must = o
		}
	}
	return must, may || d.broken
}
