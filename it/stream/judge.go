//go:build it

package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ledgerlake/ledgerlake/it/parts"
	"github.com/ledgerlake/ledgerlake/proof/offline"
)

// readTruth has DuckDB read the archive, by the script of docs/queries.md.
func (t *trial) readTruth(context.Context) error {
	script, err := offline.Programs.ReadFile("rows.sql")
	if err != nil {
		return err
	}
	file := t.in("truth.csv")
	_, err = parts.DuckDBs()[0].Query("SET VARIABLE archive = '"+t.s3.Dir(bucket)+"'", string(script),
		"COPY (SELECT tenant_id, topic_id, partition, seq, lower(hex(row_hash)) FROM rows ORDER BY ALL) TO '"+file+"' (HEADER false)", "SELECT 1")
	if err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	t.truth = truth{}
	rows := 0
	for in := csv.NewReader(f); ; rows++ {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := t.truth.add(cells); err != nil {
			return err
		}
	}
	t.say("%d rows of %d logs and %d tenants are archived", rows, len(t.truth), len(t.tenantsThere()))
	if rows == 0 {
		return fmt.Errorf("%w: the archive is empty", errWrong)
	}
	return nil
}

// add adds a row: tenant, topic id, partition, seq, row_hash.
func (want truth) add(cells []string) error {
	partition, err := strconv.Atoi(cells[2])
	if err != nil {
		return err
	}
	name := logName{cells[0], cells[1], int32(partition)}
	if cells[3] != strconv.Itoa(len(want[name])) {
		return fmt.Errorf("%w: the archive has seq %s of %v behind %d rows", errWrong, cells[3], name, len(want[name]))
	}
	sum, err := hex.DecodeString(cells[4])
	if err != nil {
		return err
	}
	want[name] = append(want[name], hash(sum))
	return nil
}

// tenantsThere returns all tenants of the archive.
func (t *trial) tenantsThere() []string {
	all := map[string]bool{}
	for name := range t.truth {
		all[name.tenant] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// judge reads every receiver back, and holds what it has against the archive.
func (t *trial) judge(ctx context.Context) error {
	retries, err := t.retries()
	if err != nil {
		return err
	}
	for _, r := range t.receivers {
		r.retries = retries[r.name]
		if err := t.judgeOne(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

func (t *trial) judgeOne(ctx context.Context, r *receiver) error {
	r.has = newRecord()
	r.has.sorted = r.arrived != nil
	if err := os.MkdirAll(filepath.Dir(t.copyOf(r)), 0o755); err != nil {
		return err
	}
	file, err := os.Create(t.copyOf(r))
	if err != nil {
		return err
	}
	defer file.Close()
	w := bufio.NewWriterSize(file, 1<<20)
	lines := json.NewEncoder(w)
	err = r.read(ctx, func(text []byte, at time.Time) error { return lines.Encode(r.has.see(text, at)) })
	if err := errors.Join(err, w.Flush()); err != nil {
		return err
	}
	if r.wrong, err = r.gaps(ctx); err != nil {
		return err
	}
	r.has.hold(t.truth)
	order := r.has
	if r.arrived != nil {
		order = r.arrived
		order.hold(t.truth)
		if order.rows != r.has.rows {
			r.has.fault("it said of %d rows that it has them, and it has %d", order.rows, r.has.rows)
		}
		r.has.heads = order.heads
	}
	t.repeats(r, order)
	if r.arrived != nil {
		r.has.faults = append(r.has.faults, order.faults...)
	}
	for _, g := range r.wrong {
		r.has.fault("the query on seq: %s", g)
	}
	if r.once && r.has.repeats > 0 {
		r.has.fault("%d repeats, which it should have dropped", r.has.repeats)
	}
	t.say("%s: %d rows, %d repeats, %d heads, %d faults", r.name, r.has.rows, r.has.repeats, r.has.heads, len(r.has.faults))
	return os.Remove(t.copyOf(r))
}

// late is how long after a spell a request of it may still be given up.
const late = 6 * time.Second

// repeats requires that rows come again only behind a kill, or a delivery that
// failed, or may have.
func (t *trial) repeats(r *receiver, order *record) {
	_, hits := r.weather.all()
	for name, l := range order.logs {
		if most := len(t.kills) + hits + len(r.retries); l.rewinds > most {
			order.fault("%v: rows begin to come again %d times, at %d kills and failures", name, l.rewinds, most)
		}
	}
	for _, w := range order.rewinds {
		if w.at.IsZero() {
			continue
		}
		if !t.caused(r, w) {
			order.fault("%v: seq %d came at %s and again at %s, and nothing failed in between", w.log, w.seq, w.first.Format(clock), w.at.Format(clock))
		}
	}
}

const clock = "15:04:05.000"

// caused reports whether something lies between two arrivals of a row by which it
// may come again.
func (t *trial) caused(r *receiver, w rewind) bool {
	from, to := w.first.Truncate(time.Millisecond), w.at.Add(time.Millisecond) // Kafka has whole milliseconds
	between := func(at time.Time) bool { return !at.Before(from) && !at.After(to) }
	return slices.ContainsFunc(t.kills, between) || slices.ContainsFunc(r.retries, between) ||
		slices.ContainsFunc(r.weather.spells, func(s spell) bool { return s.from.Before(to) && s.to.Add(late).After(from) })
}

// retries returns when exporters said that they could not deliver, by destination.
// They say so a few times a second at most.
func (t *trial) retries() (map[string][]time.Time, error) {
	logs, err := filepath.Glob(t.in("ledgerlake-export-*.log"))
	if err != nil {
		return nil, err
	}
	all := map[string][]time.Time{}
	for _, name := range logs {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		err = lines(f, func(line string) error {
			var says struct {
				Msg, Destination string
				Time             time.Time
			}
			if json.Unmarshal([]byte(line), &says) == nil && strings.HasPrefix(says.Msg, "not delivered") {
				all[says.Destination] = append(all[says.Destination], says.Time)
			}
			return nil
		})
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// verdict prints the table, and returns an error if something is wrong.
func (t *trial) verdict() error {
	rows := int64(0)
	for _, hashes := range t.truth {
		rows += int64(len(hashes))
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nreceiver\t\trows\tarrived\trepeats\theads\tgaps\tretries\trefused\tstalled\tslowed\thalved\tlost\twrong")
	wrong := 0
	for _, r := range t.receivers {
		hits, _ := r.weather.all()
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d", r.name, r.kind, rows, r.has.rows, r.has.repeats, r.has.heads, len(r.wrong), len(r.retries))
		for _, n := range hits {
			fmt.Fprintf(w, "\t%d", n)
		}
		fmt.Fprintf(w, "\t%d\n", len(r.has.faults))
		wrong += len(r.has.faults)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(t.out, "\n%d exporters were killed.\n", len(t.kills))
	for _, r := range t.receivers {
		for _, f := range r.has.faults {
			fmt.Fprintf(t.out, "%s: %s\n", r.name, f)
		}
	}
	if wrong > 0 {
		return errWrong
	}
	return nil
}
