package serve_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/export/serve"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A world is a server over a small archive, and the tokens of those who ask.
type world struct {
	*httptest.Server
	t      *testing.T
	serve  *serve.Server
	bucket *archive.Memory
	tokens map[string]string // by name

	mu     sync.Mutex
	now    time.Time
	faults []error
	told   []serve.Request
}

// newWorld serves an archive to tokens, each NAME=TENANT,….
func newWorld(t *testing.T, a *prooftest.Archive, o serve.Options, tokens ...string) *world {
	t.Helper()
	return newWorldOf(t, a, a.Objects(), o, tokens...)
}

// newWorldOf serves the objects of an archive, which need not be as they were.
func newWorldOf(t *testing.T, a *prooftest.Archive, objects map[string][]byte, o serve.Options, tokens ...string) *world {
	t.Helper()
	return build(t, a, objects, o, func(a serve.Archive) serve.Archive { return a }, tokens...)
}

// newWorldWith serves what with makes of an archive.
func newWorldWith(t *testing.T, a *prooftest.Archive, o serve.Options, with func(serve.Archive) serve.Archive, tokens ...string) *world {
	t.Helper()
	return build(t, a, a.Objects(), o, with, tokens...)
}

func build(t *testing.T, a *prooftest.Archive, objects map[string][]byte, o serve.Options, with func(serve.Archive) serve.Archive, tokens ...string) *world {
	t.Helper()
	w := &world{t: t, bucket: prooftest.Bucket(objects), tokens: map[string]string{}, now: time.UnixMicro(prooftest.Start)}
	keys := &sign.Ring{}
	for _, s := range a.Signers {
		if err := keys.Add(s.VKey(), sign.Anchor|sign.Catalog|sign.Control, "test"); err != nil {
			t.Fatal(err)
		}
	}
	asked, err := export.Open(t.Context(), w.bucket, export.Options{Keys: keys, LogKeys: o.LogKeys})
	if err != nil {
		t.Fatal(err)
	}
	o.Archive, o.Source, o.Keys = with(asked), w.bucket, keys
	o.Now = w.clock
	o.Events = serve.Events{Answered: w.answered, Failed: w.failed}
	if w.serve, err = serve.New(o); err != nil {
		t.Fatal(err)
	}
	w.setTokens(tokens...)
	w.Server = httptest.NewUnstartedServer(w.serve)
	w.Config = w.serve.HTTP()
	w.Start()
	t.Cleanup(func() { w.serve.Stop(); w.Close() })
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// later lets time pass: what was looked at is old then.
func (w *world) later(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) answered(r serve.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, r)
}

func (w *world) failed(_ serve.Request, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, err)
}

// setTokens makes new tokens for those that are not there yet, and has these
// alone be good.
func (w *world) setTokens(tokens ...string) {
	w.t.Helper()
	file := "tokens:\n"
	for _, text := range tokens {
		name, tenants, _ := strings.Cut(text, "=")
		random := bytes.Repeat([]byte(fmt.Sprintf("%-8s", name)), 4)
		secret, entry, err := serve.NewToken(bytes.NewReader(random), name, strings.Split(tenants, ","), time.Time{})
		if err != nil {
			w.t.Fatal(err)
		}
		w.tokens[name] = secret
		file += entry.String()
	}
	set, err := serve.ParseTokens([]byte(file))
	if err != nil {
		w.t.Fatalf("%v in\n%s", err, file)
	}
	w.serve.SetTokens(set)
}

// A reply is an answer as it came.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // of the body
}

// ask asks for a path as it is, with the token of a name.
func (w *world) ask(token, path string, header ...string) reply {
	w.t.Helper()
	return w.do(w.t.Context(), "GET", token, path, header...)
}

func (w *world) do(ctx context.Context, method, token, path string, header ...string) reply {
	w.t.Helper()
	res, err := w.open(ctx, method, token, path, header...)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, string(body), err}
}

func (w *world) open(ctx context.Context, method, token, path string, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, w.URL+path, nil)
	if err != nil {
		return nil, err
	}
	if secret, ok := w.tokens[token]; ok {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := w.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client.Do(req)
}
