package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/internal/reach"
	"github.com/ledgerlake/ledgerlake/proof"
)

const checkHelp = `ledgerlake-verify proof checks the proof of a row, or an evidence pack, without the archive.

  ledgerlake-verify proof [flags] FILE --key VKEY

FILE is what 'prove' or 'pack' wrote: JSON, a zip, or a folder that a zip was unpacked to. The root of a tree counts for as much as the
signature over it: without a key that you have from elsewhere nothing is proved but that the file fits together (T0).

Exit codes, the first that holds:
  2  cannot run: the file cannot be read
  1  it does not fit together: it was changed, or is damaged
  3  no signature by a given key, or the key of a keyed log was not given
  4  proved, with something to look at: a row that was erased with its header
  0  proved

Flags:
  --key VKEY|FILE
        A public key that anchors are signed by, or a file with one on each line. May be given more than once.
  --witness VKEY
        The key of a witness (C2SP cosignature). May be given more than once.
  --json
        Print the answer as one JSON object.
` + reach.LogKeysHelp + `
`

// A checkCall is what 'proof' is asked for.
type checkCall struct {
	*reach.Flags
	o    proof.CheckOptions
	keys sign.Ring
	json bool

	logKeys reach.LogKeys
}

func newCheckCall(name string) *checkCall {
	s := &checkCall{Flags: reach.NewFlags(name)}
	s.o.Keys = &s.keys
	s.Func("key", "", func(v string) error { return reach.AddKey(&s.keys, v) })
	s.Func("witness", "", func(v string) error {
		w, err := sign.ParseWitness(v)
		s.o.Witnesses = append(s.o.Witnesses, w)
		return err
	})
	s.BoolVar(&s.json, "json", false, "")
	s.logKeys.Define(s.Flags)
	return s
}

func checkProof(_ context.Context, c call) (int, error) {
	s := newCheckCall("proof")
	rest, err := s.Parse(c.args)
	if err != nil {
		return showHelp(c, checkHelp, err)
	}
	if len(rest) != 1 {
		return exitCannotRun, fmt.Errorf("%w: want one file, got %d; --help says more", errUsage, len(rest))
	}
	if s.o.LogKeys, err = s.logKeys.Keys(); err != nil {
		return exitCannotRun, err
	}
	r, shown, err := s.check(rest[0])
	if err != nil {
		return exitCannotRun, err
	}
	if s.json {
		err = writeJSON(c.stdout, r)
	} else {
		err = writeChecked(c.stdout, r, shown)
	}
	return r.Exit, err
}

// check checks a file. shown are rows to print, of a proof of one.
func (s *checkCall) check(name string) (r *proof.Checked, shown *proof.Bundle, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		return proof.CheckPackFolder(os.DirFS(name), s.o), nil, nil
	}
	if info.Size() > proof.MaxBundleBytes {
		return nil, nil, fmt.Errorf("%s has %d bytes; proofs of more than %d are not read", name, info.Size(), proof.MaxBundleBytes)
	}
	body, err := os.ReadFile(name)
	if err != nil {
		return nil, nil, err
	}
	if proof.IsZip(body) {
		return proof.CheckPack(body, s.o), nil, nil
	}
	b, err := proof.DecodeBundle(body)
	if err != nil {
		return proof.Failed("", err), nil, nil
	}
	return b.Check(s.o), b, nil
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// writeChecked prints what a proof was found to be worth: what it shows, what is
// proved, and the verdict as the last line.
func writeChecked(w io.Writer, r *proof.Checked, shown *proof.Bundle) error {
	p := &printer{w: w}
	if shown != nil && r.Fault == "" {
		p.row(shown)
	}
	p.list("Proved (tier "+r.Tier+")", r.Proved, 0)
	p.list("Not proved by this", r.NotProved, 0)
	switch r.Exit {
	case 0:
		p.line("\nOK: %s of archive %s proved (%s)", proof.Count(r.Rows, "row"), proof.Printable(r.ArchiveID), r.Tier)
	case 4:
		p.line("\nOK, BUT LOOK: %s of archive %s proved (%s); see what is not", proof.Count(r.Rows, "row"), proof.Printable(r.ArchiveID), r.Tier)
	case 3:
		p.line("\nINCOMPLETE: it fits together, but less than was asked for is proved")
	default:
		p.line("FAULT: %s", proof.Printable(r.Fault))
	}
	return p.err
}
