package archive

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

const someID = "01KBCDEFGHJKMNPQRSTVWXYZ02"

var someLine = Line{Topic: "a/b", TopicID: "kTq2VqYJQ0mFvY8v2b3m0A", Partition: 3}

func testCatalog() *Catalog {
	return &Catalog{
		ArchiveID: "01KBCDEFGHJKMNPQRSTVWXYZ01", Topic: someLine.Topic, TopicID: someLine.TopicID, Partition: 3, Version: 7,
		Previous: &chain.Hash{9}, Time: Time{time.UnixMicro(1_780_000_000_000_001).UTC()}, Watermark: 12,
		Parts: []CatalogPartRef{{Day: "2026-05-28", Key: CatalogPartKey(someLine, chain.Hash{4}), Bytes: 10, SHA256: chain.Hash{4}, Files: 2}},
		Redactions: []CatalogRedaction{{Tenant: "a<b", ID: someID, State: RedactionGone}, {
			Tenant: "c", ID: someID, State: RedactionPurged, Since: 6, Erased: [][2]int64{{0, 0}, {3, 9}},
			Deleted: []CatalogDeleted{{Key: "log/x", Versions: []string{"v1", "null"}}, {Key: "log/y"}}, Kept: []string{"log/x is locked"},
		}},
		Cuts:   []CatalogCut{{Tenant: "x", ID: someID, Size: 3, Head: chain.Hash{1}, Frontier: []chain.Hash{{2}, {3}}}},
		Holds:  []CatalogHold{{Tenant: "x", ID: someID}},
		Doomed: []CatalogDoomed{{Key: "log/x", Since: 7}},
	}
}

func testPart() *CatalogPart {
	first, last := int64(3), int64(9)
	at := Time{time.UnixMicro(1_780_000_000_000_001).UTC()}
	return &CatalogPart{Files: []CatalogFile{{
		Key: DataKey(someLine, "a/b", "2026-05-28", 4, 6, someID), Bytes: 100, SHA256: chain.Hash{5}, Tenant: "a/b", Day: "2026-05-28",
		FirstSeq: 4, LastSeq: 6, Rows: 3, FirstOffset: &first, LastOffset: &last, MinCreatedAt: &at, MaxCreatedAt: &at, HeadIn: chain.Hash{1}, HeadOut: chain.Hash{2},
	}, {Key: DataKey(someLine, "c", "2026-05-28", 0, 0, someID), Tenant: "c", Day: "2026-05-28", Rows: 1}}}
}

func TestCatalogsComeBackAsTheyWere(t *testing.T) {
	for _, want := range []*Catalog{testCatalog(), {}} {
		text, err := EncodeCatalog(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeCatalog(text)
		if err != nil || !reflect.DeepEqual(got.Parts, want.Parts) || !reflect.DeepEqual(got.Cuts, want.Cuts) || !reflect.DeepEqual(got.Redactions, want.Redactions) || got.Watermark != want.Watermark {
			t.Fatalf("%v\n%+v\n%+v", err, got, want)
		}
		if again, _ := EncodeCatalog(got); again != text {
			t.Errorf("another text:\n%s\n%s", again, text)
		}
	}
}

func TestCatalogsThatDisagreeWithThemselves(t *testing.T) {
	for name, change := range map[string]func(*Catalog){
		"previous":  func(c *Catalog) { c.Previous = nil },
		"version":   func(c *Catalog) { c.Version = -1 },
		"watermark": func(c *Catalog) { c.Watermark = -1 },
		"part key":  func(c *Catalog) { c.Parts[0].SHA256 = chain.Hash{} },
		"line":      func(c *Catalog) { c.Partition = 4 },
		"day":       func(c *Catalog) { c.Parts[0].Day = "2026-5-28" },
		"two days":  func(c *Catalog) { c.Parts = append(c.Parts, c.Parts[0]) },
		"state":     func(c *Catalog) { c.Redactions[0].State = "done" },
		"id":        func(c *Catalog) { c.Redactions[0].ID = "x" },
		"frontier":  func(c *Catalog) { c.Cuts[0].Size = 4 },
		"since":     func(c *Catalog) { c.Doomed[0].Since = 8 },
		"purged":    func(c *Catalog) { c.Redactions[1].Since = 8 },
		"erased":    func(c *Catalog) { c.Redactions[1].Erased[1] = [2]int64{3, 2} },
	} {
		c := testCatalog()
		change(c)
		text, err := EncodeCatalog(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeCatalog(text); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	anchor, _ := EncodeAnchor(testAnchor())
	if _, err := DecodeCatalog(anchor); err == nil {
		t.Error("an anchor is read as a catalog")
	}
}

func TestPartsComeBackAsTheyWere(t *testing.T) {
	want := testPart()
	body, err := EncodeCatalogPart(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeCatalogPart(body); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v\n%+v", err, got, want)
	}
}

func TestPartsThatDisagreeWithTheirKeys(t *testing.T) {
	for name, change := range map[string]func(*CatalogFile){
		"key":     func(f *CatalogFile) { f.Key += "x" },
		"tenant":  func(f *CatalogFile) { f.Tenant = "c" },
		"day":     func(f *CatalogFile) { f.Day = "2026-05-29" },
		"first":   func(f *CatalogFile) { f.FirstSeq, f.Rows = 5, 2 },
		"last":    func(f *CatalogFile) { f.LastSeq, f.Rows = 7, 4 },
		"rows":    func(f *CatalogFile) { f.Rows = 4 },
		"offset":  func(f *CatalogFile) { f.LastOffset = nil },
		"created": func(f *CatalogFile) { f.MinCreatedAt = nil },
	} {
		p := testPart()
		change(&p.Files[0])
		body, err := EncodeCatalogPart(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeCatalogPart(body); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestDataFileMetadata(t *testing.T) {
	want := &DataFile{
		Format: Format, ArchiveID: "x", Topic: "t", TopicID: "i", Partition: 2, Tenant: "a", Scheme: chain.SchemeV1, Epoch: 1, FirstSeq: 2, Rows: 1,
		HeadIn: chain.Hash{1}, HeadOut: chain.Hash{2}, FrontierIn: []chain.Hash{{3}}, FrontierOut: []chain.Hash{{3}, {4}},
	}
	text, err := EncodeDataFile(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeDataFile(text); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v\n%+v", err, got, want)
	}
	for name, change := range map[string]func(*DataFile){
		"format": func(f *DataFile) { f.Format = "x" }, "rows": func(f *DataFile) { f.Rows = 0 }, "in": func(f *DataFile) { f.FrontierIn = nil },
		"out": func(f *DataFile) { f.FrontierOut = f.FrontierIn }, "scheme": func(f *DataFile) { f.Scheme = "" },
		"much": func(f *DataFile) { f.Rows = 1<<63 - 1 },
	} {
		bad := *want
		change(&bad)
		text, err := EncodeDataFile(&bad)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeDataFile(text); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestCatalogAndDataKeys(t *testing.T) {
	if n, ok := ParseCatalogKey(CatalogKey(someLine, 12)); !ok || n != (NoteName{"a~2Fb", someLine.TopicID, 3, 12}) {
		t.Errorf("%+v %v", n, ok)
	}
	key := DataKey(someLine, "東京", "2026-05-28", 4, 16, someID)
	n, ok := ParseDataKey(key)
	if want := (DataName{"~E6~9D~B1~E4~BA~AC", "2026-05-28", someLine.TopicID, 3, 4, 16, someID}); !ok || n != want || n.String() != key {
		t.Errorf("%s: %+v %v", key, n, ok)
	}
	for _, bad := range []string{
		"", "data/a/b/c", "x" + key, key + "/x", strings.Replace(key, "day=", "", 1), strings.Replace(key, "-05-", "-13-", 1),
		strings.Replace(key, ".00003.", ".3.", 1), strings.Replace(key, "00000000000000000016", "00000000000000000003", 1), strings.Replace(key, someID, "x", 1),
	} {
		if n, ok := ParseDataKey(bad); ok {
			t.Errorf("%q is %+v", bad, n)
		}
	}
	for _, bad := range []string{"", AnchorKey(someLine, 3), "catalog/a/b/00003/12.note"} {
		if n, ok := ParseCatalogKey(bad); ok {
			t.Errorf("%q is %+v", bad, n)
		}
	}
}

// The catalog of another writer is read, and its keys are those that we make.
func TestTheGoldenCatalog(t *testing.T) {
	const folder = "../proof/testdata/golden/compacted/"
	l := Line{Topic: "audit.calls", TopicID: "kTq2VqYJQ0mFvY8v2b3m0A"}
	body, err := os.ReadFile(filepath.FromSlash(folder + CatalogKey(l, 1)))
	if err != nil {
		t.Fatal(err)
	}
	n, err := sign.Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	c, err := DecodeCatalog(n.Text)
	if err != nil || c.Version != 1 || c.Watermark != 3 || c.Line() != l || len(c.Cuts) != 1 || len(c.Parts) != 1 {
		t.Fatalf("%v %+v", err, c)
	}
	part, err := os.ReadFile(filepath.FromSlash(folder + c.Parts[0].Key))
	if err != nil {
		t.Fatal(err)
	}
	p, err := DecodeCatalogPart(part)
	if err != nil || int64(len(p.Files)) != c.Parts[0].Files {
		t.Fatalf("%v %+v", err, p)
	}
}

func FuzzDecodeCatalog(f *testing.F) {
	text, _ := EncodeCatalog(testCatalog())
	part, _ := EncodeCatalogPart(testPart())
	f.Add(text)
	f.Add(string(part))
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := DecodeCatalog(text); err == nil {
			again, err := EncodeCatalog(c)
			if err != nil {
				return
			}
			if b, err := DecodeCatalog(again); err != nil || !reflect.DeepEqual(b, c) {
				t.Fatalf("%q: %v", text, err)
			}
		}
		if p, err := DecodeCatalogPart([]byte(text)); err == nil {
			again, err := EncodeCatalogPart(p)
			if err != nil {
				return
			}
			if b, err := DecodeCatalogPart(again); err != nil || len(b.Files) != len(p.Files) {
				t.Fatalf("%q: %v", text, err)
			}
		}
		_, _ = DecodeDataFile([]byte(text))
	})
}
