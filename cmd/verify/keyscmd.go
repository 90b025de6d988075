package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/internal/reach"
	"github.com/ledgerlake/ledgerlake/proof"
)

const keysHelp = `ledgerlake-verify keys prints which keys signed what in an archive, and how each of them came to be good.

  ledgerlake-verify keys [flags] TARGET --key VKEY

It reads all anchors, catalogs and key notes, and checks their signatures alone; 'archive' checks what they say.

Exit codes: 0 all signatures are by good keys · 1 one in the name of a good key is not its signature · 2 cannot run ·
3 some are by keys that are not known, or there are none

Flags:
  --key VKEY|FILE
        A public key that you trust, or a file with one on each line. May be given more than once.
  --json
        Print the answer as a JSON array.

`

func keyUses(ctx context.Context, c call) (int, error) {
	f := reach.NewFlags("keys")
	var ring sign.Ring
	asJSON := f.Bool("json", false, "")
	f.Func("key", "", func(v string) error { return reach.AddKey(&ring, v) })
	rest, err := f.Parse(c.args)
	if err != nil {
		return showHelp(c, keysHelp, err)
	}
	if len(rest) != 1 {
		return exitCannotRun, fmt.Errorf("%w: want one bucket URL or folder, got %d; --help says more", errUsage, len(rest))
	}
	if err := f.Load(c.environ); err != nil {
		return exitCannotRun, err
	}
	src, closeSource, err := f.Open(ctx, rest[0])
	if err != nil {
		return exitCannotRun, err
	}
	defer closeSource()
	uses, err := proof.KeyUses(ctx, src, proof.Options{Keys: &ring})
	if err != nil {
		return outcome(c, err)
	}
	if *asJSON {
		err = writeJSON(c.stdout, uses)
	} else {
		err = writeKeyUses(c.stdout, uses)
	}
	return keysExit(uses), err
}

func keysExit(uses []*proof.KeyUse) (code int) {
	code = 3
	signed, unknown := false, false
	for _, u := range uses {
		for _, s := range u.Signed {
			if s.Forged > 0 {
				return 1
			}
			signed = true
			unknown = unknown || !u.Good
		}
	}
	if signed && !unknown {
		code = 0
	}
	return code
}

func writeKeyUses(w io.Writer, uses []*proof.KeyUse) error {
	p := &printer{w: w}
	if len(uses) == 0 {
		p.line("no key, and no signature")
	}
	for _, u := range uses {
		p.keyUse(u)
	}
	return p.err
}

func (p *printer) keyUse(u *proof.KeyUse) {
	p.line("%s+%s", proof.Printable(u.Name), u.Hash)
	if u.Good {
		p.line("  good for %s: %s", strings.Join(u.Roles, ", "), proof.Printable(u.Source))
		p.line("  %s", u.VKey)
	} else {
		p.line("  NOT GOOD: %s", u.Source)
	}
	if u.NotAfter != nil {
		p.line("  for documents up to %s", u.NotAfter.UTC().Format(archive.TimeLayout))
	}
	if len(u.Signed) == 0 {
		p.line("  signed nothing")
	}
	for _, s := range u.Signed {
		what := fmt.Sprintf("%ss %d to %d of %s", s.Folder, s.First, s.Last, proof.Printable(s.Line))
		if s.Folder == "key" {
			what = "key notes"
		}
		p.line("  signed %s: %d", what, s.Count)
		if s.Forged > 0 {
			p.line("  FORGED in its name: %d", s.Forged)
		}
	}
}
