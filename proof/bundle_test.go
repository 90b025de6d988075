package proof_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	lake "github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A byte of a bundle that is changed makes it one that is not accepted, or one
// that says the same (the case of a hex escape is such a byte, and white space).
func TestEveryFlippedByteOfABundle(t *testing.T) {
	p := newProvable(4, 5, 4)
	row := p.rows("acme")[3]
	for _, o := range []lake.ProveOptions{{}, {WithAnchor: true}} {
		b := bundleOf(t, p.prover(t, o), lake.Want{Tenant: "acme", Seq: &row.Seq.N}, lake.Disclosure{Withhold: chain.SlotSetOf(audit.SlotDecision)})
		good, err := b.Encode()
		if err != nil {
			t.Fatal(err)
		}
		accepted := 0
		for i := range good {
			for _, bit := range []byte{1, 0x20} {
				if bit > 1 && i%8 > 0 {
					continue
				}
				bad := slices.Clone(good)
				bad[i] ^= bit
				if accepts(t, p, bad, good) {
					accepted++
				}
			}
		}
		if !accepts(t, p, good, good) || accepted > len(good)/5 {
			t.Errorf("%d of %d changes leave what is said as it was", accepted, 2*len(good))
		}
	}
}

// accepts reports whether a bundle is accepted, which may only be so if it says
// what the good one says.
func accepts(t *testing.T, p *provable, text, good []byte) bool {
	t.Helper()
	b, err := lake.DecodeBundle(text)
	if err != nil || b.Check(lake.CheckOptions{Keys: p.ring()}).Exit != 0 {
		return false
	}
	again, err := b.Encode()
	if err != nil || !bytes.Equal(again, good) {
		i := 0
		for i < min(len(text), len(good)) && text[i] == good[i] {
			i++
		}
		t.Fatalf("accepted, and says something else at byte %d: %q", i, text[max(0, i-40):min(len(text), i+40)])
	}
	return true
}

// What an attacker puts together of parts that are each genuine, or invents, is
// refused, or proves no more than that it fits together.
func TestForgedBundles(t *testing.T) {
	p := newProvable(8, 5, 4)
	other := prooftest.NewWithID("01KBCDEFGHJKMNPQRSTVWXYZ02")
	other.Signers = p.Signers
	twin := other.Line("audit.calls", 0)
	twin.Segment(func(b *prooftest.Batch) { b.Large("acme"); b.Large("acme"); b.Large("acme") })
	twin.Anchor()
	elsewhere := &provable{Archive: other, line: twin, key: p.key}
	second := p.Line("audit.calls", 1)
	second.Segment(func(b *prooftest.Batch) { b.Large("acme"); b.Large("acme"); b.Large("acme") })
	second.Anchor()

	pr := p.prover(t, lake.ProveOptions{WithAnchor: true})
	at := func(tenant string, partition int32, seq int64) *lake.Bundle {
		return bundleOf(t, pr, lake.Want{Tenant: tenant, Partition: &partition, Seq: &seq}, lake.Disclosure{})
	}
	foreign := func() *lake.Bundle {
		seq := int64(2)
		return bundleOf(t, elsewhere.prover(t, lake.ProveOptions{WithAnchor: true}), lake.Want{Tenant: "acme", Seq: &seq}, lake.Disclosure{})
	}
	unsigned := func(note *string) *string {
		text := (*note)[:strings.LastIndex(*note, "\n\n")+2]
		return &text
	}
	forger := prooftest.Signer("key.example/forger")
	for name, c := range map[string]struct {
		forge func(b *lake.Bundle)
		exit  int
	}{
		"nothing":                    {func(*lake.Bundle) {}, 0},
		"another row":                {func(b *lake.Bundle) { b.Row = at("acme", 0, 3).Row }, 1},
		"another row under this seq": {func(b *lake.Bundle) { b.Row = at("acme", 0, 3).Row; b.Row.Seq = 2 }, 1},
		"the path of another row":    {func(b *lake.Bundle) { b.Path = at("acme", 0, 3).Path }, 1},
		"a row of another tenant":    {func(b *lake.Bundle) { b.Row = at("globex", 0, 2).Row }, 1},
		"a row of another partition": {func(b *lake.Bundle) { b.Row = at("acme", 1, 2).Row }, 1},
		"the tree of another tenant": {func(b *lake.Bundle) {
			g := at("globex", 0, 2)
			b.Tree, b.Checkpoint, b.Anchor = g.Tree, g.Checkpoint, g.Anchor
		}, 1},
		"the notes of another tenant":  {func(b *lake.Bundle) { b.Checkpoint, b.Anchor = at("globex", 0, 2).Checkpoint, nil }, 1},
		"the anchor of another line":   {func(b *lake.Bundle) { b.Anchor, b.Checkpoint, b.TlogProof = at("acme", 1, 2).Anchor, nil, nil }, 1},
		"the notes of another archive": {func(b *lake.Bundle) { f := foreign(); b.Checkpoint, b.Anchor = f.Checkpoint, f.Anchor }, 1},
		"all of another, with this id": {func(b *lake.Bundle) { id := b.ArchiveID; *b = *foreign(); b.ArchiveID = id }, 1},
		"a column":                     {func(b *lake.Bundle) { b.Row.Header.Status = audit.Str("failed") }, 1},
		"a column that is null":        {func(b *lake.Bundle) { b.Row.Header.ToolName = audit.Str("rm") }, 1},
		"a time":                       {func(b *lake.Bundle) { b.Row.Header.ArchivedAt.N++ }, 1},
		"the hash of the row":          {func(b *lake.Bundle) { b.Row.RowHash[0] ^= 1 }, 1},
		"a slot's content":             {func(b *lake.Bundle) { b.Row.Slots[audit.SlotDecision].Content[5] ^= 1 }, 1},
		"a slot under another name": {func(b *lake.Bundle) {
			s := &b.Row.Slots
			s[audit.SlotOutcomeWhy], s[audit.SlotDecision] = s[audit.SlotDecision], nil
		}, 1},
		"two slots that change places": {func(b *lake.Bundle) {
			s := &b.Row.Slots
			s[audit.SlotExt], s[audit.SlotDecision] = s[audit.SlotDecision], s[audit.SlotExt]
		}, 1},
		"a slot that is left out": {func(b *lake.Bundle) { b.Row.Slots[audit.SlotDecision] = nil }, 1},
		"a slot that was null": {func(b *lake.Bundle) {
			b.Row.Slots[audit.SlotContext] = &lake.BundleSlot{Salt: &chain.Hash{}, Content: []byte("{}")}
		}, 1},
		"all slots as if erased": {func(b *lake.Bundle) { b.Row.StarSalt = nil }, 1},
		"content for a commitment": {func(b *lake.Bundle) {
			b.Row.Slots[audit.SlotExt] = &lake.BundleSlot{Salt: &chain.Hash{}, Content: []byte("{}")}
		}, 1},
		"another user":                {func(b *lake.Bundle) { b.Row.User.ID = "user-9" }, 1},
		"a user where there was none": {func(b *lake.Bundle) { b.Row.UserCommit = nil }, 1},
		"the whole header left out":   {func(b *lake.Bundle) { b.Row.Header = nil }, 1},
		"another tlog-proof":          {func(b *lake.Bundle) { b.TlogProof = at("acme", 0, 3).TlogProof }, 1},
		"a scheme that needs a key":   {func(b *lake.Bundle) { b.Row.Scheme = chain.SchemeHMACv1 }, 1},
		"no notes":                    {func(b *lake.Bundle) { b.Checkpoint, b.Anchor, b.TlogProof = nil, nil, nil }, 1},
		"notes without signatures":    {func(b *lake.Bundle) { b.Checkpoint, b.Anchor, b.TlogProof = nil, unsigned(b.Anchor), nil }, 3},
		"a tree made anew, unsigned":  {func(b *lake.Bundle) { invent(b, p, nil) }, 3},
		"a tree made anew, own key":   {func(b *lake.Bundle) { invent(b, p, forger) }, 3},
		"the same, and introduced by it": {func(b *lake.Bundle) {
			invent(b, p, forger)
			note, err := sign.Sign(sign.KeyNoteText(b.ArchiveID, forger.VKey(), later(b)), forger)
			if err != nil {
				t.Fatal(err)
			}
			b.Introductions = []string{string(note)}
		}, 3},
		"an introduction that is no note": {func(b *lake.Bundle) { b.Introductions = []string{"x"} }, 1},
	} {
		b := at("acme", 0, 2)
		c.forge(b)
		r := b.Check(lake.CheckOptions{Keys: p.ring()})
		if r.Exit != c.exit || r.Exit == 3 && r.Tier != "T0" || r.Exit != 0 && len(r.SignedBy) > 0 {
			t.Errorf("%s: exit %d, want %d: %+v", name, r.Exit, c.exit, r)
		}
		text, err := b.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := lake.DecodeBundle(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if again := back.Check(lake.CheckOptions{Keys: p.ring()}); again.Exit != r.Exit {
			t.Errorf("%s: exit %d, and %d when it is read again", name, r.Exit, again.Exit)
		}
	}
}

// invent makes a bundle of a row that was never archived, as somebody can who
// has no key: it fits together, and its root is in a checkpoint by signer.
func invent(b *lake.Bundle, p *provable, signer *sign.Signer) {
	inventRow(b, p, signer, 2, func(r *chain.Row) { r.Status = audit.Str("failed") })
}

// inventRow makes a bundle of a row of the archive that was changed, as the row
// at seq.
func inventRow(b *lake.Bundle, p *provable, signer *sign.Signer, seq int64, change func(*chain.Row)) {
	row := *p.rows("acme")[seq]
	change(&row)
	row.RowHash = chain.NewHasher(nil).RowHash(&row)
	shown, err := lake.Disclose(chain.SchemeV1, &row, lake.Disclosure{})
	if err != nil {
		panic(err)
	}
	b.Row = *shown
	b.Row.Seq = seq
	hashes := []chain.Hash{{1}, {2}, {3}}
	hashes[seq] = row.RowHash
	var tree chain.Tree
	for _, h := range hashes {
		tree.Append(h)
	}
	b.Tree = lake.BundleTree{Size: 3, Root: tree.Root()}
	b.Path, b.Anchor, b.TlogProof = chain.ProveInclusion(hashes, seq), nil, nil
	log := chain.Log{ArchiveID: b.ArchiveID, Tenant: b.Log.Tenant, Topic: b.Log.Topic, TopicID: b.Log.TopicID, Partition: b.Log.Partition}
	text := chain.CheckpointText(chain.CheckpointOrigin(log), 3, tree.Root())
	note := []byte(text + "\n")
	if signer != nil {
		if note, err = sign.Sign(text, signer); err != nil {
			panic(err)
		}
	}
	checkpoint := string(note)
	b.Checkpoint = &checkpoint
	b.TlogProof = tlogProofOf(b)
}

// Even what the right key signed is held against itself.
func TestBundlesOfALiarWithTheKey(t *testing.T) {
	p := newProvable(4, 5, 4)
	seq := int64(2)
	for name, c := range map[string]struct {
		seq    int64
		change func(*chain.Row)
		exit   int
	}{
		"a row that is right":   {2, func(*chain.Row) {}, 0},
		"another seq":           {2, func(r *chain.Row) { r.Seq.N = 7 }, 1},
		"another tenant":        {2, func(r *chain.Row) { r.TenantID.S = "globex" }, 1},
		"another topic":         {2, func(r *chain.Row) { r.Topic.S = "other" }, 1},
		"another partition":     {2, func(r *chain.Row) { r.Partition.N = 1 }, 1},
		"no kind":               {2, func(r *chain.Row) { r.Kind = audit.Text{} }, 1},
		"a first row":           {0, func(*chain.Row) {}, 0},
		"a first row, no start": {0, func(r *chain.Row) { r.PrevHash[0] ^= 1 }, 1},
	} {
		b := bundleOf(t, p.prover(t, lake.ProveOptions{}), lake.Want{Tenant: "acme", Seq: &seq}, lake.Disclosure{})
		inventRow(b, p, p.key, c.seq, c.change)
		if r := b.Check(lake.CheckOptions{Keys: p.ring()}); r.Exit != c.exit {
			t.Errorf("%s: exit %d, want %d: %+v", name, r.Exit, c.exit, r)
		}
	}
}

// An anchor that no good key signed introduces nobody.
func TestForgedIntroductions(t *testing.T) {
	p := newProvable(4, 5, 4)
	forger := prooftest.Signer("key.example/forger")
	seq := int64(2)
	for _, signers := range [][]*sign.Signer{nil, {forger}} {
		other := prooftest.New()
		other.Signers = signers
		other.Keys = archive.AnchorKeys{Anchor: []string{forger.VKey()}, Catalog: []string{}, Control: []string{}}
		line := other.Line("audit.calls", 0)
		line.Segment(func(b *prooftest.Batch) { b.Call("acme") })
		line.Anchor()
		b := bundleOf(t, p.prover(t, lake.ProveOptions{}), lake.Want{Tenant: "acme", Seq: &seq}, lake.Disclosure{})
		invent(b, p, forger)
		b.Introductions = []string{string(line.Anchors[0].Body)}
		if r := b.Check(lake.CheckOptions{Keys: p.ring()}); r.Exit != 3 || len(r.SignedBy) > 0 {
			t.Errorf("%d signers: %+v", len(signers), r)
		}
	}
}

// tlogProofOf writes the tlog-proof of a bundle, by the text of its format alone.
func tlogProofOf(b *lake.Bundle) *string {
	encode := func(h chain.Hash) string { return base64.StdEncoding.EncodeToString(h[:]) }
	lines := []string{"c2sp.org/tlog-proof@v1", "extra " + encode(b.Row.RowHash), fmt.Sprintf("index %d", b.Row.Seq)}
	for _, h := range b.Path {
		lines = append(lines, encode(h))
	}
	text := strings.Join(append(lines, "", *b.Checkpoint), "\n")
	return &text
}

func later(b *lake.Bundle) time.Time {
	return time.UnixMicro(b.Row.Header.ArchivedAt.N).Add(time.Hour)
}

// A key that was given vouches for later ones: by an anchor, by a key note, and
// by both in a row. Without one link of that nothing is proved.
func TestIntroducedKeys(t *testing.T) {
	old, next, last := prooftest.Signer("key.example/old"), prooftest.Signer("key.example/new"), prooftest.Signer("key.example/machine")
	p := &provable{Archive: prooftest.New(), key: old}
	p.line = p.Line("audit.calls", 0)
	segment := func(signers []*sign.Signer, anchorKeys ...string) {
		p.Signers = signers
		p.Keys = archive.AnchorKeys{Anchor: anchorKeys, Catalog: []string{}, Control: []string{}}
		p.line.Segment(func(b *prooftest.Batch) { b.Large("acme"); b.Large("acme"); b.Call("globex") })
		p.line.Anchor()
	}
	segment([]*sign.Signer{old}, old.VKey())
	segment([]*sign.Signer{old}, old.VKey(), next.VKey())
	segment([]*sign.Signer{old, next}, old.VKey(), next.VKey())
	segment([]*sign.Signer{next}, next.VKey())
	p.Certify(last, next)
	segment([]*sign.Signer{last}, next.VKey())

	pr := p.prover(t, lake.ProveOptions{Keys: p.ring()})
	for seq, want := range []struct {
		by            string
		introductions int
	}{{"old", 0}, {"old", 0}, {"old", 0}, {"new", 1}, {"machine", 2}} {
		n := int64(2 * seq)
		b := bundleOf(t, pr, lake.Want{Tenant: "acme", Seq: &n}, lake.Disclosure{})
		c := b.Check(lake.CheckOptions{Keys: p.ring()})
		if c.Exit != 0 || len(b.Introductions) != want.introductions || !strings.Contains(fmt.Sprint(c.SignedBy), want.by) {
			t.Errorf("seq %d: %+v, %d introductions", n, c, len(b.Introductions))
		}
		for i := range b.Introductions {
			all := b.Introductions
			b.Introductions = slices.Delete(slices.Clone(all), i, i+1)
			if c := b.Check(lake.CheckOptions{Keys: p.ring()}); c.Exit != 3 {
				t.Errorf("seq %d without introduction %d: %+v", n, i, c)
			}
			b.Introductions = all
		}
		slices.Reverse(b.Introductions)
		if c := b.Check(lake.CheckOptions{Keys: p.ring()}); c.Exit != 0 {
			t.Errorf("seq %d: the order of introductions matters: %+v", n, c)
		}
	}
}

// What is there twice, is missing or is no bundle is refused.
func TestMalformedBundles(t *testing.T) {
	p := newProvable(4, 5, 4)
	row := p.rows("acme")[1]
	b := bundleOf(t, p.prover(t, lake.ProveOptions{}), lake.Want{Offset: &row.KafkaOffset.N}, lake.Disclosure{})
	text, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	good := string(text)
	for name, bad := range map[string]string{
		"nothing":             "",
		"no object":           "[]",
		"cut":                 good[:len(good)-3],
		"bytes behind it":     good + "{}",
		"a member twice":      strings.Replace(good, `"seq"`, `"rowHash": "x", "seq"`, 1),
		"a slot twice":        strings.Replace(good, `"decision"`, `"ext": {"commit": "`+strings.Repeat("0", 64)+`"}, "decision"`, 1),
		"another format":      strings.Replace(good, "proof v1", "proof v2", 1),
		"a number with point": strings.Replace(good, `"seq": `, `"seq": 1.0, "x": `, 1),
		"upper case":          strings.Replace(good, `"root": "`, `"root": "ABCDEF`, 1),
		"a column is missing": strings.Replace(good, `"kind"`, `"kinds"`, 1),
		"an invented slot":    strings.Replace(good, `"decision"`, `"confession": {"commit": "`+strings.Repeat("0", 64)+`"}, "decision"`, 1),
		"an invented column":  strings.Replace(good, `"kind"`, `"confession": "yes", "kind"`, 1),
		"salt and commit":     strings.Replace(good, `"salt"`, `"commit": "`+strings.Repeat("0", 64)+`", "salt"`, 2),
	} {
		if _, err := lake.DecodeBundle([]byte(bad)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	more := strings.Replace(good, `"seq"`, `"later": [1, {"a": null}], "seq"`, 1)
	if b, err := lake.DecodeBundle([]byte(more)); err != nil || b.Check(lake.CheckOptions{Keys: p.ring()}).Exit != 0 {
		t.Errorf("a member of a later version: %v", err)
	}
}

// Whatever the bytes, reading and checking them ends; and what is accepted is
// written back as something that is accepted too.
func FuzzDecodeBundle(f *testing.F) {
	p := newProvable(2, 3, 2)
	pr, err := lake.NewProver(context.Background(), prooftest.Bucket(p.Objects()), lake.ProveOptions{WithAnchor: true})
	if err != nil {
		f.Fatal(err)
	}
	found, err := pr.Find(context.Background(), lake.Want{Offset: &p.rows("acme")[0].KafkaOffset.N})
	if err != nil {
		f.Fatal(err)
	}
	b, err := found.Bundle(lake.Disclosure{})
	if err != nil {
		f.Fatal(err)
	}
	text, err := b.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"format":"ledgerlake proof v1"}`))
	ring := p.ring()
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := lake.DecodeBundle(text)
		if err != nil {
			return
		}
		c := b.Check(lake.CheckOptions{Keys: ring})
		again, err := b.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := lake.DecodeBundle(again)
		if err != nil {
			t.Fatalf("%v: %s", err, again)
		}
		if got := back.Check(lake.CheckOptions{Keys: ring}); got.Exit != c.Exit {
			t.Fatalf("exit %d, then %d", c.Exit, got.Exit)
		}
	})
}

// A witness that is given and cosigned the checkpoint makes it T3; a cosignature
// in its name that is not its own is a fault; other witnesses' lines are nothing.
func TestWitnessedBundles(t *testing.T) {
	p := newProvable(4, 5, 4)
	row := p.rows("acme")[1]
	b := bundleOf(t, p.prover(t, lake.ProveOptions{}), lake.Want{Offset: &row.KafkaOffset.N}, lake.Disclosure{})
	text, _, _ := strings.Cut(*b.Checkpoint, "\n\n")
	key := ed25519.NewKeyFromSeed(make([]byte, 32))
	name, public := "witness.example/w", append([]byte{4}, key.Public().(ed25519.PublicKey)...)
	sum := sha256.Sum256(append([]byte(name+"\n"), public...))
	w, err := sign.ParseWitness(fmt.Sprintf("%s+%x+%s", name, sum[:4], base64.StdEncoding.EncodeToString(public)))
	if err != nil {
		t.Fatal(err)
	}
	cosign := func(at uint64, text string) string {
		line := binary.BigEndian.AppendUint64(slices.Clone(sum[:4]), at)
		line = append(line, ed25519.Sign(key, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", at, text))...)
		return "— " + name + " " + base64.StdEncoding.EncodeToString(line) + "\n"
	}
	plain := *b.Checkpoint
	for what, c := range map[string]struct {
		line string
		o    lake.CheckOptions
		exit int
		tier string
	}{
		"none":              {"", lake.CheckOptions{Keys: p.ring(), Witnesses: []*sign.Witness{w}}, 0, "T1"},
		"good":              {cosign(1_780_000_000, text+"\n"), lake.CheckOptions{Keys: p.ring(), Witnesses: []*sign.Witness{w}}, 0, "T3"},
		"not asked for":     {cosign(1_780_000_000, text+"\n"), lake.CheckOptions{Keys: p.ring()}, 0, "T1"},
		"without the log's": {cosign(1_780_000_000, text+"\n"), lake.CheckOptions{Witnesses: []*sign.Witness{w}}, 3, "T0"},
		"of another text":   {cosign(1_780_000_000, "x\n"), lake.CheckOptions{Keys: p.ring(), Witnesses: []*sign.Witness{w}}, 1, "none"},
	} {
		checkpoint := plain + c.line
		b.Checkpoint = &checkpoint
		b.TlogProof = tlogProofOf(b)
		if r := b.Check(c.o); r.Exit != c.exit || r.Tier != c.tier {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

// Of a keyed log row_hash takes its key: without it less is proved, with another
// one nothing.
func TestBundlesOfKeyedLogs(t *testing.T) {
	p := newProvable(0, 0, 1)
	p.line.Segment(func(b *prooftest.Batch) { b.Keyed("acme"); b.Call("acme"); b.Call("acme"); b.Call("acme") })
	p.line.Anchor()
	seq := int64(1)
	b := bundleOf(t, p.prover(t, lake.ProveOptions{}), lake.Want{Tenant: "acme", Seq: &seq}, lake.Disclosure{})
	keys := func(key string) chain.Keys { return func(chain.Log) ([]byte, bool) { return []byte(key), true } }
	for exit, o := range map[int]lake.CheckOptions{
		0: {Keys: p.ring(), LogKeys: keys(string(prooftest.LogKey))},
		1: {Keys: p.ring(), LogKeys: keys("another key of no meaning at all")},
		3: {Keys: p.ring()},
	} {
		if r := b.Check(o); r.Exit != exit {
			t.Errorf("exit %d, want %d: %+v", r.Exit, exit, r)
		}
	}
	b.Row.Scheme = chain.SchemeV1
	if r := b.Check(lake.CheckOptions{Keys: p.ring()}); r.Exit != 1 {
		t.Errorf("a keyed row as if it were not: %+v", r)
	}
}
