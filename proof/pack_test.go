package proof_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	lake "github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

func packOf(t *testing.T, p *provable, o lake.ProveOptions, w lake.PackWant, d lake.Disclosure) []byte {
	t.Helper()
	made, err := p.prover(t, o).Pack(context.Background(), w, d, map[string][]byte{"check.py": []byte("# the checker\n")})
	if err != nil {
		t.Fatalf("%+v: %v", w, err)
	}
	body, err := made.Zip()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func unpack(t *testing.T, body []byte) map[string][]byte {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[f.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// checkFiles checks the files of a pack as a folder. seal makes the manifest anew
// before, as whoever changes a pack can.
func checkFiles(p *provable, files map[string][]byte, seal bool) *lake.Checked {
	files = maps.Clone(files)
	if seal {
		type file struct {
			Name   string     `json:"name"`
			Bytes  int        `json:"bytes"`
			SHA256 chain.Hash `json:"sha256"`
		}
		all := []file{}
		for name, body := range files {
			if name != "manifest.json" {
				all = append(all, file{name, len(body), sha256.Sum256(body)})
			}
		}
		files["manifest.json"], _ = json.Marshal(map[string]any{"format": lake.PackFormat, "archiveId": p.ID, "files": all})
	}
	folder := fstest.MapFS{}
	for name, body := range files {
		folder[name] = &fstest.MapFile{Data: body}
	}
	return lake.CheckPackFolder(folder, lake.CheckOptions{Keys: p.ring()})
}

// A pack has all anchored rows that are asked for and no other, is the same each
// time, and checks with the key alone, as a zip and as a folder.
func TestPacks(t *testing.T) {
	p := newProvable(12, 9, 3)
	rows := p.rows("acme")
	at := func(i int) time.Time { return time.UnixMicro(rows[i].ArchivedAt.N) }
	count := func(match func(*chain.Row) bool) (n int64) {
		for _, r := range rows {
			if match(r) {
				n++
			}
		}
		return n
	}
	for name, c := range map[string]struct {
		want lake.PackWant
		rows int64
	}{
		"a tenant":  {lake.PackWant{Want: lake.Want{Tenant: "acme"}}, int64(len(rows))},
		"a session": {lake.PackWant{Want: lake.Want{Tenant: "acme"}, SessionID: "sess-1"}, count(func(r *chain.Row) bool { return r.SessionID.S == "sess-1" })},
		"a turn":    {lake.PackWant{Want: lake.Want{Tenant: "acme"}, TurnID: "turn-5"}, count(func(r *chain.Row) bool { return r.TurnID.S == "turn-5" })},
		"a time":    {lake.PackWant{Want: lake.Want{Tenant: "acme"}, From: at(10), To: at(31)}, 21},
		"from":      {lake.PackWant{Want: lake.Want{Tenant: "acme"}, From: at(60)}, int64(len(rows)) - 60},
		"up to":     {lake.PackWant{Want: lake.Want{Tenant: "acme"}, To: at(7)}, 7},
	} {
		body := packOf(t, p, lake.ProveOptions{Keys: p.ring()}, c.want, lake.Disclosure{})
		if !bytes.Equal(body, packOf(t, p, lake.ProveOptions{Keys: p.ring()}, c.want, lake.Disclosure{})) {
			t.Errorf("%s: two packs differ", name)
		}
		files := unpack(t, body)
		for _, r := range []*lake.Checked{lake.CheckPack(body, lake.CheckOptions{Keys: p.ring()}), checkFiles(p, files, false), checkFiles(p, files, true)} {
			if r.Exit != 0 || r.Rows != c.rows || r.Tier != "T1" || !slices.Equal(r.SignedBy, []string{p.key.VKey()}) {
				t.Errorf("%s: want %d rows: %+v", name, c.rows, r)
			}
		}
		if r := lake.CheckPack(body, lake.CheckOptions{}); r.Exit != 3 {
			t.Errorf("%s, without a key: %+v", name, r)
		}
		if !strings.Contains(string(files["public-keys.txt"]), p.key.VKey()) || !strings.Contains(string(files["README.txt"]), fmt.Sprintf("\n%d rows.", c.rows)) {
			t.Errorf("%s: %s%s", name, files["README.txt"], files["public-keys.txt"])
		}
	}
	for name, w := range map[string]lake.PackWant{
		"no such turn":   {Want: lake.Want{Tenant: "acme"}, TurnID: "turn-999"},
		"no such tenant": {Want: lake.Want{Tenant: "nobody"}},
		"later":          {Want: lake.Want{Tenant: "acme"}, From: at(len(rows) - 1).Add(time.Hour)},
		"before":         {Want: lake.Want{Tenant: "acme"}, To: at(0)},
	} {
		if _, err := p.prover(t, lake.ProveOptions{}).Pack(context.Background(), w, lake.Disclosure{}, nil); !errors.Is(err, lake.ErrNoRow) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := p.prover(t, lake.ProveOptions{}).Pack(context.Background(), lake.PackWant{TurnID: "turn-5"}, lake.Disclosure{}, nil); err == nil || !strings.Contains(err.Error(), "--tenant") {
		t.Errorf("a turn of two tenants: %v", err)
	}
}

// Rows far from each other stand in ranges of their own, and rows between are
// withheld: their content is nowhere in the pack.
func TestPacksWithholdWhatIsBetween(t *testing.T) {
	p := newProvable(0, 0, 1)
	special := func(b *prooftest.Batch) {
		b.Row("acme", func(r *audit.Record) {
			r.Kind, r.TurnID, r.RedactionPolicy = audit.Str(audit.KindCall), audit.Str("the-turn"), audit.Str(audit.PolicyNone)
		})
	}
	for _, calls := range []int{3, 5, 1100} {
		p.line.Segment(func(b *prooftest.Batch) {
			special(b)
			for range calls {
				b.Call("acme")
			}
		})
	}
	p.line.Segment(special)
	p.line.Anchor()
	files := unpack(t, packOf(t, p, lake.ProveOptions{Keys: p.ring()}, lake.PackWant{TurnID: "the-turn"}, lake.Disclosure{}))
	r := checkFiles(p, files, false)
	if said := fmt.Sprint(r.NotProved); r.Exit != 0 || r.Rows != 4 || files["ranges/0001.json"] == nil || files["ranges/0002.json"] != nil || !strings.Contains(said, "8 rows said") {
		t.Errorf("%+v", r)
	}
	if strings.Contains(string(files["rows.jsonl"]), "selectedReason") {
		t.Error("a withheld row is shown")
	}
}

// A changed byte of any file is found by the manifest; and where that is made
// anew, by what signs the ranges. README, list of keys and programs are nobody's
// word but the maker's, and are said to be so.
func TestFlippedBytesOfAPack(t *testing.T) {
	p := newProvable(6, 5, 3)
	good := unpack(t, packOf(t, p, lake.ProveOptions{Keys: p.ring(), WithAnchor: true}, lake.PackWant{Want: lake.Want{Tenant: "acme"}}, lake.Disclosure{Withhold: chain.SlotSetOf(audit.SlotExt)}))
	said := fmt.Sprint(checkFiles(p, good, false).Proved)
	for name, body := range good {
		for i := 0; i < len(body); i += 1 + len(body)/150 {
			bad := maps.Clone(good)
			bad[name] = slices.Clone(body)
			bad[name][i] ^= 1
			if r := checkFiles(p, bad, false); r.Exit != 1 && name != "manifest.json" {
				t.Fatalf("byte %d of %s: %+v", i, name, r)
			}
			free := name == "README.txt" || name == "public-keys.txt" || name == "check.py" || name == "manifest.json"
			if r := checkFiles(p, bad, true); !free && r.Exit == 0 && (fmt.Sprint(r.Proved) != said || !sameJSON(bad[name], body)) {
				t.Fatalf("byte %d of %s is accepted: %q", i, name, bad[name][max(0, i-30):min(len(body), i+30)])
			}
		}
	}
}

// sameJSON reports whether lines say the same as JSON.
func sameJSON(a, b []byte) bool {
	values := func(text []byte) (all []any) {
		d := json.NewDecoder(bytes.NewReader(text))
		for {
			var v any
			if d.Decode(&v) != nil {
				return all
			}
			all = append(all, v)
		}
	}
	return fmt.Sprint(values(a)) == fmt.Sprint(values(b))
}

// Files and lines that are put together otherwise are refused, also with a
// manifest that lists them.
func TestForgedPacks(t *testing.T) {
	p := newProvable(9, 6, 3)
	o := lake.ProveOptions{Keys: p.ring(), WithAnchor: true}
	whole := func(tenant string) map[string][]byte {
		return unpack(t, packOf(t, p, o, lake.PackWant{Want: lake.Want{Tenant: tenant}}, lake.Disclosure{}))
	}
	globex := whole("globex")
	lines := func(f map[string][]byte) [][]byte { return bytes.SplitAfter(f["rows.jsonl"], []byte("\n")) }
	join := func(l [][]byte) []byte { return bytes.Join(l, nil) }
	for name, c := range map[string]struct {
		forge func(f map[string][]byte)
		exit  int
	}{
		"nothing":               {func(map[string][]byte) {}, 0},
		"a row withheld":        {func(f map[string][]byte) { f["rows.jsonl"] = join(slices.Delete(lines(f), 3, 4)) }, 0},
		"rows in another order": {func(f map[string][]byte) { l := lines(f); l[1], l[2] = l[2], l[1]; f["rows.jsonl"] = join(l) }, 0},
		"a row twice":           {func(f map[string][]byte) { l := lines(f); f["rows.jsonl"] = join(append(l[:1:1], l...)) }, 1},
		"no row":                {func(f map[string][]byte) { f["rows.jsonl"] = nil }, 3},
		"no rows.jsonl":         {func(f map[string][]byte) { delete(f, "rows.jsonl") }, 1},
		"a line that is cut":    {func(f map[string][]byte) { f["rows.jsonl"] = bytes.TrimSuffix(f["rows.jsonl"], []byte("\n")) }, 1},
		"a row of another":      {func(f map[string][]byte) { f["rows.jsonl"] = join(append(lines(globex)[:1:1], lines(f)...)) }, 1},
		"a range of another":    {func(f map[string][]byte) { f["ranges/0000.json"] = globex["ranges/0000.json"] }, 1},
		"no range":              {func(f map[string][]byte) { delete(f, "ranges/0000.json") }, 1},
		"no anchor": {func(f map[string][]byte) {
			for file := range f {
				if strings.HasPrefix(file, "anchors/") {
					delete(f, file)
				}
			}
		}, 1},
		"another archive's": {func(f map[string][]byte) {
			f["ranges/0000.json"] = bytes.Replace(f["ranges/0000.json"], []byte(prooftest.ID), []byte("01KBCDEFGHJKMNPQRSTVWXYZ02"), 1)
		}, 1},
		"a row that was never archived": {func(f map[string][]byte) {
			l := lines(f)
			l[3] = invented(t, l[3])
			f["rows.jsonl"] = join(l)
		}, 1},
		"a later seq": {func(f map[string][]byte) {
			f["ranges/0000.json"] = bytes.Replace(f["ranges/0000.json"], []byte(`"first": 0`), []byte(`"first": 1`), 1)
		}, 1},
		"a row in two ranges": {func(f map[string][]byte) {
			f["ranges/0001.json"] = f["ranges/0000.json"]
			again := bytes.Replace(lines(f)[0], []byte("ranges/0000.json"), []byte("ranges/0001.json"), 1)
			f["rows.jsonl"] = append(f["rows.jsonl"], again...)
		}, 1},
		"an invented slot": {func(f map[string][]byte) {
			f["rows.jsonl"] = bytes.Replace(f["rows.jsonl"], []byte(`"slots":{`), []byte(`"slots":{"confession":{"commit":"`+strings.Repeat("0", 64)+`"},`), 1)
		}, 1},
		"a name in other letters": {func(f map[string][]byte) { f["ROWS.JSONL"] = nil }, 1},
		"a name with a backslash": {func(f map[string][]byte) { f[`..\evil`] = nil }, 1},
		"a member twice": {func(f map[string][]byte) {
			f["ranges/0000.json"] = bytes.Replace(f["ranges/0000.json"], []byte(`"first"`), []byte(`"first": 9, "first"`), 1)
		}, 1},
	} {
		files := whole("acme")
		c.forge(files)
		if r := checkFiles(p, files, true); r.Exit != c.exit {
			t.Errorf("%s: exit %d, want %d: %+v", name, r.Exit, c.exit, r)
		}
	}
	named := *p
	named.Archive = &prooftest.Archive{ID: "01KBCDEFGHJKMNPQRSTVWXYZ02"}
	named.key = p.key
	if r := checkFiles(&named, whole("acme"), true); r.Exit != 1 {
		t.Errorf("in the name of another archive: %+v", r)
	}
	files := whole("acme")
	files["extra.txt"] = []byte("not listed")
	if r := checkFiles(p, files, false); r.Exit != 1 {
		t.Errorf("a file more: %+v", r)
	}
	delete(files, "extra.txt")
	delete(files, "README.txt")
	if r := checkFiles(p, files, false); r.Exit != 1 {
		t.Errorf("a file less: %+v", r)
	}
	zipped := packOf(t, p, o, lake.PackWant{Want: lake.Want{Tenant: "acme"}}, lake.Disclosure{})
	for name, body := range map[string][]byte{
		"bytes behind": append(slices.Clone(zipped), 0), "bytes before": append([]byte{'x'}, zipped...),
		"a zip before": append(slices.Clone(zipped), zipped...), "outside": zipOf(t, p, "../evil"),
	} {
		if r := lake.CheckPack(body, lake.CheckOptions{Keys: p.ring()}); r.Exit != 1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := lake.CheckPack(zipped, lake.CheckOptions{Keys: p.ring()}); r.Exit != 0 {
		t.Errorf("as it was made: %+v", r)
	}
	if r := lake.CheckPack([]byte("PK\x03\x04 and no more"), lake.CheckOptions{}); r.Exit != 1 {
		t.Errorf("no zip: %+v", r)
	}
}

// zipOf returns a zip whose manifest lists one file, of that name.
func zipOf(t *testing.T, p *provable, name string) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	manifest := fmt.Sprintf(`{"format":%q,"archiveId":%q,"files":[{"name":%q,"bytes":0,"sha256":"%x"}]}`, lake.PackFormat, p.ID, name, sha256.Sum256(nil))
	for file, body := range map[string]string{name: "", "manifest.json": manifest} {
		w, err := z.Create(file)
		if err == nil {
			_, err = w.Write([]byte(body))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// invented changes a row, and makes its hash anew.
func invented(t *testing.T, line []byte) []byte {
	t.Helper()
	var row map[string]any
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if err := d.Decode(&row); err != nil {
		t.Fatal(err)
	}
	name := row["range"]
	delete(row, "range")
	one, err := json.Marshal(map[string]any{
		"format": lake.BundleFormat, "archiveId": prooftest.ID, "log": map[string]any{"tenant": "acme", "topic": "t", "topicId": "i", "partition": 0},
		"row": row, "tree": map[string]any{"size": 1, "root": chain.Hash{}}, "path": []string{}, "checkpoint": nil, "anchor": nil, "introductions": []string{}, "tlogProof": nil,
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := lake.DecodeBundle(one)
	if err != nil {
		t.Fatal(err)
	}
	b.Row.Header.Status = audit.Str("failed")
	r := chain.Row{Record: b.Row.Header.Record, PrevHash: *b.Row.PrevHash, PayloadCommit: *b.Row.PayloadCommit}
	r.UserCommit = chain.NullHash{Hash: *b.Row.UserCommit, Valid: true}
	header, err := json.Marshal(b.Row.Header)
	if err != nil {
		t.Fatal(err)
	}
	row["header"], row["rowHash"], row["range"] = json.RawMessage(header), chain.NewHasher(nil).RowHash(&r), name
	text, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

// Rows that do not follow each other are no chain, also where the tree has them
// and the right key signed it.
func TestPacksOfABrokenChain(t *testing.T) {
	p := newProvable(0, 0, 1)
	p.line.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	p.line.Logs["acme"].Head[0] ^= 1
	p.line.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	p.line.Anchor()
	if r := lake.CheckPack(packOf(t, p, lake.ProveOptions{}, lake.PackWant{Want: lake.Want{Tenant: "acme"}}, lake.Disclosure{}), lake.CheckOptions{Keys: p.ring()}); r.Exit != 1 {
		t.Errorf("%+v", r)
	}
}
