package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/internal/reach"
	"github.com/ledgerlake/ledgerlake/proof"
)

const readHelp = `  --master-key FILE
        The key of which those of keyed logs are made, as hex or base64: what chain.master-key is to ingest. Without it
        all of a record of a keyed log but row_hash is checked.
  --log-key-dir FOLDER
        A folder with a key for each log that has its own: what chain.key-dir is to ingest.
  --key VKEY|FILE
        A public key that catalogs are signed by, or a file with one on each line. May be given more than once. Without
        one, no signature is asked for.
  --control-topic NAME
        The topic whose rows order erasures (default ledgerlake.control). What an order is to take from a record is not
        shown, also while it is not carried out.
  --memory SIZE
        What may be held of objects that are read ahead. Default: 256MiB.
  --cost
        Print on stderr what it took: requests to the store, and bytes.
  --progress
        Tell on stderr what is being read.
  --config FILE
        A YAML file with the settings below, as ledgerlake-ingest reads it. LEDGERLAKE_S3_REGION and so on work as well.
`

// A reading has the flags of commands that read an archive.
type reading struct {
	*reach.Flags
	keys     sign.Ring
	logKeys  reach.LogKeys
	control  string
	memory   int64
	cost     bool
	progress bool
	tenant   string

	archive *export.Archive
	source  archive.Ranger // what the archive lies in
	close   func()
}

func newReading(name string) *reading {
	r := &reading{Flags: reach.NewFlags(name).WithBucket()}
	r.Func("key", "", func(v string) error { return reach.AddKey(&r.keys, v) })
	r.logKeys.Define(r.Flags)
	r.StringVar(&r.control, "control-topic", "", "")
	r.Func("memory", "", r.setMemory)
	r.BoolVar(&r.cost, "cost", false, "")
	r.BoolVar(&r.progress, "progress", false, "")
	r.StringVar(&r.tenant, "tenant", "", "")
	return r
}

func (r *reading) setMemory(text string) error {
	n, ok := config.ParseBytes(text)
	if !ok || n < 1<<20 {
		return errors.New("want a size of 1MiB or more, such as 256MiB")
	}
	r.memory = n
	return nil
}

// open opens the archive that the last of the arguments names, or the setting
// bucket where there is none.
func (r *reading) open(ctx context.Context, c call, rest []string) error {
	if err := r.Load(c.environ); err != nil {
		return err
	}
	target := r.Bucket
	switch {
	case len(rest) == 1:
		target = rest[0]
	case len(rest) > 1 || target == "":
		return fmt.Errorf("%w: want one bucket URL or folder, got %d; --help says more", errUsage, len(rest))
	}
	logKeys, err := r.logKeys.Keys()
	if err != nil {
		return err
	}
	src, done, err := r.Open(ctx, target)
	if err != nil {
		return err
	}
	o := export.Options{Keys: &r.keys, LogKeys: logKeys, ControlTopic: r.control, Memory: r.memory}
	if r.progress {
		o.Progress = func(text string) { fmt.Fprintf(c.stderr, "%s: %s\n", program, text) }
	}
	if r.archive, err = export.Open(ctx, src, o); err != nil {
		done()
		if errors.Is(err, archive.ErrNotFound) {
			return fmt.Errorf("%s: no archive is there; the first start of ledgerlake-ingest makes it: %w", target, err)
		}
		return err
	}
	r.source, r.close = src, done
	return nil
}

// tellCost says what it took, where that is asked for.
func (r *reading) tellCost(c call) error {
	if !r.cost || r.archive == nil {
		return nil
	}
	n := r.archive.Cost()
	_, err := fmt.Fprintf(c.stderr, "%s: %s of %s, %s; %s of %s are of segments, which are not compacted yet\n", program,
		proof.Count(n.Gets, "GET"), proof.Count(n.Bytes, "byte"), proof.Count(n.Lists, "listing"), proof.Count(n.SegmentGets, "GET"), proof.Count(n.SegmentBytes, "byte"))
	return err
}

// A query is a command that writes rows.
type query struct {
	*reading
	output
	chunk     int64
	gated     map[string]bool // orders that took something of a row
	shown     int64           // rows
	unchecked int64           // rows of keyed logs without their key
}

func newQuery(name string) *query {
	q := &query{reading: newReading(name), chunk: 500, gated: map[string]bool{}}
	q.define(q.Flags)
	return q
}

// answer opens the archive and writes what ask gives. done is what is said of the
// exit code where all went well.
func (q *query) answer(ctx context.Context, c call, rest []string, ask func(*export.Archive) iter.Seq2[*export.Row, error]) (int, error) {
	if err := q.output.check(c); err != nil {
		return exitCannotRun, err
	}
	if err := q.reading.open(ctx, c, rest); err != nil {
		return outcome(c, err)
	}
	defer q.reading.close()
	code, err := q.write(c, ask(q.archive))
	if err != nil {
		return code, err
	}
	return code, errors.Join(q.tell(c), q.tellCost(c))
}

// write writes rows. What is wrong with one log is printed, and the others go on.
func (q *query) write(c call, rows iter.Seq2[*export.Row, error]) (code int, err error) {
	if err := q.begin(c, q.archive.Root().ArchiveID); err != nil {
		return exitCannotRun, err
	}
	defer q.abort()
	for row, err := range rows {
		if err == nil {
			err = q.put(row)
		}
		if errors.Is(err, export.ErrTampered) || errors.Is(err, audit.ErrRestore) || errors.Is(err, chain.ErrResidual) {
			code = exitTampered
			if _, err := fmt.Fprintf(c.stderr, "%s: %v\n", program, err); err != nil {
				return exitCannotRun, err
			}
			continue
		}
		if err != nil {
			return exitCannotRun, err
		}
	}
	if err := q.commit(); err != nil {
		return exitCannotRun, err
	}
	return code, nil
}

func (q *query) put(row *export.Row) error {
	for _, id := range row.Gated {
		q.gated[id] = true
	}
	if !row.Checked {
		q.unchecked++
	}
	if err := q.rows.Write(row); err != nil {
		return err
	}
	if q.shown++; q.shown%q.chunk == 0 {
		return q.flush()
	}
	return nil
}

// tell says what is to be known of rows that were written.
func (q *query) tell(c call) error {
	var err error
	if len(q.gated) > 0 {
		_, err = fmt.Fprintf(c.stderr, "%s: shown without what is to be erased: ordered, and not carried out yet: %s\n", program, strings.Join(sortedKeys(q.gated), ", "))
	}
	if q.unchecked > 0 {
		_, fault := fmt.Fprintf(c.stderr, "%s: %s of keyed logs: all but row_hash was checked; --master-key or --log-key-dir checks that too\n", program, proof.Count(q.unchecked, "row"))
		err = errors.Join(err, fault)
	}
	return err
}

// found makes a sequence of rows that were found, and of what was wrong.
func found(rows []*export.Row, err error) iter.Seq2[*export.Row, error] {
	return func(yield func(*export.Row, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}
