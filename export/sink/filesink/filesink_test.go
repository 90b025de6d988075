package filesink_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/sink/filesink"
)

var line = archive.Line{Topic: "audit.calls", TopicID: "kTq2VqYJQ0mFvY8v2b3m0A", Partition: 3}

// message is the event of a row of a tenant.
func message(tenant string, seq int64) sink.Message {
	row := &chain.Row{}
	row.TenantID.S, row.TenantID.Valid, row.Seq.N = tenant, true, seq
	row.RowHash, row.PrevHash = sha256.Sum256(fmt.Append(nil, tenant, seq)), sha256.Sum256(fmt.Append(nil, tenant, seq-1))
	return sink.Message{Event: event.NewRecord(line, row, true), Body: fmt.Appendf(nil, `{"tenant":%q,"seq":%d}`, tenant, seq)}
}

func batch(places ...any) (all []sink.Message) {
	for i := 0; i < len(places); i += 2 {
		all = append(all, message(places[i].(string), int64(places[i+1].(int))))
	}
	return all
}

// A memory is a Store in memory that fails as it is told.
type memory struct {
	mu    sync.Mutex
	files map[string][]byte
	fail  func(name string) error
}

func (m *memory) Put(_ context.Context, name string, body []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		if err := m.fail(name); err != nil {
			return err
		}
	}
	if m.files == nil {
		m.files = map[string][]byte{}
	}
	m.files[name] = bytes.Clone(body)
	return nil
}

// read returns the lines of all files whose manifests are there and right, and how
// often each line is there.
func (m *memory) read(t *testing.T) map[string]int {
	t.Helper()
	lines := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		object, ok := strings.CutSuffix(name, ".manifest.json")
		if !ok {
			continue
		}
		var mf filesink.Manifest
		if err := json.Unmarshal(m.files[name], &mf); err != nil {
			t.Fatal(err)
		}
		body := m.files[object]
		sum := sha256.Sum256(body)
		if hex.EncodeToString(sum[:]) != mf.SHA256 || mf.Object != object || mf.Bytes != int64(len(body)) {
			continue // half a delivery
		}
		text := inflate(t, object, body)
		if n := bytes.Count(text, []byte("\n")); n != mf.Events {
			t.Errorf("%s has %d lines, and its manifest says %d", object, n, mf.Events)
		}
		for l := range strings.Lines(string(text)) {
			lines[l]++
		}
	}
	return lines
}

func inflate(t *testing.T, name string, body []byte) []byte {
	t.Helper()
	var r io.Reader = bytes.NewReader(body)
	var err error
	switch {
	case strings.HasSuffix(name, ".gz"):
		r, err = gzip.NewReader(r)
	case strings.HasSuffix(name, ".zst"):
		r, err = zstd.NewReader(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return text
}

func newSink(t *testing.T, o filesink.Options) *filesink.Sink {
	t.Helper()
	s, err := filesink.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Each log has files of its own, which are named by their first rows; the manifest
// of each says what is in it.
func TestFiles(t *testing.T) {
	for compression, suffix := range map[filesink.Compression]string{"": ".gz", filesink.Gzip: ".gz", filesink.Zstd: ".zst", filesink.None: ""} {
		m := &memory{}
		s := newSink(t, filesink.Options{Store: m, Compression: compression})
		r := s.Deliver(t.Context(), batch("acme", 7, "um/brella", 0, "acme", 8, "acme", 12))
		if !r.Done() {
			t.Fatalf("%+v", r)
		}
		folder := "/audit.calls/kTq2VqYJQ0mFvY8v2b3m0A/00003/"
		want := []string{
			"acme" + folder + "00000000000000000007.jsonl" + suffix, "acme" + folder + "00000000000000000007.jsonl" + suffix + ".manifest.json",
			"um~2Fbrella" + folder + "00000000000000000000.jsonl" + suffix, "um~2Fbrella" + folder + "00000000000000000000.jsonl" + suffix + ".manifest.json",
		}
		if got := slices.Sorted(maps.Keys(m.files)); !slices.Equal(got, want) {
			t.Errorf("%q: files %q", compression, got)
		}
		var mf filesink.Manifest
		if err := json.Unmarshal(m.files[want[1]], &mf); err != nil || mf.FirstSeq != 7 || mf.LastSeq != 12 || mf.Events != 3 || mf.Tenant != "acme" ||
			mf.LastRowHash != sha256.Sum256([]byte("acme12")) || mf.FirstPrevHash != sha256.Sum256([]byte("acme6")) {
			t.Errorf("%q: manifest %+v, %v", compression, mf, err)
		}
		if lines := m.read(t); len(lines) != 4 {
			t.Errorf("%q: lines %v", compression, lines)
		}
	}
	if _, err := filesink.New(filesink.Options{Store: &memory{}, Compression: "lz4"}); err == nil {
		t.Error("lz4 is taken")
	}
	if _, err := filesink.New(filesink.Options{}); err == nil {
		t.Error("nowhere to write to is taken")
	}
}

// A delivery can end before each write or after it. What is delivered again, in
// whatever batches, as long as the first one begins where the cut one did, leaves no
// row in two files.
func TestEveryCut(t *testing.T) {
	first := batch("acme", 0, "umbrella", 0, "acme", 1, "acme", 2)
	for _, again := range [][][]sink.Message{
		{first, batch("acme", 3)},
		{batch("acme", 0), batch("umbrella", 0, "acme", 1, "acme", 2, "acme", 3)},
		{batch("umbrella", 0, "acme", 0, "acme", 1, "acme", 2, "acme", 3)},
	} {
		for n := 1; n <= 4; n++ {
			for _, after := range []bool{false, true} {
				m := &memory{}
				s := newSink(t, filesink.Options{Store: m})
				puts := 0
				m.fail = func(name string) error {
					if puts++; puts < n || after && puts == n {
						return nil
					}
					return errors.New("the process is gone")
				}
				s.Deliver(t.Context(), first)
				m.fail = nil
				for _, b := range again {
					if r := s.Deliver(t.Context(), b); !r.Done() {
						t.Fatalf("%+v", r)
					}
				}
				lines := m.read(t)
				if len(lines) != 5 {
					t.Errorf("cut at write %d, after %v: %d lines", n, after, len(lines))
				}
				for l, n := range lines {
					if n != 1 {
						t.Errorf("cut at write %d, after %v: %d times %s", n, after, n, l)
					}
				}
			}
		}
	}
}

// What is no record is a file of its own, named by its id, so that it is there once.
func TestNotices(t *testing.T) {
	m := &memory{}
	s := newSink(t, filesink.Options{Store: m})
	head := event.NewHead(line, "acme", event.Head{Size: 3})
	check := event.NewCheck(event.Check{Destination: "files", Nonce: "n"})
	all := []sink.Message{{Event: head, Body: []byte(`{"head":1}`)}, message("acme", 3), {Event: check, Body: []byte(`{"check":1}`)}}
	for range 2 {
		if r := s.Deliver(t.Context(), all); !r.Done() {
			t.Fatalf("%+v", r)
		}
	}
	for _, name := range []string{"acme/notices/audit.calls/kTq2VqYJQ0mFvY8v2b3m0A/00003/" + head.ID + ".json", "check/" + check.ID + ".json"} {
		if m.files[name] == nil {
			t.Errorf("no %s in %q", name, slices.Sorted(maps.Keys(m.files)))
		}
	}
	if len(m.files) != 4 {
		t.Errorf("files %q", slices.Sorted(maps.Keys(m.files)))
	}
}

// A log whose file cannot be written is retried, and others are delivered; one that
// somebody has to mend suspends.
func TestVerdicts(t *testing.T) {
	for err, want := range map[error]sink.Outcome{errors.New("slow down"): sink.Retry, fmt.Errorf("put: %w", archive.ErrDenied): sink.Suspend} {
		m := &memory{fail: func(name string) error {
			if strings.HasPrefix(name, "acme/") {
				return err
			}
			return nil
		}}
		r := newSink(t, filesink.Options{Store: m}).Deliver(t.Context(), batch("acme", 0, "umbrella", 0, "acme", 1))
		if got := []sink.Outcome{r.Verdicts[0].Outcome, r.Verdicts[1].Outcome, r.Verdicts[2].Outcome}; !slices.Equal(got, []sink.Outcome{want, sink.Delivered, want}) {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// A folder holds whole files alone, and a bucket is written over by compare-and-swap.
func TestStores(t *testing.T) {
	root := filepath.Join(t.TempDir(), "a", "b")
	dir, err := filesink.Dir(root)
	if err != nil {
		t.Fatal(err)
	}
	bucket := archive.NewMemory()
	for _, s := range []filesink.Store{dir, filesink.Bucket(bucket)} {
		for _, body := range []string{"one", "one", "another", ""} {
			if err := s.Put(t.Context(), "x/y/z.json", []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Put(t.Context(), "x/other", []byte("whole")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Put(ctx, "x/cancelled", []byte("x")); err == nil {
			t.Error("a store writes for who has given up")
		}
	}
	got, err := bucket.Get(t.Context(), "x/y/z.json")
	if err != nil || len(got) != 0 {
		t.Errorf("the bucket has %q, %v", got, err)
	}
	var names []string
	_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, strings.TrimPrefix(path, root))
		}
		return err
	})
	if want := []string{"/x/other", "/x/y/z.json"}; !slices.Equal(names, want) {
		t.Errorf("the folder has %q", names)
	}
}

// A backfill of fewer rows takes no place of the file that they were sent in first.
func TestABackfillReplacesNothing(t *testing.T) {
	m := &memory{}
	s := newSink(t, filesink.Options{Store: m})
	again := batch("acme", 0, "acme", 2)
	for i := range again {
		again[i].Backfill = "01KBCDEFGHJKMNPQRSTVWXYZ01"
	}
	for _, b := range [][]sink.Message{batch("acme", 0, "acme", 1, "acme", 2), again, again} {
		for _, v := range s.Deliver(t.Context(), b).Verdicts {
			if v.Outcome != sink.Delivered {
				t.Fatalf("%+v", v)
			}
		}
	}
	want := map[string]int{}
	for seq, n := range []int{2, 1, 2} {
		want[string(message("acme", int64(seq)).Body)+"\n"] = n
	}
	if got := m.read(t); !maps.Equal(got, want) {
		t.Errorf("files have %v, want %v", got, want)
	}
}
