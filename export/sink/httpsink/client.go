package httpsink

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

// A Compression is how requests are compressed.
type Compression string

// The compressions.
const (
	None Compression = "none"
	Gzip Compression = "gzip"
	Zstd Compression = "zstd"
)

// HTTP says how a receiver is reached. URL and Now are needed.
type HTTP struct {
	URL string // https://; no user, no password, no fragment
	// AllowPlaintext lets URL begin with http://: whoever is on the way then reads
	// events and secrets.
	AllowPlaintext bool
	CA             string // PEM of who may sign the receiver's certificate; "": who the system trusts
	Certificate    string // PEM of our certificate, and what leads to its CA; "": none
	Key            string // PEM of its private key
	Proxy          string // http:// or https:// URL of a proxy; "": none. The environment is not asked
	ProxyLogin     string // USER:PASSWORD for the proxy
	Headers        string // more headers for each request: "Name: value", one a line; a secret as a whole
	Compression    Compression
	Timeout        time.Duration // of a request, from its first byte to the end of its answer; 0 is a minute
	// OnlyPublic refuses receivers that are not on the public internet: see
	// [PrivateError].
	OnlyPublic bool
	Version    string // of the product, for User-Agent
	Now        func() time.Time
}

// usualTimeout is how long a request may take.
const usualTimeout = time.Minute

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 64 << 10

// A client sends requests to one receiver. Its methods may be called
// concurrently.
type client struct {
	o       HTTP
	url     *url.URL
	header  http.Header
	http    *http.Client
	secrets []string // that no reason may show
	gzips   sync.Pool
	zstd    *zstd.Encoder
}

// newClient returns a client. secrets are those beside what o has. Errors name what
// is wrong as the settings of destinations do.
func newClient(o HTTP, secrets ...string) (*client, error) {
	o.Timeout = cmp.Or(o.Timeout, usualTimeout)
	o.Compression = cmp.Or(o.Compression, None)
	if o.Now == nil {
		return nil, errors.New("no clock: set Now")
	}
	c := &client{o: o, header: http.Header{}}
	var err error
	if c.url, err = parseURL(o.URL, o.AllowPlaintext); err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	if err := c.setHeaders(); err != nil {
		return nil, err
	}
	c.hide(append(secrets, o.ProxyLogin)...)
	transport, err := c.transport()
	if err != nil {
		return nil, err
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	switch o.Compression {
	case None, Gzip:
	case Zstd:
		c.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	default:
		err = fmt.Errorf("compression %q: want none, gzip or zstd", o.Compression)
	}
	return c, err
}

// parseURL returns a URL that requests can be sent to. The error does not show it.
func parseURL(text string, plaintext bool) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return nil, errors.New("want a URL, such as https://siem.example/path")
	case u.Scheme == "http" && !plaintext:
		return nil, errors.New("http:// sends events and secrets in the clear: use https://, or set allow-plaintext")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("want a URL that begins with https://")
	case u.User != nil:
		return nil, errors.New("no user and no password may stand in it: there are settings for secrets")
	case u.Fragment != "":
		return nil, errors.New("what is behind # is never sent: leave it out")
	}
	return u, nil
}

// setHeaders reads the headers of the options, whose values are secrets.
func (c *client) setHeaders() error {
	for line := range strings.Lines(c.o.Headers) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !ok || !isToken(name) || !isFieldValue(value) {
			return errors.New("headers: want lines such as \"Name: value\"")
		}
		c.header.Add(name, value)
		c.hide(longWords(value)...)
	}
	agent := "ledgerlake-export"
	if c.o.Version != "" {
		agent += "/" + c.o.Version
	}
	c.header.Set("User-Agent", agent)
	return nil
}

// isToken reports whether a text can be the name of a header (RFC 9110, section
// 5.6.2).
func isToken(s string) bool {
	for _, r := range s {
		if r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) {
			return false
		}
	}
	return s != ""
}

// isFieldValue reports whether a text can be the value of a header.
func isFieldValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// longWords returns a header's value, and its words, where they are long enough to
// be secrets: most headers are none.
func longWords(value string) []string {
	words := append(strings.Fields(value), value)
	return slices.DeleteFunc(words, func(s string) bool { return len(s) < 8 })
}

// hide adds secrets to those that no reason shows, the longest first: one may be
// part of another.
func (c *client) hide(secrets ...string) {
	for _, s := range secrets {
		if s != "" {
			c.secrets = append(c.secrets, s)
		}
	}
	slices.SortFunc(c.secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
}

// bearing has all requests carry a header that holds a secret, the setting called
// of.
func (c *client) bearing(of, name, value string) error {
	if !isFieldValue(value) {
		return fmt.Errorf("%s: it has what no header can hold, such as a line break", of)
	}
	c.header.Set(name, value)
	return nil
}

func (c *client) transport() (*http.Transport, error) {
	conf, err := c.tls()
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	t := &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: conf, TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}
	if c.o.Proxy != "" {
		proxy, err := parseURL(c.o.Proxy, true)
		if err != nil {
			return nil, fmt.Errorf("proxy: %w", err)
		}
		if user, password, ok := strings.Cut(c.o.ProxyLogin, ":"); ok {
			proxy.User = url.UserPassword(user, password)
			c.hide(password)
		} else if c.o.ProxyLogin != "" {
			return nil, errors.New("proxy-login: want USER:PASSWORD")
		}
		t.Proxy = http.ProxyURL(proxy)
	}
	if c.o.OnlyPublic {
		// A proxy is of the operator's own choice, and looks names up itself.
		if c.o.Proxy == "" {
			dialer.ControlContext = onlyPublic
		}
		if err := publicHost(c.url.Hostname()); err != nil {
			return nil, fmt.Errorf("url: %w", err)
		}
	}
	return t, nil
}

// tls returns what of TLS the options say. No error shows a key.
func (c *client) tls() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.o.CA != "" {
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM([]byte(c.o.CA)) {
			return nil, errors.New("tls.ca: no certificate in it: want PEM")
		}
	}
	if c.o.Certificate == "" && c.o.Key == "" {
		return conf, nil
	}
	pair, err := tls.X509KeyPair([]byte(c.o.Certificate), []byte(c.o.Key))
	if err != nil {
		return nil, errors.New("tls.key: it and tls.certificate are not PEM, or do not belong together")
	}
	conf.Certificates = []tls.Certificate{pair}
	return conf, nil
}

// A request is what is sent.
type request struct {
	url         string
	contentType string
	header      http.Header // beside those of all requests
	body        []byte
	most        int64 // bytes of the answer that are read; 0 is maxAnswer
}

// An answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
	whole  bool // body is all of it
}

// contentType returns the media type of the answer, without parameters.
func (a *answer) contentType() string {
	media, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// post sends a request. An answer with any status is one.
func (c *client) post(ctx context.Context, r request) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	body, err := c.compressed(r.body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for _, h := range []http.Header{c.header, r.header} {
		for name, values := range h {
			req.Header[name] = values
		}
	}
	req.Header.Set("Content-Type", r.contentType)
	if c.o.Compression != None {
		req.Header.Set("Content-Encoding", string(c.o.Compression))
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	return read(res, cmp.Or(r.most, maxAnswer))
}

// read reads an answer. One that breaks off is none.
func read(res *http.Response, most int64) (*answer, error) {
	body, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	if err != nil {
		return nil, fmt.Errorf("the answer broke off: %w", err)
	}
	a := &answer{status: res.StatusCode, header: res.Header, body: body, whole: int64(len(body)) <= most}
	if !a.whole {
		a.body = body[:most]
	}
	return a, nil
}

func (c *client) compressed(body []byte) ([]byte, error) {
	switch c.o.Compression {
	case Zstd:
		return c.zstd.EncodeAll(body, nil), nil
	case Gzip:
		var b bytes.Buffer
		w, _ := c.gzips.Get().(*gzip.Writer)
		if w == nil {
			w, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed)
		}
		defer c.gzips.Put(w)
		w.Reset(&b)
		if _, err := w.Write(body); err != nil {
			return nil, err
		}
		err := w.Close()
		return b.Bytes(), err
	}
	return body, nil
}

// at returns the URL with steps behind its path, and its own query and more.
func (c *client) at(step string, query url.Values) string {
	u := c.url.JoinPath(step)
	q := u.Query()
	for name, values := range query {
		q[name] = values
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// pathOr returns the URL, with a path where it has none.
func (c *client) pathOr(path string) string {
	if strings.Trim(c.url.Path, "/") == "" {
		return c.at(path, nil)
	}
	return c.url.String()
}

// cause returns an error without the URL that net/http puts in front of it: there
// may be secrets in it.
func cause(err error) error {
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	return err
}

func (c *client) close() {
	c.http.CloseIdleConnections()
	if c.zstd != nil {
		_ = c.zstd.Close()
	}
}
