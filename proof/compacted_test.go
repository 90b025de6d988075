package proof_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A compacted is the compacted golden archive, open to change by whoever has its
// key.
type compacted struct {
	t       *testing.T
	objects map[string][]byte
	signer  *sign.Signer
	ring    *sign.Ring
	line    archive.Line
	control archive.Line
}

func readCompacted(t *testing.T) *compacted {
	t.Helper()
	g := readGolden(t)
	seed, err := hex.DecodeString(g.Seed)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.SplitN(g.VKey, "+", 3)
	signer, err := sign.NewSigner("PRIVATE+KEY+" + parts[0] + "+" + parts[1] + "+" + base64.StdEncoding.EncodeToString(append([]byte{1}, seed...)))
	if err != nil {
		t.Fatal(err)
	}
	ring := &sign.Ring{}
	if err := ring.Add(g.VKey, sign.AllRoles, "given"); err != nil {
		t.Fatal(err)
	}
	return &compacted{
		t: t, objects: readFolder(t, "testdata/golden/compacted"), signer: signer, ring: ring,
		line:    archive.Line{Topic: "audit.calls", TopicID: "kTq2VqYJQ0mFvY8v2b3m0A"},
		control: archive.Line{Topic: audit.ControlTopic, TopicID: "Zc9T1mB1Q7y4H2kq8J5xLw"},
	}
}

func (c *compacted) verify() *proof.Report {
	c.t.Helper()
	return verifyWith(c.t, c.objects, proof.Options{Keys: c.ring})
}

// must stops the test at an error.
func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// catalog changes the newest version of the catalog, and signs it.
func (c *compacted) catalog(change func(*archive.Catalog)) {
	c.t.Helper()
	key := archive.CatalogKey(c.line, 1)
	n := must[*sign.Note](c.t)(sign.Parse(c.objects[key]))
	doc := must[*archive.Catalog](c.t)(archive.DecodeCatalog(n.Text))
	change(doc)
	text := must[string](c.t)(archive.EncodeCatalog(doc))
	c.objects[key] = prooftest.Signed(text, c.signer)
}

// part changes the part that the newest version lists.
func (c *compacted) part(change func(*archive.CatalogPart)) {
	c.t.Helper()
	c.catalog(func(doc *archive.Catalog) {
		ref := &doc.Parts[0]
		p := must[*archive.CatalogPart](c.t)(archive.DecodeCatalogPart(c.objects[ref.Key]))
		change(p)
		body := must[[]byte](c.t)(archive.EncodeCatalogPart(p))
		delete(c.objects, ref.Key)
		ref.SHA256 = sha256.Sum256(body)
		ref.Key, ref.Bytes, ref.Files = archive.CatalogPartKey(c.line, ref.SHA256), int64(len(body)), int64(len(p.Files))
		c.objects[ref.Key] = body
	})
}

// file changes what the part says of a tenant's data file.
func (c *compacted) file(tenant string, change func(*archive.CatalogFile)) {
	c.t.Helper()
	c.part(func(p *archive.CatalogPart) {
		i := slices.IndexFunc(p.Files, func(f archive.CatalogFile) bool { return f.Tenant == tenant })
		change(&p.Files[i])
	})
}

// data changes the rows of a tenant's data file, and all that states its hash.
func (c *compacted) data(tenant string, change func([]chain.Row) []chain.Row) {
	c.t.Helper()
	c.file(tenant, func(f *archive.CatalogFile) {
		file := must[*parquet.File](c.t)(parquet.Open(c.objects[f.Key]))
		var rows []chain.Row
		for row, err := range file.Rows() {
			if err != nil {
				c.t.Fatal(err)
			}
			rows = append(rows, *row)
		}
		meta, _ := file.Metadata()
		body := must[[]byte](c.t)(parquet.NewEncoder().Encode(change(rows), meta))
		c.objects[f.Key] = body
		f.Bytes, f.SHA256 = int64(len(body)), sha256.Sum256(body)
	})
}

// row changes one row.
func (c *compacted) row(tenant string, i int, change func(*chain.Row)) {
	c.t.Helper()
	c.data(tenant, func(rows []chain.Row) []chain.Row {
		change(&rows[i])
		return rows
	})
}

const (
	turnOrder   = "01KBCDEFGHT5GEVQEZ2N000016" // turn-0 of acme, everything
	hardOrder   = "01KBCDEFGHTQSC0J4DZC000017" // one record of acme, hard
	expiryOrder = "01KBCDEFGHKCEXEGJ6ZB000018" // prompts of 東京 before seq 2
)

// Whoever has the key can sign what he likes, but not make the rest agree with
// it: each of these is exit 1, of its kind.
func TestTamperedCompactedArchives(t *testing.T) {
	const kyo = "東京"
	for name, c := range map[string]struct {
		kind   proof.FaultKind
		change func(*compacted)
	}{
		"a watermark above what anchors cover": {proof.FaultCatalog, func(c *compacted) { c.catalog(func(d *archive.Catalog) { d.Watermark = 7 }) }},
		"a watermark above the data files":     {proof.FaultMissing, func(c *compacted) { c.catalog(func(d *archive.Catalog) { d.Watermark = 5 }) }},
		"a watermark that went back":           {proof.FaultCatalog, func(c *compacted) { c.catalog(func(d *archive.Catalog) { d.Watermark = 2 }) }},
		"a version that follows another one":   {proof.FaultCatalog, func(c *compacted) { c.catalog(func(d *archive.Catalog) { d.Previous = &chain.Hash{} }) }},
		"a version before the one before":      {proof.FaultCatalog, func(c *compacted) { c.catalog(func(d *archive.Catalog) { d.Time.Time = d.Time.AddDate(-1, 0, 0) }) }},
		"another version's number":             {proof.FaultMisplaced, func(c *compacted) { c.catalog(func(d *archive.Catalog) { d.Version = 2 }) }},
		"another archive's catalog":            {proof.FaultMisplaced, func(c *compacted) { c.catalog(func(d *archive.Catalog) { d.ArchiveID = turnOrder }) }},
		"another line's catalog":               {proof.FaultCatalog, func(c *compacted) { c.catalog(func(d *archive.Catalog) { d.Partition = 1 }) }},
		"a cut of another size":                {proof.FaultCatalog, func(c *compacted) { c.catalog(func(d *archive.Catalog) { d.Cuts[0].Head = chain.Hash{} }) }},
		"a cut that nobody ordered":            {proof.FaultCatalog, func(c *compacted) { c.catalog(func(d *archive.Catalog) { d.Cuts[0].ID = turnOrder }) }},
		"a redaction that nobody ordered":      {proof.FaultCatalog, func(c *compacted) { c.catalog(func(d *archive.Catalog) { d.Redactions[0].ID = hardOrder[:25] + "9" }) }},
		"no parts":                             {proof.FaultMissing, func(c *compacted) { c.catalog(func(d *archive.Catalog) { d.Parts = nil }) }},
		"a part that is gone":                  {proof.FaultMissing, func(c *compacted) { c.catalog(func(d *archive.Catalog) { delete(c.objects, d.Parts[0].Key) }) }},
		"another number of files":              {proof.FaultCatalog, func(c *compacted) { c.catalog(func(d *archive.Catalog) { d.Parts[0].Files++ }) }},
		"another day's part":                   {proof.FaultCatalog, func(c *compacted) { c.catalog(func(d *archive.Catalog) { d.Parts[0].Day = "2026-05-29" }) }},
		"a file that is not listed":            {proof.FaultMissing, func(c *compacted) { c.part(func(p *archive.CatalogPart) { p.Files = p.Files[:2] }) }},
		"a file that is listed twice":          {proof.FaultCoverage, func(c *compacted) { c.part(func(p *archive.CatalogPart) { p.Files = append(p.Files, p.Files[2]) }) }},
		"a file that is gone":                  {proof.FaultMissing, func(c *compacted) { c.file(kyo, func(f *archive.CatalogFile) { delete(c.objects, f.Key) }) }},
		"offsets that the rows do not have":    {proof.FaultMetadata, func(c *compacted) { c.file(kyo, func(f *archive.CatalogFile) { *f.LastOffset++ }) }},
		"times that the rows do not have": {proof.FaultMetadata, func(c *compacted) {
			c.file(kyo, func(f *archive.CatalogFile) { f.MinCreatedAt.Time = f.MinCreatedAt.Add(time.Microsecond) })
		}},
		"a head that the rows do not have": {proof.FaultMetadata, func(c *compacted) { c.file(kyo, func(f *archive.CatalogFile) { f.HeadOut = chain.Hash{} }) }},
		"rows of another tenant": {proof.FaultMisplaced, func(c *compacted) {
			c.part(func(p *archive.CatalogPart) {
				f, o := &p.Files[2], p.Files[0]
				f.Tenant, f.Bytes, f.SHA256 = "x", o.Bytes, o.SHA256
				f.Key = archive.DataKey(c.line, "x", f.Day, f.FirstSeq, f.LastSeq, turnOrder)
				c.objects[f.Key] = c.objects[o.Key]
			})
		}},
		"a row that is gone": {proof.FaultLink, func(c *compacted) {
			c.data("acme", func(r []chain.Row) []chain.Row { return append(r[:2:2], r[3:]...) })
		}},
		"a row that was changed":        {proof.FaultRowHash, func(c *compacted) { c.row("acme", 2, func(r *chain.Row) { r.ModelID = audit.Str("other") }) }},
		"an erased row with a new kind": {proof.FaultRowHash, func(c *compacted) { c.row("acme", 0, func(r *chain.Row) { r.ModelID = audit.Str("other") }) }},
		"a slot that was changed":       {proof.FaultContent, func(c *compacted) { c.row(kyo, 1, func(r *chain.Row) { r.Slots[audit.SlotContext] = []byte("{}") }) }},
		"another user":                  {proof.FaultContent, func(c *compacted) { c.row("acme", 0, func(r *chain.Row) { r.UserID = audit.Str("other") }) }},
		"a derived column":              {proof.FaultColumn, func(c *compacted) { c.row("acme", 0, func(r *chain.Row) { r.RequestedModel = audit.Str("x") }) }},
		"a hard-erased row with a header": {proof.FaultState, func(c *compacted) {
			c.row("acme", 1, func(r *chain.Row) { r.SessionID = audit.Str("x") })
		}},
		"another epoch":       {proof.FaultColumn, func(c *compacted) { c.row("acme", 2, func(r *chain.Row) { r.Epoch = audit.I64(1) }) }},
		"a repeat of a later": {proof.FaultColumn, func(c *compacted) { c.row("acme", 2, func(r *chain.Row) { r.RepeatOf = audit.I64(2) }) }},
		"a repeat of another": {proof.FaultColumn, func(c *compacted) { c.row("acme", 3, func(r *chain.Row) { r.RepeatOf = audit.I64(2) }) }},
		"a hard-erased row's row_hash": {proof.FaultLink, func(c *compacted) {
			c.row("acme", 1, func(r *chain.Row) { r.RowHash = chain.Hash{} })
		}},
		"a row erased by an order of another turn": {proof.FaultErasure, func(c *compacted) { c.row("acme", 2, func(r *chain.Row) { prooftest.Erase(r, turnOrder) }) }},
		"a row erased by an order that is closed":  {proof.FaultErasure, func(c *compacted) { c.row("acme", 2, func(r *chain.Row) { prooftest.Erase(r, hardOrder) }) }},
		"a row erased by nobody's order":           {proof.FaultErasure, func(c *compacted) { c.row("acme", 2, func(r *chain.Row) { prooftest.Erase(r, hardOrder[:25]+"9") }) }},
		"a row erased by another tenant's order":   {proof.FaultErasure, func(c *compacted) { c.row("acme", 2, func(r *chain.Row) { prooftest.Erase(r, expiryOrder) }) }},
		"more erased than was ordered": {proof.FaultErasure, func(c *compacted) {
			c.row(kyo, 0, func(r *chain.Row) {
				rest := must[chain.Residual](c.t)(chain.NewHasher(nil).Residual(r, chain.SlotSetOf(audit.SlotContext)))
				r.UserSalt = chain.NullHash{Hash: chain.SlotSalt(r.RowSalt.Hash, "user_id"), Valid: true}
				r.RowSalt, r.Residual = chain.NullHash{}, audit.Str(rest.String())
				r.Slots[audit.SlotContext] = nil
				r.Redaction, r.RedactionID = audit.Str(chain.Sentinel{ID: expiryOrder, Slots: chain.SlotSetOf(audit.SlotContext)}.String()), audit.Str(expiryOrder)
			})
		}},
		"an object that a receipt calls deleted": {proof.FaultErasure, func(c *compacted) { c.bring(0, nil) }},
		"a doomed segment with other bytes":      {proof.FaultHash, func(c *compacted) { c.bring(1, func(b []byte) { flip(b, 8000) }) }},
		"another part with the name of one": {proof.FaultHash, func(c *compacted) {
			c.catalog(func(d *archive.Catalog) { c.objects[d.Parts[0].Key] = []byte(`{"files":[]}`) })
		}},
		"no control rows": {proof.FaultErasure, func(c *compacted) {
			for key := range c.objects {
				if strings.Contains(key, audit.ControlTopic) {
					delete(c.objects, key)
				}
			}
		}},
		"a segment behind the watermark that is gone": {proof.FaultMissing, func(c *compacted) { delete(c.objects, archive.SegmentKey(c.line, 4)) }},
		"the first segment behind the watermark":      {proof.FaultMissing, func(c *compacted) { delete(c.objects, archive.SegmentKey(c.line, 3)) }},
		"an anchor below the watermark that is gone":  {proof.FaultMissing, func(c *compacted) { delete(c.objects, archive.AnchorKey(c.line, 0)) }},
		"a catalog by another key": {proof.FaultSignature, func(c *compacted) {
			c.signer = prooftest.Signer("other.example/key")
			c.catalog(func(*archive.Catalog) {})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			a := readCompacted(t)
			c.change(a)
			r := a.verify()
			wantExit(t, r, 1)
			if !slices.ContainsFunc(r.Faults, func(f proof.Fault) bool { return f.Kind == c.kind }) {
				t.Errorf("no fault of kind %s: %v", c.kind, r.Faults)
			}
		})
	}
}

// bring puts a segment back that was compacted.
func (c *compacted) bring(ordinal int64, change func([]byte)) {
	c.t.Helper()
	key := archive.SegmentKey(c.line, ordinal)
	body := slices.Clone(readFolder(c.t, "testdata/golden/plain")[key])
	if change != nil {
		change(body)
	}
	c.objects[key] = body
}

// What is no tampering: each has its exit code, and says something.
func TestCompactedArchivesInBetween(t *testing.T) {
	for name, c := range map[string]struct {
		exit   int
		says   string
		change func(*compacted)
	}{
		"as it is":                             {4, "a/b starts after a cut at 1", func(*compacted) {}},
		"an older version that is gone":        {4, "gap", func(c *compacted) { delete(c.objects, archive.CatalogKey(c.line, 0)) }},
		"a doomed segment that is still there": {4, "gap", func(c *compacted) { c.bring(1, nil) }},
		"a doomed segment that no version there dooms": {4, "stray: 1 object", func(c *compacted) {
			c.bring(1, nil)
			delete(c.objects, archive.CatalogKey(c.line, 0))
		}},
		"a data file that nothing lists": {4, "stray: 1 object", func(c *compacted) {
			c.objects[archive.DataKey(c.line, "acme", "2026-05-28", 0, 5, turnOrder)] = []byte("x")
		}},
		"a data file of a line without a catalog": {4, "stray: 1 object", func(c *compacted) {
			c.objects[archive.DataKey(c.control, "acme", "2026-05-28", 0, 5, turnOrder)] = []byte("x")
		}},
		"a part that nothing lists": {4, "stray: 1 object", func(c *compacted) {
			c.objects[archive.CatalogPartKey(c.line, chain.Hash{})] = []byte("{}")
		}},
		"a catalog without a signature": {3, "without a signature", func(c *compacted) {
			key := archive.CatalogKey(c.line, 1)
			text, _, _ := strings.Cut(string(c.objects[key]), "\n\n")
			c.objects[key] = []byte(text + "\n\n")
		}},
		"receipts that are not archived yet": {4, "erasure: of 3 rows something was erased by an order that has no receipt yet", func(c *compacted) {
			delete(c.objects, archive.SegmentKey(c.control, 2))
			delete(c.objects, archive.AnchorKey(c.control, 2))
		}},
		"receipts that no anchor covers yet": {4, "erasure: of 3 rows", func(c *compacted) {
			delete(c.objects, archive.AnchorKey(c.control, 2))
		}},
		"orders that no anchor covers yet": {4, "cut: 1 log begin", func(c *compacted) {
			delete(c.objects, archive.SegmentKey(c.control, 2))
			delete(c.objects, archive.AnchorKey(c.control, 2))
			delete(c.objects, archive.AnchorKey(c.control, 1))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			a := readCompacted(t)
			c.change(a)
			r := a.verify()
			wantExit(t, r, c.exit)
			if said := strings.Join(slices.Concat(r.Less, r.Looks, r.Notes), "\n"); !strings.Contains(said, c.says) {
				t.Errorf("%q does not say %q", said, c.says)
			}
		})
	}
}

// Of one tenant alone, and of lines that were asked for, the same holds.
func TestPartsOfACompactedArchive(t *testing.T) {
	a := readCompacted(t)
	for _, o := range []proof.Options{{Tenant: "acme"}, {Tenant: "a/b"}, {Tenant: "東京"}, {Topic: "audit.calls"}, {Since: time.Date(2026, 5, 28, 20, 27, 0, 0, time.UTC)}} {
		o.Keys = a.ring
		r := verifyWith(t, a.objects, o)
		if r.FaultCount > 0 || r.Tier != proof.TierT1 {
			t.Errorf("%+v: tier %s, %v", o, r.Tier, r.Faults)
		}
	}
	erased := verifyWith(t, a.objects, proof.Options{Keys: a.ring, Tenant: "acme"}).Totals.Erasures
	if erased != (proof.Erasures{Erased: 2, HardErased: 1}) {
		t.Errorf("%+v", erased)
	}
}

// A redaction that waits is looked at once it waits too long.
func TestRedactionsThatWait(t *testing.T) {
	a := readCompacted(t)
	delete(a.objects, archive.SegmentKey(a.control, 2))
	delete(a.objects, archive.AnchorKey(a.control, 2))
	for within, want := range map[time.Duration]bool{0: false, time.Second: true} {
		r := verifyWith(t, a.objects, proof.Options{Keys: a.ring, ErasureWithin: within})
		if got := strings.Contains(strings.Join(r.Looks, "\n"), "3 redactions without a receipt"); got != want {
			t.Errorf("within %v: %v", within, r.Looks)
		}
	}
}

// A flipped bit in any object of the compacted archive but the newest segment,
// which no anchor covers, is found.
func TestFlippedBitsOfTheCompactedGoldenArchive(t *testing.T) {
	good := readCompacted(t)
	rng := rand.New(rand.NewPCG(7, 8))
	flips := 8
	if testing.Short() {
		flips = 2
	}
	for _, key := range slices.Sorted(maps.Keys(good.objects)) {
		if key == archive.SegmentKey(good.line, 6) {
			continue
		}
		for range flips {
			bit := rng.IntN(8 * len(good.objects[key]))
			bad := maps.Clone(good.objects)
			bad[key] = slices.Clone(bad[key])
			flip(bad[key], bit)
			r, err := proof.Verify(context.Background(), prooftest.Bucket(bad), proof.Options{Keys: good.ring})
			if err != nil || r.ExitCode() != 1 {
				t.Errorf("bit %d of %s: %v, exit %d", bit, key, err, r.ExitCode())
			}
		}
	}
}
