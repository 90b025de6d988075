package faults3

import (
	"bytes"
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// nullVersion is the id of an object's one version in a bucket without them.
const nullVersion = "null"

// An object is all versions of one key, the oldest first. A nil object has none.
type object struct {
	versions []version
	made     int // how many there ever were
}

// A version is one state of an object.
type version struct {
	id     string
	body   []byte
	marker bool // the key was deleted here
}

// current returns what a request gets that names no version, nil if it gets
// nothing.
func (o *object) current() *version {
	if o == nil || len(o.versions) == 0 || o.versions[len(o.versions)-1].marker {
		return nil
	}
	return &o.versions[len(o.versions)-1]
}

// version returns the version of an id, "" being the current one.
func (o *object) version(id string) *version {
	if id == "" {
		return o.current()
	}
	if o == nil {
		return nil
	}
	i := slices.IndexFunc(o.versions, func(v version) bool { return v.id == id && !v.marker })
	if i < 0 {
		return nil
	}
	return &o.versions[i]
}

// push makes v the newest version of a key, and the only one in a bucket that
// keeps no others. It returns the version's id.
func (s *Server) push(key string, v version) string {
	o := s.objects[key]
	if o == nil {
		o = &object{}
		s.objects[key] = o
	}
	o.made++
	v.id = nullVersion
	if s.opts.Versioned {
		v.id = "v" + strconv.Itoa(o.made)
	} else {
		o.versions = nil
	}
	o.versions = append(o.versions, v)
	return v.id
}

func (s *Server) put(w http.ResponseWriter, r *request) {
	stated := r.checksum != "" || r.header.Get("Content-Md5") != ""
	switch {
	case s.opts.RefuseChunked && r.chunked:
		refuse(w, http.StatusBadRequest, "XAmzContentSHA256Mismatch")
	case s.opts.Checksums == Refuse && r.checksum != "":
		refuse(w, http.StatusBadRequest, "InvalidArgument")
	case s.opts.Checksums == Require && !stated:
		refuse(w, http.StatusBadRequest, "InvalidRequest")
	case s.racers[r.key][r]:
		refuse(w, http.StatusConflict, "ConditionalRequestConflict")
	case r.conditional() && s.objects[r.key].current() != nil:
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
	default:
		w.Header().Set("ETag", etag(r.body))
		s.tellVersion(w, s.push(r.key, version{body: r.body}))
		for other := range s.racers[r.key] {
			s.racers[r.key][other] = true
		}
	}
}

func (s *Server) tellVersion(w http.ResponseWriter, id string) {
	if s.opts.Versioned {
		w.Header().Set("X-Amz-Version-Id", id)
	}
}

func (s *Server) get(w http.ResponseWriter, r *request) {
	v := s.objects[r.key].version(r.URL.Query().Get("versionId"))
	if v == nil {
		if o := s.objects[r.key]; o != nil && len(o.versions) > 0 {
			w.Header().Set("X-Amz-Delete-Marker", "true")
		}
		refuse(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	s.tellVersion(w, v.id)
	w.Header().Set("ETag", etag(v.body))
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r.Request, "", time.Time{}, bytes.NewReader(v.body))
}

// delete takes the key away, or one version of it. Where versions are kept, the
// key alone is taken away by a marker.
func (s *Server) delete(w http.ResponseWriter, r *request) {
	id, o := r.URL.Query().Get("versionId"), s.objects[r.key]
	switch {
	case id != "" && o != nil:
		o.versions = slices.DeleteFunc(o.versions, func(v version) bool { return v.id == id })
	case id == "" && s.opts.Versioned:
		w.Header().Set("X-Amz-Delete-Marker", "true")
		s.tellVersion(w, s.push(r.key, version{marker: true}))
	case id == "":
		delete(s.objects, r.key)
	}
	w.WriteHeader(http.StatusNoContent)
}

type versionListing struct {
	XMLName      xml.Name `xml:"ListVersionsResult"`
	Name, Prefix string
	IsTruncated  bool
	Version      []versionEntry
	DeleteMarker []versionEntry
}

type versionEntry struct {
	Key       string
	VersionID string `xml:"VersionId"`
	IsLatest  bool
	Size      int
}

// listVersions answers ListObjectVersions, all on one page.
func (s *Server) listVersions(w http.ResponseWriter, prefix string) {
	page := versionListing{Name: Bucket, Prefix: prefix}
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		o := s.objects[key]
		for i, v := range slices.Backward(o.versions) {
			e := versionEntry{Key: key, VersionID: v.id, IsLatest: i == len(o.versions)-1, Size: len(v.body)}
			if v.marker {
				page.DeleteMarker = append(page.DeleteMarker, e)
			} else {
				page.Version = append(page.Version, e)
			}
		}
	}
	answer(w, page)
}
