// Package proof checks an archive from its stored bytes alone, and says what
// that proves.
//
//	listing   every object has a place; ordinals of a line are dense from 0
//	objects   SHA-256(segment n) = previousSha256 of segment n+1, compared before n is decoded
//	layout    footer, indexes and pages tile the file; nothing that erased values could stay in
//	rows      commitments, row_hash, prev_hash, seq, epoch, kinds, derived columns
//	tree      size and frontier of each log after each segment
//	coverage  nextOffset − firstOffset = (rows − made) + duplicates + offsets in gaps, each offset once
//	anchors   hashes, counts, heads and roots that they state, their order, and their signatures
//	keys      those that were given, that good anchors introduce, and that key notes certify
//	catalogs  versions, parts and data files; nothing is missing but what an archived retention-cut dropped
//	erasures  what went was ordered, and what receipts name is gone
//	heads     from independent places, at their sizes; cosignatures of witnesses
//
// Nothing is trusted that can be recomputed. Segments of a line are read and
// checked in parallel, and joined in order; memory is bounded by a window of
// bytes and grows with the number of logs and of data files, not with that of rows.
//
// After a fault the rest is still checked: behind a segment that cannot be read
// each log begins again where the next segment says that it stands, so that one
// fault is named once and hides nothing.
//
// # What it does not prove
//
// Without a key (T0) an archive is consistent in itself. Whoever owns the bucket
// can recompute all of it. With one (T1), whoever has that key too can, and an
// archive that was put back to an older state shows nothing: that takes a head
// from elsewhere (T2), or a witness (T3).
//
// Of a row that was erased hard, only row_hash, prev_hash and seq are proved.
//
// The package never writes, and knows neither Kafka nor the store behind
// [archive.Source].
package proof

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
)

// ErrNoArchive: there is no trace of an archive in the bucket.
var ErrNoArchive = errors.New("no archive there: neither " + archive.RootKey + " nor segments")

// The defaults of Options.
const (
	DefaultMemory = 256 << 20 // bytes
	DefaultFaults = 100
	// DefaultErasureWithin is what laws commonly ask for: 30 days.
	DefaultErasureWithin = 30 * 24 * time.Hour
)

// Options say what is asked for. The zero Options ask for everything, and say
// that it cannot be had: signatures take a key.
type Options struct {
	// Keys are the keys that the auditor knows, which he got elsewhere than from
	// the archive: each is good for all roles. Those that they vouch for are
	// found in the archive. nil or empty: no signature is checked.
	Keys *sign.Ring
	// Unsigned asks for consistency alone (T0): what no good key signed is then
	// not less than was asked for. What signatures there are is checked with
	// Keys all the same.
	Unsigned bool
	// LogKeys are the keys of keyed logs. Of a log without one all but row_hash is
	// checked, which is less than was asked for; under a wrong one every row is a
	// fault. nil: there are none.
	LogKeys chain.Keys
	// Witnesses are those whose cosignatures of checkpoints count.
	Witnesses []*sign.Witness
	// Expect are heads that the archive must have, and ExpectFrom are places that
	// have some.
	Expect     []Expected
	ExpectFrom []Place
	// Saved is where an earlier verification ended, and this one goes on; nil
	// begins at the beginning. Not with a part of the rows.
	Saved *Saved
	// Topic and Partition are those of the lines that are checked; "" and nil are
	// all. Of other lines nothing is read but anchors, for the keys in them.
	Topic     string
	Partition *int32
	// FromSeq is the first row that is checked in each log of Tenant, and Since
	// the time from which on rows are checked, by when they were archived. What
	// an anchor covers before that is hashed and held against it, and not
	// decoded. A few rows before may be checked too.
	FromSeq int64
	Since   time.Time
	// ErasureWithin is how long after it was archived a redaction may be without a
	// receipt; 0 means DefaultErasureWithin. One that is older when the newest
	// anchor was made is something to look at.
	ErasureWithin time.Duration
	// Tenant is the only tenant whose rows are checked and reported; "" is all.
	// Objects are hashed and offsets are counted all the same.
	Tenant string
	// Memory bounds the bytes of objects that are held at once; 0 means
	// DefaultMemory. A line always gets at least three objects.
	Memory int64
	// Faults bounds the faults that a report keeps of one line, and the strays
	// that it names; 0 means DefaultFaults. All are counted.
	Faults int
	// Progress hears of every object that is done with: how many of how many,
	// and the rows so far. It is called by one goroutine at a time and must be
	// quick. total is what the listing showed; objects that are written while
	// the verification runs come on top of it. nil hears nothing.
	Progress func(done, total, rows int64)
}

// A verifier is one run of Verify.
type verifier struct {
	src         archive.Source
	o           Options
	root        archive.Root // zero where it could not be read
	rootSum     *chain.Hash  // of the object; nil where it could not be read
	maxFaults   int
	lineBytes   int64 // window of one line
	lineObjects int
	permits     chan struct{} // one for each goroutine that may compute
	hashers     sync.Pool
	keys        *keyring
	expected    map[lineKey]*expectations
	saved       map[lineKey]*SavedLine
	governs     *control.Governance // nil while it is being found out
	survey      *survey
	regovern    func(context.Context) error // finds it out again, for lines that went on meanwhile

	mu                   sync.Mutex
	finished, total, row int64
}

// Verify checks the archive in src, as docs/format.md, section 7, asks for.
//
// An error says that the verification could not run to its end, and is no
// verdict: there is no archive (it matches [ErrNoArchive]), the store does not
// answer, or ctx is done. All that is wrong with the archive is in the report;
// also that ledgerlake.json is missing where segments or anchors are there.
func Verify(ctx context.Context, src archive.Source, o Options) (*Report, error) {
	v := newVerifier(src, o)
	if o.FromSeq > 0 && o.Tenant == "" {
		return nil, errors.New("a first seq is one of a tenant's log: say which tenant")
	}
	r := &Report{Tenant: o.Tenant, Topic: o.Topic, Partition: o.Partition, FromSeq: o.FromSeq, Lines: []*LineReport{}, Faults: []Fault{}}
	if !o.Since.IsZero() {
		r.Since = &o.Since
	}
	if err := v.readRoot(ctx, r); err != nil {
		return nil, err
	}
	if err := v.resume(r); err != nil {
		return nil, err
	}
	s, err := look(ctx, src, v.maxFaults, v.saved)
	if err != nil {
		return nil, err
	}
	if s.empty() {
		return nil, ErrNoArchive
	}
	v.total = s.todo()
	v.missingRoot(s, r)
	v.lostSince(s, r)
	v.survey = s
	if err := v.collectKeys(ctx, s); err != nil {
		return nil, err
	}
	if err := v.keyNotes(ctx, r); err != nil {
		return nil, err
	}
	if err := v.expect(ctx, s, r); err != nil {
		return nil, err
	}
	if err := v.govern(ctx, s); err != nil {
		return nil, err
	}
	v.regovern = func(ctx context.Context) error { return v.governAgain(ctx, s) }
	asked := v.asked(s)
	r.linesLeft = int64(len(s.lines) - len(asked))
	results, err := v.lines(ctx, asked)
	if err != nil {
		return nil, err
	}
	strays := s.settled()
	r.Objects, r.Strays, r.StrayCount = s.objects, append([]string{}, strays.list...), strays.total
	for _, res := range results {
		r.Lines = append(r.Lines, res.rep)
		r.Faults = append(r.Faults, res.faults.list...)
		r.FaultCount += res.faults.total
		r.addStrays(res.rep.strays, v.maxFaults)
	}
	if err := v.deletedAll(ctx, r); err != nil {
		return nil, err
	}
	v.sum(s, r)
	return r, nil
}

func newVerifier(src archive.Source, o Options) *verifier {
	v := &verifier{src: src, o: o, maxFaults: o.Faults, permits: make(chan struct{}, runtime.GOMAXPROCS(0))}
	if v.maxFaults <= 0 {
		v.maxFaults = DefaultFaults
	}
	if o.Memory <= 0 {
		v.o.Memory = DefaultMemory
	}
	if o.ErasureWithin <= 0 {
		v.o.ErasureWithin = DefaultErasureWithin
	}
	v.keys = newKeyring(v.o.Memory)
	v.hashers.New = func() any { return chain.NewHashers(v.o.LogKeys) }
	return v
}

// wants reports whether the rows of a tenant are asked for.
func (v *verifier) wants(tenant string) bool { return v.o.Tenant == "" || v.o.Tenant == tenant }

// readRoot reads ledgerlake.json. Without it, or where it is damaged, the lines
// are still checked: each against what its own segments say.
func (v *verifier) readRoot(ctx context.Context, r *Report) error {
	body, err := v.src.Get(ctx, archive.RootKey)
	switch {
	case errors.Is(err, archive.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("read %s: %w", archive.RootKey, err)
	}
	sum := chain.Hash(sha256.Sum256(body))
	v.rootSum = &sum
	root, err := readRoot(body)
	if err != nil {
		r.fault(Fault{Kind: FaultRoot, Key: archive.RootKey, Ordinal: -1, Text: err.Error()})
		return nil
	}
	v.root, r.ArchiveID = root, root.ArchiveID
	return nil
}

// missingRoot names ledgerlake.json where it is not there and should be.
func (v *verifier) missingRoot(s *survey, r *Report) {
	if v.rootSum != nil {
		v.progress(0)
	} else {
		r.fault(Fault{Kind: FaultRoot, Key: archive.RootKey, Ordinal: -1, Text: fmt.Sprintf("is missing, and the bucket holds %d objects of an archive", s.objects-s.settled().total)})
	}
}

// asked returns the lines that were asked for.
func (v *verifier) asked(s *survey) []*surveyLine {
	return slices.DeleteFunc(slices.Clone(s.lines), func(l *surveyLine) bool { return !v.asks(l) })
}

// linesOnce verifies all lines, some at a time, and returns what was found in
// their order.
func (v *verifier) linesOnce(ctx context.Context, all []*surveyLine) ([]*lineResult, error) {
	if len(all) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	atOnce := min(len(all), 2*cap(v.permits))
	v.lineBytes = v.o.Memory / int64(atOnce)
	v.lineObjects = max(4, 64/atOnce)
	results := make([]*lineResult, len(all))
	next := make(chan int)
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for i := range next {
				res, err := v.line(ctx, all[i])
				if err != nil {
					cancel(err)
				}
				results[i] = res
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return results, nil
}

// permit waits until one more goroutine may compute.
func (v *verifier) permit(ctx context.Context) error {
	select {
	case v.permits <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (v *verifier) done() { <-v.permits }

// progress counts one more object that is done with, and its rows.
func (v *verifier) progress(rows int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.finished++
	v.row += rows
	if v.o.Progress != nil {
		v.o.Progress(v.finished, max(v.total, v.finished), v.row)
	}
}
