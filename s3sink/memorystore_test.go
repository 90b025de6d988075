package s3sink

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

// newMemoryStore is a store that keeps versions and uploads as an
// archive.Memory does, and says so as S3 does.
func newMemoryStore(t *testing.T, versioning archive.Versioning) *store {
	t.Helper()
	s := newStore(t)
	s.memory = archive.NewMemory()
	s.memory.SetVersioning(versioning)
	return s
}

func (s *store) serveMemory(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodHead && key == "":
	case query.Has("versions"):
		s.listVersions(w, r, query)
	case query.Has("uploads") && r.Method == http.MethodPost:
		fmt.Fprintf(w, "<R><UploadId>%s</UploadId></R>", s.memory.Begin(key).ID)
	case query.Has("uploads"):
		s.listUploads(w, r, query)
	case query.Has("uploadId"):
		s.abort(w, r, key, query.Get("uploadId"))
	case query.Has("delete"):
		s.deleteMany(w, r, body)
	case key == "":
		s.listMemory(w, r, query)
	case r.Method == http.MethodPut:
		s.putMemory(w, r, key, body)
	case r.Method == http.MethodDelete:
		if status, code, message := s.deleteMemory(r, key, query.Get("versionId")); code != "" {
			answerWith(w, status, code, message)
			return
		}
		w.WriteHeader(204)
	default:
		s.getMemory(w, r, key)
	}
}

func (s *store) putMemory(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	tag := r.Header.Get("If-Match")
	if tag == "" && r.Header.Get("If-None-Match") != "*" {
		s.memory.Overwrite(key, body)
		_, tag, _ = s.memory.GetTagged(r.Context(), key)
		w.Header().Set("ETag", tag)
		return
	}
	newTag, err := s.memory.Swap(r.Context(), key, body, tag)
	switch {
	case errors.Is(err, archive.ErrNotFound):
		answer(w, 404, "NoSuchKey")
	case err != nil:
		answer(w, 412, "PreconditionFailed")
	default:
		w.Header().Set("ETag", newTag)
	}
}

func (s *store) getMemory(w http.ResponseWriter, r *http.Request, key string) {
	body, tag, err := s.memory.GetTagged(r.Context(), key)
	if err != nil {
		answer(w, 404, "NoSuchKey")
		return
	}
	w.Header().Set("ETag", tag)
	size := len(body)
	first, last := 0, size-1
	asked := r.Header.Get("Range")
	if from, to, ok := strings.Cut(strings.TrimPrefix(asked, "bytes="), "-"); ok && from == "" {
		n, _ := strconv.Atoi(to)
		first = max(size-n, 0)
	} else if ok {
		first, _ = strconv.Atoi(from)
		last, _ = strconv.Atoi(to)
		last = min(last, size-1)
	}
	if asked != "" && first > last {
		answer(w, 416, "InvalidRange")
		return
	}
	body = body[first : last+1]
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if asked != "" {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, size))
		w.WriteHeader(206)
	}
	w.Write(body)
}

func (s *store) listMemory(w http.ResponseWriter, r *http.Request, query url.Values) {
	sizes := map[string]int{}
	after := cmp.Or(query.Get("continuation-token"), query.Get("start-after"))
	var entries []string
	for o, err := range s.memory.List(r.Context(), query.Get("prefix"), after) {
		if err == nil {
			entries = append(entries, o.Key)
			sizes[o.Key] = int(o.Size)
		}
	}
	page := cmp.Or(s.page, 1000)
	var b strings.Builder
	listed(&b, entries[:min(page, len(entries))], len(entries) > page, func(key string) int { return sizes[key] })
	// The time of all of them is now: nothing here keeps one for longer.
	io.WriteString(w, strings.ReplaceAll(b.String(), "</Key><Size>", "</Key><LastModified>"+stamp(time.Now())+"</LastModified><Size>"))
}

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// listVersions pages by both markers: the rest of a key's versions begin the
// next page.
func (s *store) listVersions(w http.ResponseWriter, r *http.Request, query url.Values) {
	key, id := query.Get("key-marker"), query.Get("version-id-marker")
	var b strings.Builder
	n, more, passed := 0, false, false
	var last archive.Version
	for v, err := range s.memory.Versions(r.Context(), query.Get("prefix")) {
		switch {
		case err != nil:
			return
		case v.Key < key, v.Key == key && id == "", v.Key == key && !passed:
			passed = passed || v.Key == key && v.ID == id
			continue
		case n == cmp.Or(s.page, 1000):
			more = true
		}
		if more {
			break
		}
		n, last = n+1, v
		tag := map[bool]string{false: "Version", true: "DeleteMarker"}[v.Marker]
		fmt.Fprintf(&b, "<%s><Key>%s</Key><VersionId>%s</VersionId><IsLatest>%v</IsLatest><LastModified>%s</LastModified><Size>%d</Size></%s>",
			tag, url.QueryEscape(v.Key), cmp.Or(v.ID, "null"), v.Latest, stamp(v.Modified), v.Size, tag)
	}
	if more {
		fmt.Fprintf(&b, "<NextKeyMarker>%s</NextKeyMarker><NextVersionIdMarker>%s</NextVersionIdMarker>", url.QueryEscape(last.Key), last.ID)
	}
	fmt.Fprintf(w, "<ListVersionsResult><EncodingType>url</EncodingType><IsTruncated>%v</IsTruncated>%s</ListVersionsResult>", more, b.String())
}

func (s *store) listUploads(w http.ResponseWriter, r *http.Request, query url.Values) {
	key, id := query.Get("key-marker"), query.Get("upload-id-marker")
	var b strings.Builder
	n, more := 0, false
	var last archive.Upload
	for u := range s.memory.Uploads(r.Context(), query.Get("prefix")) {
		if u.Key < key || u.Key == key && u.ID <= id {
			continue
		}
		if more = n == cmp.Or(s.page, 1000); more {
			break
		}
		n, last = n+1, u
		fmt.Fprintf(&b, "<Upload><Key>%s</Key><UploadId>%s</UploadId><Initiated>%s</Initiated></Upload>", url.QueryEscape(u.Key), u.ID, stamp(u.Begun))
	}
	if more {
		fmt.Fprintf(&b, "<NextKeyMarker>%s</NextKeyMarker><NextUploadIdMarker>%s</NextUploadIdMarker>", url.QueryEscape(last.Key), last.ID)
	}
	fmt.Fprintf(w, "<ListMultipartUploadsResult><EncodingType>url</EncodingType><IsTruncated>%v</IsTruncated>%s</ListMultipartUploadsResult>", more, b.String())
}

func (s *store) abort(w http.ResponseWriter, r *http.Request, key, id string) {
	for u := range s.memory.Uploads(r.Context(), key) {
		if u.ID == id {
			s.memory.Abort(r.Context(), u)
			w.WriteHeader(204)
			return
		}
	}
	answer(w, 404, "NoSuchUpload")
}

// A deletedKey is an entry of what DeleteObjects asks for.
type deletedKey struct {
	Key       string
	VersionID string `xml:"VersionId"`
}

func (s *store) deleteMany(w http.ResponseWriter, r *http.Request, body []byte) {
	var in struct {
		Objects []deletedKey `xml:"Object"`
	}
	if err := xml.Unmarshal(body, &in); err != nil || len(in.Objects) > 1000 {
		answer(w, 400, "MalformedXML")
		return
	}
	fmt.Fprint(w, "<DeleteResult>")
	for _, o := range in.Objects {
		tag := "Deleted"
		_, code, message := s.deleteMemory(r, o.Key, o.VersionID)
		if code != "" {
			tag = "Error"
		}
		fmt.Fprintf(w, "<%s><Key>", tag)
		xml.EscapeText(w, []byte(o.Key))
		fmt.Fprintf(w, "</Key><VersionId>%s</VersionId>", o.VersionID)
		if code != "" {
			fmt.Fprintf(w, "<Code>%s</Code><Message>%s</Message>", code, message)
		}
		fmt.Fprintf(w, "</%s>", tag)
	}
	fmt.Fprint(w, "</DeleteResult>")
}

func (s *store) deleteMemory(r *http.Request, key, id string) (status int, code, message string) {
	if id == "" {
		s.memory.Remove(key)
		return 0, "", ""
	}
	kept := s.memory.Delete(r.Context(), []archive.Version{{Key: key, ID: id}})
	switch {
	case len(kept) == 0:
		return 0, "", ""
	case errors.Is(kept[0].Err, archive.ErrLocked):
		return 403, "AccessDenied", "Access Denied because object protected by object lock."
	}
	return 500, "InternalError", kept[0].Err.Error()
}

func answerWith(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message><RequestId>R1</RequestId></Error>", code, message)
}
