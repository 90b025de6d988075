package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// onDisk returns a folder with a small archive.
func onDisk(t *testing.T) string {
	t.Helper()
	a := prooftest.New()
	l := a.Line("audit.calls", 0)
	l.Segment(func(b *prooftest.Batch) {
		for range 8 {
			b.Call("acme")
			b.Call("globex")
		}
	})
	l.Anchor()
	dir := t.TempDir()
	for key, body := range a.Objects() {
		name := filepath.Join(dir, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// token makes a token as people do, and adds its entry to a file.
func token(t *testing.T, file, name, tenant string) (secret string) {
	t.Helper()
	var entry, told bytes.Buffer
	code, err := run(t.Context(), []string{"token", "new", "--name", name, "--tenant", tenant}, nil, &entry, &told)
	if code != 0 || err != nil {
		t.Fatal(code, err)
	}
	old, err := os.ReadFile(file)
	if err != nil {
		old = []byte("tokens:\n")
	}
	if err := os.WriteFile(file, append(old, entry.Bytes()...), 0o600); err != nil {
		t.Fatal(err)
	}
	secret = strings.TrimSpace(told.String())
	if strings.Contains(entry.String(), secret) {
		t.Fatal("the entry holds the token itself")
	}
	return secret
}

// A lines is what a process says, to be looked at while it runs.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// until waits until what is said has a text.
func (l *lines) until(t *testing.T, pattern string) []string {
	t.Helper()
	p := regexp.MustCompile(pattern)
	for range 2000 {
		if m := p.FindStringSubmatch(l.String()); m != nil {
			return m
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("nobody says %s:\n%s", pattern, l)
	return nil
}

// serving starts serve, and returns where it answers, and what ends it.
func serving(t *testing.T, args ...string) (address string, said *lines, stop func() (int, error)) {
	t.Helper()
	return servingIn(t, nil, args...)
}

// servingIn is serving in an environment.
func servingIn(t *testing.T, environ []string, args ...string) (address string, said *lines, stop func() (int, error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	said = &lines{}
	type end struct {
		code int
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		code, err := run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0", "--log-level", "debug"}, args...), environ, io.Discard, said)
		ended <- end{code, err}
	}()
	t.Cleanup(cancel)
	address = said.until(t, `"msg":"answering","address":"([^"]+)"`)[1]
	return address, said, func() (int, error) {
		cancel()
		e := <-ended
		return e.code, e.err
	}
}

func get(t *testing.T, client *http.Client, url, secret string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestServeRefuses(t *testing.T) {
	dir := onDisk(t)
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	token(t, file, "a", "acme")
	for want, args := range map[string][]string{
		"--tokens: want a file":        {dir},
		"is not of this machine alone": {"--tokens", file, "--listen", "0.0.0.0:0", dir},
		"go together":                  {"--tokens", file, "--tls-cert", "x", dir},
		"want more than 0":             {"--tokens", file, "--requests", "0", dir},
		"no such file":                 {"--tokens", file + "x", dir},
		"no archive is there":          {"--tokens", file, t.TempDir()},
		"want one of":                  {"--tokens", file, "--log-level", "loud", dir},
		"64KiB or more":                {"--tokens", file, "--token-bytes", "1", dir},
	} {
		var said bytes.Buffer
		code, err := run(t.Context(), append([]string{"serve"}, args...), nil, io.Discard, &said)
		if code != 2 || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %d, %v", args, code, err)
		}
	}
	for _, args := range [][]string{{}, {"old"}, {"new"}, {"new", "--name", "a"}, {"new", "--tenant", "acme"}, {"new", "--name", "a", "--tenant", ""}, {"new", "--name", "a", "--tenant", "x", "--not-after", "soon"}, {"new", "--name", "a", "--tenant", "x", "more"}} {
		if code, err := run(t.Context(), append([]string{"token"}, args...), nil, io.Discard, io.Discard); code != 2 || err == nil {
			t.Errorf("token %q: %d, %v", args, code, err)
		}
	}
}

// A server answers those whose tokens are in the file, as the file is now, and no
// token is ever in its log.
func TestServeGoesByTheFileOfTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	acme := token(t, file, "acme-app", "acme")
	address, said, stop := serving(t, "--tokens", file, onDisk(t))
	url := "http://" + address + "/v1/tenants/acme/turns/turn-0"
	if status, body := get(t, http.DefaultClient, url, acme); status != 200 || !strings.Contains(body, `"turnId":"turn-0"`) {
		t.Fatalf("%d %s", status, body)
	}
	globex := token(t, file, "globex-app", "globex")
	said.until(t, `"msg":"read again"`)
	if status, _ := get(t, http.DefaultClient, url, globex); status != 404 {
		t.Errorf("another tenant's token: %d", status)
	}
	if status, _ := get(t, http.DefaultClient, strings.Replace(url, "acme", "globex", 1), globex); status != 200 {
		t.Errorf("a token that was added: %d", status)
	}
	if err := os.WriteFile(file, []byte("tokens:\n- name: half"), 0o600); err != nil {
		t.Fatal(err)
	}
	said.until(t, `wrong: what it said before stays`)
	if status, _ := get(t, http.DefaultClient, url, acme); status != 200 {
		t.Errorf("with a file that is wrong: %d", status)
	}
	if code, err := stop(); code != 0 || err != nil {
		t.Errorf("it ends with %d, %v", code, err)
	}
	said.until(t, `"msg":"answered".*"token":"acme-app"`)
	for _, secret := range []string{acme, globex, "turn-0", `"tenant"`} {
		if strings.Contains(said.String(), secret) {
			t.Errorf("the log has %s", secret)
		}
	}
}

// A tail that is open does not keep the process from ending.
func TestServeEndsWithAnOpenTail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	acme := token(t, file, "acme-app", "acme")
	address, _, stop := serving(t, "--tokens", file, "--metrics", "127.0.0.1:0", onDisk(t))
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+address+"/v1/tenants/acme/tail?from=start", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+acme)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, 2000)); err != nil {
		t.Fatal(err)
	}
	if code, err := stop(); code != 0 || err != nil {
		t.Errorf("it ends with %d, %v", code, err)
	}
}

// With a certificate there is TLS, and nothing but TLS; a certificate that is
// replaced is used.
func TestServeTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key, file := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "tokens.yaml")
	acme := token(t, file, "acme-app", "acme")
	first := certificate(t, cert, key)
	address, said, stop := serving(t, "--tokens", file, "--tls-cert", cert, "--tls-key", key, onDisk(t))
	if status, body := get(t, trusting(first), "https://"+address+"/v1/tenants", acme); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if res, err := http.Get("http://" + address + "/healthz"); err == nil {
		res.Body.Close()
		if res.StatusCode == 200 {
			t.Error("it answers without TLS")
		}
	}
	second := certificate(t, cert, key)
	said.until(t, `"msg":"read again"`)
	if status, _ := get(t, trusting(second), "https://"+address+"/v1/tenants", acme); status != 200 {
		t.Errorf("with a new certificate: %d", status)
	}
	if code, err := stop(); code != 0 || err != nil {
		t.Errorf("it ends with %d, %v", code, err)
	}
}

func trusting(cert *x509.Certificate) *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
}

// certificate writes a new certificate of its own making.
func certificate(t *testing.T, cert, key string) *x509.Certificate {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "test"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{key: {Type: "PRIVATE KEY", Bytes: secret}, cert: {Type: "CERTIFICATE", Bytes: der}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A token is for tenants that somebody named; for all of them only by a flag of its
// own, for a producer may be called *; and it does not begin with its end.
func TestTokensThatNobodyMeant(t *testing.T) {
	for want, args := range map[string][]string{
		"--all-tenants":           {"--tenant", "*"},
		"want --tenant or":        {"--tenant", "acme", "--all-tenants"},
		"--not-after is over":     {"--tenant", "acme", "--not-after", "2020-01-01"},
		"no tenant":               nil,
		"needs a name":            {"--name", "", "--tenant", "acme"},
		"2027-06-30":              {"--tenant", "acme", "--not-after", "soon"},
		"want flags alone, got [": {"--tenant", "acme", "globex"},
	} {
		var entry, told bytes.Buffer
		code, err := run(t.Context(), append([]string{"token", "new", "--name", "n"}, args...), nil, &entry, &told)
		if code != exitCannotRun || err == nil || !strings.Contains(err.Error(), want) || entry.Len()+told.Len() > 0 {
			t.Errorf("%q: exit %d, %v, want %s; %s%s", args, code, err, want, &entry, &told)
		}
	}
	var entry, told bytes.Buffer
	if code, err := run(t.Context(), []string{"token", "new", "--name", "auditor", "--all-tenants"}, nil, &entry, &told); code != 0 || err != nil || !strings.Contains(entry.String(), "tenants: \"*\"\n") {
		t.Error(code, err, &entry)
	}
}
