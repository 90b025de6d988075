package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A store is a bucket in memory behind as much of S3 as ingest asks for. A test
// has it misbehave.
type store struct {
	*archive.Memory
	url string

	mu     sync.Mutex
	denies bool          // everything
	slow   time.Duration // a PUT
}

func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{Memory: archive.NewMemory()}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *store) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	denies, slow := s.denies, s.slow
	s.mu.Unlock()
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case denies:
		refuse(w, http.StatusForbidden, "AccessDenied")
	case r.Method == http.MethodPut:
		time.Sleep(slow)
		if _, err := s.Create(r.Context(), key, body); errors.Is(err, archive.ErrExists) {
			refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
		}
	case r.URL.Query().Has("list-type"):
		s.list(w, r)
	case r.URL.Query().Has("object-lock"):
		refuse(w, http.StatusNotFound, "ObjectLockConfigurationNotFoundError")
	case r.URL.Query().Has("versioning"):
		_, _ = io.WriteString(w, "<VersioningConfiguration/>")
	default:
		s.get(w, r, key)
	}
}

func (s *store) get(w http.ResponseWriter, r *http.Request, key string) {
	body, err := s.Get(r.Context(), key)
	if err != nil {
		refuse(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	status, size := http.StatusOK, len(body)
	if n, err := strconv.Atoi(strings.TrimPrefix(r.Header.Get("Range"), "bytes=-")); err == nil {
		body = body[size-min(n, size):]
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", size-len(body), size-1, size))
		status = http.StatusPartialContent
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func (s *store) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	_, _ = io.WriteString(w, "<ListBucketResult><EncodingType>url</EncodingType>")
	for o, err := range s.List(r.Context(), query.Get("prefix"), query.Get("start-after")) {
		if err != nil {
			return
		}
		_, _ = fmt.Fprintf(w, "<Contents><Key>%s</Key><Size>%d</Size></Contents>", url.QueryEscape(o.Key), o.Size)
	}
	_, _ = io.WriteString(w, "</ListBucketResult>")
}

// refuse writes an error as S3 does.
func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
}
