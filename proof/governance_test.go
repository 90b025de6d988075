package proof_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// governed reads what governs an archive, and says it in a line: of each control
// row its tenant, the last digits of its id, and "-" where it does not count.
func governed(t *testing.T, a *prooftest.Archive, keys *sign.Ring) string {
	t.Helper()
	g, err := control.Read(t.Context(), prooftest.Bucket(a.Objects()), readOptions(t, a, keys))
	return said(g, err)
}

func readOptions(t *testing.T, a *prooftest.Archive, keys *sign.Ring) control.ReadOptions {
	t.Helper()
	root, err := archive.DecodeRoot(a.Root)
	if err != nil {
		t.Fatal(err)
	}
	return control.ReadOptions{Root: root, Keys: keys, LogKeys: func(chain.Log) ([]byte, bool) { return prooftest.LogKey, true }}
}

func said(g *control.Governance, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	var all []string
	for _, tenant := range g.Tenants() {
		for _, r := range slices.SortedFunc(g.Tenant(tenant).Rows(), func(a, b *control.Row) int { return int(a.Seq - b.Seq) }) {
			counts := ""
			if !r.Anchored {
				counts = "-"
			}
			all = append(all, fmt.Sprintf("%s%s:%s", counts, r.Tenant, r.ID[24:]))
		}
		if err := g.Fault(tenant); err != nil {
			all = append(all, "fault of "+tenant+": "+err.Error())
		}
	}
	return strings.Join(all, " ")
}

// redaction adds a redaction to a control line.
func redaction(b *prooftest.Batch, tenant string, n int) {
	b.Order(tenant, audit.KindRedaction, prooftest.OrderID(n), prooftest.Redaction(map[string]any{"turnId": "turn-0"}, "*"))
}

// What control logs say is read from wherever compaction left it, and counts as
// far as an anchor leads to it; a row that was changed takes all others of its
// tenant with it, and nothing of others.
func TestGovernanceIsRead(t *testing.T) {
	build := func() (*prooftest.Archive, *prooftest.Line) {
		a := prooftest.New()
		a.Signers = []*sign.Signer{keyA}
		l := a.Line(audit.ControlTopic, 0)
		l.Segment(func(b *prooftest.Batch) { redaction(b, "acme", 10); redaction(b, "globex", 11) })
		l.Anchor()
		l.Segment(func(b *prooftest.Batch) {
			b.Reject("acme", audit.ReasonUnauthorised, []byte("{}"))
			redaction(b, "acme", 12)
		})
		l.Anchor()
		l.Segment(func(b *prooftest.Batch) { redaction(b, "acme", 13) })
		return a, l
	}
	const whole = "acme:10 acme:12 -acme:13 globex:11"
	for name, c := range map[string]struct {
		want   string
		change func(a *prooftest.Archive, l *prooftest.Line)
	}{
		"as it is":  {whole, func(*prooftest.Archive, *prooftest.Line) {}},
		"compacted": {whole, func(_ *prooftest.Archive, l *prooftest.Line) { l.Compact(prooftest.Compaction{Watermark: 1}) }},
		"compacted as far as can be": {whole, func(_ *prooftest.Archive, l *prooftest.Line) {
			l.Compact(prooftest.Compaction{Watermark: 2, FileRows: 1})
		}},
		"compacted twice": {whole, func(_ *prooftest.Archive, l *prooftest.Line) {
			l.Compact(prooftest.Compaction{Watermark: 1, Doom: true})
			l.Compact(prooftest.Compaction{Watermark: 2, ULID: prooftest.OrderID(99)})
		}},
		"its own context erased": {whole, func(_ *prooftest.Archive, l *prooftest.Line) {
			l.Compact(prooftest.Compaction{Watermark: 2, Change: func(row *chain.Row) {
				if row.RecordID.S == prooftest.OrderID(10) {
					prooftest.Erase(row, prooftest.OrderID(10), audit.SlotContext)
				}
			}})
		}},
		"a newest segment that is none": {"acme:10 acme:12 globex:11", func(_ *prooftest.Archive, l *prooftest.Line) { l.Segments[2].Body = []byte("PAR1") }},
		"an anchored one that is none": {"error: control log ledgerlake.control/0 (lHgdmb9Y8GJTuzVHziXuLA): log/", func(_ *prooftest.Archive, l *prooftest.Line) {
			l.Segments[1].Body = []byte("PAR1")
		}},
		"a row changed": {"-acme:10 -acme:12 -acme:13 fault of acme: control log of the tenant in ledgerlake.control/0: seq 0: row_hash does not recompute globex:11", func(_ *prooftest.Archive, l *prooftest.Line) {
			l.Segments[0].Rows[0].ActorKind = audit.Str("other")
			l.Segments[0].Encode()
		}},
		"a row changed, and all behind it made anew": {"-acme:10 -acme:12 -acme:13 fault of acme: control log of the tenant in ledgerlake.control/0: its head at size 3 is not the one that the newest anchor states globex:11", func(_ *prooftest.Archive, l *prooftest.Line) {
			l.Segments[1].Rows[1].ActorKind = audit.Str("other")
			l.Restamp()
		}},
		"rows missing in a data file": {"error", func(_ *prooftest.Archive, l *prooftest.Line) {
			l.Compact(prooftest.Compaction{Watermark: 2, Drop: map[string]*prooftest.Cut{"acme": l.CutAt("acme", prooftest.OrderID(40), 2)}, Catalog: func(c *archive.Catalog) { c.Cuts = nil }})
		}},
		"a segment missing":        {"error", func(a *prooftest.Archive, l *prooftest.Line) { a.Gone[l.Key(1)] = true }},
		"the first anchor missing": {"-acme:10 -acme:12 -acme:13 -globex:11", func(a *prooftest.Archive, l *prooftest.Line) { a.Gone[l.AnchorKey(0)] = true }},
		"no anchor":                {"-acme:10 -acme:12 -acme:13 -globex:11", func(_ *prooftest.Archive, l *prooftest.Line) { l.Anchors = nil }},
		"another archive's":        {"error", func(a *prooftest.Archive, _ *prooftest.Line) { a.Root = append(a.Root, ' ') }},
		"a reset": {"acme:10 acme:12 -acme:14 globex:11", func(_ *prooftest.Archive, l *prooftest.Line) {
			voided := l.RollBack(2)
			l.Segment(func(b *prooftest.Batch) { b.Reset("acme", "operator", voided...); redaction(b, "acme", 14) })
		}},
	} {
		for keyed, keys := range map[string]*sign.Ring{"": nil, ", with keys": ring(t, keyA)} {
			a, l := build()
			c.change(a, l)
			if got := governed(t, a, keys); !strings.HasPrefix(got, c.want) || c.want == whole && got != whole {
				t.Errorf("%s%s: %s, want %s", name, keyed, got, c.want)
			}
		}
	}
}

// With keys, only what a good key has signed counts: the anchors, and once
// control keys are in force, the rows.
func TestGovernanceIsSigned(t *testing.T) {
	build := func() (*prooftest.Archive, *prooftest.Line) {
		a := prooftest.New()
		a.Signers = []*sign.Signer{keyA}
		l := a.Line(audit.ControlTopic, 0)
		l.Segment(func(b *prooftest.Batch) { redaction(b, "acme", 10) })
		l.Anchor()
		return a, l
	}
	signed := func(b *prooftest.Batch, n, of int, by *sign.Signer) {
		b.OrderSigned("acme", audit.KindRedaction, prooftest.OrderID(n), prooftest.OrderID(of), prooftest.Redaction(map[string]any{"turnId": "turn-0"}, "*"), by)
	}
	stranger := prooftest.Signer("other.example/key")
	for name, c := range map[string]struct {
		want string
		more func(a *prooftest.Archive, l *prooftest.Line)
	}{
		"no control keys": {"acme:10 acme:11", func(_ *prooftest.Archive, l *prooftest.Line) {
			l.Segment(func(b *prooftest.Batch) { redaction(b, "acme", 11) })
			l.Anchor()
		}},
		"an anchor of a stranger": {"acme:10 -acme:11", func(a *prooftest.Archive, l *prooftest.Line) {
			a.Signers = []*sign.Signer{stranger}
			l.Segment(func(b *prooftest.Batch) { redaction(b, "acme", 11) })
			l.Anchor()
		}},
		"an anchor without signature": {"acme:10 -acme:11", func(a *prooftest.Archive, l *prooftest.Line) {
			a.Signers = nil
			l.Segment(func(b *prooftest.Batch) { redaction(b, "acme", 11) })
			l.Anchor()
		}},
		"behind it a good one": {"acme:10 acme:11", func(a *prooftest.Archive, l *prooftest.Line) {
			a.Signers = nil
			l.Segment(func(b *prooftest.Batch) { redaction(b, "acme", 11) })
			l.Anchor()
			a.Signers = []*sign.Signer{keyA}
			l.Anchor()
		}},
		"control keys, and signed rows": {"acme:10 acme:11 -acme:12 -acme:13 -acme:14", func(a *prooftest.Archive, l *prooftest.Line) {
			a.Keys.Control = []string{keyB.VKey()}
			l.Anchor()
			a.Later(time.Hour)
			l.Segment(func(b *prooftest.Batch) {
				signed(b, 11, 11, keyB)
				redaction(b, "acme", 12)
				signed(b, 13, 13, stranger)
				signed(b, 14, 11, keyB)
			})
			l.Anchor()
		}},
		"control keys, for less than five minutes": {"acme:10 acme:11", func(a *prooftest.Archive, l *prooftest.Line) {
			a.Keys.Control = []string{keyB.VKey()}
			l.Anchor()
			a.Later(4 * time.Minute)
			l.Segment(func(b *prooftest.Batch) { redaction(b, "acme", 11) })
			l.Anchor()
		}},
		"control keys that anchors list no more": {"acme:10 acme:11 -acme:12", func(a *prooftest.Archive, l *prooftest.Line) {
			a.Keys.Control = []string{keyB.VKey()}
			l.Anchor()
			a.Keys.Control = []string{}
			for range 150 {
				l.Anchor()
			}
			a.Later(time.Hour)
			l.Segment(func(b *prooftest.Batch) { signed(b, 11, 11, keyB); redaction(b, "acme", 12) })
			l.Anchor()
		}},
		"a catalog of a stranger": {"error", func(a *prooftest.Archive, l *prooftest.Line) {
			a.Signers = []*sign.Signer{stranger}
			l.Compact(prooftest.Compaction{Watermark: 1})
		}},
		"a catalog of a key that anchors introduce": {"acme:10", func(a *prooftest.Archive, l *prooftest.Line) {
			a.Keys.Catalog = []string{keyB.VKey()}
			l.Anchor()
			a.Signers = []*sign.Signer{keyB}
			l.Compact(prooftest.Compaction{Watermark: 1})
		}},
	} {
		a, l := build()
		c.more(a, l)
		if got := governed(t, a, ring(t, keyA)); !strings.HasPrefix(got, c.want) || strings.Contains(got, "fault") {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A reader that goes on says at each step what one that begins anew says, and
// reads no object twice but notes of the catalog, and anchors: once more for the
// keys that they introduce.
func TestGovernanceIsReadAgain(t *testing.T) {
	a := prooftest.New()
	a.Signers = []*sign.Signer{keyA}
	l := a.Line(audit.ControlTopic, 0)
	src := &counted{Memory: archive.NewMemory(), gets: map[string]int{}}
	r := control.NewReader(src, readOptions(t, a, ring(t, keyA)))
	have := map[string]bool{}
	step := func(name string) {
		t.Helper()
		for key, body := range a.Objects() {
			if !have[key] {
				have[key] = true
				if _, err := src.Create(t.Context(), key, body); err != nil {
					t.Fatal(err)
				}
			}
		}
		for key := range maps.Keys(a.Gone) {
			for v, err := range src.Versions(t.Context(), key) {
				if err == nil {
					src.Delete(t.Context(), []archive.Version{v})
				}
			}
		}
		if got, want := said(r.Read(t.Context())), governed(t, a, ring(t, keyA)); got != want || got == "" {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for i := range 5 {
		l.Segment(func(b *prooftest.Batch) { redaction(b, "acme", 10+2*i) })
		step("not anchored yet")
		l.Anchor()
		step("anchored")
	}
	l.Compact(prooftest.Compaction{Watermark: 2})
	step("compacted")
	l.Compact(prooftest.Compaction{Watermark: 4, ULID: prooftest.OrderID(99)})
	step("compacted again")
	for key, n := range src.gets {
		most := 1
		switch {
		case strings.HasPrefix(key, "anchor/"):
			most = 2
		case strings.HasPrefix(key, "catalog/") && strings.HasSuffix(key, ".note"):
			continue
		}
		if n > most {
			t.Errorf("%s was read %d times", key, n)
		}
	}
}

// counted counts how often objects are read.
type counted struct {
	*archive.Memory
	gets map[string]int
}

func (c *counted) Get(ctx context.Context, key string) ([]byte, error) {
	c.gets[key]++
	return c.Memory.Get(ctx, key)
}
