package proof_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	lake "github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A provable is a signed archive of one partition with two tenants: many small
// segments, some anchors, and rows that no anchor covers.
type provable struct {
	*prooftest.Archive
	line *prooftest.Line
	key  *sign.Signer
}

func newProvable(segments, each, anchorEvery int) *provable {
	p := &provable{Archive: prooftest.New(), key: prooftest.Signer("key.example/one")}
	p.Signers = []*sign.Signer{p.key}
	p.line = p.Line("audit.calls", 0)
	for i := range segments {
		p.line.Segment(func(b *prooftest.Batch) {
			for j := range each {
				if (i+j)%3 == 0 {
					b.Call("globex")
				} else {
					b.Large("acme")
				}
			}
		})
		if i%anchorEvery == anchorEvery-1 {
			p.line.Anchor()
		}
	}
	return p
}

func (p *provable) ring() *sign.Ring {
	r := &sign.Ring{}
	if err := r.Add(p.key.VKey(), sign.AllRoles, "test"); err != nil {
		panic(err)
	}
	return r
}

func (p *provable) prover(t *testing.T, o lake.ProveOptions) *lake.Prover {
	t.Helper()
	pr, err := lake.NewProver(context.Background(), prooftest.Bucket(p.Objects()), o)
	if err != nil {
		t.Fatal(err)
	}
	return pr
}

func (p *provable) rows(tenant string) (rows []*chain.Row) {
	for _, s := range p.line.Segments {
		for i := range s.Rows {
			if s.Rows[i].TenantID.S == tenant {
				rows = append(rows, &s.Rows[i])
			}
		}
	}
	return rows
}

func bundleOf(t *testing.T, pr *lake.Prover, w lake.Want, d lake.Disclosure) *lake.Bundle {
	t.Helper()
	f, err := pr.Find(context.Background(), w)
	if err != nil {
		t.Fatalf("%+v: %v", w, err)
	}
	b, err := f.Bundle(d)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Every anchored row can be proved, by each of its names, in the first tree that
// has it and in the newest; the path holds for another implementation of RFC
// 6962, and the bundle for whoever has the key.
func TestEveryRowCanBeProved(t *testing.T) {
	p := newProvable(13, 5, 3)
	for _, newest := range []bool{false, true} {
		for _, tenant := range []string{"acme", "globex"} {
			pr := p.prover(t, lake.ProveOptions{Keys: p.ring(), Newest: newest})
			for _, row := range p.rows(tenant) {
				for _, w := range []lake.Want{{Tenant: tenant, Seq: &row.Seq.N}, {Offset: &row.KafkaOffset.N}, {RecordID: row.RecordID.S}} {
					anchored := row.KafkaOffset.N < 12*5
					f, err := pr.Find(context.Background(), w)
					if !anchored {
						if !errors.Is(err, lake.ErrNotAnchored) && !errors.Is(err, lake.ErrNoRow) {
							t.Fatalf("%+v: %v", w, err)
						}
						continue
					}
					if err != nil {
						t.Fatalf("%+v: %v", w, err)
					}
					checkFound(t, p, f, row)
				}
			}
		}
	}
}

func checkFound(t *testing.T, p *provable, f *lake.Found, row *chain.Row) {
	t.Helper()
	if f.Row.RowHash != row.RowHash {
		t.Fatalf("found seq %d, want %d", f.Row.Seq.N, row.Seq.N)
	}
	path := make([][]byte, len(f.Tree.Path))
	for i := range path {
		path[i] = f.Tree.Path[i][:]
	}
	if err := proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(row.Seq.N), uint64(f.Tree.Size), rfc6962.DefaultHasher.HashLeaf(row.RowHash[:]), path, f.Tree.Root[:]); err != nil {
		t.Fatalf("seq %d: %v", row.Seq.N, err)
	}
	b, err := f.Bundle(lake.Disclosure{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := lake.DecodeBundle(text)
	if err != nil {
		t.Fatal(err)
	}
	if c := back.Check(lake.CheckOptions{Keys: p.ring()}); c.Exit != 0 || c.Tier != "T1" || !slices.Equal(c.SignedBy, []string{p.key.VKey()}) {
		t.Fatalf("seq %d: %+v", row.Seq.N, c)
	}
	if c := back.Check(lake.CheckOptions{}); c.Exit != 3 || c.Tier != "T0" {
		t.Fatalf("without a key: %+v", c)
	}
}

// A proof takes few reads: some anchors, the row's segment and one or two beside
// it, however many there are.
func TestAProofTakesFewReads(t *testing.T) {
	p := newProvable(130, 3, 1)
	most := int64(0)
	for i, row := range p.rows("acme") {
		if i%9 != 0 {
			continue
		}
		pr := p.prover(t, lake.ProveOptions{})
		bundleOf(t, pr, lake.Want{Tenant: "acme", Seq: &row.Seq.N}, lake.Disclosure{})
		most = max(most, pr.Cost().Gets)
	}
	// ledgerlake.json and the first anchor; 8 doublings and 7 halvings to find the
	// newest one; 8 for the first that covers the row; its segment; and what anchors
	// that do not list the tenant add.
	if most > 28 {
		t.Errorf("%d GETs", most)
	}
	pr := p.prover(t, lake.ProveOptions{})
	rows := p.rows("acme")
	bundleOf(t, pr, lake.Want{RecordID: rows[len(rows)/2].RecordID.S}, lake.Disclosure{})
	t.Logf("by seq at most %d GETs of 130 segments and anchors; by record %+v", most, pr.Cost())
}

// What is withheld is not in the bundle, in no form: neither content nor a salt.
func TestWithheldPartsAreNotThere(t *testing.T) {
	p := newProvable(4, 5, 4)
	row := p.rows("acme")[2]
	withhold := chain.SlotSetOf(audit.SlotDecision, audit.SlotExt)
	b := bundleOf(t, p.prover(t, lake.ProveOptions{}), lake.Want{Tenant: "acme", Seq: &row.Seq.N}, lake.Disclosure{Withhold: withhold, WithholdUser: true})
	text, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string]string{"row_salt": row.RowSalt.Hash.String(), "user": row.UserID.S, "user's salt": chain.SlotSalt(row.RowSalt.Hash, "user_id").String()}
	for _, s := range []audit.Slot{audit.SlotDecision, audit.SlotExt} {
		secrets["salt of "+s.String()] = chain.SlotSalt(row.RowSalt.Hash, s.String()).String()
		secrets[s.String()] = string(row.Slots[s][5:20])
	}
	for what, secret := range secrets {
		if strings.Contains(string(text), secret) || strings.Contains(string(text), strings.ReplaceAll(secret, `"`, `\"`)) {
			t.Errorf("the bundle has the %s", what)
		}
	}
	back, err := lake.DecodeBundle(text)
	if err != nil {
		t.Fatal(err)
	}
	c := back.Check(lake.CheckOptions{Keys: p.ring()})
	if said := fmt.Sprint(c.NotProved); c.Exit != 0 || !strings.Contains(said, "decision, ext") || !strings.Contains(said, "user_id") {
		t.Errorf("%+v", c)
	}
	if back.Row.Slots[audit.SlotTokenCost] == nil || string(back.Row.Slots[audit.SlotTokenCost].Content) != string(row.Slots[audit.SlotTokenCost]) {
		t.Error("a slot that is shown is not as it was")
	}
}

// Rows of a compacted archive are proved from its data files, those that were
// erased with what is left of them; and the proofs are those of the archive
// before it was compacted. Rows that were cut are not there.
func TestRowsOfACompactedArchive(t *testing.T) {
	key := goldenRing(t)
	open := func(name string) *lake.Prover {
		pr, err := lake.NewProver(context.Background(), prooftest.Bucket(readFolder(t, "testdata/golden/"+name)), lake.ProveOptions{Keys: key})
		if err != nil {
			t.Fatal(err)
		}
		return pr
	}
	compacted, plain := open("compacted"), open("plain")
	topic := "audit.calls"
	exits := map[int]int{}
	for tenant, size := range map[string]int64{"acme": 8, "a/b": 3, "東京": 2} {
		for seq := range size {
			w := lake.Want{Tenant: tenant, Topic: topic, Seq: &seq}
			f, err := compacted.Find(context.Background(), w)
			if tenant == "a/b" && seq == 0 {
				if !errors.Is(err, lake.ErrNoRow) {
					t.Errorf("a row that was cut: %v", err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s, seq %d: %v", tenant, seq, err)
			}
			b, err := f.Bundle(lake.Disclosure{})
			if err != nil {
				t.Fatal(err)
			}
			exits[b.Check(lake.CheckOptions{Keys: key}).Exit]++
			before := bundleOf(t, plain, w, lake.Disclosure{})
			if b.Row.RowHash != before.Row.RowHash || !slices.Equal(b.Path, before.Path) {
				t.Errorf("%s, seq %d: not the proof that it was", tenant, seq)
			}
			if id := before.Row.Header.RecordID; b.Row.Header != nil && id.Valid {
				again, err := compacted.Find(context.Background(), lake.Want{RecordID: id.S})
				if err != nil || again.Row.RowHash != b.Row.RowHash {
					t.Errorf("%s, seq %d, by its record id: %v", tenant, seq, err)
				}
			}
		}
	}
	if exits[0] < 8 || exits[4] < 1 || exits[1]+exits[3] > 0 {
		t.Errorf("exit codes %v", exits)
	}
}

// Where old segments are still there beside the data files that took their
// place, nothing is read of them: they have what was erased since.
func TestOldSegmentsAreNotShown(t *testing.T) {
	key := goldenRing(t)
	objects := readFolder(t, "testdata/golden/compacted")
	for name, body := range readFolder(t, "testdata/golden/plain") {
		if strings.HasPrefix(name, "log/") {
			objects[name] = body
		}
	}
	pr, err := lake.NewProver(context.Background(), prooftest.Bucket(objects), lake.ProveOptions{Keys: key})
	if err != nil {
		t.Fatal(err)
	}
	erased := 0
	for seq := range int64(6) {
		f, err := pr.Find(context.Background(), lake.Want{Tenant: "acme", Topic: "audit.calls", Seq: &seq})
		if err != nil {
			t.Fatal(err)
		}
		if !f.Row.RowSalt.Valid {
			erased++
		}
	}
	if erased != 2 {
		t.Errorf("%d erased rows", erased)
	}
}

func goldenRing(t *testing.T) *sign.Ring {
	t.Helper()
	body, err := os.ReadFile("testdata/golden/archive.json")
	if err != nil {
		t.Fatal(err)
	}
	var g struct{ VKey string }
	if err := json.Unmarshal(body, &g); err != nil {
		t.Fatal(err)
	}
	ring := &sign.Ring{}
	if err := ring.Add(g.VKey, sign.AllRoles, "test"); err != nil {
		t.Fatal(err)
	}
	return ring
}

// A record is found by the time in its id with few reads, whatever else was
// archived; and one whose id tells another time is found as well.
func TestARecordIsFoundByItsTime(t *testing.T) {
	p := newProvable(0, 0, 1)
	var ids []string
	call := func(b *prooftest.Batch, at time.Time) {
		ids = append(ids, ulid.MustNew(ulid.Timestamp(at), bytes.NewReader(make([]byte, 10))).String())
		b.Row("acme", func(r *audit.Record) {
			r.Kind, r.RecordID, r.RedactionPolicy = audit.Str(audit.KindCall), audit.Str(ids[len(ids)-1]), audit.Str(audit.PolicyNone)
			// A minute for each segment.
			r.ArchivedAt = audit.I64(at.UnixMicro())
		})
	}
	start := time.UnixMicro(prooftest.Start)
	const segments = 200
	for i := range segments {
		p.line.Segment(func(b *prooftest.Batch) {
			at := start.Add(time.Duration(i) * time.Minute)
			call(b, at)
			if i == 150 {
				call(b, start.Add(-24*time.Hour)) // of a producer whose clock is late
			}
		})
		p.Advance(time.Minute)
		p.line.Anchor()
	}
	for _, i := range []int{0, 77, 150, 151, 200} {
		pr := p.prover(t, lake.ProveOptions{})
		f, err := pr.Find(context.Background(), lake.Want{RecordID: ids[i]})
		if err != nil || f.Row.RecordID.S != ids[i] {
			t.Fatalf("record %d: %v", i, err)
		}
		if gets := pr.Cost().Gets; gets > 36 && i != 151 {
			t.Errorf("record %d: %d GETs", i, gets)
		}
	}
}
