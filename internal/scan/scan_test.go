package scan

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

const golden = "../../proof/testdata/golden"

// goldenObjects returns the objects of an archive that another implementation
// wrote, by their keys.
func goldenObjects(t *testing.T, name string) map[string][]byte {
	t.Helper()
	objects := map[string][]byte{}
	root := filepath.Join(golden, name)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		key, err := filepath.Rel(root, path)
		if err == nil {
			objects[filepath.ToSlash(key)], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil || len(objects) == 0 {
		t.Fatalf("%s: %d objects, %v", root, len(objects), err)
	}
	return objects
}

// contents returns what of returns of all rows, where it has 8 bytes or more.
func contents(t *testing.T, object []byte, of func(*chain.Row) []string) map[string]bool {
	t.Helper()
	f, err := parquet.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for r, err := range f.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range of(r) {
			if len(v) >= window {
				all[v] = true
			}
		}
	}
	return all
}

// erasable returns what an erasure takes from a row: slots, salts and the user.
func erasable(r *chain.Row) []string {
	all := []string{r.UserID.S}
	for _, s := range r.Slots {
		all = append(all, string(s))
	}
	for _, h := range []chain.NullHash{r.RowSalt, r.UserSalt} {
		if h.Valid {
			all = append(all, string(h.Hash[:]))
		}
	}
	return all
}

// everything returns what a row has in columns of text and of hashes.
func everything(r *chain.Row) []string {
	all := append([]string{r.Residual.S, r.Redaction.S, string(r.RowHash[:]), string(r.PrevHash[:])}, r.FallbackChain...)
	for _, h := range audit.Header {
		if h.Text != nil {
			all = append(all, h.Text(&r.Record).S)
		}
	}
	return append(all, erasable(r)...)
}

func find(t *testing.T, object []byte, values ...string) []int {
	t.Helper()
	n, err := NewNeedles(values)
	if err != nil {
		t.Fatal(err)
	}
	hits, err := n.Find(object)
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, h := range hits {
		found = append(found, h.Value)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Every value of every row of the golden archives is found in its object, which
// other libraries wrote, and a value that is not there is not.
func TestFindsEveryValueOfTheGoldenArchives(t *testing.T) {
	for _, name := range []string{"plain", "compacted"} {
		looked := 0
		for key, object := range goldenObjects(t, name) {
			if !strings.HasSuffix(key, ".parquet") {
				continue
			}
			values := []string{"not in there", strings.Repeat("\x00\x01\x02\x03", 8)}
			for v := range contents(t, object, everything) {
				values = append(values, v)
			}
			for i, at := range find(t, object, values...) {
				if at != i+2 {
					t.Fatalf("%s: did not find %.60q, or found what is not there", key, values[i+2])
				}
				looked++
			}
			if got := len(find(t, object, values...)); got != len(values)-2 {
				t.Errorf("%s: found %d of %d values", key, got, len(values)-2)
			}
		}
		if looked < 50 {
			t.Errorf("%s: looked for %d values", name, looked)
		}
	}
}

// What compaction erased in the golden archive stands in none of its objects: the
// slots, salts and users that rows of the plain archive have, and no row of the
// compacted one.
func TestGoldenErasureIsComplete(t *testing.T) {
	before, after := map[string]bool{}, map[string]bool{}
	plain, compacted := goldenObjects(t, "plain"), goldenObjects(t, "compacted")
	for _, c := range []struct {
		objects map[string][]byte
		all     map[string]bool
	}{{plain, before}, {compacted, after}} {
		for key, object := range c.objects {
			if strings.HasSuffix(key, ".parquet") {
				for v := range contents(t, object, erasable) {
					c.all[v] = true
				}
			}
		}
	}
	var gone []string
	for v := range before {
		if !after[v] {
			gone = append(gone, v)
		}
	}
	if len(gone) < 5 {
		t.Fatalf("%d values are gone", len(gone))
	}
	for key, object := range compacted {
		for _, i := range find(t, object, gone...) {
			t.Errorf("%s holds %.80q", key, gone[i])
		}
	}
}

const secret = "Zoë 🦆 \"quoted\"\\n secret-0123456789"

// A value is found however it is written: TestFindsHiddenValues hides one in
// every way that an object could.
func TestFindsHiddenValues(t *testing.T) {
	quoted := must(json.Marshal(secret))
	ascii := asciiJSON(secret)
	frame := must(zstd.NewWriter(nil)).EncodeAll([]byte("before "+secret+" behind"), nil)
	for name, object := range map[string]string{
		"plain":           "x" + secret,
		"JSON":            "{\"a\":" + string(quoted) + "}",
		"JSON in ASCII":   `{"a":"` + ascii + `"}`,
		"JSON in JSON":    string(must(json.Marshal(`{"a":"` + ascii + `"}`))),
		"JSON, thrice":    string(must(json.Marshal(string(must(json.Marshal(string(quoted))))))),
		"hex":             "x" + hex.EncodeToString([]byte(secret)),
		"HEX":             strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"base64":          base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64, 1 off":   base64.StdEncoding.EncodeToString([]byte("x" + secret + "y")),
		"base64, 2 off":   base64.URLEncoding.EncodeToString([]byte("xy" + secret + "zzz")),
		"frame":           "nothing\x28\xB5\x2F\xFD" + string(frame) + "\x28\xB5\x2F\xFD",
		"two frames":      string(must(zstd.NewWriter(nil)).EncodeAll([]byte("first"), nil)) + string(frame),
		"cut frame, then": string(frame[:len(frame)-1]) + string(frame),
		"JSON in a frame": string(must(zstd.NewWriter(nil)).EncodeAll([]byte(ascii), nil)),
	} {
		if got := find(t, []byte(object), "another secret", secret); !slices.Equal(got, []int{1}) {
			t.Errorf("%s: found %v", name, got)
		}
	}
	for _, object := range []string{"", "Zoë", string(frame[:20]), `{"a":"Zo` + `\u00ec"}`} {
		if got := find(t, []byte(object), secret); got != nil {
			t.Errorf("found %v in %q", got, object)
		}
	}
}

// asciiJSON writes a string of JSON with an escape for every character.
func asciiJSON(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r > 0xFFFF {
			r -= 0x10000
			b.WriteString(escape(0xD800+r>>10) + escape(0xDC00+r&0x3FF))
			continue
		}
		b.WriteString(escape(r))
	}
	return b.String()
}

func escape(r rune) string { return "\\u" + hex.EncodeToString([]byte{byte(r >> 8), byte(r)}) }

// Short values would be found everywhere, and are refused.
func TestShortValues(t *testing.T) {
	if _, err := NewNeedles([]string{"user-17"}); err == nil {
		t.Error("7 bytes are no fault")
	}
}

// A page that cannot be read is an error, not a page without values.
func TestUnreadablePages(t *testing.T) {
	r := chain.Row{Record: audit.Record{
		TenantID: audit.Str("acme"), Topic: audit.Str("t"), TopicID: audit.Str("i"), Partition: audit.I64(0), Seq: audit.I64(0),
		ArchivedAt: audit.I64(0), Kind: audit.Str("call"), Epoch: audit.I64(0), UserID: audit.Str(strings.Repeat("user", 100)),
	}}
	object := must(parquet.NewEncoder().Encode([]chain.Row{r}, nil))
	n := must(NewNeedles([]string{secret}))
	if _, err := n.Find(object); err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(object), string(frameMagic))
	object[at] ^= 1
	if _, err := n.Find(object); err == nil {
		t.Error("a page that is no frame was passed over")
	}
}
