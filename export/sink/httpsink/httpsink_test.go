package httpsink

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
)

// What a status means for one message, and that it condemns none of several: the
// same for each destination.
func TestStatusesOfABatch(t *testing.T) {
	outcomes := map[int]sink.Outcome{
		400: sink.Poison, 422: sink.Poison, 409: sink.Poison, 413: sink.Split,
		401: sink.Suspend, 403: sink.Suspend, 404: sink.Suspend, 410: sink.Suspend, 302: sink.Suspend, 501: sink.Suspend,
		408: sink.Retry, 425: sink.Retry, 429: sink.Retry, 500: sink.Retry, 502: sink.Retry, 503: sink.Retry, 504: sink.Retry,
	}
	each(t, func(t *testing.T, d *driver) {
		var status atomic.Int64
		s := d.at(t, at(serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(int(status.Load()))
		}))))
		for code, want := range outcomes {
			status.Store(int64(code))
			for _, n := range []int{1, 3} {
				if n > 1 && want == sink.Poison {
					want = sink.Split
				}
				r := s.Deliver(t.Context(), messages(t, d.format, n, plain))
				for i, v := range r.Verdicts {
					if v.Outcome != want || !strings.Contains(v.Reason, fmt.Sprint(code)) {
						t.Errorf("%d, event %d of %d: %+v, want %v", code, i, n, v, want)
					}
				}
				if r.After != 7*time.Second {
					t.Errorf("%d: after %v", code, r.After)
				}
			}
		}
	})
}

// No reason shows a secret, or what a receiver sends back of what it got; whether
// it answers, breaks off, or is not there.
func TestReasonsShowNothing(t *testing.T) {
	const payload = "ada@example.com"
	each(t, func(t *testing.T, d *driver) {
		var status atomic.Int64
		url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			echo := fmt.Sprintf("%s %s %s %v %s %s", payload, path.Base(r.URL.Path), r.URL, r.Header.Values("Authorization"), r.Header.Values("DD-API-KEY"), b)
			switch code := int(status.Load()); code {
			case 1:
				panic(http.ErrAbortHandler)
			case 2:
				w.Header().Set("Content-Length", "1000000")
				_, _ = io.WriteString(w, echo)
			case 3:
				fmt.Fprintf(w, `{"text":%q,"code":6,"items":[{"create":{"status":400,"error":{"type":%q,"caused_by":{"type":%q}}}}]}`, echo, echo, payload)
			case 302:
				w.Header().Set("Location", "/"+aToken+payload)
				w.WriteHeader(code)
			default:
				w.WriteHeader(code)
				_, _ = io.WriteString(w, echo)
			}
		}))
		s := d.at(t, at(url))
		check := func(what any, r sink.Result) {
			for _, v := range r.Verdicts {
				for _, hidden := range []string{aToken, aLogin, aKey, aKey[6:], payload, "hidden-in-url"} {
					if strings.Contains(v.Reason, hidden) && (what != "test" || hidden != payload) {
						t.Errorf("%v: %q shows %q", what, v.Reason, hidden)
					}
				}
				if v.Outcome == sink.Delivered && (d.name != "webhook" || what != 200 && what != 3) {
					t.Errorf("%v: delivered", what)
				}
				if len(v.Reason) > maxReason+len("…") || strings.ContainsAny(v.Reason, "\n\r\x00") {
					t.Errorf("%v: %q", what, v.Reason)
				}
			}
		}
		for _, code := range []int{1, 2, 3, 200, 302, 400, 401, 403, 413, 429, 500, 503} {
			status.Store(int64(code))
			check(code, s.Deliver(t.Context(), messages(t, d.format, 1, func(int) string { return payload })))
			check(code, s.Deliver(t.Context(), messages(t, d.format, 2, func(int) string { return payload })))
		}
		// The beginning of an answer is shown of a batch of tests alone, without the
		// secrets.
		status.Store(400)
		test := encoded(t, d.format, []*event.Event{event.NewCheck(event.Check{Destination: "siem", Nonce: "n", Time: now})})
		r := s.Deliver(t.Context(), test)
		check("test", r)
		if v := r.Verdicts[0]; !strings.Contains(v.Reason, "it says: ") {
			t.Errorf("a test does not show the answer: %+v", v)
		}
		gone := httptest.NewServer(nil)
		gone.Close()
		check("closed", d.at(t, at(gone.URL+"/in?key=hidden-in-url")).Deliver(t.Context(), messages(t, d.format, 1, plain)))
		h := at(strings.Replace(url, "http://", "https://", 1))
		check("no TLS", d.at(t, h).Deliver(t.Context(), messages(t, d.format, 1, plain)))
	})
}

// Headers that are no secrets do not blot reasons out.
func TestShortHeadersAreNoSecrets(t *testing.T) {
	h := at(serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })))
	h.Headers = "AccountID: 5\nProjectID: 0\r\n\nX-Key: Bearer " + aToken
	s := drivers[3].at(t, h)
	if v := s.Deliver(t.Context(), messages(t, event.JSON, 1, plain)).Verdicts[0]; v.Reason != "503 Service Unavailable" {
		t.Errorf("%+v", v)
	}
}

// What is fine is delivered; and what says that all is well, but is not what the
// protocol says, is not: a page of a proxy has 200 too.
func TestOnlyItsOwnAnswerIsADelivery(t *testing.T) {
	each(t, func(t *testing.T, d *driver) {
		var fine atomic.Bool
		s := d.at(t, at(serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if fine.Load() {
				d.fine(w, 3)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>Please log in</html>")
		}))))
		fine.Store(true)
		if r := s.Deliver(t.Context(), messages(t, d.format, 3, plain)); !r.Done() || r.Verdicts[0].Reason != "" {
			t.Errorf("%+v", r)
		}
		fine.Store(false)
		if d.name == "webhook" {
			return // any 2xx is a delivery, says its standard
		}
		for _, v := range s.Deliver(t.Context(), messages(t, d.format, 3, plain)).Verdicts {
			if v.Outcome != sink.Retry {
				t.Errorf("%+v", v)
			}
		}
	})
}

// A redirect is not followed, and nothing is sent to where it leads.
func TestRedirectsAreNotFollowed(t *testing.T) {
	each(t, func(t *testing.T, d *driver) {
		var reached atomic.Int64
		elsewhere := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
		for _, code := range []int{301, 302, 303, 307, 308} {
			s := d.at(t, at(serve(t, http.RedirectHandler(elsewhere, code))))
			if v := s.Deliver(t.Context(), messages(t, d.format, 1, plain)).Verdicts[0]; v.Outcome != sink.Suspend || !strings.Contains(v.Reason, "redirects are not followed") {
				t.Errorf("%d: %+v", code, v)
			}
		}
		if reached.Load() != 0 {
			t.Error("a redirect was followed")
		}
	})
}

// A receiver that does not answer is given up, and one whose answer has no end is
// not read to it.
func TestSilenceAndFloodsEnd(t *testing.T) {
	each(t, func(t *testing.T, d *driver) {
		hold := make(chan struct{})
		t.Cleanup(func() { close(hold) })
		h := at(serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		})))
		h.Timeout = 50 * time.Millisecond
		if v := d.at(t, h).Deliver(t.Context(), messages(t, d.format, 1, plain)).Verdicts[0]; v.Outcome != sink.Retry || v.Reason != "no answer within 50ms" {
			t.Errorf("%+v", v)
		}
		h.Timeout = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if v := d.at(t, h).Deliver(ctx, messages(t, d.format, 1, plain)).Verdicts[0]; v.Outcome != sink.Retry {
			t.Errorf("%+v", v)
		}
		flood := d.at(t, at(serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for chunk := bytes.Repeat([]byte(" "), 1<<16); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}))))
		if v := flood.Deliver(t.Context(), messages(t, d.format, 1, plain)).Verdicts[0]; (v.Outcome == sink.Delivered) != (d.name == "webhook") {
			t.Errorf("%+v", v)
		}
	})
}

// Only addresses of the public internet are public, however they are written.
func TestPublicAddresses(t *testing.T) {
	for _, s := range []string{"8.8.8.8", "1.1.1.1", "172.15.0.1", "172.32.0.1", "100.63.255.255", "100.128.0.0", "192.169.0.1", "2606:4700::1111", "2a00::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"} {
		if !public(netip.MustParseAddr(s)) {
			t.Errorf("%s is refused", s)
		}
	}
	for _, s := range []string{
		"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "169.254.170.2",
		"100.64.0.1", "100.100.100.200", "192.0.0.192", "168.63.129.16", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "203.0.113.9",
		"::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "::127.0.0.1", "2001:db8::1", "2001::1", "100::1", "3fff::1", "5f00::1", "4000::1",
		"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "64:ff9b:1::808:808", "2002:7f00:1::1", "2002:a9fe:a9fe::",
	} {
		if public(netip.MustParseAddr(s)) {
			t.Errorf("%s is public", s)
		}
	}
}

// A webhook does not reach what is not public, unless that is allowed: neither by
// an address, nor by a name, which is judged when it is dialled.
func TestWebhooksStayOutside(t *testing.T) {
	var reached atomic.Int64
	url := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	open := func(host string, guarded bool) (*Webhook, error) {
		h := at("http://" + host)
		h.OnlyPublic = guarded
		return NewWebhook(WebhookOptions{HTTP: h, Secrets: []string{aKey}})
	}
	var private *PrivateError
	for _, host := range []string{"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "10.1.2.3", "[fd00:ec2::254]"} {
		if _, err := open(host+":"+port, true); !errors.As(err, &private) || !strings.Contains(err.Error(), "allow-private") {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{"localhost", "127.1", "0x7f000001", "2130706433", "0177.0.0.1"} {
		w, err := open(host+":"+port, true)
		if err != nil {
			t.Fatal(err)
		}
		r := w.Deliver(t.Context(), messages(t, event.JSON, 2, plain))
		if v := r.Verdicts[1]; v.Outcome == sink.Delivered || host == "localhost" && v.Outcome != sink.Suspend {
			t.Errorf("%s: %+v", host, v)
		}
	}
	if reached.Load() != 0 {
		t.Fatal("a private address was reached")
	}
	w, err := open("localhost:"+port, false)
	if err != nil {
		t.Fatal(err)
	}
	if r := w.Deliver(t.Context(), messages(t, event.JSON, 2, plain)); !r.Done() || reached.Load() != 1 {
		t.Errorf("%+v", r)
	}
}

// Requests are compressed as is set, and say so.
func TestCompression(t *testing.T) {
	for _, c := range []Compression{None, Gzip, Zstd} {
		var got []byte
		h := at(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = unpacked(t, r)
			fmt.Fprint(w, `{"items":[{"create":{"status":201}},{"create":{"status":201}}]}`)
		})))
		h.Compression = c
		s, err := NewElastic(ElasticOptions{HTTP: h, Index: "audit"})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // writers are used again
			if r := s.Deliver(t.Context(), messages(t, event.ECS, 2, plain)); !r.Done() || bytes.Count(got, []byte("\n")) != 4 {
				t.Errorf("%s: %+v\n%s", c, r, got)
			}
		}
	}
	if _, err := NewElastic(ElasticOptions{HTTP: HTTP{URL: "https://a", Compression: "br", Now: time.Now}, Index: "a"}); err == nil {
		t.Error("br is taken")
	}
}

func unpacked(t *testing.T, r *http.Request) []byte {
	var from io.Reader = r.Body
	switch r.Header.Get("Content-Encoding") {
	case "gzip":
		z, err := gzip.NewReader(from)
		if err != nil {
			t.Error(err)
			return nil
		}
		from = z
	case "zstd":
		z, err := zstd.NewReader(from)
		if err != nil {
			t.Error(err)
			return nil
		}
		defer z.Close()
		from = z
	}
	b, err := io.ReadAll(from)
	if err != nil {
		t.Error(err)
	}
	return b
}

// Settings that cannot work are refused at once, and no error shows a secret.
func TestOptionsAreChecked(t *testing.T) {
	fine := HTTP{URL: "https://siem.example", Now: time.Now}
	for name, h := range map[string]HTTP{
		"no url": {}, "no URL": {URL: "siem.example"}, "no host": {URL: "https://:443/x"}, "plaintext": {URL: "http://siem.example"},
		"other scheme": {URL: "ftp://siem.example"}, "user": {URL: "https://user:" + aToken + "@siem.example"}, "fragment": {URL: "https://siem.example/#" + aToken},
		"CA": {URL: fine.URL, CA: aToken}, "key alone": {URL: fine.URL, Key: aToken}, "certificate alone": {URL: fine.URL, Certificate: aToken},
		"header": {URL: fine.URL, Headers: "X-A: b\n" + aToken}, "header name": {URL: fine.URL, Headers: "X A: " + aToken}, "header value": {URL: fine.URL, Headers: "X-A: " + aToken + "\x00"},
		"proxy": {URL: fine.URL, Proxy: "socks5://" + aToken}, "proxy user": {URL: fine.URL, Proxy: "http://u:" + aToken + "@p:1"}, "proxy login": {URL: fine.URL, Proxy: "http://p:1", ProxyLogin: aToken},
		"unreadable": {URL: "https://siem.example/\x7f" + aToken},
	} {
		h.Now = time.Now
		_, err := newClient(h)
		if err == nil || strings.Contains(err.Error(), aToken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := newClient(HTTP{URL: fine.URL}); err == nil {
		t.Error("no clock is taken")
	}
	for name, err := range map[string]error{
		"no token":        second(NewSplunk(SplunkOptions{HTTP: fine})),
		"token of lines":  second(NewSplunk(SplunkOptions{HTTP: fine, Token: aToken + "\nX-A: b"})),
		"no index":        second(NewElastic(ElasticOptions{HTTP: fine})),
		"two logins":      second(NewElastic(ElasticOptions{HTTP: fine, Index: "a", APIKey: aToken, User: "u"})),
		"no API key":      second(NewDatadog(DatadogOptions{HTTP: fine})),
		"no site":         second(NewDatadog(DatadogOptions{APIKey: aToken, HTTP: HTTP{Now: time.Now}})),
		"site is a URL":   second(NewDatadog(DatadogOptions{APIKey: aToken, Site: "evil.example/?", HTTP: HTTP{Now: time.Now}})),
		"no secret":       second(NewWebhook(WebhookOptions{HTTP: fine})),
		"short secret":    second(NewWebhook(WebhookOptions{HTTP: fine, Secrets: []string{"whsec_YQ=="}})),
		"no whsec_":       second(NewWebhook(WebhookOptions{HTTP: fine, Secrets: []string{aKey[6:]}})),
		"no key":          second(NewWebhook(WebhookOptions{HTTP: fine, Secrets: []string{"whsk_" + aKey[6:]}})),
		"compressed hook": second(NewWebhook(WebhookOptions{HTTP: HTTP{URL: fine.URL, Now: time.Now, Compression: Gzip}, Secrets: []string{aKey}})),
	} {
		if err == nil || strings.Contains(err.Error(), aToken) || strings.Contains(err.Error(), aKey[6:]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A receiver is who the CA says, and we are who it asks for.
func TestTLS(t *testing.T) {
	ca, caPEM := newCert(t, nil, true)
	server, _ := newCert(t, ca, false)
	client, _ := newCert(t, ca, false)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(caPEM)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{*server}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	s.StartTLS()
	defer s.Close()
	certPEM, keyPEM := pems(t, client)
	for _, c := range []struct {
		name string
		h    HTTP
		ok   bool
	}{
		{"all of it", HTTP{CA: string(caPEM), Certificate: certPEM, Key: keyPEM}, true},
		{"no certificate of ours", HTTP{CA: string(caPEM)}, false},
		{"a CA that we do not know", HTTP{Certificate: certPEM, Key: keyPEM}, false},
	} {
		c.h.URL, c.h.Now = s.URL, time.Now
		w, err := NewWebhook(WebhookOptions{HTTP: c.h, Secrets: []string{aKey}})
		if err != nil {
			t.Fatal(err)
		}
		r := w.Deliver(t.Context(), messages(t, event.JSON, 1, plain))
		if r.Done() != c.ok || !c.ok && r.Verdicts[0].Outcome != sink.Retry {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

// newCert returns a certificate for loopback, signed by ca or by itself.
func newCert(t *testing.T, ca *tls.Certificate, isCA bool) (*tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: isCA, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, any(key)
	if ca != nil {
		parent, signer = ca.Leaf, ca.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func pems(t *testing.T, c *tls.Certificate) (cert, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// Requests go through the proxy that is set, with its login, and not through one
// of the environment.
func TestProxy(t *testing.T) {
	var login, target string
	proxy := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		login, target = r.Header.Get("Proxy-Authorization"), r.URL.String()
	}))
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	h := at("http://siem.example/in")
	h.Proxy, h.ProxyLogin, h.OnlyPublic = proxy, "user:"+aToken, true // a proxy may be private
	w, err := NewWebhook(WebhookOptions{HTTP: h, Secrets: []string{aKey}})
	if err != nil {
		t.Fatal(err)
	}
	if r := w.Deliver(t.Context(), messages(t, event.JSON, 1, plain)); !r.Done() || login != "Basic "+aLogin || target != "http://siem.example/in" {
		t.Errorf("%+v, %q, %q", r, login, target)
	}
}
