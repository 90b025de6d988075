package compaction

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/control"
)

var planLine = archive.Line{Topic: "audit.calls", TopicID: "kTq2VqYJQ0mFvY8v2b3m0A", Partition: 3}

// noon is when plans are made here, of a day with rows.
var noon = time.Date(2026, 5, 28, 12, 0, 0, 0, time.UTC)

// A sketch is what a plan is made of, as a test writes it down: files as
// "tenant day rows kilobytes", anchored segments by their minutes of age.
type sketch struct {
	files    []string
	segments []int
	doomed   map[string]int64 // since
	versions []int            // minutes since they were written; the last one is the base
	orders   []Duty
	entries  []archive.CatalogRedaction
	cuts     map[string]int64
	made     int64
	settings func(*Settings)
}

func (k *sketch) sight() *Sight {
	s := &Sight{Line: planLine, Tenants: map[string]bool{}, StoreNow: noon, Versions: map[int64]time.Time{}}
	next := map[string]int64{}
	for _, text := range k.files {
		var f archive.CatalogFile
		var kb int64
		if _, err := fmt.Sscanf(text, "%s %s %d %d", &f.Tenant, &f.Day, &f.Rows, &kb); err != nil {
			panic(err)
		}
		f.FirstSeq, f.Bytes = next[f.Tenant], kb<<10
		f.LastSeq = f.FirstSeq + f.Rows - 1
		next[f.Tenant] += f.Rows
		first, last := f.FirstSeq*10, f.LastSeq*10
		f.FirstOffset, f.LastOffset = &first, &last
		f.Key = fmt.Sprintf("%s/%d", f.Tenant, f.FirstSeq)
		s.Files = append(s.Files, f)
		s.Tenants[f.Tenant] = true
	}
	base := &archive.Catalog{Watermark: 100, Version: int64(len(k.versions) - 1), Redactions: k.entries}
	for v, age := range k.versions {
		if age >= 0 {
			s.Versions[int64(v)] = noon.Add(-time.Duration(age) * time.Minute)
		}
	}
	for _, key := range sortedKeys(k.doomed) {
		base.Doomed = append(base.Doomed, archive.CatalogDoomed{Key: key, Since: k.doomed[key]})
	}
	s.Base = &archive.CatalogVersion{Catalog: base, Key: "base"}
	for i, age := range k.segments {
		a := &archive.Anchor{Number: int64(i), Ordinal: 100 + int64(i), Time: archive.Time{Time: noon.Add(-time.Duration(age) * time.Minute)}}
		a.Segments = []archive.AnchorSegment{{Ordinal: a.Ordinal, Bytes: 10 << 10, AnchorCounts: archive.AnchorCounts{Rows: 32}}}
		s.Anchors, s.Newest = append(s.Anchors, a), a
	}
	if s.Newest == nil {
		s.Newest = &archive.Anchor{Ordinal: 99}
	}
	s.Made = k.made
	return s
}

func (k *sketch) plan() *Plan {
	o := Settings{Root: archive.Root{GraceSeconds: 3600}, TargetBytes: 1 << 20, MergeFiles: 4}
	if k.settings != nil {
		k.settings(&o)
	}
	o.fill()
	d := &Duties{Orders: k.orders, Cuts: map[string]*control.Row{}}
	for tenant, size := range k.cuts {
		d.Cuts[tenant] = &control.Row{Tenant: tenant, ID: "cut", Cut: &control.Cut{Log: planLine, Size: size}}
	}
	return makePlan(k.sight(), d, &o, map[string]bool{}, noon)
}

// text writes a plan as tests compare it.
func (p *Plan) text() string {
	var b strings.Builder
	if p.Compact.Why != "" {
		fmt.Fprintf(&b, "compact %d-%d; ", p.Compact.From, p.Compact.To)
	}
	for _, list := range []struct {
		name  string
		steps []Step
	}{{"look", p.Look}, {"drop", p.Drop}, {"merge", p.Merge}} {
		for _, s := range list.steps {
			fmt.Fprintf(&b, "%s %s; ", list.name, strings.Join(append(slices.Clone(s.Keys), s.Orders...), " "))
		}
	}
	for _, key := range p.Delete {
		fmt.Fprintf(&b, "delete %s; ", key)
	}
	for _, key := range p.Doom {
		fmt.Fprintf(&b, "doom %s; ", key[len(key)-7:])
	}
	for _, o := range p.Orders {
		fmt.Fprintf(&b, "order %s %s>%s; ", o.ID, o.From, o.To)
	}
	return strings.TrimSuffix(b.String(), "; ")
}

func due(id string, target control.Target) Duty {
	return Duty{Row: &control.Row{Tenant: "a", ID: id, Kind: audit.KindRedaction, Redaction: &control.Redaction{Target: target, Erasure: control.Erasure{All: true}}}, Due: true}
}

func ptr[T any](v T) *T { return &v }

// What a pass does follows from what it found.
func TestPlans(t *testing.T) {
	session := control.Target{Session: ptr("s")}
	notDue := due("o", session)
	notDue.Due = false
	closed := due("o", session)
	closed.Closed = true
	receipted := due("o", session)
	receipted.Receipted, receipted.Receipts = true, [][2]int64{{3, 4}}
	few := func(n, age int) (ages []int) {
		for range n {
			ages = append(ages, age)
		}
		return ages
	}
	for name, c := range map[string]struct {
		sketch
		want string
	}{
		"nothing":                       {sketch{}, ""},
		"young segments wait":           {sketch{segments: few(63, 9)}, ""},
		"many do not":                   {sketch{segments: few(64, 0)}, "compact 100-164"},
		"of many logs":                  {sketch{segments: few(99, 0), made: 100}, ""},
		"of as many":                    {sketch{segments: few(100, 0), made: 100}, "compact 100-200"},
		"old ones do not":               {sketch{segments: few(3, 10)}, "compact 100-103"},
		"once":                          {sketch{segments: few(1, 0), settings: func(s *Settings) { s.Once = true }}, "compact 100-101"},
		"as many as a pass takes":       {sketch{segments: few(64, 0), settings: func(s *Settings) { s.Memory = 24 * 25 << 10 }}, "compact 100-102"},
		"an order needs them":           {sketch{segments: few(1, 0), files: []string{"a 2026-05-28 5 10"}, orders: []Duty{due("o", session)}}, "compact 100-101; look a/0 o; order o >purged"},
		"an order that is not due":      {sketch{segments: few(1, 0), files: []string{"a 2026-05-28 5 10"}, orders: []Duty{notDue}}, "order o >gated"},
		"of a tenant without a log":     {sketch{files: []string{"b 2026-05-28 5 10"}, orders: []Duty{due("o", session)}}, ""},
		"of another line":               {sketch{files: []string{"a 2026-05-28 5 10"}, orders: []Duty{due("o", control.Target{Log: &archive.Line{Topic: "x"}, Offset: ptr(int64(20))})}}, ""},
		"of an offset":                  {sketch{files: []string{"a 2026-05-28 5 600", "a 2026-05-28 5 600"}, orders: []Duty{due("o", control.Target{Log: &planLine, Offset: ptr(int64(60))})}}, "look a/5 o; order o >purged"},
		"of a prefix":                   {sketch{files: []string{"a 2026-05-28 5 600", "a 2026-05-28 5 600"}, orders: []Duty{due("o", control.Target{Log: &planLine, Before: ptr(int64(5))})}}, "look a/0 o; order o >purged"},
		"purged":                        {sketch{files: []string{"a 2026-05-28 5 10"}, orders: []Duty{due("o", session)}, entries: []archive.CatalogRedaction{{Tenant: "a", ID: "o", State: archive.RedactionPurged}}}, "order o purged>gone"},
		"gone and not receipted":        {sketch{files: []string{"a 2026-05-28 5 10"}, orders: []Duty{due("o", session)}, entries: []archive.CatalogRedaction{{Tenant: "a", ID: "o", State: archive.RedactionGone}}}, ""},
		"receipted but for late rows":   {sketch{files: []string{"a 2026-05-28 9 10"}, orders: []Duty{receipted}, entries: []archive.CatalogRedaction{{Tenant: "a", ID: "o", State: archive.RedactionGone, Erased: [][2]int64{{3, 5}}}}}, ""},
		"receipted":                     {sketch{files: []string{"a 2026-05-28 9 10"}, orders: []Duty{receipted}, entries: []archive.CatalogRedaction{{Tenant: "a", ID: "o", State: archive.RedactionGone, Erased: [][2]int64{{3, 4}}}}}, "order o gone>receipted"},
		"closed":                        {sketch{files: []string{"a 2026-05-28 5 10"}, orders: []Duty{closed}, entries: []archive.CatalogRedaction{{Tenant: "a", ID: "o", State: archive.RedactionReceipted}}}, "order o receipted>"},
		"a cut":                         {sketch{files: []string{"a 2026-05-28 5 10", "a 2026-05-28 5 10", "a 2026-05-28 5 10"}, cuts: map[string]int64{"a": 7}}, "drop a/0; drop a/5"},
		"a cut at the end of a file":    {sketch{files: []string{"a 2026-05-28 5 10", "a 2026-05-28 5 10"}, cuts: map[string]int64{"a": 5}}, "drop a/0"},
		"a cut beyond what there is":    {sketch{files: []string{"a 2026-05-28 5 10"}, cuts: map[string]int64{"a": 6}}, ""},
		"a cut of what is in segments":  {sketch{files: []string{"a 2026-05-28 5 10"}, segments: few(1, 0), cuts: map[string]int64{"a": 6}}, "compact 100-101"},
		"young doomed keys stay":        {sketch{doomed: map[string]int64{"x": 0, "y": 1}, versions: []int{60, 10}}, ""},
		"old ones go":                   {sketch{doomed: map[string]int64{"x": 0, "y": 1}, versions: []int{61, 60}}, "delete x"},
		"since a version that is gone":  {sketch{doomed: map[string]int64{"x": 0, "y": 1}, versions: []int{-1, 10}}, "delete x"},
		"versions that were replaced":   {sketch{versions: []int{200, 61, 10}}, "doom 00.note"},
		"few neighbours":                {sketch{files: []string{"a 2026-05-28 5 10", "a 2026-05-28 5 10", "a 2026-05-28 5 10"}}, ""},
		"as many as make a level":       {sketch{files: []string{"a 2026-05-28 5 10", "a 2026-05-28 5 10", "a 2026-05-28 5 10", "a 2026-05-28 5 10"}}, "merge a/0 a/5 a/10 a/15"},
		"of different size":             {sketch{files: []string{"a 2026-05-28 5 300", "a 2026-05-28 5 10", "a 2026-05-28 5 10", "a 2026-05-28 5 10"}}, ""},
		"of different tenants":          {sketch{files: []string{"a 2026-05-28 5 10", "a 2026-05-28 5 10", "b 2026-05-28 5 10", "b 2026-05-28 5 10"}}, ""},
		"of a day that is over":         {sketch{files: []string{"a 2026-05-27 5 300", "a 2026-05-27 5 10", "a 2026-05-28 5 10"}}, "merge a/0 a/5"},
		"of a day with full files":      {sketch{files: []string{"a 2026-05-27 5 10", "a 2026-05-27 5 600", "a 2026-05-27 5 10", "a 2026-05-28 5 10"}}, ""},
		"no more than a full file":      {sketch{files: []string{"a 2026-05-27 5 400", "a 2026-05-27 5 400", "a 2026-05-27 5 400", "a 2026-05-28 5 10"}}, "merge a/0 a/5"},
		"while more may come":           {sketch{files: []string{"a 2026-05-27 5 10", "a 2026-05-27 5 10"}, segments: few(1, 0)}, ""},
		"a line whose last day is over": {sketch{files: []string{"a 2026-05-27 5 10", "a 2026-05-27 5 10"}}, "merge a/0 a/5"},
	} {
		if c.versions == nil {
			c.versions = []int{10}
		}
		if got := c.plan().text(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// However many files a day gets, merging comes to an end, and writes each row
// again no more often than there are levels, and twice besides.
func TestMergesAreFewAndComeToAnEnd(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		k := sketch{versions: []int{10}}
		o := Settings{Root: archive.Root{GraceSeconds: 3600}, TargetBytes: 4 << 20, MergeFiles: 2 + r.IntN(7)}
		o.fill()
		s := k.sight()
		written, rows := int64(0), int64(0)
		for arrivals := 1 + r.IntN(200); arrivals >= 0; arrivals-- {
			now := noon
			if arrivals == 0 {
				now = noon.Add(48 * time.Hour)
			} else {
				n := 1 + r.Int64N(500)
				s.Files = append(s.Files, archive.CatalogFile{Tenant: "a", Day: "2026-05-28", Key: fmt.Sprint("n", rows), FirstSeq: rows, LastSeq: rows + n - 1, Rows: n, Bytes: 11<<10 + n*250})
				rows += n
			}
			for rounds := 0; ; rounds++ {
				p := makePlan(s, &Duties{}, &o, nil, now)
				if len(p.Merge) == 0 {
					break
				}
				if rounds > 20 {
					t.Fatal("merges without end")
				}
				written += merged(s, p)
			}
		}
		for i := 1; i < len(s.Files); i++ {
			if a, b := s.Files[i-1].Bytes, s.Files[i].Bytes; max(a, b) <= o.TargetBytes/2 {
				t.Fatalf("files of %d and %d bytes are left of a day that is over", a, b)
			}
		}
		levels := int64(2)
		for b := int64(11 << 10); b < o.TargetBytes; b *= int64(o.MergeFiles) {
			levels++
		}
		if written > rows*levels {
			t.Fatalf("%d rows were written %d times, with %d levels", rows, written, levels)
		}
	}
}

// merged carries out the merges of a plan, and returns how many rows were written.
func merged(s *Sight, p *Plan) (rows int64) {
	for _, m := range p.Merge {
		i := slices.IndexFunc(s.Files, func(f archive.CatalogFile) bool { return f.Key == m.Keys[0] })
		f := s.Files[i]
		f.Key, f.LastSeq, f.Rows, f.Bytes = f.Key+"+", m.To-1, m.Rows, m.Bytes*9/10
		s.Files = slices.Replace(s.Files, i, i+len(m.Keys), f)
		rows += m.Rows
	}
	return rows
}

// Ranges are sets of numbers.
func TestRanges(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	set := func(ranges [][2]int64) map[int64]bool {
		m := map[int64]bool{}
		for i, x := range ranges {
			for n := x[0]; n <= x[1]; n++ {
				m[n] = true
			}
			if i > 0 && ranges[i-1][1]+1 >= x[0] {
				return nil
			}
		}
		return m
	}
	random := func() (ranges [][2]int64) {
		for range r.IntN(6) {
			from := r.Int64N(30)
			ranges = append(ranges, [2]int64{from, from + r.Int64N(5)})
		}
		return ranges
	}
	for range 2000 {
		a, b := union(nil, random()), random()
		both, left := set(union(a, b)), without(a, b)
		for n := range int64(40) {
			in := func(ranges [][2]int64) bool {
				return slices.ContainsFunc(ranges, func(x [2]int64) bool { return x[0] <= n && n <= x[1] })
			}
			if both == nil || both[n] != (in(a) || in(b)) || in(left) != (in(a) && !in(b)) {
				t.Fatalf("%v and %v: union %v, without %v", a, b, union(a, b), left)
			}
		}
	}
}
