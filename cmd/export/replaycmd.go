package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/export/replay"
	"github.com/ledgerlake/ledgerlake/internal/reach"
)

const replayHelp = program + ` replay writes a bundle from which a turn or a decision can be run again, as one JSON object.

  ` + program + ` replay [flags] --tenant NAME --turn ID TARGET
  ` + program + ` replay [flags] --tenant NAME --decision ID TARGET

  ` + program + ` replay --tenant acme --turn t-42 --output t-42.replay.json ./data/audit

It has all records of the turn, and of the turns of its subagents, in order; and step by step which model was asked for and
which one ran, how it was come by, which tools ran, and what went to a model and came from it. Each answer is marked:
present, not-retained (prompts are kept only where that was asked for), or erased. docs/replay.md describes it.

The exit code is 3 where something is missing that a run needs: the bundle is written all the same, and "lacks" says what.

Flags:
  --tenant NAME
        Whose turn it is.
  --turn ID, --decision ID
        turnId, or traceId; or decisionId.
  --output FILE
        Where to write; - is stdout. Default: -. A file is there whole or not at all.
` + readHelp

func replayTurn(ctx context.Context, c call) (int, error) {
	r := newReading("replay")
	var turn, decision, out string
	r.StringVar(&turn, "turn", "", "")
	r.StringVar(&decision, "decision", "", "")
	r.StringVar(&out, "output", "-", "")
	rest, err := r.Parse(c.args)
	switch {
	case err != nil:
		return showHelp(c, replayHelp, err)
	case r.tenant == "" || (turn == "") == (decision == ""):
		return exitCannotRun, fmt.Errorf("%w: want --tenant, and --turn or --decision; --help says more", errUsage)
	}
	if err := r.open(ctx, c, rest); err != nil {
		return outcome(c, err)
	}
	defer r.close()
	branches, fault := r.archive.Tree(ctx, r.tenant, turn+decision)
	if fault != nil && !errors.Is(fault, export.ErrTampered) {
		return exitCannotRun, fault
	}
	code, err := outcome(c, fault)
	if err != nil {
		return code, err
	}
	b, err := replay.New(r.archive.Root().ArchiveID, r.tenant, turn+decision, branches)
	if errors.Is(err, audit.ErrRestore) || errors.Is(err, chain.ErrResidual) {
		return exitTampered, err
	}
	if err != nil {
		return exitCannotRun, err
	}
	if decision != "" {
		b.NeedDecision()
	}
	if fault != nil {
		b.Lack("what else the archive may have of it cannot be read: it is damaged")
	}
	if err := writeBundle(c, out, b); err != nil {
		return exitCannotRun, err
	}
	if code == exitDone && !b.Complete {
		code = exitIncomplete
		_, err = fmt.Fprintf(c.stderr, "%s: incomplete: %s\n", program, b.Lacks[0])
	}
	return code, errors.Join(err, r.tellCost(c))
}

func writeBundle(c call, name string, b *replay.Bundle) error {
	text, err := b.Encode()
	if err != nil {
		return err
	}
	if name == "-" {
		_, err = c.stdout.Write(text)
		return err
	}
	return reach.WriteFile(name, text)
}
