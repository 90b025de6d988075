package pipeline_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

func newControlKey(t *testing.T) *sign.Signer {
	t.Helper()
	skey, _, err := sign.Generate(rand.Reader, "example.org/control")
	if err != nil {
		t.Fatal(err)
	}
	s, err := sign.NewSigner(skey)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// governs has ingest read the topic as its control topic, under some keys.
func governs(keys ...*sign.Signer) func(*pipeline.Settings) {
	return func(s *pipeline.Settings) {
		s.Topics, s.Assign, s.ControlTopic = nil, []pipeline.Partition{{Topic: topic}}, topic
		s.AnchorKeys = archive.AnchorKeys{}
		for _, k := range keys {
			s.AnchorKeys.Control = append(s.AnchorKeys.Control, k.VKey())
		}
	}
}

// redaction is a control record's value, and recordID its id.
func redaction(n int) (value, recordID string) {
	recordID = fmt.Sprintf("01KRNR3ZG0%016d", n)
	return fmt.Sprintf(`{"recordId":%q,"tenantId":"acme","createdAt":"2026-05-15T12:00:00.000Z","kind":"redaction","target":{"turnId":"t"},"slots":"*","user":false,"hard":false,"reason":"r","requestRef":null,"by":"b"}`, recordID), recordID
}

// signature signs what a control record says.
func signature(t *testing.T, k *sign.Signer, id, tenant, kind, recordID, value string) string {
	t.Helper()
	body, err := sign.Sign(chain.ControlText(id, tenant, kind, recordID, []byte(value)), k)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func (w *world) govern(value string, signatures ...string) {
	w.t.Helper()
	r := &kgo.Record{Partition: 0, Key: []byte("acme"), Value: []byte(value)}
	for _, s := range signatures {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "ledgerlake-signature", Value: []byte(s)})
	}
	if err := w.client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// rows returns the rows of the topic's first partition.
func (w *world) rows() (all []chain.Row) {
	w.t.Helper()
	for o, err := range w.memory.List(w.t.Context(), "log/", "") {
		if err != nil {
			w.t.Fatal(err)
		}
		body, err := w.memory.Get(w.t.Context(), o.Key)
		if err != nil {
			w.t.Fatal(err)
		}
		s, err := archive.ReadSegment(body, nil)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, s.Rows...)
	}
	return all
}

// With control keys in the settings, a record of the control topic governs only
// where one of them signed exactly what it says, for this archive.
func TestControlRecordsMustBeSigned(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		key, other := newControlKey(t), newControlKey(t)
		root, err := pipeline.OpenArchive(t.Context(), pipeline.Settings{Archive: w.memory, Rand: newSeeded(2)})
		if err != nil {
			t.Fatal(err)
		}
		id := root.ArchiveID
		value, record := redaction(0)
		good := signature(t, key, id, "acme", "redaction", record, value)
		refused := []struct {
			name       string
			signatures []string
		}{
			{"none", nil},
			{"empty", []string{""}},
			{"no note", []string{"x"}},
			{"unsigned", []string{chain.ControlText(id, "acme", "redaction", record, []byte(value)) + "\n"}},
			{"by another key", []string{signature(t, other, id, "acme", "redaction", record, value)}},
			{"two", []string{good, good}},
			{"another archive", []string{signature(t, key, "01KBCDEFGHM9S346Q3D2000001", "acme", "redaction", record, value)}},
			{"another tenant", []string{signature(t, key, id, "globex", "redaction", record, value)}},
			{"another kind", []string{signature(t, key, id, "acme", "legal-hold", record, value)}},
			{"another record", []string{signature(t, key, id, "acme", "redaction", "01KRNR3ZG00000000000000009", value)}},
			{"another value", []string{signature(t, key, id, "acme", "redaction", record, value+" ")}},
			{"changed", []string{good[:len(good)-6] + "AAA=\n"}},
		}
		for _, c := range refused {
			w.govern(value, c.signatures...)
		}
		w.govern(value, good)
		r := w.ingest(governs(key))
		r.waitAndStop(int64(len(refused) + 1))
		rows := w.rows()
		if len(rows) != len(refused)+1 {
			t.Fatalf("%d rows", len(rows))
		}
		for i, c := range refused {
			if got := &rows[i]; got.Kind.S != audit.KindRejected || !bytes.HasPrefix(got.Slots[audit.SlotContext], []byte(`{"reason":"unauthorised","detail":"`)) || got.TenantID.S != "acme" {
				t.Errorf("%s: %s, %s", c.name, got.Kind.S, got.Slots[audit.SlotContext])
			}
		}
		if got := &rows[len(refused)]; got.Kind.S != audit.KindRedaction || string(got.Slots[audit.SlotContext]) != value {
			t.Errorf("signed: %s, %s", got.Kind.S, got.Slots[audit.SlotContext])
		}
		if r.rejects[audit.ReasonUnauthorised] != len(refused) {
			t.Errorf("%v", r.rejects)
		}
	})
}

// Which control keys were in force when a segment was written, only the segment
// says: a start under others adopts it, and goes on under its own.
func TestControlKeysMayChange(t *testing.T) {
	key := newControlKey(t)
	for name, c := range map[string]struct {
		first, then []*sign.Signer
		want        []string
	}{
		"from none to some": {nil, []*sign.Signer{key}, []string{"redaction", "redaction", "duplicate", "redaction", "rejected:unauthorised"}},
		"from some to none": {[]*sign.Signer{key}, nil, []string{"rejected:unauthorised", "rejected:unauthorised", "rejected:unauthorised", "rejected:unauthorised", "redaction"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				r := w.ingest(governs(c.first...))
				w.governAll(0)
				r.waitAndStop(1)
				w.governAll(1, 1, 2)
				aside := copyOf(t, w.memory)
				r = w.ingest(governs(c.first...), func(s *pipeline.Settings) { s.Archive, s.Group, s.Rand = aside, "aside", newSeeded(9) })
				segment := archive.SegmentKey(archive.Line{Topic: topic, TopicID: w.topicID()}, 1)
				var body []byte
				waitFor(t, "a segment that nobody vouches for", func() (ok bool) {
					var err error
					body, err = aside.Get(context.Background(), segment)
					return err == nil
				})
				r.wantCleanStop()
				w.put(1, body)
				w.governAll(9)
				r = w.ingest(governs(c.then...))
				r.waitAndStop(5)
				if !slices.Equal(r.compared, []int64{1}) || len(r.stopped) > 0 {
					t.Errorf("segments %v were compared, %v", r.compared, r.stopped)
				}
				wantKinds(t, w.check(0).kinds(), c.want...)
			})
		})
	}
}

// governAll produces unsigned redactions, by number.
func (w *world) governAll(numbers ...int) {
	for _, n := range numbers {
		value, _ := redaction(n)
		w.govern(value)
	}
}
