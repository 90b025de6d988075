package faults3

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An upload in parts, until it is completed or aborted.
type upload struct {
	key   string
	begun time.Time
	parts map[int][]byte
}

// upload answers what is asked of uploads.
func (s *Server) upload(w http.ResponseWriter, r *request) {
	q := r.URL.Query()
	id := q.Get("uploadId")
	u := s.uploads[id]
	switch {
	case q.Has("uploads") && r.Method == http.MethodPost:
		s.begin(w, r)
	case q.Has("uploads") && r.key == "":
		s.listUploads(w, r)
	case r.Method == http.MethodGet:
		refuse(w, http.StatusNotImplemented, "NotImplemented")
	case u == nil || u.key != r.key:
		refuse(w, http.StatusNotFound, "NoSuchUpload")
	case r.Method == http.MethodPut:
		n, err := strconv.Atoi(q.Get("partNumber"))
		if err != nil || n < 1 {
			refuse(w, http.StatusBadRequest, "InvalidArgument")
			return
		}
		u.parts[n] = r.body
		w.Header().Set("ETag", etag(r.body))
	case r.Method == http.MethodPost:
		s.complete(w, r, id)
	case r.Method == http.MethodDelete:
		delete(s.uploads, id)
		w.WriteHeader(http.StatusNoContent)
	default:
		refuse(w, http.StatusNotImplemented, "NotImplemented")
	}
}

func (s *Server) begin(w http.ResponseWriter, r *request) {
	s.begun++
	id := fmt.Sprintf("u%06d", s.begun)
	s.uploads[id] = &upload{key: r.key, begun: s.now(), parts: map[int][]byte{}}
	answer(w, struct {
		XMLName     xml.Name `xml:"InitiateMultipartUploadResult"`
		Bucket, Key string
		UploadID    string `xml:"UploadId"`
	}{Bucket: Bucket, Key: r.key, UploadID: id})
}

// complete makes an object of the parts. Its ETag is no MD5 of its bytes.
func (s *Server) complete(w http.ResponseWriter, r *request, id string) {
	if r.header.Get("If-None-Match") == "*" && s.objects[r.key].current() != nil {
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	parts := s.uploads[id].parts
	var body, sums []byte
	for _, n := range slices.Sorted(maps.Keys(parts)) {
		sum := md5.Sum(parts[n])
		body, sums = append(body, parts[n]...), append(sums, sum[:]...)
	}
	sum := md5.Sum(sums)
	tag := fmt.Sprintf(`"%s-%d"`, hex.EncodeToString(sum[:]), len(parts))
	s.tellVersion(w, s.push(r.key, version{body: body, etag: tag}))
	delete(s.uploads, id)
	answer(w, struct {
		XMLName           xml.Name `xml:"CompleteMultipartUploadResult"`
		Bucket, Key, ETag string
	}{Bucket: Bucket, Key: r.key, ETag: tag})
}

type uploadListing struct {
	XMLName            xml.Name `xml:"ListMultipartUploadsResult"`
	Bucket             string
	IsTruncated        bool
	NextKeyMarker      string `xml:",omitempty"`
	NextUploadIDMarker string `xml:"NextUploadIdMarker,omitempty"`
	Upload             []uploadEntry
}

type uploadEntry struct {
	Key       string
	UploadID  string `xml:"UploadId"`
	Initiated string
}

// listUploads answers ListMultipartUploads, by key and then by id.
func (s *Server) listUploads(w http.ResponseWriter, r *request) {
	q := r.URL.Query()
	after := q.Get("key-marker") + "\x00" + q.Get("upload-id-marker")
	ids := slices.SortedFunc(maps.Keys(s.uploads), func(a, b string) int {
		return strings.Compare(s.uploads[a].key+"\x00"+a, s.uploads[b].key+"\x00"+b)
	})
	page := uploadListing{Bucket: Bucket}
	for _, id := range ids {
		u := s.uploads[id]
		if !strings.HasPrefix(u.key, q.Get("prefix")) || q.Get("key-marker") != "" && u.key+"\x00"+id <= after {
			continue
		}
		if len(page.Upload) == s.pageSize() {
			page.IsTruncated = true
			last := page.Upload[len(page.Upload)-1]
			page.NextKeyMarker, page.NextUploadIDMarker = last.Key, last.UploadID
			break
		}
		page.Upload = append(page.Upload, uploadEntry{Key: u.key, UploadID: id, Initiated: stamp(u.begun)})
	}
	answer(w, page)
}
