package serve_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/export/serve"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A listener reads events of a tail.
type listener struct {
	t    *testing.T
	w    *world
	in   *bufio.Reader
	stop context.CancelFunc
	res  *http.Response
	last string // id
}

func (w *world) listen(token, path, last string) *listener {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	w.t.Cleanup(cancel)
	var header []string
	if last != "" {
		header = []string{"Last-Event-ID", last}
	}
	res, err := w.open(ctx, "GET", token, path, header...)
	if err != nil {
		w.t.Fatal(err)
	}
	l := &listener{t: w.t, w: w, in: bufio.NewReader(res.Body), stop: cancel, res: res, last: last}
	if res.StatusCode != 200 {
		body, _ := io.ReadAll(res.Body)
		w.t.Fatalf("%d %s", res.StatusCode, body)
	}
	return l
}

// next returns the name and data of the next event that has some.
func (l *listener) next() (name, data string, err error) {
	for {
		line, err := l.in.ReadString('\n')
		switch {
		case err != nil:
			return name, data, err
		case strings.HasPrefix(line, "event: "):
			name = strings.TrimSpace(line[7:])
		case strings.HasPrefix(line, "id: "):
			l.last = strings.TrimSpace(line[4:])
		case strings.HasPrefix(line, "data: "):
			data = strings.TrimSpace(line[6:])
		case line == "\n" && name != "":
			return name, data, nil
		}
	}
}

// records returns the seqs of the next n records.
func (l *listener) records(n int) (seqs []string) {
	l.t.Helper()
	for len(seqs) < n {
		name, data, err := l.next()
		if err != nil {
			l.t.Fatalf("after %d of %d records: %v", len(seqs), n, err)
		}
		if name == "problem" {
			l.t.Fatal(data)
		}
		if name == "record" {
			seqs = append(seqs, seqOf(data))
		}
	}
	return seqs
}

func seqOf(data string) string {
	_, rest, _ := strings.Cut(data, `"$ledgerlake":`)
	_, rest, _ = strings.Cut(rest, `"seq":`)
	return rest[:strings.IndexAny(rest, ",}")]
}

// grow adds a segment to an archive that is served.
func (w *world) grow(a *prooftest.Archive, l *prooftest.Line, fill func(*prooftest.Batch)) {
	w.t.Helper()
	l.Segment(fill)
	for key, body := range a.Objects() {
		if _, err := w.bucket.Create(w.t.Context(), key, body); err != nil && !strings.Contains(err.Error(), "exists") {
			w.t.Fatal(err)
		}
	}
	w.later(time.Minute)
}

func growing(tenants ...string) (*prooftest.Archive, *prooftest.Line) {
	a := prooftest.New()
	a.Signers = append(a.Signers, prooftest.Signer("anchors"))
	l := a.Line("audit.calls", 0)
	l.Segment(func(b *prooftest.Batch) {
		for range 5 {
			for _, t := range tenants {
				b.Call(t)
			}
		}
	})
	l.Anchor()
	return a, l
}

func call(tenant string) func(*prooftest.Batch) {
	return func(b *prooftest.Batch) { b.Call(tenant); b.Call("globex") }
}

var quick = serve.Options{Age: time.Millisecond}

// Whoever is cut off after any event goes on behind it: nothing is missing, and
// nothing comes twice.
func TestATailGoesOnWhereItWasCutOff(t *testing.T) {
	a, line := growing("acme", "globex")
	w := newWorld(t, a, quick, "a=acme")
	for cut := range 6 {
		l := w.listen("a", "/v1/tenants/acme/tail?from=start", "")
		got := l.records(cut)
		if cut == 0 {
			if _, _, err := l.next(); err != nil { // its position
				t.Fatal(err)
			}
		}
		l.stop()
		l = w.listen("a", "/v1/tenants/acme/tail", l.last)
		got = append(got, l.records(5-cut)...)
		if strings.Join(got, " ") != "0 1 2 3 4" {
			t.Errorf("cut off after %d: %v", cut, got)
		}
		l.stop()
	}
	l := w.listen("a", "/v1/tenants/acme/tail", "")
	if name, _, err := l.next(); name != "position" || err != nil {
		t.Fatal(name, err)
	}
	w.grow(a, line, call("acme"))
	if got := l.records(1); got[0] != "5" {
		t.Errorf("what comes: %v", got)
	}
	line.Anchor()
	line.Compact(prooftest.Compaction{Watermark: 2})
	for key, body := range a.Objects() {
		_, _ = w.bucket.Create(t.Context(), key, body)
	}
	w.grow(a, line, call("acme"))
	if got := l.records(1); got[0] != "6" {
		t.Errorf("what comes after a compaction: %v", got)
	}
}

// In more logs than an event can name, the position comes behind each log: who is
// cut off gets some of one log again, and misses nothing.
func TestATailOfManyLogs(t *testing.T) {
	a := prooftest.New()
	for i := range 12 {
		a.Line("audit.calls", int32(i)).Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("acme") })
	}
	w := newWorld(t, a, quick, "a=acme")
	for cut := 1; cut < 24; cut += 5 {
		seen := map[string]int{}
		take := func(l *listener, n int) {
			for n > 0 {
				name, data, err := l.next()
				if err != nil {
					t.Fatal(err)
				}
				if name == "record" {
					_, rest, _ := strings.Cut(data, `"$ledgerlake":`)
					seen[rest[:strings.Index(rest, `"offset"`)]+seqOf(data)]++
					n--
				}
			}
		}
		l := w.listen("a", "/v1/tenants/acme/tail?from=start", "")
		take(l, cut)
		l.stop()
		l = w.listen("a", "/v1/tenants/acme/tail", l.last)
		for len(seen) < 24 {
			take(l, 1)
		}
		l.stop()
		twice := 0
		for _, n := range seen {
			twice += n - 1
		}
		if twice > 2 {
			t.Errorf("cut off after %d: %d came twice, at most one log of 2 may", cut, twice)
		}
	}
}

// A position that is not of this archive is refused, and so is one with another
// hash: what was received is not what is there.
func TestAPositionOfAnotherArchive(t *testing.T) {
	a, _ := growing("acme")
	w := newWorld(t, a, quick, "a=acme")
	l := w.listen("a", "/v1/tenants/acme/tail?from=start", "")
	l.records(3)
	l.stop()
	id := strings.Split(l.last, ":")
	for _, bad := range []string{
		strings.Join([]string{id[0], id[1], "6"}, ":"), "AAAAAAAAAAAAAAAAAAAAAA:0:1", strings.Join([]string{id[0], "1", id[2]}, ":"),
	} {
		if r := w.ask("a", "/v1/tenants/acme/tail", "Last-Event-ID", bad); r.status != 409 || !strings.Contains(r.body, "position") {
			t.Errorf("%s: %d %s", bad, r.status, r.body)
		}
	}
	id[3] = strings.Repeat("A", len(id[3]))
	l = w.listen("a", "/v1/tenants/acme/tail", strings.Join(id, ":"))
	for {
		name, data, err := l.next()
		if err != nil {
			t.Fatal(err)
		}
		if name == "record" {
			t.Fatalf("it goes on: %s", data)
		}
		if name == "problem" {
			if !strings.Contains(data, ":position") {
				t.Error(data)
			}
			break
		}
	}
	l.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.faults) > 0 {
		t.Errorf("whoever sends a position makes the operator look for a fault of the archive: %v", w.faults)
	}
}

// A tail ends when its token does, and says so.
func TestATailEndsWithItsToken(t *testing.T) {
	a, _ := growing("acme")
	w := newWorld(t, a, quick, "a=acme", "b=acme")
	l := w.listen("a", "/v1/tenants/acme/tail", "")
	w.setTokens("b=acme")
	for {
		name, data, err := l.next()
		if err != nil {
			t.Fatal("it ends without a word: ", err)
		}
		if name == "problem" {
			if !strings.Contains(data, ":token") {
				t.Error(data)
			}
			break
		}
	}
	if r := w.ask("a", "/v1/tenants"); r.status != 401 {
		t.Errorf("the token still works: %d", r.status)
	}
}

// A token whose tenants are taken away gets nothing more of them.
func TestATailEndsWithItsTenant(t *testing.T) {
	a, line := growing("acme", "globex")
	w := newWorld(t, a, quick, "a=acme,globex")
	l := w.listen("a", "/v1/tenants/globex/tail", "")
	w.setTokens("a=acme")
	w.grow(a, line, call("acme"))
	for {
		name, data, err := l.next()
		if err != nil || name == "problem" {
			break
		}
		if name == "record" {
			t.Fatalf("it still gets %s", data)
		}
	}
}

// Where nothing comes there are signs of life.
func TestATailLives(t *testing.T) {
	a, _ := growing("acme")
	w := newWorld(t, a, quick, "a=acme")
	l := w.listen("a", "/v1/tenants/acme/tail", "")
	alive := 0
	for alive < 2 {
		line, err := l.in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == ": alive\n" {
			alive++
		}
		w.later(20 * time.Second)
	}
}

// What does not fit in one log stops that log alone; a tail says so and goes on.
func TestOneBadLogHoldsUpNoOther(t *testing.T) {
	a := prooftest.New()
	a.Line("audit.bad", 0).Segment(func(b *prooftest.Batch) { b.Call("acme") })
	a.Line("audit.good", 0).Segment(func(b *prooftest.Batch) { b.Call("acme") })
	objects := a.Objects()
	for key, body := range objects {
		if strings.HasPrefix(key, "log/audit.bad/") {
			damaged := append([]byte{}, body...)
			for i := 4; i < 400; i++ {
				damaged[i] ^= 0x55
			}
			objects[key] = damaged
		}
	}
	w := newWorldOf(t, a, objects, quick, "a=acme")
	got := decode[records](t, w.ask("a", "/v1/tenants/acme/turns/turn-0"))
	if len(got.Records) != 1 || got.Complete {
		t.Errorf("a turn: %d records, complete %t", len(got.Records), got.Complete)
	}
	r := w.ask("a", "/v1/tenants/acme/range?from=2020-01-01T00:00:00Z&to=2030-01-01T00:00:00Z")
	if r.err == nil || !strings.Contains(r.body, `"topic":"audit.good"`) || !strings.Contains(r.body, `{"$problem":`) {
		t.Errorf("a range: %v, %s", r.err, r.body)
	}
	l := w.listen("a", "/v1/tenants/acme/tail?from=start", "")
	seen := map[string]int{}
	for seen["record"] == 0 || seen["problem"] == 0 {
		name, _, err := l.next()
		if err != nil {
			t.Fatal(err)
		}
		seen[name]++
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.faults) == 0 {
		t.Error("the operator hears nothing")
	}
}

// A tenant of whom there is nothing yet can be waited for, and what comes while
// nobody listens is not lost.
func TestATailOfNothingYet(t *testing.T) {
	a, line := growing("globex")
	w := newWorld(t, a, quick, "a=acme")
	l := w.listen("a", "/v1/tenants/acme/tail", "")
	if _, _, err := l.next(); err != nil {
		t.Fatal(err)
	}
	l.stop()
	w.grow(a, line, call("acme"))
	l = w.listen("a", "/v1/tenants/acme/tail", l.last)
	if got := l.records(1); got[0] != "0" {
		t.Error(got)
	}
}
