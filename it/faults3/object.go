package faults3

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
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
	id       string
	body     []byte
	marker   bool // the key was deleted here
	modified time.Time
	etag     string // the MD5 of body, unless it was uploaded in parts
	lock     lock
}

func (v *version) tag() string {
	if v.etag != "" {
		return v.etag
	}
	return etag(v.body)
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
	v.id, v.modified, v.etag = nullVersion, s.now(), v.tag() // once: large objects are read in many parts
	switch {
	case s.opts.Versioned && !s.suspended:
		v.id = "v" + strconv.Itoa(o.made)
	case s.opts.Versioned:
		o.versions = slices.DeleteFunc(o.versions, func(v version) bool { return v.id == nullVersion })
	default:
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
	case r.header.Get("X-Amz-Object-Lock-Mode") != "" && !s.opts.ObjectLock:
		refuse(w, http.StatusBadRequest, "InvalidRequest")
	case s.racers[r.key][r]:
		refuse(w, http.StatusConflict, "ConditionalRequestConflict")
	case r.conditional() && s.objects[r.key].current() != nil:
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
	default:
		w.Header().Set("ETag", etag(r.body))
		s.tellVersion(w, s.push(r.key, version{body: r.body, lock: lockOf(r.header)}))
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
	if len(v.body) == 0 && r.header.Get("Range") != "" {
		refuse(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange") // net/http has a range of nothing
		return
	}
	s.tellVersion(w, v.id)
	w.Header().Set("ETag", v.tag())
	v.lock.tell(w.Header())
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r.Request, "", v.modified, bytes.NewReader(v.body))
}

// delete takes the key away, or one version of it.
func (s *Server) delete(w http.ResponseWriter, r *request) {
	id, bypass := r.URL.Query().Get("versionId"), r.header.Get("X-Amz-Bypass-Governance-Retention") == "true"
	marker, locked := s.remove(r.key, id, bypass)
	if locked {
		refuseLocked(w)
		return
	}
	if marker != "" {
		w.Header().Set("X-Amz-Delete-Marker", "true")
		s.tellVersion(w, marker)
	}
	w.WriteHeader(http.StatusNoContent)
}

// remove takes a version away, or the key, id being "": where versions are kept
// that is by a marker, whose id it returns.
func (s *Server) remove(key, id string, bypass bool) (marker string, locked bool) {
	o := s.objects[key]
	switch {
	case id == "" && s.opts.Versioned:
		return s.push(key, version{marker: true}), false
	case id == "":
		id = nullVersion
	}
	if o == nil {
		return "", false
	}
	i := slices.IndexFunc(o.versions, func(v version) bool { return v.id == id })
	switch {
	case i < 0:
		return "", false
	case o.versions[i].lock.keeps(s.now(), bypass):
		return "", true
	}
	o.versions = slices.Delete(o.versions, i, i+1)
	if len(o.versions) == 0 && !s.opts.Versioned {
		delete(s.objects, key)
	}
	return "", false
}
