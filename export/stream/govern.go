package stream

import (
	"context"
	"fmt"
	"sync"

	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/redact"
)

// A governor knows which erasures are ordered. Where that cannot be read nothing
// is delivered: what is to be hidden is not known.
type governor struct {
	e      *Engine
	reader *control.Reader

	reading sync.Mutex // one reads
	mu      sync.Mutex
	now     *control.Governance
}

// staleAfter is for how many times GovernEvery what is known may be gone by while
// it cannot be read again.
const staleAfter = 6

// run reads again and again.
func (g *governor) run(ctx context.Context) {
	failed := 0
	for ctx.Err() == nil {
		err := g.refresh(ctx)
		if failed++; err == nil {
			failed = 0
		}
		if err != nil && ctx.Err() == nil {
			g.e.warn("", "which erasures were ordered cannot be read; trying again", err)
		}
		if failed >= staleAfter {
			g.set(nil)
		}
		_ = pause(ctx, g.e.s.GovernEvery)
	}
}

// refresh reads what governs now.
func (g *governor) refresh(ctx context.Context) error {
	g.reading.Lock()
	defer g.reading.Unlock()
	if g.reader == nil {
		g.reader = control.NewReader(g.e.s.Archive, control.ReadOptions{Root: g.e.s.Root, Keys: g.e.s.Keys, LogKeys: g.e.s.LogKeys, Topic: g.e.s.ControlTopic})
	}
	now, err := g.reader.Read(ctx)
	if err != nil {
		return err
	}
	g.set(now)
	return nil
}

func (g *governor) set(now *control.Governance) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now = now
}

// current returns what governs, and reads it where it is not known.
func (g *governor) current(ctx context.Context) (*control.Governance, error) {
	g.mu.Lock()
	now := g.now
	g.mu.Unlock()
	if now != nil {
		return now, nil
	}
	if err := g.refresh(ctx); err != nil {
		return nil, fmt.Errorf("which erasures were ordered cannot be read, so that no row is shown: %w", err)
	}
	return g.current(ctx)
}

// hide takes from a row what orders say that go, carried out or not: what was
// asked to be erased is shown to nobody. It reports whether the row changed.
func hide(g *control.Governance, h *chain.Hasher, row *chain.Row) (changed bool, err error) {
	for _, r := range g.Gating(row) {
		some, err := redact.Erase(h, row, r.Redaction.Sentinel(r.ID))
		if err != nil {
			return false, err
		}
		changed = changed || some
	}
	return changed, nil
}
