package archive_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// resetOf makes the segment by which an operator declares segments void, with
// what change does to it before it is encoded.
func resetOf(t *testing.T, st *archive.State, change func(*archive.Segment, []*chain.Row), tenants ...string) []byte {
	t.Helper()
	seg, rows, err := archive.NewReset(st, archive.ResetOrder{
		Tenants: tenants, Reason: `the disk "ate" it & more`, At: 5000, Rand: bytes.NewReader(bytes.Repeat([]byte{7}, 64*len(tenants))),
		Writer: archive.Writer{Version: "test", Policy: "none", Settings: chain.Hash{}.String()},
	})
	if err != nil {
		t.Fatal(err)
	}
	change(seg, rows)
	meta, err := archive.EncodeSegment(seg)
	if err != nil {
		t.Fatal(err)
	}
	body, err := parquet.NewEncoder().EncodeRefs(rows, meta)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func asIs(*archive.Segment, []*chain.Row) {}

// voidTail returns a bucket with segments 0 and 1, two void ones, the state behind
// the good ones, and what is void.
func voidTail(t *testing.T) (*archive.Memory, *archive.State, []archive.Voided) {
	t.Helper()
	b, st := archive.NewMemory(), newLine()
	put := func(ordinal int64, body []byte) {
		t.Helper()
		if _, err := b.Create(context.Background(), archive.SegmentKey(line, ordinal), body); err != nil {
			t.Fatal(err)
		}
	}
	for n := range int64(2) {
		body := segment(t, st, 1, "acme", "globex")
		put(n, body)
		advance(t, st, body)
	}
	var voided []archive.Voided
	for n := int64(2); n < 4; n++ {
		body := []byte{byte(n), 'x'}
		put(n, body)
		voided = append(voided, archive.Voided{Ordinal: n, SHA256: sha256.Sum256(body)})
	}
	return b, st, voided
}

// The segment that declares others void follows the line only where they are the
// ones, and each of its logs begins the next epoch.
func TestAResetFollowsWhatIsVoid(t *testing.T) {
	_, st, voided := voidTail(t)
	before := st.Clone()
	st.Void(voided)
	body := resetOf(t, st, asIs, "acme", "initech")
	o, err := archive.ReadForeignSegment(body, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Follows(o); err != nil {
		t.Fatal(err)
	}
	if err := before.Follows(o); !errors.Is(err, archive.ErrBreaks) {
		t.Errorf("it follows the good segments, as if nothing were void: %v", err)
	}
	other := before.Clone()
	other.Void(voided[:1])
	other.Ordinal = st.Ordinal
	if err := other.Follows(o); !errors.Is(err, archive.ErrBreaks) {
		t.Errorf("it follows where something else is void: %v", err)
	}
	if plain := segment(t, st, 2, "acme"); func() bool { o, err := archive.ReadSegment(plain, nil); return err != nil || st.Follows(o) == nil }() {
		t.Error("a segment that declares nothing void follows what is void")
	}
	next := st.Clone()
	next.Take(o)
	acme, globex, initech := next.Heads["acme"], next.Heads["globex"], next.Heads["initech"]
	if acme.Epoch != 1 || acme.Tree.Size != 3 || globex.Epoch != 0 || initech.Epoch != 1 || initech.Tree.Size != 1 || next.NextOffset != before.NextOffset || next.Voided != nil || next.Ordinal != 5 {
		t.Errorf("%+v", next)
	}
	row := &o.Rows[0]
	r, err := archive.ParseReset(row.Slots[audit.SlotContext])
	if err != nil || r.PreviousSize != 2 || r.PreviousHead != before.Heads["acme"].Hash ||
		row.PrevHash != chain.ResetGenesis(chain.SchemeV1, st.Log("acme"), 1, r.PreviousHead, 2, audit.Str(`the disk "ate" it & more`)) {
		t.Errorf("%+v, %v", r, err)
	}
}

// A chain-reset row that is not what the format says is refused.
func TestAResetRowMustBeRight(t *testing.T) {
	_, st, voided := voidTail(t)
	st.Void(voided)
	context := func(old, replace string) func(*archive.Segment, []*chain.Row) {
		return func(seg *archive.Segment, rows []*chain.Row) {
			c := string(rows[0].Slots[audit.SlotContext])
			if !strings.Contains(c, old) {
				t.Fatalf("no %s in %s", old, c)
			}
			rows[0].Slots[audit.SlotContext] = []byte(strings.Replace(c, old, replace, 1))
			restamp(seg, rows[0])
		}
	}
	for name, change := range map[string]func(*archive.Segment, []*chain.Row){
		"another reason":       context("the disk", "my disk"),
		"another size":         context(`"previousSize":2`, `"previousSize":1`),
		"other segments void":  context(`[2,"`, `[1,"`),
		"none in the metadata": func(seg *archive.Segment, _ []*chain.Row) { seg.Voided = nil },
		"another epoch":        func(seg *archive.Segment, rows []*chain.Row) { rows[0].Epoch.N = 2; restamp(seg, rows[0]) },
		"another epoch, all over": func(seg *archive.Segment, rows []*chain.Row) {
			rows[0].Epoch.N, seg.Logs[0].Epoch = 2, 2
			restamp(seg, rows[0])
		},
		"linked to the old head": func(seg *archive.Segment, rows []*chain.Row) {
			rows[0].PrevHash = seg.Logs[0].HeadIn
			restamp(seg, rows[0])
		},
	} {
		_, err := archive.ReadForeignSegment(resetOf(t, st, change, "acme"), nil)
		if err == nil || !strings.Contains(err.Error(), "row 0 (seq 2)") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// restamp commits to a changed row, and leaves its link.
func restamp(seg *archive.Segment, row *chain.Row) {
	chain.NewHasher(nil).Stamp(row, row.PrevHash, row.RowSalt.Hash)
	seg.Logs[0].HeadOut = row.RowHash
}

// A start passes over void segments, whatever they hold, and over the reset that
// declared them void.
func TestResumePassesOverVoidSegments(t *testing.T) {
	b, st, voided := voidTail(t)
	good := st.Clone()
	st.Void(voided)
	for range 2 {
		body := resetOf(t, st, asIs, "acme", "globex")
		if len(st.Voided) == 0 {
			body = segmentInEpoch(t, st)
		}
		if _, err := b.Create(t.Context(), archive.SegmentKey(line, st.Ordinal), body); err != nil {
			t.Fatal(err)
		}
		advance(t, st, body)
	}
	for name, resume := range map[string]func(context.Context, archive.Source, *archive.State, int64, int64) (*archive.Resumed, error){"by metadata": archive.Resume, "whole": archive.ResumeWhole} {
		r, err := resume(t.Context(), b, archive.NewState(archiveID, line), 6, 100)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.State.Heads["acme"].Hash != st.Heads["acme"].Hash || r.State.Heads["globex"].Epoch != 1 || r.State.NextOffset != st.NextOffset {
			t.Errorf("%s: %+v", name, r.State)
		}
		var ordinals []int64
		for _, ref := range r.Recent {
			ordinals = append(ordinals, ref.Ordinal)
		}
		if len(ordinals) != 4 || ordinals[1] != 1 || ordinals[2] != 4 {
			t.Errorf("%s: the window comes from %v", name, ordinals)
		}
		if got := r.State.Tail.Segments; len(got) != 4 || got[1].SHA256 != *good.PreviousSHA256 || r.State.Tail.Totals.Rows != 6 {
			t.Errorf("%s: the next anchor lists %+v", name, got)
		}
	}
}

// segmentInEpoch makes an empty segment, which continues any epoch.
func segmentInEpoch(t *testing.T, st *archive.State) []byte {
	t.Helper()
	seg := &archive.Segment{
		Format: archive.Format, ArchiveID: st.ArchiveID, Topic: line.Topic, TopicID: line.TopicID, Partition: line.Partition,
		Ordinal: st.Ordinal, PreviousSHA256: st.PreviousSHA256, FirstOffset: st.NextOffset, NextOffset: st.NextOffset + 2,
		Gaps:   []archive.Gap{{From: st.NextOffset, To: st.NextOffset + 2, Cause: archive.GapControl}},
		Writer: archive.Writer{Version: "test", Policy: "none", Settings: chain.Hash{}.String()},
	}
	meta, err := archive.EncodeSegment(seg)
	if err != nil {
		t.Fatal(err)
	}
	body, err := parquet.NewEncoder().Encode(nil, meta)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func FuzzParseReset(f *testing.F) {
	f.Add([]byte(`{"reason":"x","previousHead":"` + chain.Hash{}.String() + `","previousSize":2,"voided":[[2,"` + chain.Hash{}.String() + `"]]}`))
	f.Add([]byte(`{"reason":null,"previousHead":"","previousSize":-1,"voided":{}}`))
	f.Fuzz(func(t *testing.T, context []byte) {
		if r, err := archive.ParseReset(context); err == nil && r.PreviousSize < 0 {
			t.Errorf("%s: %+v", context, r)
		}
	})
}
