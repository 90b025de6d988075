//go:build it

package lookup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/export"
)

// What a look-up of a turn may take for a data file.
const (
	missGets = 2
	hitGets  = 8
	hitBytes = 16 << 20
)

// A spent is what was read of one object.
type spent struct{ gets, bytes int64 }

// A meter counts what is read of each object.
type meter struct {
	archive.Ranger
	mu    sync.Mutex
	spent map[string]spent
}

func (m *meter) add(key string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.spent[key]
	m.spent[key] = spent{s.gets + 1, s.bytes + int64(n)}
}

// take returns what was counted, and begins anew.
func (m *meter) take() map[string]spent {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.spent
	m.spent = map[string]spent{}
	return all
}

func (m *meter) Get(ctx context.Context, key string) ([]byte, error) {
	b, err := m.Ranger.Get(ctx, key)
	m.add(key, len(b))
	return b, err
}

func (m *meter) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	b, size, err := m.Ranger.GetTail(ctx, key, n)
	m.add(key, len(b))
	return b, size, err
}

func (m *meter) GetRange(ctx context.Context, key string, offset, n int64) ([]byte, error) {
	b, err := m.Ranger.GetRange(ctx, key, offset, n)
	m.add(key, len(b))
	return b, err
}

// A kind is a kind of look-up.
type kind struct {
	name    string
	from    int // which samples it is about
	limited bool
	doubts  int64 // how many files in a hundred a filter may leave in doubt
	find    func(context.Context, *export.Archive, *sample) ([]*export.Row, error)
	want    func(*sample) places
}

func (b *Bench) kinds() []kind {
	t := b.truth
	of := func(column string, value func(*sample) string) func(*sample) places {
		return func(s *sample) places { return t.places[asked{column, value(s)}] }
	}
	turns := of("turn_id", func(s *sample) string { return s.turn })
	both := func(s *sample) places { return t.places[s.both()] }
	turn := func(ctx context.Context, a *export.Archive, s *sample) ([]*export.Row, error) {
		return a.Turn(ctx, t.tenant, s.session, s.turn)
	}
	return []kind{
		{"turn of a session", 0, true, 1, turn, both},
		{"turn", 0, true, 1, func(ctx context.Context, a *export.Archive, s *sample) ([]*export.Row, error) {
			return a.Turn(ctx, t.tenant, "", s.turn)
		}, turns},
		{"turn that is not there", 0, true, 1, func(ctx context.Context, a *export.Archive, s *sample) ([]*export.Row, error) {
			return a.Turn(ctx, t.tenant, "", s.turn+"-no")
		}, func(*sample) places { return nil }},
		{"turn above the watermark", 1, true, 1, turn, both},
		{"record", 0, true, 5, func(ctx context.Context, a *export.Archive, s *sample) ([]*export.Row, error) {
			return a.Record(ctx, t.tenant, s.record)
		}, of("record_id", func(s *sample) string { return s.record })},
		{"session", 0, false, 0, func(ctx context.Context, a *export.Archive, s *sample) ([]*export.Row, error) {
			return a.Session(ctx, t.tenant, s.session, export.Page{Limit: 100_000})
		}, of("session_id", func(s *sample) string { return s.session })},
		{"person", 0, false, 0, func(ctx context.Context, a *export.Archive, s *sample) (all []*export.Row, err error) {
			for row, err := range a.Subject(ctx, t.tenant, s.user) {
				if err != nil {
					return nil, err
				}
				all = append(all, row)
			}
			return all, nil
		}, of("user_id", func(s *sample) string { return s.user })},
	}
}

// A tally is what look-ups of one kind took.
type tally struct {
	kind
	asked, rows       int
	misses, hits      spread // of data files without and with the rows
	doubted           int    // files without them that a filter did not deny
	segments, opening spread // of a look-up
	cpu               time.Duration
	faults            []string
}

// A spread is numbers of GETs and bytes.
type spread struct {
	n, gets, bytes      int64
	mostGets, mostBytes int64
}

func (s *spread) add(x spent) {
	s.n, s.gets, s.bytes = s.n+1, s.gets+x.gets, s.bytes+x.bytes
	s.mostGets, s.mostBytes = max(s.mostGets, x.gets), max(s.mostBytes, x.bytes)
}

func (s *spread) String() string {
	if s.n == 0 {
		return "\t\t"
	}
	return fmt.Sprintf("%.1f, %d\t%.2f, %.2f\t", float64(s.gets)/float64(s.n), s.mostGets, float64(s.bytes)/float64(s.n)/(1<<20), float64(s.mostBytes)/(1<<20))
}

// ask makes all look-ups, and prints what they took.
func (b *Bench) ask(ctx context.Context) error {
	b.whole()
	var all []*tally
	for _, k := range b.kinds() {
		t := &tally{kind: k}
		for i := range b.truth.asked[k.from] {
			if err := b.one(ctx, t, &b.truth.asked[k.from][i]); err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
		}
		all = append(all, t)
	}
	b.print(all)
	b.sumUp(all)
	return limits(all)
}

// sumUp fills in what callers of Measure get.
func (b *Bench) sumUp(all []*tally) {
	b.result.Rows = b.Plan.Rows
	for _, o := range b.truth.objects {
		b.result.Whole.Gets++
		b.result.Whole.Bytes += float64(o.size)
	}
	for _, t := range all {
		n := max(t.asked, 1)
		b.result.Kinds = append(b.result.Kinds, Kind{
			Name: t.name, Rows: float64(t.rows) / float64(n), CPU: t.cpu / time.Duration(n), Open: t.opening.mean(n),
			Cost: Cost{
				Gets:  float64(t.misses.gets+t.hits.gets+t.segments.gets) / float64(n),
				Bytes: float64(t.misses.bytes+t.hits.bytes+t.segments.bytes) / float64(n),
			},
		})
	}
}

// mean is what each of n look-ups took.
func (s *spread) mean(n int) Cost {
	return Cost{float64(s.gets) / float64(n), float64(s.bytes) / float64(n)}
}

// whole prints what reading all files of the tenant takes.
func (b *Bench) whole() {
	files, segments := spread{}, spread{}
	for _, o := range b.truth.objects {
		if o.segment {
			segments.add(spent{1, o.size})
		} else {
			files.add(spent{1, o.size})
		}
	}
	b.say("tenant %s: %d data files of %.1f MiB, the largest of %.1f; %d files of other tenants are excluded by the catalog; %d segments of %.1f MiB above the watermark",
		b.truth.tenant, files.n, float64(files.bytes)/(1<<20), float64(files.mostBytes)/(1<<20), b.truth.others, segments.n, float64(segments.bytes)/(1<<20))
}

// one makes a look-up, by an archive that knows nothing yet.
func (b *Bench) one(ctx context.Context, t *tally, s *sample) error {
	m := &meter{Ranger: b.bucket, spent: map[string]spent{}}
	a, err := export.Open(ctx, m, export.Options{})
	if err != nil {
		return err
	}
	t.opening.add(sum(m.take(), func(string) bool { return true }))
	before := cpu()
	rows, err := t.find(ctx, a, s)
	if err != nil {
		return err
	}
	t.cpu += cpu() - before
	t.asked, t.rows = t.asked+1, t.rows+len(rows)
	if err := same(rows, t.want(s)); err != nil {
		return fmt.Errorf("%+v: %w", *s, err)
	}
	b.count(t, m.take(), t.want(s))
	return nil
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// same requires that the rows are those that whole reading finds.
func same(rows []*export.Row, want places) error {
	got := places{}
	for _, r := range rows {
		got[r.Key] = append(got[r.Key], r.Seq.N)
	}
	for _, seqs := range got {
		slices.Sort(seqs)
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		return fmt.Errorf("found %v, and whole reading finds %v", got, want)
	}
	return nil
}

func sum(all map[string]spent, of func(key string) bool) (s spent) {
	for key, x := range all {
		if of(key) {
			s.gets, s.bytes = s.gets+x.gets, s.bytes+x.bytes
		}
	}
	return s
}

// count adds what a look-up took to a tally.
func (b *Bench) count(t *tally, all map[string]spent, want places) {
	t.segments.add(sum(all, func(key string) bool { return strings.HasPrefix(key, archive.LogPrefix) }))
	for _, o := range b.truth.objects {
		x := all[o.key]
		switch {
		case o.segment:
		case len(want[o.key]) > 0:
			if t.hits.add(x); t.limited && (x.gets > hitGets || x.bytes > hitBytes) {
				t.faults = append(t.faults, fmt.Sprintf("%d GETs and %d bytes for %s, which has the rows", x.gets, x.bytes, o.key))
			}
		default:
			if t.misses.add(x); x.gets > missGets {
				t.doubted++
			}
			if t.limited && (x.gets > hitGets || x.bytes > hitBytes) {
				t.faults = append(t.faults, fmt.Sprintf("%d GETs and %d bytes for %s, which has no such row", x.gets, x.bytes, o.key))
			}
		}
	}
	for key := range all {
		if strings.HasPrefix(key, archive.DataPrefix) && !slices.ContainsFunc(b.truth.objects, func(o object) bool { return o.key == key }) {
			t.faults = append(t.faults, key+" was read, and is of another tenant")
		}
	}
}

// print prints means and maxima.
func (b *Bench) print(all []*tally) {
	w := tabwriter.NewWriter(b.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\n\t\trows\tof a file without\t\t\tof a file with\t\tsegments, of a look-up\t\topening\t\t\t\n")
	fmt.Fprintf(w, "look-up\tasked\teach\tGETs, most\tMiB, most\tin doubt\tGETs, most\tMiB, most\tGETs, most\tMiB, most\tGETs, most\tMiB, most\tCPU ms\t\n")
	for _, t := range all {
		n := max(t.asked, 1)
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%s%d of %d\t%s%s%s%d\t\n", t.name, t.asked, float64(t.rows)/float64(n),
			&t.misses, t.doubted, t.misses.n, &t.hits, &t.segments, &t.opening, t.cpu.Milliseconds()/int64(n))
	}
	w.Flush()
	b.say("CPU is that of the look-up and of the store, which is in the same process.")
}

// limits returns an error where a look-up took more than it may.
func limits(all []*tally) error {
	var faults []error
	for _, t := range all {
		for _, f := range t.faults {
			faults = append(faults, fmt.Errorf("%s: %s", t.name, f))
		}
		if t.limited && t.doubted > 1 && int64(t.doubted)*100 > t.misses.n*t.doubts {
			faults = append(faults, fmt.Errorf("%s: %d of %d files without the rows took more than %d GETs", t.name, t.doubted, t.misses.n, missGets))
		}
	}
	return errors.Join(faults...)
}
