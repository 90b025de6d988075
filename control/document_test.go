package control

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

var update = flag.Bool("update", false, "write the golden files")

var noon = time.Date(2026, 11, 30, 12, 0, 0, 1000, time.UTC)

// samples are a document of each kind, and of each form.
var samples = []Document{
	&Redaction{Target: Target{Record: ptr(otherID)}, Erasure: Erasure{All: true}, Reason: "Art. 17 <GDPR>", RequestRef: ptr("DSR-1"), By: "dpo"},
	&Redaction{Target: Target{Session: ptr("s"), Turn: ptr("u"), Stage: ptr("g"), Within: ptr(int64(0))}, Erasure: Erasure{Slots: chain.SlotSetOf(audit.SlotPrompts, audit.SlotContext)}},
	&Redaction{Target: Target{Turn: ptr("u")}, Erasure: Erasure{All: true, User: true, Hard: true}},
	&Redaction{Target: Target{Session: ptr("")}, Erasure: Erasure{User: true}},
	&Redaction{Target: Target{User: ptr("dana \"d\"\n\u2028😀\ufffd")}, Erasure: Erasure{All: true, User: true}},
	&Redaction{Target: Target{Log: &lineT, Offset: ptr(int64(1) << 62)}, Erasure: Erasure{All: true}},
	&Redaction{Target: Target{Log: &archive.Line{Topic: "t"}, Before: ptr(int64(0))}, Erasure: Erasure{Slots: chain.SlotSetOf(audit.SlotRaw)}},
	&Cancel{RedactionID: firstID, Reason: "a mistake", By: "dpo"},
	&Receipt{
		RedactionID: firstID, Erasure: Erasure{All: true}, Part: 1, Parts: 2, RequestRef: ptr(""),
		Erased:  []Erased{{Log: lineT, Ranges: [][2]int64{{0, 4}, {9, 9}}}, {Log: archive.Line{Topic: "t", TopicID: "i"}, Ranges: [][2]int64{{1, 1}}}},
		Deleted: []Deleted{{Key: "log/t/i/00002/00000000000000000000.parquet", Versions: []string{"v1", "v2"}}, {Key: "data/x"}}, OutOfReach: []string{"Kafka keeps t for 7 days"},
	},
	&Receipt{RedactionID: firstID, Erasure: Erasure{Slots: chain.SlotSetOf(audit.SlotContext)}, Part: 1, Parts: 1},
	&Cut{Log: lineT, Size: 3, Head: chain.Hash{1}, Frontier: []chain.Hash{{2}, {3}}, Policy: "rows 365 d"},
	&Cut{Log: lineT},
	&Hold{Scope: Scope{Tenant: true}, Set: true, Reason: "case 4", By: "legal"},
	&Hold{Scope: Scope{Session: ptr("s")}, Set: true},
	&Hold{Scope: Scope{User: ptr("dana")}},
}

// The values of all samples, as they have always been written.
func TestGoldenValues(t *testing.T) {
	var b bytes.Buffer
	for _, d := range samples {
		value, err := d.Value("acme", firstID, noon)
		if err != nil {
			t.Fatalf("%+v: %v", d, err)
		}
		b.WriteString(d.Kind() + " " + string(value) + "\n")
	}
	name := filepath.Join("testdata", "values.txt")
	if *update {
		if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil || !bytes.Equal(want, b.Bytes()) {
		t.Errorf("%v; values are\n%s", err, b.Bytes())
	}
}

// What is written is read as what it was, through the decoder of the control
// topic and the row that it makes.
func TestValuesComeBack(t *testing.T) {
	for i, d := range samples {
		// The logs of the reserved tenants can be governed too.
		tenant := []string{"acme", audit.TenantUnattributed, audit.TenantPartition}[i%3]
		r := archived(t, tenant, firstID, d, nil)
		if r.Tenant != tenant || r.ID != firstID || r.Kind != d.Kind() || r.Gone || r.CreatedAt != noon.UnixMicro() {
			t.Errorf("the row of %+v is %+v", d, r)
		}
		if got := documentOf(r); !reflect.DeepEqual(got, d) {
			t.Errorf("%+v comes back as %+v", d, got)
		}
	}
}

// archived returns the control row that a document becomes.
func archived(t *testing.T, tenant, id string, d Document, by *sign.Signer) *Row {
	t.Helper()
	r, err := ParseRow(rowOf(t, tenant, id, d, by))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const archiveID = "01KBCDEFGHJKMNPQRSTVWXYZ09"

// rowOf sends a document through the decoder of the control topic.
func rowOf(t *testing.T, tenant, id string, d Document, by *sign.Signer) *chain.Row {
	t.Helper()
	value, err := d.Value(tenant, id, noon)
	if err != nil {
		t.Fatalf("%+v: %v", d, err)
	}
	m, err := Record(archiveID, tenant, d.Kind(), id, value, nil)
	if by != nil {
		m, err = Record(archiveID, tenant, d.Kind(), id, value, by)
	}
	if err != nil {
		t.Fatal(err)
	}
	row := &chain.Row{}
	if why := (&audit.Decoder{Control: true}).Decode(&row.Record, &m); why != nil {
		t.Fatalf("%s: %v", value, why)
	}
	row.RowSalt.Valid = true
	return row
}

func documentOf(r *Row) Document {
	switch {
	case r.Redaction != nil:
		return r.Redaction
	case r.Cancel != nil:
		return r.Cancel
	case r.Receipt != nil:
		return r.Receipt
	case r.Cut != nil:
		return r.Cut
	case r.Hold != nil:
		return r.Hold
	}
	return nil
}

// Any redaction and any receipt that can be written comes back.
func TestAnyValueComesBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	letters := []rune("ab\"\\\n<>&\u2028é😀\ufffd\x00 ")
	text := func() string {
		s := make([]rune, rng.IntN(6))
		for i := range s {
			s[i] = letters[rng.IntN(len(letters))]
		}
		return string(s)
	}
	erasure := func() Erasure {
		e := Erasure{All: rng.IntN(2) == 0, User: rng.IntN(2) == 0, Hard: rng.IntN(2) == 0}
		if !e.All {
			e.Slots = chain.SlotSet(rng.Uint32()) & chain.AllSlots
		}
		return e
	}
	targets := []func() Target{
		func() Target { return Target{Record: ptr(firstID)} },
		func() Target { return Target{Turn: ptr(text())} },
		func() Target { return Target{User: ptr(text())} },
		func() Target {
			return Target{Log: &archive.Line{Topic: text(), TopicID: text(), Partition: rng.Int32()}, Offset: ptr(rng.Int64())}
		},
	}
	for range 500 {
		receipt := &Receipt{RedactionID: firstID, Erasure: erasure(), Reason: text(), Part: 1 + rng.Int64N(9), Parts: 9}
		for range rng.IntN(4) {
			first := rng.Int64N(1 << 40)
			receipt.Erased = append(receipt.Erased, Erased{archive.Line{Topic: text(), TopicID: text(), Partition: rng.Int32()}, [][2]int64{{first, first + rng.Int64N(9)}}})
			receipt.Deleted = append(receipt.Deleted, Deleted{text(), []string{text()}})
			receipt.OutOfReach = append(receipt.OutOfReach, text())
		}
		for _, d := range []Document{receipt, &Redaction{Target: targets[rng.IntN(len(targets))](), Erasure: erasure().Union(Erasure{User: true}), Reason: text(), RequestRef: ptr(text()), By: text()}} {
			value, err := d.Value("acme", firstID, noon)
			if err != nil {
				t.Fatalf("%+v: %v", d, err)
			}
			r := &Row{Kind: d.Kind()}
			if err := r.read(value); err != nil || !reflect.DeepEqual(documentOf(r), d) {
				t.Fatalf("%s: %v: %+v", value, err, documentOf(r))
			}
		}
	}
}

// What a reader would not take is not written.
func TestValuesThatAreNone(t *testing.T) {
	many := &Receipt{RedactionID: firstID, Part: 1, Parts: 1, Erased: []Erased{{Log: lineT}}}
	for n := range int64(MaxRanges + 1) {
		many.Erased[0].Ranges = append(many.Erased[0].Ranges, [2]int64{2 * n, 2 * n})
	}
	good := &Cancel{RedactionID: firstID}
	for name, c := range map[string]struct {
		doc    Document
		tenant string
		id     string
	}{
		"takes nothing":            {&Redaction{Target: Target{Turn: ptr("u")}}, "acme", firstID},
		"no target":                {&Redaction{Erasure: Erasure{All: true}}, "acme", firstID},
		"two targets":              {&Redaction{Target: Target{Turn: ptr("u"), User: ptr("p")}}, "acme", firstID},
		"a target that is no id":   {&Redaction{Target: Target{Record: ptr("x")}}, "acme", firstID},
		"a user that is no text":   {&Redaction{Target: Target{User: ptr("dan\xffa")}}, "acme", firstID},
		"cancels nothing":          {&Cancel{}, "acme", firstID},
		"a receipt of nothing":     {&Receipt{Part: 1, Parts: 1}, "acme", firstID},
		"a part that is none":      {&Receipt{RedactionID: firstID, Part: 2, Parts: 1}, "acme", firstID},
		"a range that goes back":   {&Receipt{RedactionID: firstID, Part: 1, Parts: 1, Erased: []Erased{{lineT, [][2]int64{{2, 1}}}}}, "acme", firstID},
		"too many ranges":          {many, "acme", firstID},
		"a frontier too short":     {&Cut{Log: lineT, Size: 3}, "acme", firstID},
		"a hold of nothing":        {&Hold{}, "acme", firstID},
		"a hold of two":            {&Hold{Scope: Scope{Tenant: true, User: ptr("p")}}, "acme", firstID},
		"no record id":             {good, "acme", ""},
		"a record id in lower":     {good, "acme", strings.ToLower(firstID)},
		"a tenant that is no text": {good, "ac\xffme", firstID},
	} {
		if value, err := c.doc.Value(c.tenant, c.id, noon); err == nil {
			t.Errorf("%s: %s", name, value)
		}
	}
}

// A document that says something else than its kind, or says it twice, says
// nothing: each of these differs in one place from a good one.
func TestReadingIsStrict(t *testing.T) {
	for _, c := range []struct{ kind, good, old, bad string }{
		{audit.KindRedaction, `{"target":{"turnId":"u"},"slots":"*","user":false,"hard":false}`, `"slots":"*"`, `"slots":"all"`},
		{audit.KindRedaction, `{"target":{"turnId":"u"},"slots":["prompts"],"user":false,"hard":false}`, `["prompts"]`, `["prompt"]`},
		{audit.KindRedaction, `{"target":{"turnId":"u"},"slots":["prompts"],"user":false,"hard":false}`, `["prompts"]`, `{}`},
		{audit.KindRedaction, `{"target":{"turnId":"u"},"slots":"*","user":false,"hard":false}`, `"user":false`, `"user":0`},
		{audit.KindRedaction, `{"target":{"turnId":"u"},"slots":"*","user":false,"hard":false}`, `"user":false`, `"user":false,"user":true`},
		{audit.KindRedaction, `{"target":{"turnId":"u"},"slots":"*","user":false,"hard":false}`, `,"hard":false`, ``},
		{audit.KindRedaction, `{"target":{"turnId":"u"},"slots":"*","user":false,"hard":false}`, `"turnId"`, `"TurnId"`},
		{audit.KindRedaction, `{"target":{"turnId":"u"},"slots":"*","user":false,"hard":false,"by":"x"}`, `"by":"x"`, `"by":1`},
		{audit.KindRedaction, `{"target":{"turnId":"u"},"slots":"*","user":false,"hard":false,"requestRef":null}`, `null`, `7`},
		{audit.KindRedaction, `{"target":{"topic":"t","topicId":"i","partition":0,"seqBefore":5},"slots":"*","user":false,"hard":false}`, `5`, `5.0`},
		{audit.KindRedaction, `{"target":{"topic":"t","topicId":"i","partition":0,"seqBefore":5},"slots":"*","user":false,"hard":false}`, `"partition":0`, `"partition":4294967296`},
		{audit.KindRedactionCancelled, `{"redactionId":"` + firstID + `"}`, firstID, firstID[1:]},
		{audit.KindErasureDone, `{"redactionId":"` + firstID + `","slots":"*","user":false,"hard":false,"part":1,"parts":1,"erased":[],"deleted":[]}`, `"part":1`, `"part":0`},
		{audit.KindErasureDone, `{"redactionId":"` + firstID + `","slots":"*","user":false,"hard":false,"part":1,"parts":1,"erased":[],"deleted":[]}`, `,"deleted":[]`, ``},
		{audit.KindErasureDone, `{"redactionId":"` + firstID + `","slots":"*","user":false,"hard":false,"part":1,"parts":1,"erased":[],"deleted":[{"key":"k"}]}`, `{"key":"k"}`, `"k"`},
		{audit.KindErasureDone, `{"redactionId":"` + firstID + `","slots":"*","user":false,"hard":false,"part":1,"parts":1,"erased":[{"topic":"t","topicId":"i","partition":0,"ranges":[[0,1]]}],"deleted":[]}`, `[0,1]`, `[0,1,2]`},
		{audit.KindErasureDone, `{"redactionId":"` + firstID + `","slots":"*","user":false,"hard":false,"part":1,"parts":1,"erased":[{"topic":"t","topicId":"i","partition":0,"ranges":[[0,1]]}],"deleted":[]}`, `[0,1]`, `[-1,1]`},
		{audit.KindRetentionCut, `{"topic":"t","topicId":"i","partition":0,"size":0,"head":"` + strings.Repeat("0", 64) + `","frontier":[]}`, `"size":0`, `"size":1`},
		{audit.KindRetentionCut, `{"topic":"t","topicId":"i","partition":0,"size":0,"head":"` + strings.Repeat("0", 64) + `","frontier":[]}`, strings.Repeat("0", 64), strings.Repeat("0", 63)},
		{audit.KindLegalHold, `{"scope":{"tenant":true},"set":true}`, `"tenant":true`, `"tenant":false`},
		{audit.KindLegalHold, `{"scope":{"tenant":true},"set":true}`, `,"set":true`, ``},
		{audit.KindLegalHold, `{"scope":{"userId":"u"},"set":true}`, `"userId":"u"`, `"userId":"u","tenant":true`},
		{audit.KindLegalHold, `{"scope":{"userId":"u"},"set":true}`, `{"userId":"u"}`, `{"user":"u"}`},
	} {
		read := func(text string) (*Row, error) {
			row := &chain.Row{Record: audit.Record{Kind: audit.Str(c.kind), RecordID: audit.Str(firstID)}}
			row.Slots[audit.SlotContext] = []byte(text)
			return ParseRow(row)
		}
		if _, err := read(c.good); err != nil {
			t.Errorf("%s: %v", c.good, err)
		}
		bad := strings.Replace(c.good, c.old, c.bad, 1)
		if r, err := read(bad); err == nil || documentOf(r) != nil {
			t.Errorf("%s: %v, and says %+v", bad, err, documentOf(r))
		}
	}
}

// The signature of a record counts for that record alone, and still does when
// its context is gone.
func TestSignatures(t *testing.T) {
	good, stranger := signer(t, 1, "control"), signer(t, 2, "stranger")
	ring := &sign.Ring{}
	if err := ring.Add(good.VKey(), sign.Control, "test"); err != nil {
		t.Fatal(err)
	}
	doc := samples[0]
	for name, c := range map[string]struct {
		by     *sign.Signer
		change func(*chain.Row)
		want   string
	}{
		"good":                     {good, func(*chain.Row) {}, ""},
		"context gone":             {good, func(r *chain.Row) { r.Slots[audit.SlotContext], r.RowSalt.Valid = nil, false }, ""},
		"all gone":                 {good, func(r *chain.Row) { r.Slots, r.RowSalt.Valid = [audit.NumSlots][]byte{}, false }, ""},
		"ext gone of a live row":   {good, func(r *chain.Row) { r.Slots[audit.SlotExt] = nil }, "no signature"},
		"unsigned":                 {nil, func(*chain.Row) {}, "no signature"},
		"another key":              {stranger, func(*chain.Row) {}, "no good control key"},
		"another value":            {good, func(r *chain.Row) { r.Slots[audit.SlotContext] = []byte(`{}`) }, "of another record"},
		"another tenant":           {good, func(r *chain.Row) { r.TenantID.S = "globex" }, "of another record"},
		"another kind":             {good, func(r *chain.Row) { r.Kind.S = audit.KindLegalHold }, "of another record"},
		"another id":               {good, func(r *chain.Row) { r.RecordID.S = otherID }, "of another record"},
		"another id, context gone": {good, func(r *chain.Row) { r.RecordID.S, r.Slots[audit.SlotContext] = otherID, nil }, "of another record"},
		"a note that is none":      {good, func(r *chain.Row) { r.Slots[audit.SlotExt] = []byte(`{"$headers":[["ledgerlake-signature","x"]]}`) }, "no note"},
		"a signature that is there twice": {good, func(r *chain.Row) {
			r.Slots[audit.SlotExt] = []byte(`{"$headers":[["ledgerlake-signature","x"],["ledgerlake-signature","x"]]}`)
		}, "no signature"},
	} {
		row := rowOf(t, "acme", firstID, doc, c.by)
		c.change(row)
		got := Unsigned(archiveID, ring, row)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func signer(t *testing.T, seed byte, name string) *sign.Signer {
	t.Helper()
	s, err := sign.GenerateMember(bytes.NewReader(bytes.Repeat([]byte{seed}, 32)), name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// No context of a control row, and no headers of one, make a reader panic; and
// what is read can be written, and is then read as the same.
func FuzzControlRows(f *testing.F) {
	for _, d := range samples {
		value, err := d.Value("acme", firstID, noon)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(value, []byte(`{"$headers":[["ledgerlake-signature","x"]]}`))
	}
	kinds := []string{audit.KindRedaction, audit.KindErasureDone, audit.KindRetentionCut, audit.KindRedactionCancelled, audit.KindLegalHold}
	f.Fuzz(func(t *testing.T, context, ext []byte) {
		g := New()
		for i, kind := range kinds {
			row := &chain.Row{Record: audit.Record{TenantID: audit.Str("acme"), Kind: audit.Str(kind), RecordID: audit.Str(firstID), Seq: audit.I64(int64(i))}}
			row.Slots[audit.SlotContext], row.Slots[audit.SlotExt] = context, ext
			_ = Unsigned(archiveID, nil, row)
			r, _ := ParseRow(row)
			g.Add(r)
			if d := documentOf(r); d != nil {
				comesBack(t, d)
			}
		}
		g.Seal()
	})
}

func comesBack(t *testing.T, d Document) {
	value, err := d.Value("acme", firstID, noon)
	if err != nil {
		return // more ranges than one part may have
	}
	r := &Row{Kind: d.Kind()}
	if err := r.read(value); err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	again, err := documentOf(r).Value("acme", firstID, noon)
	if err != nil || !bytes.Equal(again, value) {
		t.Fatalf("%s becomes %s: %v", value, again, err)
	}
}
