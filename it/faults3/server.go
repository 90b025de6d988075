// Package faults3 is an object store in memory that speaks as much of S3 as an
// archive needs, and misbehaves to order.
//
//	PUT object        If-None-Match: *, checksums in header or trailer, aws-chunked
//	GET, HEAD object  Range, versionId
//	DELETE object     versionId, bypass of GOVERNANCE
//	POST bucket       DeleteObjects
//	GET bucket        ListObjectsV2 (prefix, start-after, max-keys), versions and
//	                  uploads (prefix, both markers), location, versioning, object-lock
//	HEAD bucket
//	uploads in parts  create, part, complete (If-None-Match: *), abort
//
// A [Rule] makes some of the requests go wrong; [Options] describe a store that
// is odd all of the time, or one that answers as AWS does where others do not.
// Every checksum that a request states is checked, as good stores do, so that a
// fault is never hidden by a careless server.
//
// With [Options.Behind] the objects are those of another store: what no rule
// touches is passed on to it as it came, and its answer back. Of the options
// only TLS matters then.
//
// Addressing is path style. There is one bucket. Signatures are not checked,
// and what is not listed above is answered with 501.
package faults3

import (
	"encoding/pem"
	"encoding/xml"
	"fmt"
	"iter"
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

	// Versioned keeps all versions of an object. Deleting one puts a delete
	// marker on top, after which a create-only PUT is let through: AWS does so,
	// and some other stores do not.
	Versioned bool
	// ObjectLock takes locks on new objects, and keeps what is locked. It goes
	// with Versioned.
	ObjectLock bool
	// Conflicts answers 409 ConditionalRequestConflict, as AWS does, to a
	// create-only PUT that was under way when another one of its key won. One
	// that begins later gets 412.
	Conflicts bool
	// Now is the store's clock, as its Date header tells it; nil is time.Now.
	Now func() time.Time

	Behind string // the URL of a store to which requests are passed on; "" is none
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

	mu        sync.Mutex
	suspended bool // versions are, of a versioned bucket
	uploads   map[string]*upload
	begun     int // uploads so far
	objects   map[string]*object
	racers    map[string]map[*request]bool // by key: create-only PUTs under way, and whether another has won meanwhile
	rules     []*Rule
	requests  []Request
}

// Start starts a store. The caller closes it.
func Start(o Options) *Server {
	s := &Server{opts: o, objects: map[string]*object{}, uploads: map[string]*upload{}, racers: map[string]map[*request]bool{}}
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

// Requests returns what the server has seen so far, in order; before another
// store, only what met a fault.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Object returns the bytes of an object.
func (s *Server) Object(key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.objects[key].current()
	if v == nil {
		return nil, false
	}
	return v.body, true
}

// Set puts an object there in the place of all its versions, or nil for none,
// past all rules.
func (s *Server) Set(key string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
	if body != nil {
		s.objects[key] = &object{versions: []version{{id: nullVersion, body: body, modified: s.now()}}}
	}
}

// Suspend has a bucket with versions keep no more of them than it has.
func (s *Server) Suspend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suspended = true
}

// Everything yields each version of each object with its bytes, and each part
// of an upload: what lies on the store's disks. A marker has none.
func (s *Server) Everything() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(s.objects)) {
			for _, v := range s.objects[key].versions {
				if !v.marker && !yield(key+"?"+v.id, v.body) {
					return
				}
			}
		}
		for id, u := range s.uploads {
			for n, part := range u.parts {
				if !yield(fmt.Sprintf("%s?upload=%s&part=%d", u.key, id, n), part) {
					return
				}
			}
		}
	}
}

func (s *Server) now() time.Time {
	if s.opts.Now != nil {
		return s.opts.Now()
	}
	return time.Now()
}

// Keys returns the keys that begin with prefix, sorted.
func (s *Server) Keys(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys(prefix)
}

func (s *Server) keys(prefix string) []string {
	keys := slices.Collect(maps.Keys(s.objects))
	keys = slices.DeleteFunc(keys, func(k string) bool {
		return !strings.HasPrefix(k, prefix) || s.objects[k].current() == nil
	})
	slices.Sort(keys)
	return keys
}

// Dump writes all objects below dir, as plain files. A key that would leave
// dir is an error.
func (s *Server) Dump(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.keys("") {
		if !filepath.IsLocal(key) {
			return fmt.Errorf("key %q is no local path", key)
		}
		path := filepath.Join(dir, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, s.objects[key].current().body, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// ServeHTTP answers one request, after the first rule that it meets has had
// its way. Requests take effect one at a time.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := parse(r)
	fault := s.meet(req)
	req.fault = fault
	s.enter(req)
	sleep(r, fault.Delay)
	rec := httptest.NewRecorder()
	switch {
	case s.opts.Behind != "":
		s.pass(rec, req, fault)
	case !fault.refuses():
		s.handle(rec, req)
	}
	s.leave(req)
	if s.opts.Now != nil {
		w.Header().Set("Date", s.opts.Now().UTC().Format(http.TimeFormat))
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
	if s.opts.Behind == "" || r.Fault != "" {
		s.requests = append(s.requests, r)
	}
}

// enter notes that a create-only PUT is under way.
func (s *Server) enter(q *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.Conflicts && q.conditional() {
		if s.racers[q.key] == nil {
			s.racers[q.key] = map[*request]bool{}
		}
		s.racers[q.key][q] = false
	}
}

func (s *Server) leave(q *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.racers[q.key], q)
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
		s.delete(w, r)
	case r.op == List:
		s.list(w, r)
	case r.op == DeleteMany:
		s.deleteMany(w, r)
	case r.op == Versions:
		s.listVersions(w, r)
	case r.op == Upload:
		s.upload(w, r)
	case r.op == Ask:
		s.ask(w, r)
	default:
		refuse(w, http.StatusNotImplemented, "NotImplemented")
	}
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
		v := s.objects[k].current()
		page.Contents = append(page.Contents, entry{Key: k, Size: len(v.body), ETag: v.tag(), LastModified: stamp(v.modified)})
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
	Key          string
	Size         int
	ETag         string
	LastModified string
}

// stamp is a time as listings have it.
func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// ask answers questions about the bucket, which locks nothing by itself.
func (s *Server) ask(w http.ResponseWriter, r *request) {
	q := r.URL.Query()
	switch {
	case q.Has("location"):
		answer(w, struct {
			XMLName xml.Name `xml:"LocationConstraint"`
		}{})
	case q.Has("versioning"):
		c := struct {
			XMLName xml.Name `xml:"VersioningConfiguration"`
			Status  string   `xml:",omitempty"`
		}{}
		if s.opts.Versioned {
			c.Status = map[bool]string{false: "Enabled", true: "Suspended"}[s.suspended]
		}
		answer(w, c)
	case q.Has("object-lock") && s.opts.ObjectLock:
		answer(w, struct {
			XMLName           xml.Name `xml:"ObjectLockConfiguration"`
			ObjectLockEnabled string
		}{ObjectLockEnabled: "Enabled"})
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
