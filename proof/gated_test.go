package proof_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// secrets are what rows hold that redactions take.
const secretUser, secretText, secretRaw = "dana.secret@acme", "SECRET-PROMPT", "SECRET-RAW"

// newSecrets builds an archive with three rows of one turn that hold secrets, a
// call, another one and a reject, and what a control line says. By keys it is
// signed.
func newSecrets(orders func(calls *prooftest.Line, b *prooftest.Batch)) *prooftest.Archive {
	a := prooftest.New()
	a.Signers = []*sign.Signer{keyA}
	calls, control := a.Line("audit.calls", 0), a.Line(audit.ControlTopic, 0)
	call := func(n int) func(*audit.Record) {
		return func(r *audit.Record) {
			r.Kind, r.RecordID, r.TurnID, r.SessionID = audit.Str(audit.KindCall), audit.Str(prooftest.OrderID(500+n)), audit.Str("turn-0"), audit.Str("sess-0")
			r.UserID, r.RedactionPolicy = audit.Str(secretUser), audit.Str(audit.PolicyNone)
			r.Slots[audit.SlotPrompts] = fmt.Appendf(nil, `{"p":%q}`, secretText)
			r.Slots[audit.SlotContext] = []byte(`{"c":"SHOWN"}`)
		}
	}
	calls.Segment(func(b *prooftest.Batch) {
		b.Row("acme", call(0))
		b.Row("acme", call(1))
		b.Row("acme", func(r *audit.Record) {
			r.Kind, r.RecordID, r.TurnID = audit.Str(audit.KindRejected), audit.Str(prooftest.OrderID(502)), audit.Str("turn-0")
			r.Slots[audit.SlotContext] = []byte(`{"reason":"invalid_json","detail":"byte 1","size":1,"sha256":null,"key":"k","headers":[]}`)
			r.Slots[audit.SlotRaw] = []byte(secretRaw + ` dana.secret\u0040acme`)
		})
	})
	calls.Anchor()
	control.Segment(func(b *prooftest.Batch) { b.Control("globex"); orders(calls, b) })
	control.Anchor()
	return a
}

// What is ordered to be erased leaves by no command, though it is still stored:
// not its bytes, and not the salts that would let them be guessed. What is shown
// still proves.
func TestNothingGatedIsShown(t *testing.T) {
	id := prooftest.OrderID
	order := func(target map[string]any, slots any, user, hard bool) func(*prooftest.Line, *prooftest.Batch) {
		return func(_ *prooftest.Line, b *prooftest.Batch) {
			m := prooftest.Redaction(target, slots)
			m["user"], m["hard"] = user, hard
			b.Order("acme", audit.KindRedaction, id(1), m)
		}
	}
	user := map[string]any{"userId": secretUser}
	all := []string{secretUser, secretText, secretRaw, "SHOWN"}
	for name, c := range map[string]struct {
		orders func(*prooftest.Line, *prooftest.Batch)
		shown  []string // of all
		gated  int64    // rows of the turn
		rows   int64
	}{
		"nothing":              {func(*prooftest.Line, *prooftest.Batch) {}, all, 0, 3},
		"a turn":               {order(map[string]any{"turnId": "turn-0"}, "*", false, false), []string{secretUser}, 3, 3},
		"a turn, and its user": {order(map[string]any{"turnId": "turn-0"}, "*", true, false), nil, 3, 3},
		"a user":               {order(user, "*", true, false), nil, 3, 3},
		"a user's prompts":     {order(user, []string{"prompts"}, false, false), []string{secretUser, secretRaw, "SHOWN"}, 3, 3},
		"a user, hard":         {order(user, "*", true, true), nil, 3, 0},
		"a log before": {func(l *prooftest.Line, b *prooftest.Batch) {
			order(map[string]any{"topic": l.Topic, "topicId": l.TopicID, "partition": 0, "seqBefore": 3}, []string{"raw", "prompts"}, false, false)(l, b)
		}, []string{secretUser, "SHOWN"}, 3, 3},
		"an order that was cancelled": {func(l *prooftest.Line, b *prooftest.Batch) {
			order(user, "*", true, false)(l, b)
			b.Order("acme", audit.KindRedactionCancelled, id(2), map[string]any{"redactionId": id(1), "reason": "r", "by": "dpo"})
		}, all, 0, 3},
		"another tenant's": {func(_ *prooftest.Line, b *prooftest.Batch) {
			b.Order("globex", audit.KindRedaction, id(1), prooftest.Redaction(user, "*"))
		}, all, 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			a := newSecrets(c.orders).Objects()
			var out bytes.Buffer
			for seq := range int64(3) {
				f, err := proverOf(t, a).Find(t.Context(), proof.Want{Tenant: "acme", Seq: &seq})
				if err != nil {
					t.Fatal(err)
				}
				out.Write(bundled(t, f))
				for s := range audit.NumSlots {
					out.Write(f.Row.Slots[s])
				}
				out.WriteString(f.Row.UserID.S)
				if salt := chain.SlotSalt(f.Row.RowSalt.Hash, "prompts"); f.Row.RowSalt.Valid && len(f.Gated) > 0 {
					t.Errorf("seq %d still has its salt, and so that of prompts: %s", seq, salt)
				}
			}
			pack, err := proverOf(t, a).Pack(t.Context(), proof.PackWant{TurnID: "turn-0"}, proof.Disclosure{}, nil)
			if c.rows == 0 {
				if err == nil {
					t.Errorf("a pack of %d rows", pack.Rows)
				}
			} else if err != nil || pack.Gated != c.gated || pack.Rows != c.rows {
				t.Errorf("%v: %d gated of %d rows, want %d of %d", err, pack.Gated, pack.Rows, c.gated, c.rows)
			} else {
				out.Write(unzipped(t, pack))
			}
			for _, secret := range all {
				if got := strings.Contains(out.String(), secret); got != slices.Contains(c.shown, secret) {
					t.Errorf("%s is shown: %v", secret, got)
				}
			}
		})
	}
}

func proverOf(t *testing.T, objects map[string][]byte) *proof.Prover {
	t.Helper()
	p, err := proof.NewProver(t.Context(), prooftest.Bucket(objects), proof.ProveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func bundled(t *testing.T, f *proof.Found) []byte {
	t.Helper()
	b, err := f.Bundle(proof.Disclosure{})
	if err != nil {
		t.Fatal(err)
	}
	if r := b.Check(proof.CheckOptions{Keys: ring(t, keyA)}); r.Fault != "" || r.Exit != 0 && r.Exit != 4 {
		t.Errorf("the proof of seq %d: exit %d, %s", b.Row.Seq, r.Exit, r.Fault)
	}
	text, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func unzipped(t *testing.T, p *proof.Pack) []byte {
	t.Helper()
	body, err := p.Zip()
	if err != nil {
		t.Fatal(err)
	}
	if r := proof.CheckPack(body, proof.CheckOptions{Keys: ring(t, keyA)}); r.Exit != 0 {
		t.Errorf("the pack: exit %d, %s", r.Exit, r.Fault)
	}
	z, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for _, f := range z.File {
		r, err := f.Open()
		if err == nil {
			_, err = io.Copy(&all, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.Bytes()
}

// Where the control log cannot be read, nothing is shown.
func TestNothingIsShownWithoutGovernance(t *testing.T) {
	a := newSecrets(func(*prooftest.Line, *prooftest.Batch) {})
	objects := a.Objects()
	for key := range objects {
		if strings.HasPrefix(key, "log/"+audit.ControlTopic) {
			objects[key] = []byte("PAR1")
		}
	}
	seq := int64(0)
	if f, err := proverOf(t, objects).Find(t.Context(), proof.Want{Tenant: "acme", Seq: &seq}); err == nil {
		t.Errorf("seq 0 is shown: %+v", f.Row.Record)
	}
}
