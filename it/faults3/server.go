// Package faults3 is an object store in memory that speaks as much of S3 as an
// archive needs, and misbehaves to order.
//
//	PUT object        If-None-Match: *, checksums in header or trailer, aws-chunked
//	GET, HEAD object  Range
//	DELETE object
//	GET bucket        ListObjectsV2 (prefix, start-after, max-keys), location,
//	                  versioning, object-lock
//	HEAD bucket
//
// A [Rule] makes some of the requests go wrong; [Options] describe a store that
// is odd all of the time. Every checksum that a request states is checked, as
// good stores do, so that a fault is never hidden by a careless server.
//
// Addressing is path style. There is one bucket. Signatures are not checked,
// there are no versions and no multipart uploads, and what is not listed above
// is answered with 501.
package faults3

import (
	"bytes"
	"encoding/pem"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bucket is the name of the one bucket.
const Bucket = "archive"

// A Policy is what a store thinks of checksums on a PUT.
type Policy int

// The policies. Each is that of stores in use.
const (
	Welcome Policy = iota // checked if they are there
	Refuse                // 400 if there is one
	Require               // 400 if there is none, as under Object Lock
)

// Options describe how a store differs from the usual. The zero Options are a
// good store over plain HTTP.
type Options struct {
	TLS           bool   // serve HTTPS, with a certificate that [Server.CA] returns
	PageSize      int    // most keys on a page of a listing; 0 is 1,000
	Checksums     Policy // on a PUT
	RefuseChunked bool   // 400 to a PUT with an aws-chunked body
}

// A Request is one line of what the server has seen.
type Request struct {
	Time     time.Time
	Op       Op
	Key      string
	Status   int    // 0 where the connection was cut
	Fault    string // the rule's fault that it met, or ""
	Bytes    int    // of the body, decoded
	Checksum string // the name of the checksum that it stated, or ""
	Chunked  bool
}

// A Server is a running store.
type Server struct {
	URL string // http(s)://127.0.0.1:port

	opts Options
	http *httptest.Server

	mu       sync.Mutex
	objects  map[string][]byte
	rules    []*Rule
	requests []Request
}

// Start starts a store. The caller closes it.
func Start(o Options) *Server {
	s := &Server{opts: o, objects: map[string][]byte{}}
	s.http = httptest.NewUnstartedServer(s)
	if o.TLS {
		s.http.StartTLS()
	} else {
		s.http.Start()
	}
	s.URL = s.http.URL
	return s
}

// Close stops the server and cuts what is still open.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// CA returns the certificate of an HTTPS server as PEM, for AWS_CA_BUNDLE.
func (s *Server) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
}

// Requests returns what the server has seen so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Object returns the bytes of an object.
func (s *Server) Object(key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, ok := s.objects[key]
	return body, ok
}

// Set puts an object there, or nil for none, past all rules.
func (s *Server) Set(key string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if body == nil {
		delete(s.objects, key)
		return
	}
	s.objects[key] = body
}

// Keys returns the keys that begin with prefix, sorted.
func (s *Server) Keys(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys(prefix)
}

func (s *Server) keys(prefix string) []string {
	keys := slices.Collect(maps.Keys(s.objects))
	keys = slices.DeleteFunc(keys, func(k string) bool { return !strings.HasPrefix(k, prefix) })
	slices.Sort(keys)
	return keys
}

// Dump writes all objects below dir, as plain files. A key that would leave
// dir is an error.
func (s *Server) Dump(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, body := range s.objects {
		if !filepath.IsLocal(key) {
			return fmt.Errorf("key %q is no local path", key)
		}
		path := filepath.Join(dir, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, body, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// ServeHTTP answers one request, after the first rule that it meets has had
// its way. Requests take effect one at a time.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := parse(r)
	fault := s.meet(req.op, req.key)
	sleep(r, fault.Delay)
	rec := httptest.NewRecorder()
	if !fault.refuses() {
		s.handle(rec, req)
	}
	status := reply(w, rec, fault)
	s.record(Request{
		Time: time.Now(), Op: req.op, Key: req.key, Status: status, Fault: fault.Name,
		Bytes: len(req.body), Checksum: req.checksum, Chunked: req.chunked,
	})
	if status == 0 {
		panic(http.ErrAbortHandler) // net/http cuts the connection
	}
}

func (s *Server) record(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
}

// handle does what a good store does, within the options.
func (s *Server) handle(w http.ResponseWriter, r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.bucket != Bucket:
		refuse(w, http.StatusNotFound, "NoSuchBucket")
	case r.err != nil:
		refuse(w, http.StatusBadRequest, r.err.Error())
	case r.op == Put:
		s.put(w, r)
	case r.op == Get, r.op == Head:
		s.get(w, r)
	case r.op == Delete:
		delete(s.objects, r.key)
		w.WriteHeader(http.StatusNoContent)
	case r.op == List:
		s.list(w, r)
	case r.op == Ask:
		ask(w, r)
	default:
		refuse(w, http.StatusNotImplemented, "NotImplemented")
	}
}

func (s *Server) put(w http.ResponseWriter, r *request) {
	stated := r.checksum != "" || r.header.Get("Content-Md5") != ""
	_, taken := s.objects[r.key]
	switch {
	case s.opts.RefuseChunked && r.chunked:
		refuse(w, http.StatusBadRequest, "XAmzContentSHA256Mismatch")
	case s.opts.Checksums == Refuse && r.checksum != "":
		refuse(w, http.StatusBadRequest, "InvalidArgument")
	case s.opts.Checksums == Require && !stated:
		refuse(w, http.StatusBadRequest, "InvalidRequest")
	case r.header.Get("If-None-Match") == "*" && taken:
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
	default:
		s.objects[r.key] = r.body
		w.Header().Set("ETag", etag(r.body))
	}
}

func (s *Server) get(w http.ResponseWriter, r *request) {
	body, ok := s.objects[r.key]
	if !ok {
		refuse(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	w.Header().Set("ETag", etag(body))
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r.Request, "", time.Time{}, bytes.NewReader(body))
}

// list answers ListObjectsV2. The token of the next page is the last key.
func (s *Server) list(w http.ResponseWriter, r *request) {
	q := r.URL.Query()
	after := max(q.Get("start-after"), q.Get("continuation-token"))
	limit := 1000
	if n, err := strconv.Atoi(q.Get("max-keys")); err == nil {
		limit = min(limit, n)
	}
	if s.opts.PageSize > 0 {
		limit = min(limit, s.opts.PageSize)
	}
	keys := s.keys(q.Get("prefix"))
	keys = slices.DeleteFunc(keys, func(k string) bool { return k <= after })
	page := listing{Name: Bucket, Prefix: q.Get("prefix"), MaxKeys: limit, IsTruncated: len(keys) > limit}
	for _, k := range keys[:min(limit, len(keys))] {
		page.Contents = append(page.Contents, entry{Key: k, Size: len(s.objects[k]), ETag: etag(s.objects[k])})
	}
	page.KeyCount = len(page.Contents)
	if page.IsTruncated {
		page.NextContinuationToken = page.Contents[limit-1].Key
	}
	answer(w, page)
}

type listing struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	Name, Prefix          string
	KeyCount, MaxKeys     int
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	Contents              []entry
}

type entry struct {
	Key  string
	Size int
	ETag string
}

// ask answers questions about the bucket: a plain one, without versions or locks.
func ask(w http.ResponseWriter, r *request) {
	q := r.URL.Query()
	switch {
	case q.Has("location"):
		answer(w, struct {
			XMLName xml.Name `xml:"LocationConstraint"`
		}{})
	case q.Has("versioning"):
		answer(w, struct {
			XMLName xml.Name `xml:"VersioningConfiguration"`
		}{})
	case q.Has("object-lock"):
		refuse(w, http.StatusNotFound, "ObjectLockConfigurationNotFoundError")
	case r.Method == http.MethodHead:
		w.WriteHeader(http.StatusOK)
	default:
		refuse(w, http.StatusNotImplemented, "NotImplemented")
	}
}

func answer(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/xml")
	if err := xml.NewEncoder(w).Encode(document); err != nil {
		panic(err) // our own structs always encode
	}
}

// refuse answers with an S3 error.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s, by faults3</Message></Error>", code, code)
}
