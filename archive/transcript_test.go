package archive_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A recorder writes down what is asked of a bucket, and what came of it.
type recorder struct {
	*archive.Memory
	out  *bytes.Buffer
	lose bool // the next write happens, and its reply is lost
	cut  bool // the next write does not happen
}

func (r *recorder) Create(ctx context.Context, key string, body []byte) (time.Time, error) {
	fmt.Fprintf(r.out, "create %s -> ", key)
	if r.cut {
		r.cut = false
		fmt.Fprintln(r.out, "503, not written")
		return time.Time{}, errors.New("503 SlowDown")
	}
	at, err := r.Memory.Create(ctx, key, body)
	switch {
	case r.lose:
		r.lose = false
		fmt.Fprintln(r.out, "connection reset, written")
		return at, errors.New("connection reset")
	case errors.Is(err, archive.ErrExists):
		fmt.Fprintln(r.out, "exists")
	default:
		fmt.Fprintln(r.out, "created")
	}
	return at, err
}

func (r *recorder) Get(ctx context.Context, key string) ([]byte, error) {
	body, err := r.Memory.Get(ctx, key)
	fmt.Fprintf(r.out, "get    %s -> %s\n", key, map[bool]string{true: "found", false: "not found"}[err == nil])
	return body, err
}

// The commit protocol as a transcript: what two writers of one partition ask of
// the bucket, and what each concludes.
func TestCommitTranscript(t *testing.T) {
	r := &recorder{Memory: archive.NewMemory(), out: new(bytes.Buffer)}
	a, b := newLine(), newLine()
	commit := func(who string, st *archive.State, salt byte, tenants ...string) {
		body := segment(t, st, salt, tenants...)
		other, err := committer(r).Commit(t.Context(), st, body)
		switch {
		case errors.Is(err, archive.ErrBreaks):
			fmt.Fprintf(r.out, "       %s: does not continue: start again from the bucket\n", who)
		case err != nil:
			t.Fatal(err)
		case other != nil:
			st.Take(other)
			fmt.Fprintf(r.out, "       %s: continues head: adopted, next offset %d\n", who, st.NextOffset)
		default:
			advance(t, st, body)
			fmt.Fprintf(r.out, "       %s: durable, next offset %d\n", who, st.NextOffset)
		}
	}
	say := func(text string) { fmt.Fprintf(r.out, "\n# %s\n", text) }

	say("A commits the first segment")
	commit("A", a, 1, "acme", "globex")
	say("B, a second consumer of the partition, is slower, and goes on behind it")
	commit("B", b, 2, "acme", "globex")
	commit("B", b, 2, "acme")
	say("A does not know of that yet")
	commit("A", a, 1, "acme", "acme")
	say("The reply of a write is lost: the bytes there are A's own")
	r.lose = true
	commit("A", a, 1, "globex")
	say("The store is slow: nothing was written, and A tries again")
	r.cut = true
	commit("A", a, 1, "acme")
	say("C has another first segment, from a bucket that is no more")
	c := newLine()
	advance(t, c, segment(t, c, 9, "acme", "globex"))
	commit("C", c, 9, "acme")

	file := filepath.Join("testdata", "commit.txt")
	if *update {
		if err := os.WriteFile(file, r.out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(r.out.Bytes(), want) {
		t.Errorf("transcript:\n%s\nwant:\n%s", r.out, want)
	}
}
