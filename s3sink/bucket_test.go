package s3sink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/archivetest"
)

func TestBucketIsABucket(t *testing.T) {
	archivetest.Run(t, func(t *testing.T) archive.Bucket {
		s := newStore(t)
		s.page = 7
		s.objects["archive-2/log/x"] = []byte("another archive beside it")
		s.objects["archive/"] = nil // what a console makes to show a folder
		return s.open(t, "archive")
	})
}

// Every answer leads to one move of the caller. A write is one request
// whatever the answer; a read is tried again where that may help.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		status     int
		code       string
		create     error // what Create's error matches; nil: no sentinel
		get        error
		readsTried int
	}{
		{412, "PreconditionFailed", archive.ErrExists, nil, 1},
		{409, "ConditionalRequestConflict", archive.ErrConflict, nil, 1},
		{409, "OperationAborted", archive.ErrConflict, nil, 1},
		{403, "AccessDenied", archive.ErrDenied, archive.ErrDenied, 1},
		{403, "SignatureDoesNotMatch", archive.ErrDenied, archive.ErrDenied, 1},
		{403, "RequestTimeTooSkewed", archive.ErrDenied, archive.ErrDenied, 3},
		{401, "Unauthorized", archive.ErrDenied, archive.ErrDenied, 1},
		{400, "ExpiredToken", archive.ErrDenied, archive.ErrDenied, 1},
		{404, "XAdminUserNotFound", archive.ErrDenied, archive.ErrDenied, 1},
		{400, "InvalidArgument", nil, nil, 1},
		{404, "NoSuchBucket", ErrNoBucket, ErrNoBucket, 1},
		{404, "NoSuchKey", archive.ErrNotFound, archive.ErrNotFound, 1},
		{404, "", nil, nil, 1},
		{404, "NotTheStore", nil, nil, 1},
		{301, "PermanentRedirect", nil, nil, 1},
		{408, "RequestTimeout", nil, nil, 3},
		{429, "TooManyRequests", nil, nil, 3},
		{500, "InternalError", nil, nil, 3},
		{501, "NotImplemented", nil, nil, 3},
		{503, "SlowDown", nil, nil, 3},
	} {
		t.Run(fmt.Sprint(c.status, c.code), func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			s.hook = func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
				w.Header().Set("Date", "Mon, 02 Mar 2026 10:00:00 GMT")
				answer(w, c.status, c.code)
				return true
			}
			b := s.open(t, "")
			at, err := b.Create(t.Context(), "log/x", []byte("x"))
			checkAnswer(t, err, c.create, c.status, c.code)
			if want := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC); at != want {
				t.Errorf("Create's time = %v, want the answer's %v", at, want)
			}
			_, err = b.Get(t.Context(), "log/x")
			checkAnswer(t, err, c.get, c.status, c.code)
			_, _, err = b.GetTail(t.Context(), "log/x", 8)
			checkAnswer(t, err, c.get, c.status, c.code)
			for _, err := range b.List(t.Context(), "", "") {
				checkAnswer(t, err, c.get, c.status, c.code)
			}
			want := map[string]int64{"PutObject": 1, "GetObject": 2 * int64(c.readsTried), "ListObjectsV2": int64(c.readsTried)}
			if got := b.Requests(); !maps.Equal(got, want) {
				t.Errorf("requests = %v, want %v", got, want)
			}
		})
	}
}

func checkAnswer(t *testing.T, err, want error, status int, code string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Status != status || code != "" && e.Code != code {
		t.Fatalf("error = %v, want the answer %d %s", err, status, code)
	}
	for _, sentinel := range []error{archive.ErrExists, archive.ErrNotFound, archive.ErrDenied, archive.ErrConflict, ErrNoBucket, ErrDamaged} {
		if errors.Is(err, sentinel) != (sentinel == want) {
			t.Errorf("%q matches %q: %v; want only %v", err, sentinel, errors.Is(err, sentinel), want)
		}
	}
	if strings.ContainsAny(err.Error(), "\r\n") {
		t.Errorf("error is more than one line: %q", err)
	}
}

func TestErrorsAreOneReadableLine(t *testing.T) {
	s := newStore(t)
	s.hook = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		switch r.Method {
		case http.MethodPut:
			answer(w, 403, "AccessDenied")
		default:
			w.Header().Set("X-Amz-Bucket-Region", "eu-west-1")
			answer(w, 301, "PermanentRedirect")
		}
		return true
	}
	b := s.open(t, "p")
	_, err := b.Create(t.Context(), "log/x", nil)
	if want := "create log/x: access denied: 403 AccessDenied: because of AccessDenied (request R1)"; err.Error() != want {
		t.Errorf("error = %q, want %q", err, want)
	}
	_, err = b.Get(t.Context(), "log/x")
	if want := "get log/x: 301 PermanentRedirect: the bucket is in another region: set region=eu-west-1 (request R1)"; err.Error() != want {
		t.Errorf("error = %q, want %q", err, want)
	}
}

// A write that gets no answer may have happened, or may have lost. Create
// looks, and never says that it is the one who created.
func TestCreateWithoutAnAnswer(t *testing.T) {
	big := bytes.Repeat([]byte("x"), 5<<20)
	for _, c := range []struct {
		name   string
		before string // what is there
		apply  bool   // whether the store did it before it cut the connection
		body   []byte
		exists bool
	}{
		{"nothing happened", "", false, []byte("mine"), false},
		{"it happened", "", true, []byte("mine"), true},
		{"it lost", "theirs", false, []byte("mine"), true},
		{"a big one happened", "", true, big, true},
		{"a big one lost", "theirs", false, big, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			if c.before != "" {
				s.objects["log/x"] = []byte(c.before)
			}
			s.hook = func(_ http.ResponseWriter, r *http.Request, body []byte) bool {
				if r.Method == http.MethodPut {
					if c.apply {
						s.mu.Lock()
						s.objects["log/x"] = body
						s.mu.Unlock()
					}
					cut()
				}
				return false
			}
			_, err := s.open(t, "").Create(t.Context(), "log/x", c.body)
			if err == nil || errors.Is(err, archive.ErrExists) != c.exists {
				t.Errorf("Create = %v; want an error, ErrExists: %v", err, c.exists)
			}
			if n := s.count(http.MethodPut); n != 1 {
				t.Errorf("%d PUTs, want 1", n)
			}
		})
	}
}

// A store that accepts the connection and says nothing, at whatever point,
// does not hang its caller, and is not taken for the caller's wish to stop.
func TestAHungStoreIsGivenUp(t *testing.T) {
	s := newStore(t)
	s.objects["log/x"] = bytes.Repeat([]byte("x"), 1<<20)
	s.hook = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if r.Method == http.MethodGet && r.Header.Get("Range") == "" && r.URL.Path != "/bucket/" && r.URL.Path != "/bucket" {
			w.Header().Set("Content-Length", "1048576")
			w.Write(make([]byte, 1000))
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
		return true
	}
	b := s.open(t, "", func(o *Options) { o.Timeout = 50 * time.Millisecond; o.Attempts = 2 })
	var errs []error
	_, err := b.Create(t.Context(), "log/x", []byte("x"))
	errs = append(errs, err)
	_, err = b.Get(t.Context(), "log/x")
	errs = append(errs, err)
	_, _, err = b.GetTail(t.Context(), "log/x", 8)
	errs = append(errs, err)
	for _, err := range b.List(t.Context(), "", "") {
		errs = append(errs, err)
	}
	for i, err := range errs {
		if !errors.Is(err, errStalled) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("call %d = %v, want errStalled and no error of a context", i, err)
		}
	}
	want := map[string]int64{"PutObject": 1, "HeadObject": 1, "GetObject": 4, "ListObjectsV2": 2}
	if got := b.Requests(); !maps.Equal(got, want) {
		t.Errorf("requests = %v, want %v", got, want)
	}
}

// A slow store is not a hung one: as long as bytes move, an attempt goes on
// for longer than the timeout.
func TestASlowStoreIsWaitedFor(t *testing.T) {
	const pieces, pause, timeout = 30, 40 * time.Millisecond, time.Second
	want := bytes.Repeat([]byte("x"), pieces*1000)
	s := newStore(t)
	s.hook = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		w.Header().Set("Content-Length", fmt.Sprint(len(want)))
		for range pieces {
			w.Write(want[:1000])
			w.(http.Flusher).Flush()
			select { // the pace of the store, which is what is tested
			case <-time.After(pause):
			case <-r.Context().Done():
			}
		}
		return true
	}
	b := s.open(t, "", func(o *Options) { o.Timeout = timeout; o.Attempts = 1 })
	began := time.Now()
	got, err := b.Get(t.Context(), "log/x")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("Get = %d bytes, %v; want %d", len(got), err, len(want))
	}
	if took := time.Since(began); took < timeout {
		t.Errorf("took %v, which does not test a timeout of %v", took, timeout)
	}
}

// The same for bytes that leave: a store that takes a large segment slowly.
func TestASlowUploadIsWaitedFor(t *testing.T) {
	const pieces, pause, timeout = 30, 40 * time.Millisecond, time.Second
	body := make([]byte, pieces<<20)
	var got int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for piece := make([]byte, len(body)/pieces); ; {
			n, err := io.ReadFull(r.Body, piece)
			if got += n; err != nil {
				return
			}
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
				return
			}
		}
	}))
	defer server.Close()
	b := (&store{url: server.URL}).open(t, "", func(o *Options) { o.Timeout = timeout })
	began := time.Now()
	if _, err := b.Create(t.Context(), "log/x", body); err != nil || got != len(body) {
		t.Errorf("Create = %v, after %d of %d bytes", err, got, len(body))
	}
	if took := time.Since(began); took < timeout {
		t.Errorf("took %v, which does not test a timeout of %v", took, timeout)
	}
}

func TestACallerThatStopsGetsItsContextsError(t *testing.T) {
	s := newStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.hook = func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		cancel()
		<-r.Context().Done()
		return true
	}
	b := s.open(t, "")
	if _, err := b.Create(ctx, "log/x", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Create = %v, want context.Canceled", err)
	}
	if n := s.count(http.MethodHead); n != 0 {
		t.Errorf("%d HEADs for a caller that is gone", n)
	}
}

// The exact headers of the one request that a commit makes, over http and
// https. None of them may be a trailer or an aws-chunked body.
func TestWhatCreateSends(t *testing.T) {
	for _, c := range []struct {
		set  string
		want map[string]string // header: value, "": absent
	}{
		{"", map[string]string{"X-Amz-Checksum-Crc32": "Uo1dxg==", "Content-Md5": "", "X-Amz-Server-Side-Encryption": "", "X-Amz-Storage-Class": ""}},
		{"checksum=crc32", map[string]string{"X-Amz-Checksum-Crc32": "Uo1dxg==", "X-Amz-Checksum-Sha256": "", "Content-Md5": ""}},
		{"checksum=sha256", map[string]string{"X-Amz-Checksum-Sha256": "6SRkwdGqDgV24HzFVNEwTDO8lSXhY1wMp2OFUBc2MsE=", "X-Amz-Checksum-Crc32": "", "Content-Md5": ""}},
		{"checksum=md5", map[string]string{"Content-Md5": "IdVTJtMpOFPR0loqlqMd2w==", "X-Amz-Checksum-Crc32": ""}},
		{"checksum=none", map[string]string{"Content-Md5": "", "X-Amz-Checksum-Crc32": "", "X-Amz-Checksum-Sha256": ""}},
		{"checksum=when-required", map[string]string{"Content-Md5": "", "X-Amz-Checksum-Crc32": ""}},
		{"sse=AES256", map[string]string{"X-Amz-Server-Side-Encryption": "AES256", "X-Amz-Server-Side-Encryption-Bucket-Key-Enabled": ""}},
		{"sse=aws:kms", map[string]string{"X-Amz-Server-Side-Encryption": "aws:kms", "X-Amz-Server-Side-Encryption-Bucket-Key-Enabled": "true"}},
		{"kms-key=alias/ours", map[string]string{
			"X-Amz-Server-Side-Encryption": "aws:kms", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": "alias/ours", "X-Amz-Server-Side-Encryption-Bucket-Key-Enabled": "true",
		}},
		{"storage-class=STANDARD_IA", map[string]string{"X-Amz-Storage-Class": "STANDARD_IA"}},
	} {
		for scheme, start := range map[string]func(*testing.T) *store{"http": newStore, "https": newTLSStore} {
			t.Run(scheme+" "+c.set, func(t *testing.T) {
				s := start(t)
				b, err := Open(t.Context(), "s3://bucket/p?"+c.set, Options{Endpoint: s.url, AccessKey: "key", SecretKey: "secret"})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := b.Create(t.Context(), "log/x.parquet", []byte("row after row")); err != nil {
					t.Fatal(err)
				}
				if len(s.seen) != 1 || s.seen[0].Method != http.MethodPut || s.seen[0].URL.Path != "/bucket/p/log/x.parquet" {
					t.Fatalf("requests = %v, want one PUT", s.seen)
				}
				h := s.seen[0].Header
				always := map[string]string{"If-None-Match": "*", "Content-Type": "application/vnd.apache.parquet", "Content-Encoding": "", "X-Amz-Trailer": "", "Content-Length": "13"}
				maps.Copy(always, c.want)
				for name, want := range always {
					if got := h.Get(name); got != want {
						t.Errorf("%s: %q, want %q", name, got, want)
					}
				}
				if sum := h.Get("X-Amz-Content-Sha256"); strings.HasPrefix(sum, "STREAMING") {
					t.Errorf("the body is aws-chunked: %s", sum)
				}
				if got := s.objects["p/log/x.parquet"]; string(got) != "row after row" {
					t.Errorf("stored %q", got)
				}
			})
		}
	}
}

// What AWS calls when_required in the environment is checksum=none, and a
// setting of ours goes before it.
func TestAmbientChecksumSetting(t *testing.T) {
	t.Setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")
	for set, want := range map[Checksum]Checksum{"": NoChecksum, CRC32: CRC32} {
		b := newStore(t).open(t, "", func(o *Options) { o.Checksum = set })
		if b.checksum != want {
			t.Errorf("with %q: %s, want %s", set, b.checksum, want)
		}
	}
}

func TestKeysThatFilesWouldConfuseAreNotCreated(t *testing.T) {
	s := newStore(t)
	b := s.open(t, "p")
	for _, key := range []string{"", "/", "/log", "log/", "log//x", ".", "..", "../log", "log/../x", "log/./x"} {
		if _, err := b.Create(t.Context(), key, nil); err == nil {
			t.Errorf("Create(%q) gives no error", key)
		}
	}
	if len(s.seen) != 0 {
		t.Errorf("%d requests for them", len(s.seen))
	}
}

// Path style is what stores on a port of their own know; AWS has bucket hosts.
func TestWhereTheBucketIs(t *testing.T) {
	var hosts []string
	var mu sync.Mutex
	s := newStore(t)
	s.hook = func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		mu.Lock()
		defer mu.Unlock()
		hosts = append(hosts, r.Host+r.URL.Path)
		return false
	}
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://localhost:" + u.Port()
	s.open(t, "p").Get(t.Context(), "log/x")
	off := false
	virtual := s.open(t, "p", func(o *Options) { o.PathStyle = &off; o.Attempts = 1; o.Timeout = time.Second })
	virtual.Get(t.Context(), "log/x") // a resolver may not know bucket.localhost
	if hosts[0] != "localhost:"+u.Port()+"/bucket/p/log/x" {
		t.Errorf("with an endpoint: %s, want path style", hosts[0])
	}
	if len(hosts) > 1 && hosts[1] != "bucket.localhost:"+u.Port()+"/p/log/x" {
		t.Errorf("path-style=false: %s, want the bucket in the host", hosts[1])
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", s.url)
	ambient := s.open(t, "p", func(o *Options) { o.Endpoint = "" })
	if got := ambient.url.Options; got.Endpoint != s.url || !*got.PathStyle || got.Region != "us-east-1" {
		t.Errorf("with AWS_ENDPOINT_URL_S3: %s", ambient)
	}
}

// One request of S3's and one of STS's own, with the role's keys in the
// signature of the first.
func TestAssumeRole(t *testing.T) {
	s := newStore(t)
	var form url.Values
	s.hook = func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		if r.URL.Path != "/" {
			return false
		}
		form, _ = url.ParseQuery(string(body))
		fmt.Fprint(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
			<AccessKeyId>key</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>role-token</SessionToken>
			<Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`)
		return true
	}
	t.Setenv("AWS_ENDPOINT_URL_STS", s.url)
	b := s.open(t, "", func(o *Options) {
		o.AccessKey, o.RoleARN, o.ExternalID = "base", "arn:aws:iam::123456789012:role/archive", "ext"
	})
	if _, err := b.Create(t.Context(), "log/x", nil); err != nil {
		t.Fatal(err)
	}
	if form.Get("RoleArn") != "arn:aws:iam::123456789012:role/archive" || form.Get("ExternalId") != "ext" || form.Get("RoleSessionName") != "ledgerlake" {
		t.Errorf("asked STS for %v", form)
	}
	last := s.seen[len(s.seen)-1]
	if token := last.Header.Get("X-Amz-Security-Token"); token != "role-token" {
		t.Errorf("session token = %q, want the role's", token)
	}
	if got, want := b.Requests(), map[string]int64{"PutObject": 1}; !maps.Equal(got, want) {
		t.Errorf("requests = %v, want %v", got, want)
	}
}

// Metrics hang on OnRequest: each request once, with its answer.
func TestOnRequest(t *testing.T) {
	s := newStore(t)
	var got []string
	b := s.open(t, "", func(o *Options) {
		o.OnRequest = func(r Request) { got = append(got, fmt.Sprint(r.Operation, " ", r.Status)) }
	})
	s.hook = func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		if strings.HasSuffix(r.URL.Path, "/cut") && r.Method == http.MethodPut {
			cut()
		}
		return false
	}
	b.Create(t.Context(), "log/x", nil)
	b.Create(t.Context(), "log/x", nil)
	b.Get(t.Context(), "log/y")
	b.Create(t.Context(), "log/cut", nil)
	want := "PutObject 200, PutObject 412, GetObject 404, PutObject 0, HeadObject 404"
	if strings.Join(got, ", ") != want {
		t.Errorf("told of %q, want %q", got, want)
	}
}

// A request that cannot be signed is denied, with a line that says what to set:
// no waiting makes credentials out of nothing.
func TestNoCredentialsIsADenial(t *testing.T) {
	err := failed("get", "k", errors.New("operation error S3: GetObject, get identity: get credentials: failed to refresh cached credentials, no EC2 IMDS role found"))
	if !errors.Is(err, archive.ErrDenied) || Transient(err) || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("%v; transient: %v", err, Transient(err))
	}
}
