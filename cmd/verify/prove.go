package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/internal/reach"
	"github.com/ledgerlake/ledgerlake/proof"
)

const proveHelp = `ledgerlake-verify prove writes the proof of one row as a file that checks without the archive.

  ledgerlake-verify prove [flags] RECORD-ID TARGET -o FILE
  ledgerlake-verify prove [flags] --tenant NAME --seq N TARGET -o FILE
  ledgerlake-verify prove [flags] --offset N --topic NAME --partition N TARGET -o FILE

  ledgerlake-verify prove 01KBCDEFGHM9S346Q3D2000007 ./data/audit -o call.json --withhold prompts,ext
  ledgerlake-verify proof call.json --key anchors.vkey

docs/proofs.md describes the file. It is written only if what was read leads to the root that an anchor states.

Exit codes: 0 written · 1 what is stored does not fit together · 2 cannot run · 3 no such row, or no anchor covers it yet; or the
file was written, and none of the keys that were given vouches for it. Without --key nothing is said of signatures.

Flags:
  -o FILE
        Where to write; - is stdout. Default: -.
  --withhold SLOT,...
        Show these slots by their commitments alone.
  --disclose SLOT,...
        Withhold all slots but these.
  --withhold-user
        Show user_id by its commitment alone.
` + reach.LogKeysHelp + locateHelp + proverHelp

const locateHelp = `  --tenant NAME, --topic NAME, --partition N
        Look only there.
  --seq N
        The row of this seq; with --tenant.
  --offset N
        The row of this Kafka offset.
`

const proverHelp = `  --key VKEY|FILE
        A public key that anchors are signed by, or a file with one on each line. May be given more than once.
  --newest
        Prove in the newest tree, not in the first one that has the row. Reads much more, unless there are --tiles.
  --tiles DIR
        A folder that 'ledgerlake-verify tiles' wrote, for --newest.
  --with-anchor
        Put the whole anchor into the proof, which names the other tenants of its partition. Without it that is done
        only where it must be, or names no other.
` + controlTopicHelp + `
`

const controlTopicHelp = `  --control-topic NAME
        The topic whose rows order erasures (default ledgerlake.control). What an order is to take from a row is not shown, also
        while it is not carried out.
`

// A seeker has the flags of commands that look for rows.
type seeker struct {
	*reach.Flags
	want       proof.Want
	keys       sign.Ring
	newest     bool
	withAnchor bool
	tiles      string
	control    string
	json       bool
	out        string
	withhold   string
	disclose   string
	hideUser   bool
}

func newSeeker(name string) *seeker {
	s := &seeker{Flags: reach.NewFlags(name)}
	s.StringVar(&s.want.Tenant, "tenant", "", "")
	s.StringVar(&s.want.Topic, "topic", "", "")
	s.Func("partition", "", func(v string) error {
		n, err := strconv.ParseInt(v, 10, 32)
		p := int32(n)
		s.want.Partition = &p
		return err
	})
	s.Func("key", "", func(v string) error { return reach.AddKey(&s.keys, v) })
	s.BoolVar(&s.withAnchor, "with-anchor", false, "")
	s.StringVar(&s.control, "control-topic", "", "")
	s.StringVar(&s.tiles, "tiles", "", "")
	return s
}

// rows defines the flags that name one row.
func (s *seeker) rows() {
	number := func(into **int64) func(string) error {
		return func(v string) error {
			n, err := strconv.ParseInt(v, 10, 64)
			if *into = &n; err == nil && n < 0 {
				err = errors.New("want 0 or more")
			}
			return err
		}
	}
	s.Func("seq", "", number(&s.want.Seq))
	s.Func("offset", "", number(&s.want.Offset))
	s.BoolVar(&s.newest, "newest", false, "")
}

// hides defines the flags that say what of a row is shown.
func (s *seeker) hides() {
	s.StringVar(&s.out, "o", "-", "")
	s.StringVar(&s.withhold, "withhold", "", "")
	s.StringVar(&s.disclose, "disclose", "", "")
	s.BoolVar(&s.hideUser, "withhold-user", false, "")
}

// parseRow parses the arguments of a command that is about one row, and returns
// the target.
func (s *seeker) parseRow(args []string) (target string, err error) {
	rest, err := s.Parse(args)
	if err != nil {
		return "", err
	}
	named := s.want.Offset != nil || s.want.Seq != nil
	switch {
	case s.want.Seq != nil && s.want.Tenant == "":
		return "", fmt.Errorf("%w: --seq counts the rows of a tenant: give --tenant too", errUsage)
	case named && len(rest) == 1:
		return rest[0], nil
	case !named && len(rest) == 2:
		if s.want.RecordID, err = audit.ParseRecordID(rest[0]); err != nil {
			return "", fmt.Errorf("%w: %q: %w", errUsage, rest[0], err)
		}
		return rest[1], nil
	}
	return "", fmt.Errorf("%w: want a record id and a bucket URL or folder, or --offset or --seq and only that; --help says more", errUsage)
}

// disclosure returns what is shown.
func (s *seeker) disclosure() (d proof.Disclosure, err error) {
	d.WithholdUser = s.hideUser
	if s.withhold != "" && s.disclose != "" {
		return d, fmt.Errorf("%w: --withhold or --disclose, not both", errUsage)
	}
	if d.Withhold, err = slots(s.withhold); err != nil || s.disclose == "" {
		return d, err
	}
	shown, err := slots(s.disclose)
	d.Withhold = chain.AllSlots &^ shown
	return d, err
}

func slots(list string) (set chain.SlotSet, err error) {
	if list == "" {
		return 0, nil
	}
	for name := range strings.SplitSeq(list, ",") {
		slot, ok := audit.ParseSlot(strings.TrimSpace(name))
		if !ok {
			return 0, fmt.Errorf("%w: %q is no slot; they are %s", errUsage, name, slotNames())
		}
		set |= chain.SlotSetOf(slot)
	}
	return set, nil
}

func slotNames() string {
	names := make([]string, audit.NumSlots)
	for i := range names {
		names[i] = audit.Slot(i).String()
	}
	return strings.Join(names, ", ")
}

// prover opens the archive.
func (s *seeker) prover(ctx context.Context, target string, c call) (p *proof.Prover, closeSource func(), err error) {
	if err := s.Load(c.environ); err != nil {
		return nil, nil, err
	}
	o := proof.ProveOptions{Keys: &s.keys, WithAnchor: s.withAnchor, Newest: s.newest, ControlTopic: s.control, Progress: nowAndThen(c.stderr)}
	if s.tiles != "" {
		if o.Tiles, err = proof.OpenTiles(tileFolder(s.tiles)); err != nil {
			return nil, nil, err
		}
		if o.Tiles == nil {
			return nil, nil, fmt.Errorf("%s has no tiles: there is no checkpoint in it", s.tiles)
		}
	}
	src, closeSource, err := s.Open(ctx, target)
	if err != nil {
		return nil, nil, err
	}
	p, err = proof.NewProver(ctx, src, o)
	if err != nil {
		closeSource()
		return nil, nil, err
	}
	return p, closeSource, nil
}

// nowAndThen returns what tells how far long work is, every few seconds.
func nowAndThen(w io.Writer) func(text string) {
	last := time.Now()
	return func(text string) {
		if now := time.Now(); now.Sub(last) > 5*time.Second {
			last = now
			fmt.Fprintf(w, "verify: %s\n", text)
		}
	}
}

// outcome returns the exit code of an error of those who look for rows: one that
// says something of the archive is printed here, and is no error any more.
func outcome(c call, err error) (int, error) {
	code := exitCannotRun
	switch {
	case errors.Is(err, proof.ErrTampered):
		code = 1
	case errors.Is(err, proof.ErrNoRow), errors.Is(err, proof.ErrNotAnchored):
		code = 3
	default:
		return code, err
	}
	_, err = fmt.Fprintf(c.stderr, "%s: %v\n", program, err)
	return code, err
}

// showHelp prints the help of a command where that was asked for.
func showHelp(c call, text string, err error) (int, error) {
	if !errors.Is(err, flag.ErrHelp) {
		return exitCannotRun, err
	}
	_, err = io.WriteString(c.stdout, text+reach.StoreHelp())
	return 0, err
}

func prove(ctx context.Context, c call) (int, error) {
	s := newSeeker("prove")
	s.rows()
	s.hides()
	var logs reach.LogKeys
	logs.Define(s.Flags)
	target, err := s.parseRow(c.args)
	if err != nil {
		return showHelp(c, proveHelp, err)
	}
	d, err := s.disclosure()
	if err != nil {
		return exitCannotRun, err
	}
	p, closeSource, err := s.prover(ctx, target, c)
	if err != nil {
		return outcome(c, err)
	}
	defer closeSource()
	found, err := p.Find(ctx, s.want)
	if err != nil {
		return outcome(c, err)
	}
	b, err := found.Bundle(d)
	if err != nil {
		return outcome(c, err)
	}
	logKeys, err := logs.Keys()
	if err != nil {
		return exitCannotRun, err
	}
	code, whose, err := standing(b.Check(proof.CheckOptions{Keys: &s.keys, LogKeys: logKeys}), s.keys.Empty())
	if err != nil {
		return outcome(c, err)
	}
	text, err := b.Encode()
	if err != nil {
		return exitCannotRun, err
	}
	if err := tellGated(c, found); err != nil {
		return exitCannotRun, err
	}
	if err := writeOut(c, s.out, text); err != nil {
		return exitCannotRun, err
	}
	_, err = fmt.Fprintf(c.stderr, "seq %d of tenant %s in %s/%d, in a tree of %d rows; %s; %s\n", b.Row.Seq, proof.Printable(b.Log.Tenant), proof.Printable(b.Log.Topic), b.Log.Partition, b.Tree.Size, whose, cost(p))
	return code, err
}

// standing says whether what was made holds for who has the keys that were
// given: the exit code, and in words. A fault is an error.
func standing(r *proof.Checked, noKey bool) (code int, whose string, err error) {
	switch {
	case r.Fault != "":
		return 1, "", fmt.Errorf("%w: %s", proof.ErrTampered, r.Fault)
	case noKey:
		return 0, "no key was given to check its signature with", nil
	case r.Unsigned:
		return 3, "NOT signed by a key that was given, nor by one that such a key introduces", nil
	}
	return 0, "signed by a key that was given, or introduced", nil
}

// tellGated says what is missing of a row that is shown, and why.
func tellGated(c call, f *proof.Found) error {
	if len(f.Gated) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(c.stderr, "%s: seq %d is shown without what is to be erased from it: redaction %s was ordered and is not carried out yet\n",
		program, f.Row.Seq.N, strings.Join(f.Gated, ", "))
	return err
}

func cost(p *proof.Prover) string {
	n := p.Cost()
	return fmt.Sprintf("%s, %s and %s read", proof.Count(n.Gets, "GET"), proof.Count(n.Lists, "listing"), proof.Count(n.Bytes, "byte"))
}
