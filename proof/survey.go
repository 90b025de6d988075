package proof

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A lineKey names a line as keys do: with its names escaped.
type lineKey struct {
	topic, topicID string
	partition      int32
}

// prefix returns what the keys of a line's objects in folder begin with.
func (k lineKey) prefix(folder string) string {
	return fmt.Sprintf("%s/%s/%s/%05d/", folder, k.topic, k.topicID, k.partition)
}

// A survey is what one listing of the whole archive shows: which lines there
// are, and what has no place. It keeps no keys but those of strays.
type survey struct {
	lines     []*surveyLine // in the order of their keys
	byKey     map[lineKey]*surveyLine
	objects   int64 // all that were listed
	root      bool  // ledgerlake.json is there
	compacted bool  // there are catalogs
	data      int64 // data files
	keys      int64 // key notes
	exports   int64 // objects of exporters, which are no evidence
	manifests int64 // and lists of objects for engines of SQL, which are none either
	strays    strays
	saved     map[lineKey]*SavedLine
	byData    map[lineKey]*surveyLine // compacted lines, without their topics
	homeless  map[lineKey]*strays     // data files of lines without a catalog, by lines without their topics
}

// A surveyLine is what the listing shows of one line.
type surveyLine struct {
	lineKey
	segments   int64
	bytes      int64            // of all segments
	lastAnchor int64            // -1 if there is none
	catalogs   int64            // versions and parts
	version    int64            // the newest of the catalog; -1 if there is none
	data       []archive.Object // data files of a compacted line

	saved         *SavedLine // where an earlier verification ended
	passed        int64      // segments up to there
	passedAnchors int64      // anchors before the one that it ended with
	lost          *Fault     // some of these are gone
}

// strays is a bounded list of the keys of strays.
type strays struct {
	list  []string
	total int64
	max   int
}

func (s *strays) add(key string) {
	s.total++
	if len(s.list) < s.max {
		s.list = append(s.list, key)
	}
}

// addOnce adds a key unless it was the last one.
func (s *strays) addOnce(key string) {
	if n := len(s.list); n == 0 || s.list[n-1] != key {
		s.add(key)
	}
}

// look lists the archive.
func look(ctx context.Context, src archive.Source, maxStrays int, saved map[lineKey]*SavedLine) (*survey, error) {
	s := &survey{byKey: map[lineKey]*surveyLine{}, strays: strays{max: maxStrays}, saved: saved}
	for o, err := range src.List(ctx, "", "") {
		if err != nil {
			return nil, fmt.Errorf("list the archive: %w", err)
		}
		s.objects++
		if !s.place(o) {
			s.strays.add(o.Key)
		}
	}
	slices.SortFunc(s.lines, func(a, b *surveyLine) int {
		return strings.Compare(a.prefix("log"), b.prefix("log"))
	})
	return s, nil
}

// place finds the place of an object, and reports whether it has one.
func (s *survey) place(o archive.Object) bool {
	folder, _, _ := strings.Cut(o.Key, "/")
	switch {
	case o.Key == archive.RootKey:
		s.root = true
		return true
	case folder == "log":
		return s.segment(o)
	case folder == "anchor":
		return s.anchor(o.Key)
	case folder == "catalog":
		return s.catalog(o.Key)
	case folder == "key" && isKeyNote(o.Key):
		s.keys++
		return true
	case folder == "data":
		return s.dataFile(o)
	case folder == "export" && strings.Count(o.Key, "/") >= 2:
		s.exports++
		return true
	case archive.IsManifest(o.Key):
		s.manifests++
		return true
	}
	return false
}

func (s *survey) segment(o archive.Object) bool {
	n, ok := archive.ParseSegmentKey(o.Key)
	if ok {
		l := s.line(lineKey{n.EscapedTopic, n.TopicID, n.Partition})
		l.segments++
		l.bytes += o.Size
		if l.saved != nil && n.Ordinal <= l.saved.Ordinal {
			l.passed++
		}
	}
	return ok
}

func (s *survey) anchor(key string) bool {
	line, number, ok := parseNoteKey(key)
	if ok {
		l := s.line(line)
		l.lastAnchor = max(l.lastAnchor, number)
		if l.saved != nil && number < l.saved.Anchor {
			l.passedAnchors++
		}
	}
	return ok
}

// catalog takes the versions of a catalog and their parts.
func (s *survey) catalog(key string) bool {
	line, version, ok := parseNoteKey(key)
	if !ok {
		version = -1
		folder, name, found := strings.Cut(key, "/part/")
		hash, isJSON := strings.CutSuffix(name, ".json")
		line, ok = parseLineFolder(folder + "/")
		ok = ok && found && isJSON && isHex64(hash)
	}
	if ok {
		l := s.line(line)
		l.catalogs++
		l.version = max(l.version, version)
		if s.byData == nil {
			s.byData = map[lineKey]*surveyLine{}
		}
		s.byData[line.withoutTopic()] = l
		s.compacted = true
	}
	return ok
}

// dataFile brings a data file to its line. Keys come in order, catalogs before
// data files: one of a line without a catalog is at home nowhere, unless its
// catalog was written meanwhile.
func (s *survey) dataFile(o archive.Object) bool {
	n, ok := archive.ParseDataKey(o.Key)
	if !ok {
		return false
	}
	k := lineKey{topicID: n.TopicID, partition: n.Partition}
	if l := s.byData[k]; l != nil {
		l.data = append(l.data, o)
		s.data++
		return true
	}
	if s.homeless == nil {
		s.homeless = map[lineKey]*strays{}
	}
	if s.homeless[k] == nil {
		s.homeless[k] = &strays{max: s.strays.max}
	}
	s.homeless[k].add(o.Key)
	return true
}

// withoutTopic returns what the keys of data files say of a line.
func (k lineKey) withoutTopic() lineKey {
	return lineKey{topicID: k.topicID, partition: k.partition}
}

// settled returns the strays, once it is known which lines have a catalog.
func (s *survey) settled() strays {
	all := s.strays
	all.list = slices.Clone(all.list)
	for _, l := range s.lines {
		if l.catalogs > 0 {
			delete(s.homeless, l.withoutTopic())
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(s.homeless), func(a, b lineKey) int { return strings.Compare(a.prefix(""), b.prefix("")) }) {
		h := s.homeless[k]
		all.total += h.total
		all.list = append(all.list, h.list[:min(len(h.list), max(0, all.max-len(all.list)))]...)
	}
	return all
}

func (s *survey) line(k lineKey) *surveyLine {
	l := s.byKey[k]
	if l == nil {
		l = &surveyLine{lineKey: k, lastAnchor: -1, version: -1, saved: s.saved[k]}
		s.byKey[k] = l
		s.lines = append(s.lines, l)
	}
	return l
}

// empty reports whether there is no trace of an archive.
func (s *survey) empty() bool {
	return !s.root && len(s.lines) == 0 && s.keys == 0
}

// todo returns the number of objects that a verification reads.
func (s *survey) todo() (n int64) {
	if s.root {
		n++
	}
	for _, l := range s.lines {
		n += l.segments + l.lastAnchor + 1 + l.catalogs + int64(len(l.data))
		if l.catalogs == 0 {
			n -= l.passed + l.passedAnchors
		}
	}
	return n + s.keys
}

// parseNoteKey parses the key of an anchor or of a catalog version: its
// folder's line, and its number.
func parseNoteKey(key string) (lineKey, int64, bool) {
	at := strings.LastIndexByte(key, '/') + 1
	digits, isNote := strings.CutSuffix(key[at:], ".note")
	line, ok := parseLineFolder(key[:at])
	number, isNumber := parseDigits(digits, 20)
	return line, number, ok && isNote && isNumber
}

// parseLineFolder parses folder/topic/topicId/partition/.
func parseLineFolder(folder string) (lineKey, bool) {
	parts := strings.Split(folder, "/")
	if len(parts) != 5 || parts[1] == "" || parts[2] == "" || parts[4] != "" {
		return lineKey{}, false
	}
	n, err := strconv.ParseInt(parts[3], 10, 32)
	k := lineKey{parts[1], parts[2], int32(n)}
	return k, err == nil && n >= 0 && k.prefix(parts[0]) == folder
}

// parseDigits parses a number of exactly width digits.
func parseDigits(s string, width int) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && len(s) == width && fmt.Sprintf("%0*d", width, n) == s
}

// isKeyNote reports whether key is key/{sha256}.note.
func isKeyNote(key string) bool {
	hash, ok := strings.CutSuffix(strings.TrimPrefix(key, "key/"), ".note")
	return ok && isHex64(hash)
}

func isHex64(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}
