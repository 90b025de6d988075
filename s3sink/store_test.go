package s3sink

import (
	"cmp"
	"encoding/base64"
	"encoding/pem"
	"encoding/xml"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A store is as much of S3 as the tests ask of it, behaving well. A test has
// it misbehave by a hook, which sees each request first and reports whether it
// has answered.
type store struct {
	mu      sync.Mutex
	objects map[string][]byte
	memory  *archive.Memory // nil: objects are all there is
	page    int             // keys on a page of a listing; 0: 1000
	hook    func(w http.ResponseWriter, r *http.Request, body []byte) bool
	seen    []*http.Request
	url     string
}

func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{objects: map[string][]byte{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// newTLSStore speaks https with a certificate that AWS_CA_BUNDLE vouches for.
func newTLSStore(t *testing.T) *store {
	t.Helper()
	s := &store{objects: map[string][]byte{}}
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CA_BUNDLE", ca)
	return s
}

// open opens the bucket "bucket" of the store, below a prefix.
func (s *store) open(t *testing.T, prefix string, change ...func(*Options)) *Bucket {
	t.Helper()
	o := Options{Endpoint: s.url, AccessKey: "key", SecretKey: "secret"}
	for _, f := range change {
		f(&o)
	}
	b, err := Open(t.Context(), "s3://bucket/"+prefix, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if !signed(r) {
		r.Header.Del("Authorization") // before the hook, which may change what was signed
	}
	s.mu.Lock()
	s.seen = append(s.seen, r)
	hook := s.hook
	s.mu.Unlock()
	if hook != nil && hook(w, r, body) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serve(w, r, body)
}

func (s *store) serve(w http.ResponseWriter, r *http.Request, body []byte) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	query := r.URL.Query()
	switch {
	case bucket != "bucket":
		answer(w, 404, "NoSuchBucket")
	case r.Header.Get("Authorization") == "":
		answer(w, 403, "SignatureDoesNotMatch")
	case s.memory != nil:
		s.serveMemory(w, r, key, body)
	case query.Has("object-lock"):
		answer(w, 404, "ObjectLockConfigurationNotFoundError")
	case query.Has("versioning"):
		fmt.Fprint(w, "<VersioningConfiguration/>")
	case query.Has("versions"):
		fmt.Fprint(w, "<ListVersionsResult/>")
	case key == "":
		s.list(w, query)
	case r.Method == http.MethodPut:
		s.put(w, r, key, body)
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(204)
	default:
		s.get(w, r, key)
	}
}

// signed reports whether the request is signed with the key and secret of the
// tests, by signing it again.
func signed(r *http.Request) bool {
	given := r.Header.Get("Authorization")
	_, list, _ := strings.Cut(given, "SignedHeaders=")
	list, _, _ = strings.Cut(list, ",")
	again := r.Clone(r.Context())
	again.Header = http.Header{}
	for _, name := range strings.Split(list, ";") {
		again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
	}
	again.URL.Host, again.URL.Scheme = r.Host, "http"
	at, _ := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	keys := aws.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}
	_, rest, _ := strings.Cut(given, "Credential=key/")
	scope := strings.Split(rest, "/")
	if len(scope) < 3 {
		return false
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err := signer.SignHTTP(r.Context(), keys, again, r.Header.Get("X-Amz-Content-Sha256"), "s3", scope[1], at); err != nil {
		return false
	}
	return again.Header.Get("Authorization") == given
}

func (s *store) put(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	_, taken := s.objects[key]
	sum := r.Header.Get("X-Amz-Checksum-Crc32")
	switch {
	case sum != "" && sum != crc32Of(body):
		answer(w, 400, "BadDigest")
	case taken && r.Header.Get("If-None-Match") == "*":
		answer(w, 412, "PreconditionFailed")
	default:
		s.objects[key] = body
	}
}

func (s *store) get(w http.ResponseWriter, r *http.Request, key string) {
	body, ok := s.objects[key]
	if !ok {
		answer(w, 404, "NoSuchKey")
		return
	}
	status, size := 200, len(body)
	if n, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes=-"); ok {
		n, _ := strconv.Atoi(n)
		if size == 0 {
			answer(w, 416, "InvalidRange")
			return
		}
		body = body[size-min(n, size):]
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", size-len(body), size-1, size))
		status = 206
	} else if r.Header.Get("X-Amz-Checksum-Mode") != "" {
		w.Header().Set("X-Amz-Checksum-Crc32", crc32Of(body))
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}

func (s *store) list(w http.ResponseWriter, query url.Values) {
	page := cmp.Or(s.page, 1000)
	after := cmp.Or(query.Get("continuation-token"), query.Get("start-after"))
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if strings.HasPrefix(key, query.Get("prefix")) && key > after {
			keys = append(keys, key)
		}
	}
	listed(w, keys[:min(page, len(keys))], len(keys) > page, func(key string) int { return len(s.objects[key]) })
}

// listed writes a page of a listing, URL-encoded.
func listed(w io.Writer, keys []string, more bool, size func(string) int) {
	fmt.Fprintf(w, "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>%v</IsTruncated>", more)
	if more {
		fmt.Fprint(w, "<NextContinuationToken>")
		xml.EscapeText(w, []byte(keys[len(keys)-1]))
		fmt.Fprint(w, "</NextContinuationToken>")
	}
	for _, key := range keys {
		fmt.Fprintf(w, "<Contents><Key>%s</Key><Size>%d</Size></Contents>", url.QueryEscape(key), size(key))
	}
	fmt.Fprint(w, "</ListBucketResult>")
}

// answer writes an error as S3 does.
func answer(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>because of\n%s</Message><RequestId>R1</RequestId></Error>", code, code)
}

// cut closes the connection without an answer.
func cut() { panic(http.ErrAbortHandler) }

func crc32Of(body []byte) string {
	h := crc32.NewIEEE()
	h.Write(body)
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// count returns how many requests of a method the store saw.
func (s *store) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.seen {
		if r.Method == method {
			n++
		}
	}
	return n
}
