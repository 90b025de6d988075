// Package compaction turns segments into data files, line by line, and takes out
// of them what is to go: fewer, larger and lawful files, whose rows make the same
// chain as before.
//
//	newest catalog ─ anchored segments ─ check ─ erase, drop ─ data files ─ read back ─ next catalog version ─ (grace) ─ delete
//
// A pass ([Engine.Pass]) does one bounded piece of that for one line. It writes
// data files under keys that were never used, then the parts of the catalog that
// changed, then the next version of the catalog, by one create-only write: before
// that write nothing of the pass is visible, and after it all is. A pass that
// stops anywhere leaves strays, which a later one sweeps; a pass that was
// overtaken throws all away ([ErrRaced]). So any number of compactors may work on
// a line, and any of them may sleep, wake up, or be killed.
//
// Nothing is deleted but what the newest catalog at the start of a pass calls
// doomed, since a version that is older than the grace by the store's own clock.
// The line's segments are read only as far as an anchor covers them that counts,
// each held against the hash that the anchor states.
//
// [Plan] is pure: it says what a pass would do, from what was found. The package
// logs nothing, reads no flag and has no clock: see [Settings]. What governs a
// line (orders, cuts, holds) comes in as [Duties], and is obeyed, not judged.
package compaction

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// The errors of a pass. Each is the caller's next move; any other error is the
// store's, and a later pass may go through.
var (
	// ErrHalted: the line is not as it must be, and trying again changes nothing.
	// The text says what is wrong and what an operator can do. Other lines go on.
	ErrHalted = errors.New("compaction of the line is halted")
	// ErrRaced: another compactor was faster. Nothing of the pass counts; begin
	// another one.
	ErrRaced = errors.New("another compactor was faster")
)

// Settings are what an [Engine] needs. Zero values of numbers and durations mean
// the defaults that are named.
type Settings struct {
	Archive archive.Store
	Root    archive.Root
	// Keys are the verifier keys that are good; nil or empty: the archive is not
	// signed, and every note counts. Where there are keys, only anchors and
	// catalogs count that they, or keys that they vouch for, have signed.
	Keys *sign.Ring
	// LogKeys are those of keyed logs. Without its key the rows of a keyed log are
	// checked but for row_hash, and go on.
	LogKeys chain.Keys
	// Signers sign catalog versions; nil signs nothing.
	Signers func(now time.Time) []note.Signer
	Events  Events
	// Manifests keeps lists of objects for engines of SQL; nil keeps none. Then a pass
	// that writes a version of the catalog makes one LIST more, and one GET of the
	// store's time, and writes one small object for each log that it changed, and one
	// for the line.
	Manifests *Manifests

	Memory      int64         // bytes that a pass takes, about; 512 MiB
	TargetBytes int64         // size of a full data file; 128 MiB, at most a quarter of Memory
	MinSegments int64         // so many anchored segments are compacted without delay; 64
	MaxAge      time.Duration // segments that an anchor has covered for so long are, however few; 10 minutes
	MergeFiles  int           // so many neighbours of like size become one file; 8
	PassBytes   int64         // of data files that one pass reads to rewrite or to merge them; 2 GiB
	SweepEvery  time.Duration // strays are looked for so often; 10 minutes
	RepeatFiles int           // so many of the newest files of a log are asked for older rows of equal coordinates; 4, none if below 0
	// Once makes everything due that can be done, and looks for strays in each
	// pass.
	Once bool

	Now  func() time.Time // of this process: stamps catalogs, and says when compaction is due; never what is deleted
	Rand io.Reader        // of ids
}

// The defaults of Settings.
const (
	DefaultMemory      = 512 << 20
	DefaultTargetBytes = 128 << 20
	DefaultMinSegments = 64
	DefaultMaxAge      = 10 * time.Minute
	DefaultMergeFiles  = 8
	DefaultPassBytes   = 2 << 30
	DefaultSweepEvery  = 10 * time.Minute
	DefaultRepeatFiles = 4
)

func or[T int | int64 | time.Duration](v, other T) T {
	if v == 0 {
		return other
	}
	return v
}

func (s *Settings) fill() {
	s.Memory = or(s.Memory, DefaultMemory)
	s.TargetBytes = min(or(s.TargetBytes, DefaultTargetBytes), max(s.Memory/4, 1))
	s.MinSegments = or(s.MinSegments, DefaultMinSegments)
	s.MaxAge = or(s.MaxAge, DefaultMaxAge)
	s.MergeFiles = max(or(s.MergeFiles, DefaultMergeFiles), 2)
	s.PassBytes = or(s.PassBytes, DefaultPassBytes)
	s.SweepEvery = or(s.SweepEvery, DefaultSweepEvery)
	s.RepeatFiles = or(s.RepeatFiles, DefaultRepeatFiles)
}

// Events hear of what an [Engine] does. Each may be nil. They are called from
// the goroutine of the pass.
type Events struct {
	Ended   func(r *Result, err error)                   // a pass ended, however; before those below
	Passed  func(r *Result)                              // a pass ended well, also one that had nothing to do
	Halted  func(l archive.Line, err error)              // a pass ended with ErrHalted
	Raced   func(l archive.Line, version int64)          // somebody else wrote that version
	Deleted func(l archive.Line, objects, bytes int64)   // gone with all their versions
	Kept    func(l archive.Line, k archive.Kept)         // could not be deleted, and is tried again in the next pass
	Warn    func(l archive.Line, text string, err error) // went on all the same
}

// A Result says what a pass did.
type Result struct {
	Line     archive.Line
	Plan     *Plan            // what was to be done
	Catalog  *archive.Catalog // the newest version, nil where there is none
	Wrote    bool             // the pass wrote it
	More     bool             // a further pass has something to do now
	Anchored int64            // the last segment that a good anchor covers, -1 if none

	Segments, Rows, SegmentBytes int64 // compacted
	Dropped                      int64 // rows, by cuts
	Erased                       int64 // rows from which something was taken
	Repeats                      int64 // rows that got a repeat_of
	Rewritten, Merged            int64 // files that were replaced for an erasure or a cut; and by larger ones
	Files, FileBytes             int64 // written
	Doomed                       int64 // keys that were doomed in this pass
	Strays                       int64 // of those, objects that nothing names
	Deleted, DeletedBytes        int64 // objects, and the bytes of all their versions
	Aborted                      int64 // unfinished uploads
	Kept                         []archive.Kept
	Keyless                      []string // tenants whose rows were checked but for row_hash: their keys are not at hand
	Held                         []string // ids of due orders that a hold keeps from being carried out
	Refused                      []string // cuts that were not carried out, and why

	Began, Ended time.Time // by Settings.Now
	Phases       []Phase   // of the pass, in order; one without work is there too
}

// A Phase is a part of a pass: look, delete, compact, rewrite, merge, sweep and
// publish; read is within compact. One that failed is the last.
type Phase struct {
	Name         string
	Began, Ended time.Time
}

// An Engine compacts lines of one archive. It may be used by several goroutines
// at once, for different lines.
//
// Memory of one pass: about a quarter of Settings.Memory for decoded rows of
// segments, as much for objects that are read or on their way to the store, a
// sixteenth for bloom filters, and two and a half objects of TargetBytes. Besides, an Engine keeps what catalogs say of data
// files, about 500 bytes each, and a list of all keys of data files between two
// sweeps.
type Engine struct {
	Settings
	ring *sign.Ring

	mu      sync.Mutex
	lines   map[archive.Line]*memo
	listing *listing
	blooms  *bloomCache
}

// A memo is what a pass of a line leaves for the next one. All of it is found
// again where it is lost.
type memo struct {
	anchor  int64 // the number of an anchor that is there; -1
	warned  int64 // the number of the newest anchor when it was said that some do not count; -1
	listed  int64 // the number of the anchor by which tenants are known; -1
	tenants map[string]bool
	text    chain.Hash // of the version of the catalog that files and logs are those of
	files   []archive.CatalogFile
	logs    map[string]*logState // of logs that a pass went through, behind its version
	logsOf  chain.Hash           // the version's text
	made    int64                // how many files its segments became
	apart   map[string]bool      // keys of files that begin an epoch
	looked  map[look]string      // what came of looks: "" nothing is left to take, or the holds that keep something
	gone    map[string]bool      // keys of which no version was left
	locked  map[string]bool      // doomed keys that a lock keeps
	told    map[string]bool      // locked keys that were told of
	swept   *listing             // the one that was swept by last
	links   *links               // nil: not known
	tagging sync.Mutex           // guards tags
	tags    map[string]tagged    // of manifests, by tenant
}

// A look is a file, and an order that has looked into it for its rows, or for its
// own one.
type look struct {
	key, order string
	closing    bool
}

// New returns an Engine. It reads nothing.
func New(s Settings) *Engine {
	s.fill()
	return &Engine{
		Settings: s, ring: s.Keys.Clone(), lines: map[archive.Line]*memo{},
		blooms: newBloomCache(s.Memory / 16),
	}
}

// memo returns what is known of a line. One goroutine at a time works on it.
func (e *Engine) memo(l archive.Line) *memo {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := e.lines[l]
	if m == nil {
		m = &memo{anchor: -1, warned: -1, listed: -1, tenants: map[string]bool{}, logs: map[string]*logState{}, apart: map[string]bool{}, looked: map[look]string{}, gone: map[string]bool{}, locked: map[string]bool{}, told: map[string]bool{}, tags: map[string]tagged{}}
		e.lines[l] = m
	}
	return m
}

// Forget drops what is remembered of a line that is no longer this engine's.
func (e *Engine) Forget(l archive.Line) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.lines, l)
}

func halt(format string, a ...any) error {
	return fmt.Errorf("%w: %w", ErrHalted, fmt.Errorf(format, a...))
}
