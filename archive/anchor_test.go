package archive

import (
	"reflect"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/chain"
)

func testAnchor() *Anchor {
	var tree chain.Tree
	tree.Append(chain.Hash{1})
	tree.Append(chain.Hash{2})
	tree.Append(chain.Hash{3})
	return &Anchor{
		ArchiveID: "01KBCDEFGHJKMNPQRSTVWXYZ01", Topic: "audit.calls", TopicID: "kTq2VqYJQ0mFvY8v2b3m0A", Partition: 3, Number: 200, Ordinal: 7,
		Previous: &chain.Hash{9}, Time: Time{time.UnixMicro(1_780_000_000_000_001).UTC()},
		Totals:      AnchorCounts{0, 10, 8, 0, 1, 1},
		Segments:    []AnchorSegment{{Ordinal: 6, Bytes: 5, SHA256: chain.Hash{6}, AnchorCounts: AnchorCounts{FirstOffset: 3, NextOffset: 4, Rows: 1}}, {Ordinal: 7}},
		Full:        true,
		Heads:       []AnchorHead{{Tenant: "a/b<>&\u2028", Scheme: chain.SchemeV1, Size: 3, Head: chain.Hash{3}, Root: tree.Root(), Frontier: tree.Frontier}},
		Checkpoints: []AnchorCheckpoint{{Tenant: "a", Note: "x\n"}},
		Keys:        AnchorKeys{Anchor: []string{"k"}, Catalog: []string{}, Control: []string{}},
	}
}

func TestAnchorsComeBackAsTheyWere(t *testing.T) {
	want := testAnchor()
	want.Keys = AnchorKeys{Anchor: []string{"k"}}
	text, err := EncodeAnchor(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeAnchor(text)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%v\n%+v\n%+v", err, got, want)
	}
	if again, _ := EncodeAnchor(got); again != text {
		t.Errorf("another text:\n%s\n%s", again, text)
	}
}

func TestAnchorsThatDisagreeWithThemselves(t *testing.T) {
	for name, change := range map[string]func(*Anchor){
		"ordinal":       func(a *Anchor) { a.Ordinal = -2 },
		"full":          func(a *Anchor) { a.Full = false },
		"number":        func(a *Anchor) { a.Number = 201 },
		"previous":      func(a *Anchor) { a.Previous = nil },
		"beyond":        func(a *Anchor) { a.Ordinal = 6 },
		"order":         func(a *Anchor) { a.Segments[1].Ordinal = 6 },
		"heads":         func(a *Anchor) { a.Heads = append(a.Heads, a.Heads[0]) },
		"size":          func(a *Anchor) { a.Heads[0].Size = 4 },
		"root":          func(a *Anchor) { a.Heads[0].Root = chain.Hash{} },
		"negative rows": func(a *Anchor) { a.Totals.Rows = -1 },
		"scheme":        func(a *Anchor) { a.Heads[0].Scheme = "none" },
	} {
		a := testAnchor()
		change(a)
		text, err := EncodeAnchor(a)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeAnchor(text); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAnchorKeys(t *testing.T) {
	l := Line{Topic: "a/b", TopicID: "kTq2VqYJQ0mFvY8v2b3m0A", Partition: 3}
	key := AnchorKey(l, 12)
	if n, ok := ParseAnchorKey(key); !ok || n != (NoteName{"a~2Fb", l.TopicID, 3, 12}) {
		t.Errorf("%s: %+v %v", key, n, ok)
	}
	for _, bad := range []string{"", "anchor/a/b/00003/12.note", key + "x", "log" + key[6:], key[:len(key)-5] + ".parquet"} {
		if n, ok := ParseAnchorKey(bad); ok {
			t.Errorf("%q is %+v", bad, n)
		}
	}
}

func FuzzDecodeAnchor(f *testing.F) {
	text, _ := EncodeAnchor(testAnchor())
	f.Add(text)
	f.Fuzz(func(t *testing.T, text string) {
		a, err := DecodeAnchor(text)
		if err != nil {
			return
		}
		again, err := EncodeAnchor(a)
		if err != nil {
			return
		}
		if b, err := DecodeAnchor(again); err != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
