package serve_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ledgerlake/ledgerlake/export/serve"
)

// One token that asks for too much at once is told to wait; others are not.
func TestTooManyRequestsAtOnce(t *testing.T) {
	a, _ := growing("acme", "globex")
	o := quick
	o.Limits.TokenRequests, o.Limits.Requests = 2, 3
	w := newWorld(t, a, o, "a=acme", "b=globex", "c=acme")
	w.listen("a", "/v1/tenants/acme/tail", "")
	second := w.listen("a", "/v1/tenants/acme/tail", "")
	if r := w.ask("a", "/v1/tenants"); r.status != 429 || r.header.Get("Retry-After") == "" {
		t.Errorf("a third: %d", r.status)
	}
	if r := w.ask("b", "/v1/tenants"); r.status != 200 {
		t.Errorf("another token: %d", r.status)
	}
	w.listen("b", "/v1/tenants/globex/tail", "")
	if r := w.ask("c", "/v1/tenants"); r.status != 503 || r.header.Get("Retry-After") == "" {
		t.Errorf("more than all may: %d", r.status)
	}
	if r := w.ask("", "/healthz"); r.status != 200 {
		t.Errorf("health: %d", r.status)
	}
	second.stop()
	for range 1000 {
		if r := w.ask("a", "/v1/tenants"); r.status == 200 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error("a place that was left is never free")
}

// What is sent has limits of time and size; an answer as a whole has none of time,
// for a tail has no end.
func TestTimesOfTheServer(t *testing.T) {
	w := newWorld(t, calls("acme"), serve.Options{}, "a=acme")
	if h := w.serve.HTTP(); h.ReadTimeout != 0 || h.WriteTimeout != 0 || h.ReadHeaderTimeout == 0 || h.IdleTimeout == 0 || h.MaxHeaderBytes == 0 {
		t.Errorf("%+v", h)
	}
}

// A connection that was silent for longer than a write may take is still good.
func TestAConnectionIsUsedAgain(t *testing.T) {
	o := serve.Options{}
	o.Limits.Write = 50 * time.Millisecond
	w := newWorld(t, calls("acme"), o, "a=acme")
	for _, path := range []string{"/v1/tenants", "/v1/tenants/acme/range?from=2020-01-01T00:00:00Z&to=2021-01-01T00:00:00Z", "/v1/tenants/acme/turns/turn-3"} {
		for _, method := range []string{"GET", "HEAD"} {
			time.Sleep(60 * time.Millisecond) // a real connection has a real clock
			if r := w.do(t.Context(), method, "a", path); r.status != 200 || r.err != nil {
				t.Errorf("%s %s: %d %v", method, path, r.status, r.err)
			}
		}
	}
}

// A body is refused before it is read, and headers end somewhere.
func TestWhatIsSentIsLittle(t *testing.T) {
	w := newWorld(t, calls("acme"), serve.Options{}, "a=acme")
	for _, body := range []io.Reader{strings.NewReader("x"), io.MultiReader(strings.NewReader("x"))} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", w.URL+"/v1/tenants", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+w.tokens["a"])
		res, err := w.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 413 {
			t.Errorf("a body: %d", res.StatusCode)
		}
	}
	if r := w.ask("a", "/v1/tenants", "X-Long", strings.Repeat("x", 64<<10)); r.status != 431 {
		t.Errorf("long headers: %d", r.status)
	}
}

// An answer is compressed as whoever asks takes it; a tail is not.
func TestAnswersAreCompressed(t *testing.T) {
	a, _ := growing("acme")
	w := newWorld(t, a, quick, "a=acme")
	path := "/v1/tenants/acme/sessions/sess-0?limit=1000"
	plain := w.ask("a", path, "Accept-Encoding", "identity")
	for encoding, open := range map[string]func(io.Reader) (io.Reader, error){
		"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
	} {
		r := w.ask("a", path, "Accept-Encoding", encoding)
		if r.header.Get("Content-Encoding") != encoding || len(r.body) >= len(plain.body) {
			t.Errorf("%s: %s, %d bytes", encoding, r.header.Get("Content-Encoding"), len(r.body))
			continue
		}
		in, err := open(bytes.NewReader([]byte(r.body)))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(in); err != nil || string(body) != plain.body {
			t.Errorf("%s: %v, another body", encoding, err)
		}
	}
	res, err := w.open(t.Context(), "GET", "a", "/v1/tenants/acme/tail?from=start", "Accept-Encoding", "gzip, zstd")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if e := res.Header.Get("Content-Encoding"); e != "" {
		t.Errorf("a tail is sent as %s", e)
	}
}
