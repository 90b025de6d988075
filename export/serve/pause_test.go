package serve_test

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/export/serve"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A pausing archive takes its time before each row of a range, as one that looks
// through objects without any.
type pausing struct {
	serve.Archive
	pause time.Duration
}

func (p pausing) Range(ctx context.Context, r export.Range) iter.Seq2[*export.Row, error] {
	return func(yield func(*export.Row, error) bool) {
		for row, err := range p.Archive.Range(ctx, r) {
			time.Sleep(p.pause)
			if !yield(row, err) {
				return
			}
		}
	}
}

// What one write may take is not what the archive may take before it.
func TestAnArchiveMayPause(t *testing.T) {
	a := prooftest.New()
	a.Line("audit.calls", 0).Segment(func(b *prooftest.Batch) {
		for range 3 {
			b.Reject("acme", audit.ReasonInvalidJSON, []byte(strings.Repeat("x", 100_000)))
		}
	})
	bucket := prooftest.Bucket(a.Objects())
	asked, err := export.Open(t.Context(), bucket, export.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const write = 200 * time.Millisecond
	s, err := serve.New(serve.Options{Archive: pausing{asked, 2 * write}, Source: bucket, Now: time.Now, Limits: serve.Limits{Write: write}})
	if err != nil {
		t.Fatal(err)
	}
	secret, entry, err := serve.NewToken(strings.NewReader(strings.Repeat("r", 32)), "a", []string{"acme"}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := serve.ParseTokens([]byte("tokens:\n" + entry.String()))
	if err != nil {
		t.Fatal(err)
	}
	s.SetTokens(tokens)
	for _, http2 := range []bool{false, true} {
		h := httptest.NewUnstartedServer(s)
		h.EnableHTTP2 = http2
		h.StartTLS()
		defer h.Close()
		req, err := http.NewRequestWithContext(t.Context(), "GET", h.URL+"/v1/tenants/acme/range?from=2020-01-01T00:00:00Z&to=2030-01-01T00:00:00Z", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+secret)
		res, err := h.Client().Do(req)
		if err != nil {
			t.Errorf("HTTP/2 %v: %v", http2, err)
			continue
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if n := strings.Count(string(body), "\n"); n != 3 || err != nil || (res.ProtoMajor == 2) != http2 {
			t.Errorf("%s: %d records, %v", res.Proto, n, err)
		}
	}
}
