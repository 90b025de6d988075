package faults3

import (
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// pageSize is how many entries a page of a listing has at most.
func (s *Server) pageSize() int {
	if s.opts.PageSize > 0 {
		return s.opts.PageSize
	}
	return 1000
}

type versionListing struct {
	XMLName             xml.Name `xml:"ListVersionsResult"`
	Name, Prefix        string
	IsTruncated         bool
	NextKeyMarker       string `xml:",omitempty"`
	NextVersionIDMarker string `xml:"NextVersionIdMarker,omitempty"`
	Version             []versionEntry
	DeleteMarker        []versionEntry
}

type versionEntry struct {
	Key          string
	VersionID    string `xml:"VersionId"`
	IsLatest     bool
	Size         int
	LastModified string
}

// listVersions answers ListObjectVersions, the newest version of a key first.
// A page may end between the versions of one key.
func (s *Server) listVersions(w http.ResponseWriter, r *request) {
	q := r.URL.Query()
	page := versionListing{Name: Bucket, Prefix: q.Get("prefix")}
	n := 0
	for _, at := range s.versionsAfter(q.Get("prefix"), q.Get("key-marker"), q.Get("version-id-marker")) {
		if n == s.pageSize() {
			page.IsTruncated = true
			break
		}
		n++
		o := s.objects[at.key]
		v := &o.versions[at.index]
		e := versionEntry{Key: at.key, VersionID: v.id, IsLatest: at.index == len(o.versions)-1, Size: len(v.body), LastModified: stamp(v.modified)}
		if v.marker {
			page.DeleteMarker = append(page.DeleteMarker, e)
		} else {
			page.Version = append(page.Version, e)
		}
		page.NextKeyMarker, page.NextVersionIDMarker = at.key, v.id
	}
	if !page.IsTruncated {
		page.NextKeyMarker, page.NextVersionIDMarker = "", ""
	}
	answer(w, page)
}

// A place is where a version stands.
type place struct {
	key   string
	index int
}

// versionsAfter returns the versions behind a marker: behind all of a key, or
// behind one of its versions.
func (s *Server) versionsAfter(prefix, key, id string) []place {
	var places []place
	for _, k := range slices.Sorted(maps.Keys(s.objects)) {
		if !strings.HasPrefix(k, prefix) || k < key || k == key && id == "" {
			continue
		}
		from := len(s.objects[k].versions)
		if k == key {
			from = slices.IndexFunc(s.objects[k].versions, func(v version) bool { return v.id == id })
		}
		for i := from - 1; i >= 0; i-- {
			places = append(places, place{k, i})
		}
	}
	return places
}

type deletion struct {
	Quiet  bool
	Object []struct {
		Key       string
		VersionID string `xml:"VersionId"`
	}
}

type deleted struct {
	XMLName xml.Name `xml:"DeleteResult"`
	Deleted []deletedEntry
	Error   []deletedEntry
}

type deletedEntry struct {
	Key                   string
	VersionID             string `xml:"VersionId,omitempty"`
	Code                  string `xml:",omitempty"`
	Message               string `xml:",omitempty"`
	DeleteMarker          bool   `xml:",omitempty"`
	DeleteMarkerVersionID string `xml:"DeleteMarkerVersionId,omitempty"`
}

// deleteMany answers DeleteObjects. A fault of the rule that the request met may
// have some of its keys fail.
func (s *Server) deleteMany(w http.ResponseWriter, r *request) {
	var in deletion
	if err := xml.Unmarshal(r.body, &in); err != nil || len(in.Object) > 1000 {
		refuse(w, http.StatusBadRequest, "MalformedXML")
		return
	}
	if r.checksum == "" && r.header.Get("Content-Md5") == "" {
		refuse(w, http.StatusBadRequest, "InvalidRequest")
		return
	}
	var out deleted
	bypass := r.header.Get("X-Amz-Bypass-Governance-Retention") == "true"
	for _, o := range in.Object {
		e := deletedEntry{Key: o.Key, VersionID: o.VersionID}
		if r.fault.Keys != "" && strings.Contains(o.Key, r.fault.Keys) {
			e.Code, e.Message = r.fault.Code, r.fault.Code+", by faults3"
		} else if marker, locked := s.remove(o.Key, o.VersionID, bypass); locked {
			e.Code, e.Message = "AccessDenied", lockedMessage
		} else if marker != "" {
			e.DeleteMarker, e.DeleteMarkerVersionID = true, marker
		}
		switch {
		case e.Code != "":
			out.Error = append(out.Error, e)
		case !in.Quiet:
			out.Deleted = append(out.Deleted, e)
		}
	}
	answer(w, out)
}
