package httpsink

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
)

// A hook is a receiver of webhooks that keeps the last request.
type hook struct {
	header http.Header
	body   []byte
	path   string
}

func (h *hook) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	h.header, h.path = r.Header, r.URL.RequestURI()
	h.body, _ = io.ReadAll(r.Body)
}

// The library of Standard Webhooks takes what we sign, by the old secret and by
// the new one; and nothing that was changed on the way.
func TestWebhookSignature(t *testing.T) {
	const older = "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY="
	h := &hook{}
	o := at(serve(t, h))
	o.Now = time.Now // the library looks at the clock
	w, err := NewWebhook(WebhookOptions{HTTP: o, Secrets: []string{aKey, older}})
	if err != nil {
		t.Fatal(err)
	}
	if r := w.Deliver(t.Context(), messages(t, event.JSON, 3, plain)); !r.Done() {
		t.Fatalf("%+v", r)
	}
	for _, secret := range []string{aKey, older} {
		checker, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := checker.Verify(h.body, h.header); err != nil {
			t.Errorf("%v", err)
		}
		if err := checker.Verify(append([]byte(" "), h.body...), h.header); err == nil {
			t.Error("a changed body passes")
		}
		other := h.header.Clone()
		other.Set("webhook-id", "msg_other")
		if err := checker.Verify(h.body, other); err == nil {
			t.Error("another id passes")
		}
	}
	stranger, err := standardwebhooks.NewWebhook("whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), 32)))
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Verify(h.body, h.header); err == nil {
		t.Error("another secret passes")
	}
}

// A key of Ed25519 signs as v1a, from its seed as from all of it.
func TestWebhookEd25519(t *testing.T) {
	seed := bytes.Repeat([]byte{7}, ed25519.SeedSize)
	key := ed25519.NewKeyFromSeed(seed)
	for _, secret := range [][]byte{seed, key} {
		h := &hook{}
		w, err := NewWebhook(WebhookOptions{HTTP: at(serve(t, h)), Secrets: []string{"whsk_" + base64.StdEncoding.EncodeToString(secret), aKey}})
		if err != nil {
			t.Fatal(err)
		}
		if r := w.Deliver(t.Context(), messages(t, event.JSON, 1, plain)); !r.Done() {
			t.Fatalf("%+v", r)
		}
		signatures := strings.Fields(h.header.Get("webhook-signature"))
		if len(signatures) != 2 || !strings.HasPrefix(signatures[1], "v1,") {
			t.Fatalf("%q", signatures)
		}
		text, ok := strings.CutPrefix(signatures[0], "v1a,")
		signature, err := base64.StdEncoding.DecodeString(text)
		message := h.header.Get("webhook-id") + "." + h.header.Get("webhook-timestamp") + "." + string(h.body)
		if !ok || err != nil || !ed25519.Verify(key.Public().(ed25519.PublicKey), []byte(message), signature) {
			t.Errorf("%q does not sign", signatures[0])
		}
	}
}

// The id of a batch is the same each time it is sent, by whomever, and that of no
// other batch, also where they begin and end alike.
func TestWebhookID(t *testing.T) {
	batch := messages(t, event.JSON, 4, plain)
	h := &hook{}
	id := func(clock time.Time, batch ...sink.Message) string {
		o := at(serve(t, h))
		o.Now = func() time.Time { return clock }
		w, err := NewWebhook(WebhookOptions{HTTP: o, Secrets: []string{aKey}})
		if err != nil {
			t.Fatal(err)
		}
		if r := w.Deliver(t.Context(), batch); !r.Done() {
			t.Fatalf("%+v", r)
		}
		return h.header.Get("webhook-id")
	}
	first := id(now, batch...)
	if later := id(now.Add(time.Hour), batch...); later != first || h.header.Get("webhook-timestamp") != "1778850000" {
		t.Errorf("%s, then %s at %s", first, later, h.header.Get("webhook-timestamp"))
	}
	small := batch[1]
	small.Event = small.Event.Pointer()
	seen := []string{first}
	for _, other := range [][]sink.Message{batch[:3], batch[1:], {batch[0], batch[2], batch[3]}, {batch[0], batch[2], batch[1], batch[3]}, {batch[0], small, batch[2], batch[3]}} {
		next := id(now, other...)
		if slices.Contains(seen, next) {
			t.Errorf("%s twice", next)
		}
		seen = append(seen, next)
	}
}

// The body is a list, or lines, of the events as they are.
func TestWebhookBody(t *testing.T) {
	batch := messages(t, event.JSON, 3, plain)
	for _, lines := range []bool{false, true} {
		h := &hook{}
		w, err := NewWebhook(WebhookOptions{HTTP: at(serve(t, h) + "/in?a=b"), Secrets: []string{aKey}, Lines: lines})
		if err != nil {
			t.Fatal(err)
		}
		if r := w.Deliver(t.Context(), batch); !r.Done() {
			t.Fatalf("%+v", r)
		}
		var got []json.RawMessage
		want := "application/json"
		if lines {
			want = "application/x-ndjson"
			for line := range bytes.Lines(h.body) {
				got = append(got, bytes.TrimSuffix(line, []byte("\n")))
			}
		} else if err := json.Unmarshal(h.body, &got); err != nil {
			t.Fatal(err)
		}
		if h.header.Get("Content-Type") != want || h.path != "/in?a=b" || len(got) != 3 {
			t.Fatalf("%s %s: %s", h.path, h.header.Get("Content-Type"), h.body)
		}
		for i := range got {
			if !bytes.Equal(got[i], batch[i].Body) {
				t.Errorf("%s", got[i])
			}
		}
	}
	h := &hook{}
	w, err := NewWebhook(WebhookOptions{HTTP: at(serve(t, h) + "/in"), Secrets: []string{aKey}, Path: "/T0/" + aToken + "?x=1"})
	if err != nil {
		t.Fatal(err)
	}
	if r := w.Deliver(t.Context(), batch); !r.Done() || h.path != "/in/T0/"+aToken+"?x=1" {
		t.Errorf("%+v: %s", r, h.path)
	}
}
