//go:build it

// Package browser opens the timeline page in a real Chromium, as people and those
// who cannot see or use a mouse do, and takes its picture.
//
//	go -C it/browser test -tags it ./...
//	go -C it/browser test -tags it -run Picture -picture ../../docs/img/timeline.png
//
// It needs Debian's chromium, or LEDGERLAKE_IT_CHROMIUM, and axe-core where
// it/setup.sh puts it.
package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/export/serve"
	"github.com/ledgerlake/ledgerlake/export/serve/servetest"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

var picture = flag.String("picture", "", "write the picture of the page to this file")

// chromium returns the browser's path. Where there is none the tests fail: a page
// that nobody opened was not tested.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("LEDGERLAKE_IT_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no Chromium: apt-get install chromium, or set LEDGERLAKE_IT_CHROMIUM")
	return ""
}

// A site is a server over an archive.
type site struct {
	*httptest.Server
	archive *prooftest.Archive
	bucket  *archive.Memory
	token   string
}

func open(t *testing.T, a *prooftest.Archive) *site {
	t.Helper()
	s := &site{archive: a, bucket: prooftest.Bucket(a.Objects())}
	keys := &sign.Ring{}
	for _, k := range a.Signers {
		if err := keys.Add(k.VKey(), sign.Anchor|sign.Catalog|sign.Control, "test"); err != nil {
			t.Fatal(err)
		}
	}
	asked, err := export.Open(t.Context(), s.bucket, export.Options{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	server, err := serve.New(serve.Options{Archive: asked, Source: s.bucket, Keys: keys, Now: time.Now, Age: 100 * time.Millisecond, Events: serve.Events{
		Failed: func(r serve.Request, err error) { t.Errorf("%s: %v", r.Route, err) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	secret, entry, err := serve.NewToken(bytes.NewReader(bytes.Repeat([]byte("demo"), 8)), "demo", []string{servetest.Tenant}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := serve.ParseTokens([]byte("tokens:\n" + entry.String()))
	if err != nil {
		t.Fatal(err)
	}
	server.SetTokens(tokens)
	s.token = secret
	s.Server = httptest.NewServer(server)
	t.Cleanup(func() { server.Stop(); s.Close() })
	return s
}

// more puts what was added to the archive since into the bucket.
func (s *site) more(t *testing.T) {
	t.Helper()
	for key, body := range s.archive.Objects() {
		if _, err := s.bucket.Create(t.Context(), key, body); err != nil && !strings.Contains(err.Error(), "exists") {
			t.Fatal(err)
		}
	}
}

// A tab is a page that is open, and what it did besides.
type tab struct {
	context.Context
	t    *testing.T
	site *site

	mu       sync.Mutex
	said     []string // on the console, and what the browser refused
	asked    []string // URLs
	expected []string // parts of what it may say
}

// newTab opens an empty tab of a width. media are features such as
// prefers-color-scheme.
func newTab(t *testing.T, s *site, width, height int64, media ...*emulation.MediaFeature) *tab {
	t.Helper()
	o := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("font-render-hinting", "none"), chromedp.UserDataDir(t.TempDir()))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), o...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // it starts
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(ctx, 90*time.Second)
	t.Cleanup(cancel)
	b := &tab{Context: ctx, t: t, site: s}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, runtime.Enable, cdp.Empty{})
	call(b, log.Enable, cdp.Empty{})
	b.do(chromedp.EmulateViewport(width, height))
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: media})
	t.Cleanup(b.innocent)
	return b
}

// call asks the browser for something of its protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	r, err := chromedp.Call(b.Context, command, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// hear notes what a page does that nobody sees.
func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	case *runtime.EventConsoleAPICalled:
		for _, a := range e.Args {
			b.said = append(b.said, string(a.Value))
		}
	case *runtime.EventExceptionThrown:
		b.said = append(b.said, fmt.Sprint(e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *log.EventEntryAdded:
		b.said = append(b.said, e.Entry.Text+" "+e.Entry.URL)
	}
}

// innocent fails the test if the page said anything on the console that was not
// expected, asked another host, or put the token into an address.
func (b *tab) innocent() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.said {
		if !b.expects(text) {
			b.t.Errorf("the console says: %s", text)
		}
	}
	own, err := url.Parse(b.site.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, text := range b.asked {
		u, err := url.Parse(text)
		if err != nil || u.Host != own.Host && u.Scheme != "data" && u.Scheme != "blob" && u.Scheme != "about" {
			b.t.Errorf("it asked for %.300s", text)
		}
		if strings.Contains(text, b.site.token) {
			b.t.Errorf("the token is in an address: %.300s", text)
		}
	}
	if len(b.asked) == 0 {
		b.t.Error("no request was seen: nothing was tested")
	}
}

func (b *tab) expects(text string) bool {
	for _, part := range b.expected {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.Context, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// js returns what an expression is; a promise is waited for.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.Context, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%.300s: %v", expression, err)
	}
	return v
}

// until waits until an expression is true.
func (b *tab) until(expression string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.Context, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(20*time.Second))); err != nil {
		b.t.Fatalf("%s: %v\nthe page: %.1500s", expression, err, js[string](b, "document.body.innerText"))
	}
}

// enter opens the page and gives it the token, as a person does.
func (b *tab) enter(hash string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.site.URL+"/"+hash), chromedp.WaitVisible(chromedp.CSS("#token")))
	b.until(`document.activeElement.id === 'token'`)
	b.do(chromedp.SendKeys(chromedp.CSS("#token"), b.site.token+kb.Enter))
	b.until(`document.getElementById('gate').hidden`)
}

// enterTurn opens a turn, and waits until its proofs are known.
func (b *tab) enterTurn(turn string) {
	b.t.Helper()
	b.enter("#tenant=" + servetest.Tenant + "&turn=" + turn)
	b.until(`document.querySelectorAll('.step').length > 0`)
	b.checked()
}

func (b *tab) checked() {
	b.t.Helper()
	b.until(`![...document.querySelectorAll('.step .proof')].some(n => n.textContent === 'checking…')`)
}

// press presses keys, one after the other.
func (b *tab) press(keys ...string) {
	b.t.Helper()
	for _, k := range keys {
		b.do(chromedp.KeyEvent(k))
	}
}

func list(s []string) string { return fmt.Sprintf("%q", s) }

// text returns a value of the accessibility tree as text.
func text(v []byte) string {
	var s string
	_ = json.Unmarshal(v, &s) // what is no text has none
	return s
}
