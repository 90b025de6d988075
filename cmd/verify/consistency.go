package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/ledgerlake/ledgerlake/proof"
)

const consistencyHelp = `ledgerlake-verify consistency shows that one tree of a log continues another: that nothing of the older one was changed, taken away,
or put between.

  ledgerlake-verify consistency [flags] OLD NEW TARGET           the proof comes from the archive
  ledgerlake-verify consistency [flags] OLD newest TARGET        against the newest anchor that the archive has
  ledgerlake-verify consistency [flags] OLD NEW --tiles DIR      the proof comes from tiles
  ledgerlake-verify consistency [flags] OLD NEW --proof FILE     the proof was made before, by -o

OLD and NEW are files: a checkpoint, an anchor, or the proof of a row.

Exit codes, the first that holds:
  2  cannot run
  1  one does not continue the other, or the archive does not have both
  3  proved, but one of them is not signed by a given key
  0  proved

Flags:
  --key VKEY|FILE
        A public key that anchors are signed by, or a file with one on each line. May be given more than once.
  --tenant NAME
        Whose log of an anchor is meant.
  -o FILE
        Write the proof to a file as well.
  --json
        Print the answer as one JSON object.

`

// A consistencyCall is what 'consistency' is asked for.
type consistencyCall struct {
	*checkCall
	tenant string
	tiles  string
	proof  string
	out    string
}

func newConsistencyCall() *consistencyCall {
	s := &consistencyCall{checkCall: newCheckCall("consistency")}
	s.StringVar(&s.tenant, "tenant", "", "")
	s.StringVar(&s.tiles, "tiles", "", "")
	s.StringVar(&s.proof, "proof", "", "")
	s.StringVar(&s.out, "o", "", "")
	return s
}

func consistency(ctx context.Context, c call) (int, error) {
	s := newConsistencyCall()
	rest, err := s.Parse(c.args)
	if err != nil {
		return showHelp(c, consistencyHelp, err)
	}
	sources := 0
	for _, given := range []bool{len(rest) == 3, s.tiles != "", s.proof != ""} {
		if given {
			sources++
		}
	}
	if len(rest) < 2 || len(rest) > 3 || sources != 1 {
		return exitCannotRun, fmt.Errorf("%w: want OLD and NEW, and one of a bucket URL or folder, --tiles and --proof; --help says more", errUsage)
	}
	older, newer, p, err := s.heads(ctx, c, rest)
	if err != nil {
		return outcome(c, err)
	}
	if s.out != "" {
		text, err := p.Encode()
		if err == nil {
			err = writeOut(c, s.out, text)
		}
		if err != nil {
			return exitCannotRun, err
		}
	}
	return s.print(c, proof.CheckConsistency(older, newer, p, s.o))
}

// heads reads both trees, and reads or makes the proof.
func (s *consistencyCall) heads(ctx context.Context, c call, rest []string) (older, newer *proof.TreeHead, p *proof.Consistency, err error) {
	if older, err = readHead(rest[0], s.tenant); err != nil {
		return nil, nil, nil, err
	}
	if len(rest) == 3 {
		return s.fromArchive(ctx, c, older, rest[1], rest[2])
	}
	if newer, err = readHead(rest[1], s.tenant); err != nil {
		return nil, nil, nil, err
	}
	if s.tiles != "" {
		t, err := proof.OpenTiles(tileFolder(s.tiles))
		if err == nil && t == nil {
			err = fmt.Errorf("%s has no tiles: there is no checkpoint in it", s.tiles)
		}
		if err != nil {
			return nil, nil, nil, err
		}
		p, err = t.ProveConsistency(older, newer)
		return older, newer, p, err
	}
	text, err := os.ReadFile(s.proof)
	if err != nil {
		return nil, nil, nil, err
	}
	if p, err = proof.DecodeConsistency(text); err != nil {
		err = errors.Join(proof.ErrTampered, fmt.Errorf("%s: %w", s.proof, err))
	}
	return older, newer, p, err
}

func (s *consistencyCall) fromArchive(ctx context.Context, c call, older *proof.TreeHead, name, target string) (_, newer *proof.TreeHead, p *proof.Consistency, err error) {
	if err := s.Load(c.environ); err != nil {
		return nil, nil, nil, err
	}
	src, closeSource, err := s.Open(ctx, target)
	if err != nil {
		return nil, nil, nil, err
	}
	defer closeSource()
	prover, err := proof.NewProver(ctx, src, proof.ProveOptions{Keys: &s.keys})
	if err != nil {
		return nil, nil, nil, err
	}
	if name == "newest" {
		newer, err = prover.NewestHead(ctx, older.Origin)
	} else {
		newer, err = readHead(name, s.tenant)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	p, err = prover.ProveConsistency(ctx, older, newer)
	return older, newer, p, err
}

func readHead(name, tenant string) (*proof.TreeHead, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	h, err := proof.ReadTreeHead(text, tenant)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return h, nil
}

func (s *consistencyCall) print(c call, r *proof.Checked) (int, error) {
	if s.json {
		return r.Exit, writeJSON(c.stdout, r)
	}
	p := &printer{w: c.stdout}
	p.list("Proved (tier "+r.Tier+")", r.Proved, 0)
	p.list("Not proved by this", r.NotProved, 0)
	switch r.Exit {
	case 0:
		p.line("\nOK: one continues the other, and both are signed")
	case 3:
		p.line("\nINCOMPLETE: one continues the other; who vouches for them is not known")
	default:
		p.line("FAULT: %s", proof.Printable(r.Fault))
	}
	return r.Exit, p.err
}
