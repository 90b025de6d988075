package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ledgerlake/ledgerlake/internal/reach"
	"github.com/ledgerlake/ledgerlake/proof"
)

const jsonlHelp = `ledgerlake-verify jsonl checks logs in files: one JSON object a line, each bound to the line before by prevHash and hash,
from whatever program.

  ledgerlake-verify jsonl [flags] FILE...     - is stdin

Each file is checked alone, and all of them as one set: a file that another one continues ends with a RotationMarker,
the next begins with a RotationAnchor. They may be given in any order. docs/jsonl.md says what exactly is hashed.

  ledgerlake-verify jsonl audit.jsonl
  ledgerlake-verify jsonl --key-file audit.key --json audit.*.jsonl

Exit codes, the first that holds:
  2  cannot run: a file cannot be read
  1  a line is broken (cut, changed, missing, keyed otherwise), or the files are not one chain
  3  a file has no lines: nothing could be verified
  4  whole, with something to look at: chain resets, or one end of a set is missing
  0  whole

Flags:
  --key-file FILE
        The key of a keyed log (HMAC-SHA256): the bytes of this file, without a line feed at its end.
  --json
        Print the answers as one JSON object: ok, firstBrokenSeq, lineCount, chainResetCount and error, for each file
        and for the set.
`

// A jsonlInvocation is what the arguments of jsonl ask for.
type jsonlInvocation struct {
	files []string
	key   []byte // nil: not keyed
	json  bool
}

func jsonl(_ context.Context, c call) (int, error) { return runJSONL(c.args, os.Stdin, c.stdout) }

// runJSONL checks the files that the arguments name, prints what it found, and
// returns the exit code.
func runJSONL(args []string, stdin io.Reader, stdout io.Writer) (int, error) {
	in, err := parseJSONL(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, err := io.WriteString(stdout, jsonlHelp)
		return 0, err
	case err != nil:
		return exitCannotRun, err
	}
	var checked []*proof.JSONLFile
	for _, name := range in.files {
		f, err := in.check(name, stdin)
		if err != nil {
			return exitCannotRun, err
		}
		checked = append(checked, f)
	}
	s := proof.CheckJSONLSet(checked, in.key != nil)
	if err := in.write(stdout, s); err != nil {
		return exitCannotRun, err
	}
	return s.Exit, nil
}

// parseJSONL reads flags, which may stand before and behind the files.
func parseJSONL(args []string) (*jsonlInvocation, error) {
	in := &jsonlInvocation{}
	f := flag.NewFlagSet("jsonl", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.BoolVar(&in.json, "json", false, "")
	f.Func("key-file", "", in.readKey)
	for {
		switch err := f.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("jsonl: %w: %w; --help says more", errUsage, err)
		case f.NArg() > 0:
			in.files, args = append(in.files, f.Arg(0)), f.Args()[1:]
		case len(in.files) == 0:
			return nil, fmt.Errorf("jsonl: %w: want a file; --help says more", errUsage)
		default:
			return in, nil
		}
	}
}

func (in *jsonlInvocation) readKey(name string) (err error) {
	in.key, err = reach.RawKeyFile(name)
	return err
}

// check checks one file.
func (in *jsonlInvocation) check(name string, stdin io.Reader) (*proof.JSONLFile, error) {
	if name == "-" {
		return proof.CheckJSONL("stdin", stdin, in.key)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return proof.CheckJSONL(name, file, in.key)
}

// write prints what was found.
func (in *jsonlInvocation) write(w io.Writer, s *proof.JSONLSet) error {
	if in.json {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(s)
	}
	p := &printer{w: w}
	for _, f := range s.Files {
		p.line("%s", proof.Printable(f.Name))
		p.jsonlReport(&f.JSONLReport)
		for _, note := range f.Notes {
			p.line("  note             %s", proof.Printable(note))
		}
	}
	if len(s.Files) > 1 {
		p.line("all %d files as one chain", len(s.Files))
		p.jsonlReport(&s.Set)
		p.line("  order            %s", proof.Printable(strings.Join(s.Order, ", ")))
	}
	p.list("To look at", s.Looks, 0)
	p.line("\n%s", jsonlVerdict(s))
	return p.err
}

// jsonlReport prints the five fields.
func (p *printer) jsonlReport(r *proof.JSONLReport) {
	seq, text := "null", "null"
	if r.FirstBrokenSeq != nil {
		seq = number(*r.FirstBrokenSeq)
	}
	if r.Error != nil {
		text = proof.Printable(*r.Error)
	}
	p.line("  ok               %t", r.OK)
	p.line("  firstBrokenSeq   %s", seq)
	p.line("  lineCount        %d", r.LineCount)
	p.line("  chainResetCount  %d", r.ChainResetCount)
	p.line("  error            %s", text)
}

// jsonlVerdict is the last line.
func jsonlVerdict(s *proof.JSONLSet) string {
	by := "SHA-256, which whoever owns the files can compute"
	if s.Keyed {
		by = "HMAC-SHA256 under the key given"
	}
	switch s.Exit {
	case 0:
		return fmt.Sprintf("OK: %s continue each other by %s", proof.Count(s.Set.LineCount, "line"), by)
	case 4:
		return fmt.Sprintf("OK, BUT LOOK: %s continue each other by %s; to look at, above: %s", proof.Count(s.Set.LineCount, "line"), by, proof.Count(int64(len(s.Looks)), "thing"))
	case 3:
		return "INCOMPLETE: nothing could be verified of a file without lines"
	}
	return "FAULT: the files were tampered with, are damaged, or are not one chain"
}
