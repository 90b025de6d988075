package proof

import (
	"context"
	"errors"
	"fmt"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/redact"
)

// gate takes from a row what redactions order that are not carried out yet, as
// if they were, and returns the ids of those that took something: what was asked
// to be erased is shown to nobody, signed or anchored or not. The row is changed.
func (p *Prover) gate(ctx context.Context, row *chain.Row) (ids []string, err error) {
	if p.governs == nil {
		if p.governs, err = p.readGovernance(ctx); err != nil {
			return nil, err
		}
	}
	for _, r := range p.governs.Gating(row) {
		changed, err := redact.Erase(p.hasher, row, r.Redaction.Sentinel(r.ID))
		if err != nil {
			return nil, tampered("seq %d: %v", row.Seq.N, err)
		}
		if changed {
			ids = append(ids, r.ID)
		}
	}
	return ids, nil
}

// readGovernance reads the control logs. Where they cannot be read nothing is
// shown, for what is to be hidden is not known.
func (p *Prover) readGovernance(ctx context.Context) (*control.Governance, error) {
	g, err := control.Read(ctx, p.src, control.ReadOptions{Root: p.root, Topic: p.o.ControlTopic})
	switch {
	case err == nil:
		return g, nil
	case errors.Is(err, archive.ErrCatalog), errors.Is(err, archive.ErrBreaks), errors.Is(err, control.ErrAnchors), errors.Is(err, control.ErrObject):
		return nil, tampered("which erasures were ordered cannot be read, so that no row is shown: %v", err)
	}
	return nil, fmt.Errorf("which erasures were ordered cannot be read: %w", err)
}
