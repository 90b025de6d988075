package main

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/ledgerlake/ledgerlake/internal/reach"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/offline"
)

const packHelp = `ledgerlake-verify pack writes a case as one zip that explains and proves itself: rows, proofs, anchors, keys, a text for a
person, and a checker in Python.

  ledgerlake-verify pack [flags] TARGET --turn ID -o FILE.zip
  ledgerlake-verify pack [flags] TARGET --session ID -o FILE.zip
  ledgerlake-verify pack [flags] TARGET --tenant NAME --from TIME --to TIME -o FILE.zip

It shows rows of one tenant, and only those that an anchor covers. To find a turn or a session it looks at the end of every object of the
log; --from and --to make that less. docs/proofs.md describes the files.

Exit codes: 0 written · 1 what is stored does not fit together · 2 cannot run · 3 no such rows, or written, and not all of it
is vouched for by a key that was given. Without --key nothing is said of signatures.

Flags:
  --turn ID, --session ID
        The rows of this turn, or session.
  --from TIME, --to TIME
        Rows that were archived from that moment on, and before this one (RFC 3339; a date is its first moment, UTC).
  --tenant NAME, --topic NAME, --partition N
        Look only there.
  -o FILE
        Where to write; - is stdout.
  --withhold SLOT,..., --disclose SLOT,..., --withhold-user
        As for prove: what of each row is shown by its commitment alone.
  --key VKEY|FILE
        A public key that anchors are signed by, or a file with one on each line. May be given more than once.
  --with-anchor
        Put whole anchors into the pack, which name the other tenants of the partition.
` + reach.LogKeysHelp + controlTopicHelp + `
`

func pack(ctx context.Context, c call) (int, error) {
	s := newSeeker("pack")
	s.hides()
	var logs reach.LogKeys
	logs.Define(s.Flags)
	var w proof.PackWant
	s.StringVar(&w.TurnID, "turn", "", "")
	s.StringVar(&w.SessionID, "session", "", "")
	s.Func("from", "", moment(&w.From))
	s.Func("to", "", moment(&w.To))
	rest, err := s.Parse(c.args)
	if err != nil {
		return showHelp(c, packHelp, err)
	}
	w.Want = s.want
	switch {
	case len(rest) != 1:
		return exitCannotRun, fmt.Errorf("%w: want one bucket URL or folder, got %d; --help says more", errUsage, len(rest))
	case w.TurnID == "" && w.SessionID == "" && w.Tenant == "":
		return exitCannotRun, fmt.Errorf("%w: want --turn, --session or --tenant; --help says more", errUsage)
	case s.out == "-" && reach.IsTerminal(c.stdout):
		return exitCannotRun, fmt.Errorf("%w: a zip is nothing for a terminal: give -o FILE", errUsage)
	}
	d, err := s.disclosure()
	if err != nil {
		return exitCannotRun, err
	}
	programs, err := checkers()
	if err != nil {
		return exitCannotRun, err
	}
	p, closeSource, err := s.prover(ctx, rest[0], c)
	if err != nil {
		return outcome(c, err)
	}
	defer closeSource()
	made, err := p.Pack(ctx, w, d, programs)
	if err != nil {
		return outcome(c, err)
	}
	body, err := made.Zip()
	if err != nil {
		return exitCannotRun, err
	}
	logKeys, err := logs.Keys()
	if err != nil {
		return exitCannotRun, err
	}
	code, whose, err := standing(proof.CheckPack(body, proof.CheckOptions{Keys: &s.keys, LogKeys: logKeys}), s.keys.Empty())
	if err != nil {
		return outcome(c, err)
	}
	if err := writeOut(c, s.out, body); err != nil {
		return exitCannotRun, err
	}
	if made.Gated > 0 {
		if _, err := fmt.Fprintf(c.stderr, "%s: %s shown without what is to be erased from them: redactions were ordered and are not carried out yet\n", program, proof.Count(made.Gated, "row")); err != nil {
			return exitCannotRun, err
		}
	}
	_, err = fmt.Fprintf(c.stderr, "%s in %s; %s; %s\n", proof.Count(made.Rows, "row"), proof.Count(made.Ranges, "range"), whose, cost(p))
	return code, err
}

// checkers returns the programs that go into a pack.
func checkers() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range offline.PackChecker {
		body, err := fs.ReadFile(offline.Programs, name)
		if err != nil {
			return nil, err
		}
		files[name] = body
	}
	return files, nil
}

// moment reads a time, or a date.
func moment(into *time.Time) func(string) error {
	return func(v string) (err error) { *into, err = reach.ParseTime(v); return err }
}
