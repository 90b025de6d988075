//go:build it

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/internal/workload"
	"github.com/ledgerlake/ledgerlake/it/oracle"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// evidence is what was true, and proved, before anything was compacted.
type evidence struct {
	heads   map[logName]archive.AnchorHead
	hashes  map[logName][]chain.Hash
	anchors []string          // files of the newest anchors
	proofs  map[string]string // files of proofs, by record id
}

// A logName names a log.
type logName struct {
	line   archive.Line
	tenant string
}

// A seen is what the archive says of one row.
type seen struct {
	name  logName
	seq   int64
	hash  chain.Hash
	state chain.State
	kind  string
	mark  string // of the record, "" where it is gone
	at    place
}

// A place is an offset of the trial's topic.
type place struct {
	partition int32
	offset    int64
}

// firstRecords sends two rows of five before there is any compaction.
func (t *trial) firstRecords(ctx context.Context) error {
	t.deeds = &deeds{names: map[string]string{}}
	for range 2 {
		if err := t.startIngest(); err != nil {
			return err
		}
	}
	if err := t.produce(ctx, t.generator(t.seed), t.rows*2/5, 0); err != nil {
		return err
	}
	if err := t.drained(ctx); err != nil {
		return err
	}
	return t.anchored(ctx)
}

// generator returns one whose records were made before any order.
func (t *trial) generator(seed uint64) *workload.Generator {
	g := workload.New(seed, t.tenants)
	g.Broken, g.Repeats, g.Conflicts = 0.005, 0.01, 0.001
	g.Start, g.Step = t.begin.Add(-24*time.Hour), time.Millisecond
	return g
}

// anchored waits until the newest anchor of each line covers its newest segment.
func (t *trial) anchored(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		lines, err := archive.Lines(ctx, t.store)
		if err != nil {
			return err
		}
		behind := len(lines) == 0
		for _, l := range lines {
			a, _, err := t.newestAnchor(ctx, l)
			if err != nil {
				return err
			}
			snap, err := archive.ReadSnapshot(ctx, t.store, l, nil)
			if err != nil {
				return err
			}
			next := int64(len(snap.Segments))
			if snap.Catalog != nil {
				next += snap.Catalog.Watermark
			}
			behind = behind || a == nil || a.Ordinal+1 < next
		}
		if !behind {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not everything is anchored: %w", ctx.Err())
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (t *trial) newestAnchor(ctx context.Context, l archive.Line) (*archive.Anchor, []byte, error) {
	n, err := archive.NewestAnchor(ctx, t.store, l, -1)
	if n < 0 || err != nil {
		return nil, nil, err
	}
	body, err := t.store.Get(ctx, archive.AnchorKey(l, n))
	if err != nil {
		return nil, nil, err
	}
	parsed, err := sign.Parse(body)
	if err != nil {
		return nil, nil, err
	}
	a, err := archive.DecodeAnchor(parsed.Text)
	return a, body, err
}

// before keeps hashes of rows, the newest anchors, and proofs of some records.
func (t *trial) before(ctx context.Context) error {
	e := &evidence{heads: map[logName]archive.AnchorHead{}, hashes: map[logName][]chain.Hash{}, proofs: map[string]string{}}
	t.evidence = e
	lines, err := archive.Lines(ctx, t.store)
	if err != nil {
		return err
	}
	for i, l := range lines {
		a, body, err := t.newestAnchor(ctx, l)
		if err != nil {
			return err
		}
		name := filepath.Join(t.dir, fmt.Sprintf("anchor-%d.note", i))
		if err := os.WriteFile(name, body, 0o644); err != nil {
			return err
		}
		e.anchors = append(e.anchors, name)
		for number := a.Number - a.Number%archive.FullEvery; number <= a.Number; number++ {
			body, err := t.store.Get(ctx, archive.AnchorKey(l, number))
			if err != nil {
				return err
			}
			parsed, err := sign.Parse(body)
			if err != nil {
				return err
			}
			one, err := archive.DecodeAnchor(parsed.Text)
			if err != nil {
				return err
			}
			for _, h := range one.Heads {
				e.heads[logName{l, h.Tenant}] = h
			}
		}
	}
	err = t.read(ctx, func(s *seen) error {
		if int64(len(e.hashes[s.name])) != s.seq {
			return fmt.Errorf("%w: %v has seq %d behind %d rows", errWrong, s.name, s.seq, len(e.hashes[s.name]))
		}
		e.hashes[s.name] = append(e.hashes[s.name], s.hash)
		return nil
	})
	if err != nil {
		return err
	}
	return t.prove()
}

// prove has verify prove some records.
func (t *trial) prove() error {
	for i := range 24 {
		d := t.deeds.all[(len(t.deeds.all)-1)*i/24]
		if d.broken || d.record == "" {
			continue
		}
		file := filepath.Join(t.dir, d.record+".json")
		v, err := oracle.Verify(t.url(), parts.Credentials(), "prove", d.record, "--tenant", d.tenant, "--key", t.vkeys["anchors"], "-o", file)
		if err != nil {
			return err
		}
		if v.Code != oracle.Proved {
			return fmt.Errorf("prove %s: exit %d: %s%s", d.record, v.Code, v.Stdout, v.Stderr)
		}
		t.evidence.proofs[d.record] = file
	}
	return nil
}

// read reads all rows of the archive, log by log in the order of their seqs as
// far as data files and segments have it so.
func (t *trial) read(ctx context.Context, each func(*seen) error) error {
	lines, err := archive.Lines(ctx, t.store)
	if err != nil {
		return err
	}
	for _, l := range lines {
		snap, err := archive.ReadSnapshot(ctx, t.store, l, nil)
		if err != nil {
			return err
		}
		for i := range snap.Files {
			body, err := t.store.Get(ctx, snap.Files[i].Key)
			if err != nil {
				return err
			}
			f, _, err := archive.OpenDataFile(body, &snap.Files[i])
			if err != nil {
				return err
			}
			for row, err := range f.Rows() {
				if err = errors.Join(err, each(see(l, row))); err != nil {
					return err
				}
			}
		}
		for _, o := range snap.Segments {
			body, err := t.store.Get(ctx, o.Key)
			if err != nil {
				return err
			}
			seg, err := archive.ReadSegment(body, nil)
			if err != nil {
				return err
			}
			for i := range seg.Rows {
				if err := each(see(l, &seg.Rows[i])); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func see(l archive.Line, row *chain.Row) *seen {
	s := &seen{name: logName{l, row.TenantID.S}, seq: row.Seq.N, hash: row.RowHash, kind: row.Kind.S, at: place{-1, -1}}
	s.state, _ = chain.StateOf(row) // a wrong one is verify's to find
	if l.Topic == topic && row.KafkaOffset.Valid {
		s.at = place{l.Partition, row.KafkaOffset.N}
	}
	for _, slot := range [][]byte{row.Slots[audit.SlotExt], row.Slots[audit.SlotContext]} {
		if i := strings.Index(string(slot), markPrefix); i >= 0 && s.mark == "" {
			s.mark = string(slot[i:min(i+len(markPrefix)+24, len(slot))])
		}
	}
	return s
}
