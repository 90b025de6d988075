package httpsink

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ledgerlake/ledgerlake/export/sink"
)

// WebhookOptions say where events are posted to, and how.
type WebhookOptions struct {
	HTTP
	// Path is appended to the URL, and a secret: for receivers that know who sends
	// by the path.
	Path string
	// Secrets sign, each of them: one, or two while one takes the place of the
	// other. whsec_ and base64 of 24 to 64 bytes signs by HMAC-SHA256 (v1); whsk_ and
	// base64 of an Ed25519 private key, its seed or all of it, by that (v1a).
	Secrets []string
	// Lines posts one event a line (application/x-ndjson), instead of an array.
	Lines  bool
	Limits sink.Limits // zero members are the usual ones
}

// A Webhook posts batches of events to a URL.
//
// Its requests are those of Standard Webhooks 1.0: webhook-id names the batch and
// is the same each time that batch is sent, also by another process;
// webhook-timestamp is when this attempt was made; webhook-signature covers both
// and the body, once by each secret. Bodies are never compressed, for there is no
// saying which form a receiver's library signs. Any 2xx is a delivery.
type Webhook struct {
	c       *client
	o       WebhookOptions
	url     string
	signers []signer
}

var (
	_ sink.Sink = (*Webhook)(nil)
	_ sink.Sink = (*Splunk)(nil)
	_ sink.Sink = (*Elastic)(nil)
	_ sink.Sink = (*OTLP)(nil)
	_ sink.Sink = (*Datadog)(nil)
)

// A signer returns the signature of a message, with its version in front.
type signer func(message []byte) string

// NewWebhook returns a Webhook.
func NewWebhook(o WebhookOptions) (*Webhook, error) {
	if o.Compression != None && o.Compression != "" {
		return nil, errors.New("compression: a webhook's body is signed, and is not compressed")
	}
	hidden := append([]string{o.Path}, o.Secrets...)
	c, err := newClient(o.HTTP, hidden...)
	if err != nil {
		return nil, err
	}
	w := &Webhook{c: c, o: o, url: c.url.String()}
	if o.Path != "" {
		u, err := parseURL(strings.TrimSuffix(w.url, "/")+"/"+strings.TrimPrefix(o.Path, "/"), o.AllowPlaintext)
		if err != nil {
			return nil, errors.New("path: it is no path of a URL")
		}
		w.url = u.String()
		c.hide(longSteps(o.Path)...)
	}
	for i, s := range o.Secrets {
		sign, err := newSigner(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", [...]string{"secret", "old-secret"}[min(i, 1)], err)
		}
		w.signers = append(w.signers, sign)
	}
	if len(w.signers) == 0 {
		return nil, errors.New("secret: none to sign with")
	}
	w.o.Limits = limits(o.Limits, sink.Limits{Events: 500, BatchBytes: 1 << 20, EventBytes: 256 << 10})
	return w, nil
}

// longSteps returns the steps of a path that are long enough to be secrets, for a
// receiver may tell one without the others.
func longSteps(path string) []string {
	steps := strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("/?&=", r) })
	return slices.DeleteFunc(steps, func(s string) bool { return len(s) < 8 })
}

// limits returns limits, with the usual ones where they have none.
func limits(l, usual sink.Limits) sink.Limits {
	if l.Events == 0 {
		l.Events = usual.Events
	}
	if l.BatchBytes == 0 {
		l.BatchBytes = usual.BatchBytes
	}
	if l.EventBytes == 0 {
		l.EventBytes = min(usual.EventBytes, l.BatchBytes)
	}
	return l
}

// newSigner returns what signs with a secret. No error shows it.
func newSigner(secret string) (signer, error) {
	encode := base64.StdEncoding.EncodeToString
	if text, ok := strings.CutPrefix(secret, "whsk_"); ok {
		key, err := privateKey(text)
		if err != nil {
			return nil, err
		}
		return func(m []byte) string { return "v1a," + encode(ed25519.Sign(key, m)) }, nil
	}
	text, ok := strings.CutPrefix(secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < 24 || len(key) > 64 {
		return nil, errors.New("want whsec_ and base64 of 24 to 64 bytes, or whsk_ and base64 of an Ed25519 private key")
	}
	return func(m []byte) string {
		h := hmac.New(sha256.New, key)
		h.Write(m)
		return "v1," + encode(h.Sum(nil))
	}, nil
}

func privateKey(text string) (ed25519.PrivateKey, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err == nil && len(b) == ed25519.SeedSize:
		return ed25519.NewKeyFromSeed(b), nil
	case err == nil && len(b) == ed25519.PrivateKeySize:
		key := ed25519.NewKeyFromSeed(b[:ed25519.SeedSize])
		if key.Equal(ed25519.PrivateKey(b)) {
			return key, nil
		}
	}
	return nil, errors.New("want whsk_ and base64 of an Ed25519 private key: its seed of 32 bytes, or 64 bytes")
}

// Limits implements [sink.Sink].
func (w *Webhook) Limits() sink.Limits { return w.o.Limits }

// Deliver implements [sink.Sink].
func (w *Webhook) Deliver(ctx context.Context, batch []sink.Message) sink.Result {
	a, err := w.c.post(ctx, w.request(batch))
	if err != nil {
		return w.c.failed(ctx, len(batch), err)
	}
	return w.c.judged(batch, a, "")
}

func (w *Webhook) request(batch []sink.Message) request {
	r := request{url: w.url, contentType: "application/json", body: array(batch)}
	if w.o.Lines {
		r.contentType, r.body = "application/x-ndjson", lines(batch)
	}
	id, at := batchID(batch), strconv.FormatInt(w.c.o.Now().Unix(), 10)
	message := append([]byte(id+"."+at+"."), r.body...)
	signatures := make([]string, len(w.signers))
	for i, sign := range w.signers {
		signatures[i] = sign(message)
	}
	r.header = http.Header{}
	r.header.Set("webhook-id", id)
	r.header.Set("webhook-timestamp", at)
	r.header.Set("webhook-signature", strings.Join(signatures, " "))
	return r
}

// batchID names a batch by what is in it: all of it, so that a receiver that drops
// what it had never drops a batch that begins and ends like another.
func batchID(batch []sink.Message) string {
	h := sha256.New()
	for _, m := range batch {
		_, _ = io.WriteString(h, string(m.Event.Kind)+"\n"+m.Event.ID+"\n")
	}
	return "msg_" + hex.EncodeToString(h.Sum(nil)[:20])
}

// array returns the bodies of a batch as a JSON array.
func array(batch []sink.Message) []byte {
	b := make([]byte, 0, room(batch))
	for i, m := range batch {
		b = append(append(b, "[,"[min(i, 1)]), m.Body...)
	}
	return append(b, ']')
}

// lines returns the bodies of a batch, one a line.
func lines(batch []sink.Message) []byte {
	b := make([]byte, 0, room(batch))
	for _, m := range batch {
		b = append(append(b, m.Body...), '\n')
	}
	return b
}

func room(batch []sink.Message) int {
	n := 1
	for _, m := range batch {
		n += len(m.Body) + 1
	}
	return n
}

// Close implements [sink.Sink].
func (w *Webhook) Close(context.Context) error {
	w.c.close()
	return nil
}
