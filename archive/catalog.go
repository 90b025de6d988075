package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive/jsondoc"
	"github.com/ledgerlake/ledgerlake/chain"
)

// DataPrefix is the prefix of all data files of an archive.
const DataPrefix = "data/"

// DayLayout is how days are written: UTC.
const DayLayout = "2006-01-02"

// A Catalog says what compaction has made of a line: the document of a catalog
// note. It is an index: nothing in it is acted on without the chained row behind
// it. Source: docs/format.md, section 5.
type Catalog struct {
	ArchiveID  string             `json:"archiveId"`
	Topic      string             `json:"topic"`
	TopicID    string             `json:"topicId"`
	Partition  int32              `json:"partition"`
	Version    int64              `json:"version"`   // from 0
	Previous   *chain.Hash        `json:"previous"`  // of the previous version's text; null in version 0
	Time       Time               `json:"time"`      // by the compactor's clock
	Watermark  int64              `json:"watermark"` // the first ordinal that is not compacted
	Parts      []CatalogPartRef   `json:"parts"`
	Redactions []CatalogRedaction `json:"redactions"`
	Cuts       []CatalogCut       `json:"cuts"`
	Holds      []CatalogHold      `json:"holds"`
	Doomed     []CatalogDoomed    `json:"doomed"`
}

// A CatalogPartRef names the data files of one day.
type CatalogPartRef struct {
	Day    string     `json:"day"` // UTC
	Key    string     `json:"key"` // [CatalogPartKey]
	Bytes  int64      `json:"bytes"`
	SHA256 chain.Hash `json:"sha256"`
	Files  int64      `json:"files"` // count
}

// The states of a redaction in one line.
const (
	RedactionGated     = "gated"     // readers hide what it names
	RedactionPurged    = "purged"    // rewritten
	RedactionGone      = "gone"      // no version of an old object is left
	RedactionReceipted = "receipted" // erasure-done was seen in the archive
)

// A CatalogRedaction is a redaction that reaches the line. Beyond its state it
// says what the next receipt has to: only a compactor reads that.
type CatalogRedaction struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"` // record_id of its control row
	State  string `json:"state"`

	Since   int64            `json:"since,omitempty"`   // the version that purged, or found later what else has to go
	Erased  [][2]int64       `json:"erased,omitempty"`  // rows that no receipt has named yet: first and last seq, both in it
	Deleted []CatalogDeleted `json:"deleted,omitempty"` // objects that held those rows
	Kept    []string         `json:"kept,omitempty"`    // what could not go, in words
}

// A CatalogDeleted is an object that goes with an erasure, and the versions of
// it that the store has.
type CatalogDeleted struct {
	Key      string   `json:"key"`
	Versions []string `json:"versions,omitempty"`
}

// A CatalogCut is where a log begins after a prefix of it was dropped.
type CatalogCut struct {
	Tenant   string       `json:"tenant"`
	ID       string       `json:"id"` // record_id of the retention-cut row
	Size     int64        `json:"size"`
	Head     chain.Hash   `json:"head"`
	Frontier []chain.Hash `json:"frontier"`
}

// A CatalogHold is a legal hold in force.
type CatalogHold struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"` // record_id of its control row
}

// A CatalogDoomed is an object that goes once its time is up.
type CatalogDoomed struct {
	Key   string `json:"key"`
	Since int64  `json:"since"` // the version that first listed it
}

// A CatalogPart is the document of one part: the data files of one day.
type CatalogPart struct {
	Files []CatalogFile `json:"files"`
	// Once makes a part of files that made a part before another object: the key
	// of that one may be doomed. "" is left out; a reader does not look at it.
	Once string `json:"once,omitempty"`
}

// A CatalogFile is what a part says of one data file.
type CatalogFile struct {
	Key          string     `json:"key"`
	Bytes        int64      `json:"bytes"`
	SHA256       chain.Hash `json:"sha256"`
	Tenant       string     `json:"tenant"`
	Day          string     `json:"day"` // of archived_at of all of its rows, UTC
	FirstSeq     int64      `json:"firstSeq"`
	LastSeq      int64      `json:"lastSeq"`
	Rows         int64      `json:"rows"`
	FirstOffset  *int64     `json:"firstOffset"` // null where no row has an offset
	LastOffset   *int64     `json:"lastOffset"`
	MinCreatedAt *Time      `json:"minCreatedAt"` // null where no row has a created_at
	MaxCreatedAt *Time      `json:"maxCreatedAt"`
	HeadIn       chain.Hash `json:"headIn"`
	HeadOut      chain.Hash `json:"headOut"`
}

// A DataFile is the metadata of one data file: what the Parquet object says of
// itself under [MetadataKey].
type DataFile struct {
	Format      string       `json:"format"`
	ArchiveID   string       `json:"archiveId"`
	Topic       string       `json:"topic"`
	TopicID     string       `json:"topicId"`
	Partition   int32        `json:"partition"`
	Tenant      string       `json:"tenant"`
	Scheme      string       `json:"scheme"`
	Epoch       int32        `json:"epoch"` // of all of its rows
	FirstSeq    int64        `json:"firstSeq"`
	Rows        int64        `json:"rows"`
	HeadIn      chain.Hash   `json:"headIn"`
	HeadOut     chain.Hash   `json:"headOut"`
	FrontierIn  []chain.Hash `json:"frontierIn"`
	FrontierOut []chain.Hash `json:"frontierOut"`
}

// Line returns the line that the catalog says it belongs to.
func (c *Catalog) Line() Line {
	return Line{Topic: c.Topic, TopicID: c.TopicID, Partition: c.Partition}
}

// CatalogPrefix returns the prefix of a line's catalog versions and their parts.
func CatalogPrefix(l Line) string { return linePrefix("catalog", l) }

// CatalogKey returns the key of a version of a line's catalog.
func CatalogKey(l Line, version int64) string {
	return fmt.Sprintf("%s%020d.note", CatalogPrefix(l), version)
}

// ParseCatalogKey is the inverse of [CatalogKey].
func ParseCatalogKey(key string) (NoteName, bool) {
	rest, ok := strings.CutPrefix(key, "catalog/")
	n, isNote := ParseAnchorKey("anchor/" + rest)
	return n, ok && isNote
}

// CatalogPartKey returns the key of a part, which is named by its own hash.
func CatalogPartKey(l Line, sum chain.Hash) string {
	return CatalogPrefix(l) + "part/" + sum.String() + ".json"
}

// A DataName is what the key of a data file says.
type DataName struct {
	EscapedTenant string
	Day           string // UTC
	TopicID       string // escaped
	Partition     int32
	FirstSeq      int64
	LastSeq       int64
	ULID          string // makes keys of equal ranges different
}

// DataKey returns the key of a data file.
func DataKey(l Line, tenant, day string, firstSeq, lastSeq int64, id string) string {
	return DataName{chain.Escape(tenant), day, chain.Escape(l.TopicID), l.Partition, firstSeq, lastSeq, id}.String()
}

// String returns the key that has the name.
func (n DataName) String() string {
	return fmt.Sprintf("%s%s/day=%s/%s.%05d.%020d-%020d.%s.parquet", DataPrefix, n.EscapedTenant, n.Day, n.TopicID, n.Partition, n.FirstSeq, n.LastSeq, n.ULID)
}

// ParseDataKey is the inverse of [DataKey]. It reports whether key is, byte for
// byte, one that DataKey makes.
func ParseDataKey(key string) (n DataName, ok bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 4 {
		return n, false
	}
	n.EscapedTenant, n.Day = parts[1], strings.TrimPrefix(parts[2], "day=")
	name := strings.Split(parts[3], ".")
	last := len(name) - 1
	if last < 4 {
		return n, false
	}
	n.ULID, n.TopicID = name[last-1], strings.Join(name[:last-3], ".")
	first, end, _ := strings.Cut(name[last-2], "-")
	partition, err := strconv.ParseInt(name[last-3], 10, 32)
	if err == nil {
		n.Partition = int32(partition)
		n.FirstSeq, err = strconv.ParseInt(first, 10, 64)
	}
	if err == nil {
		n.LastSeq, err = strconv.ParseInt(end, 10, 64)
	}
	_, day := time.Parse(DayLayout, n.Day)
	ok = err == nil && day == nil && n.EscapedTenant != "" && n.TopicID != "" && n.Partition >= 0 && 0 <= n.FirstSeq && n.FirstSeq <= n.LastSeq && len(n.ULID) == 26
	return n, ok && n.String() == key
}

// EncodeCatalog returns the text of a catalog version: exactly the bytes that
// are signed.
func EncodeCatalog(c *Catalog) (string, error) {
	e := *c
	e.Parts, e.Redactions, e.Cuts = orEmpty(c.Parts), orEmpty(c.Redactions), append([]CatalogCut{}, c.Cuts...)
	e.Holds, e.Doomed = orEmpty(c.Holds), orEmpty(c.Doomed)
	for i := range e.Cuts {
		e.Cuts[i].Frontier = orEmpty(e.Cuts[i].Frontier)
	}
	doc, err := json.Marshal(&e)
	if err != nil {
		return "", err
	}
	return chain.NoteText(chain.CatalogNote, doc), nil
}

// DecodeCatalog parses the text of a catalog version, strictly, and checks what
// it says against itself. Signatures are for package sign.
func DecodeCatalog(text string) (*Catalog, error) {
	kind, document, err := chain.ParseNoteText(text)
	if err != nil {
		return nil, err
	}
	if kind != chain.CatalogNote {
		return nil, fmt.Errorf("it is a note of another kind: %s", kind)
	}
	c := &Catalog{}
	if err := c.read(document); err != nil {
		return nil, fmt.Errorf("document: %w", err)
	}
	return c, c.check()
}

// EncodeCatalogPart returns the bytes of a part.
func EncodeCatalogPart(p *CatalogPart) ([]byte, error) {
	return json.Marshal(CatalogPart{orEmpty(p.Files), p.Once})
}

// DecodeCatalogPart parses a part, strictly, and checks what it says of each
// file against the file's key.
func DecodeCatalogPart(body []byte) (*CatalogPart, error) {
	p := &CatalogPart{}
	err := readDoc(body, field{Name: "files", Read: func(d *doc) {
		d.Array(func(d *doc) { p.Files = append(p.Files, readCatalogFile(d)) })
	}})
	if err != nil {
		return nil, err
	}
	for i := range p.Files {
		if err := p.Files[i].check(); err != nil {
			return nil, fmt.Errorf("file %s: %w", strconv.Quote(p.Files[i].Key), err)
		}
	}
	return p, nil
}

// EncodeDataFile returns the metadata of a data file.
func EncodeDataFile(f *DataFile) ([]byte, error) {
	e := *f
	e.FrontierIn, e.FrontierOut = orEmpty(f.FrontierIn), orEmpty(f.FrontierOut)
	return json.Marshal(&e)
}

// DecodeDataFile parses the metadata of a data file, strictly, and checks that
// its frontiers fit its sizes.
func DecodeDataFile(text []byte) (*DataFile, error) {
	f := &DataFile{Format: Format}
	err := readDoc(text,
		field{Name: "format", Read: func(d *doc) { d.Constant(Format) }},
		field{Name: "archiveId", Read: func(d *doc) { f.ArchiveID = d.Str() }},
		field{Name: "topic", Read: func(d *doc) { f.Topic = d.Str() }},
		field{Name: "topicId", Read: func(d *doc) { f.TopicID = d.Str() }},
		field{Name: "partition", Read: func(d *doc) { f.Partition = d.Int32() }},
		field{Name: "tenant", Read: func(d *doc) { f.Tenant = d.Str() }},
		field{Name: "scheme", Read: func(d *doc) { f.Scheme = d.Scheme() }},
		field{Name: "epoch", Read: func(d *doc) { f.Epoch = d.Epoch() }},
		field{Name: "firstSeq", Read: func(d *doc) { f.FirstSeq = d.Count() }},
		field{Name: "rows", Read: func(d *doc) { f.Rows = d.Count() }},
		field{Name: "headIn", Read: func(d *doc) { f.HeadIn = d.Hash() }},
		field{Name: "headOut", Read: func(d *doc) { f.HeadOut = d.Hash() }},
		field{Name: "frontierIn", Read: func(d *doc) { f.FrontierIn = d.Hashes() }},
		field{Name: "frontierOut", Read: func(d *doc) { f.FrontierOut = d.Hashes() }})
	if err != nil {
		return nil, err
	}
	if f.Rows == 0 || f.FirstSeq+f.Rows < 0 {
		return nil, fmt.Errorf("%d rows from seq %d", f.Rows, f.FirstSeq)
	}
	if err := chain.CheckFrontier(f.FirstSeq, f.FrontierIn); err != nil {
		return nil, fmt.Errorf("frontierIn: %w", err)
	}
	if err := chain.CheckFrontier(f.FirstSeq+f.Rows, f.FrontierOut); err != nil {
		return nil, fmt.Errorf("frontierOut: %w", err)
	}
	return f, nil
}

func (c *Catalog) read(text []byte) error {
	return readDoc(text,
		field{Name: "archiveId", Read: func(d *doc) { c.ArchiveID = d.Str() }},
		field{Name: "topic", Read: func(d *doc) { c.Topic = d.Str() }},
		field{Name: "topicId", Read: func(d *doc) { c.TopicID = d.Str() }},
		field{Name: "partition", Read: func(d *doc) { c.Partition = d.Int32() }},
		field{Name: "version", Read: func(d *doc) { c.Version = d.Count() }},
		field{Name: "previous", Read: func(d *doc) { c.Previous = d.NullHash() }},
		field{Name: "time", Read: func(d *doc) { c.Time = Time{d.Time()} }},
		field{Name: "watermark", Read: func(d *doc) { c.Watermark = d.Count() }},
		field{Name: "parts", Read: each(&c.Parts, readPartRef)},
		field{Name: "redactions", Read: each(&c.Redactions, readCatalogRedaction)},
		field{Name: "cuts", Read: each(&c.Cuts, readCatalogCut)},
		field{Name: "holds", Read: each(&c.Holds, readCatalogHold)},
		field{Name: "doomed", Read: each(&c.Doomed, readCatalogDoomed)})
}

// each reads an array, with read for each of its items, into a list.
func each[T any](into *[]T, read func(*doc) T) func(*doc) {
	return func(d *doc) { d.Array(func(d *doc) { *into = append(*into, read(d)) }) }
}

func readPartRef(d *doc) (p CatalogPartRef) {
	d.Object(
		field{Name: "day", Read: func(d *doc) { p.Day = readDay(d) }},
		field{Name: "key", Read: func(d *doc) { p.Key = d.Str() }},
		field{Name: "bytes", Read: func(d *doc) { p.Bytes = d.Count() }},
		field{Name: "sha256", Read: func(d *doc) { p.SHA256 = d.Hash() }},
		field{Name: "files", Read: func(d *doc) { p.Files = d.Count() }})
	return p
}

func readDay(d *doc) string {
	s := d.Str()
	if t, err := time.Parse(DayLayout, s); !d.Failed() && (err != nil || t.Format(DayLayout) != s) {
		d.Fail("%.40q is no day", s)
	}
	return s
}

func readCatalogRedaction(d *doc) (r CatalogRedaction) {
	d.Object(
		field{Name: "tenant", Read: func(d *doc) { r.Tenant = d.Str() }},
		field{Name: "id", Read: func(d *doc) { r.ID = d.ULID() }},
		field{Name: "state", Read: func(d *doc) {
			switch r.State = d.Str(); r.State {
			case RedactionGated, RedactionPurged, RedactionGone, RedactionReceipted:
			default:
				d.Fail("state %.40q is unknown", r.State)
			}
		}},
		field{Name: "since", Optional: true, Read: func(d *doc) { r.Since = d.Count() }},
		field{Name: "erased", Optional: true, Read: each(&r.Erased, readSeqRange)},
		field{Name: "deleted", Optional: true, Read: each(&r.Deleted, readCatalogDeleted)},
		field{Name: "kept", Optional: true, Read: each(&r.Kept, (*doc).Str)})
	return r
}

func readSeqRange(d *doc) (r [2]int64) {
	d.Tuple(func(d *doc) { r[0] = d.Count() }, func(d *doc) { r[1] = d.Count() })
	if r[1] < r[0] {
		d.Fail("rows %d to %d", r[0], r[1])
	}
	return r
}

func readCatalogDeleted(d *doc) (o CatalogDeleted) {
	d.Object(
		field{Name: "key", Read: func(d *doc) { o.Key = d.Str() }},
		field{Name: "versions", Optional: true, Read: each(&o.Versions, (*doc).Str)})
	return o
}

func readCatalogCut(d *doc) (c CatalogCut) {
	d.Object(
		field{Name: "tenant", Read: func(d *doc) { c.Tenant = d.Str() }},
		field{Name: "id", Read: func(d *doc) { c.ID = d.ULID() }},
		field{Name: "size", Read: func(d *doc) { c.Size = d.Count() }},
		field{Name: "head", Read: func(d *doc) { c.Head = d.Hash() }},
		field{Name: "frontier", Read: func(d *doc) { c.Frontier = d.Hashes() }})
	return c
}

func readCatalogHold(d *doc) (h CatalogHold) {
	d.Object(
		field{Name: "tenant", Read: func(d *doc) { h.Tenant = d.Str() }},
		field{Name: "id", Read: func(d *doc) { h.ID = d.ULID() }})
	return h
}

func readCatalogDoomed(d *doc) (o CatalogDoomed) {
	d.Object(
		field{Name: "key", Read: func(d *doc) { o.Key = d.Str() }},
		field{Name: "since", Read: func(d *doc) { o.Since = d.Count() }})
	return o
}

func readCatalogFile(d *doc) (f CatalogFile) {
	d.Object(
		field{Name: "key", Read: func(d *doc) { f.Key = d.Str() }},
		field{Name: "bytes", Read: func(d *doc) { f.Bytes = d.Count() }},
		field{Name: "sha256", Read: func(d *doc) { f.SHA256 = d.Hash() }},
		field{Name: "tenant", Read: func(d *doc) { f.Tenant = d.Str() }},
		field{Name: "day", Read: func(d *doc) { f.Day = readDay(d) }},
		field{Name: "firstSeq", Read: func(d *doc) { f.FirstSeq = d.Count() }},
		field{Name: "lastSeq", Read: func(d *doc) { f.LastSeq = d.Count() }},
		field{Name: "rows", Read: func(d *doc) { f.Rows = d.Count() }},
		field{Name: "firstOffset", Read: func(d *doc) { f.FirstOffset = nullOr(d, (*doc).Count) }},
		field{Name: "lastOffset", Read: func(d *doc) { f.LastOffset = nullOr(d, (*doc).Count) }},
		field{Name: "minCreatedAt", Read: func(d *doc) { f.MinCreatedAt = nullOr(d, readTime) }},
		field{Name: "maxCreatedAt", Read: func(d *doc) { f.MaxCreatedAt = nullOr(d, readTime) }},
		field{Name: "headIn", Read: func(d *doc) { f.HeadIn = d.Hash() }},
		field{Name: "headOut", Read: func(d *doc) { f.HeadOut = d.Hash() }})
	return f
}

func readTime(d *doc) Time { return Time{d.Time()} }

// nullOr reads null as nil, and all else with read.
func nullOr[T any](d *doc, read func(*doc) T) *T {
	if d.Null() {
		return nil
	}
	v := read(d)
	return &v
}

// check checks what a catalog version says against itself.
func (c *Catalog) check() error {
	if (c.Previous == nil) != (c.Version == 0) {
		return errors.New("previous is null in version 0 and nowhere else")
	}
	days := make(map[string]bool, len(c.Parts))
	for i := range c.Parts {
		p := &c.Parts[i]
		switch {
		case p.Key != CatalogPartKey(c.Line(), p.SHA256):
			return fmt.Errorf("the key of the part of %s is not made of its hash", p.Day)
		case days[p.Day]:
			return fmt.Errorf("two parts of %s", p.Day)
		}
		days[p.Day] = true
	}
	for i := range c.Cuts {
		cut := &c.Cuts[i]
		if err := chain.CheckFrontier(cut.Size, cut.Frontier); err != nil {
			return fmt.Errorf("cut of tenant %s: %w", strconv.Quote(cut.Tenant), err)
		}
	}
	for i := range c.Redactions {
		if r := &c.Redactions[i]; r.Since > c.Version {
			return fmt.Errorf("redaction %s is purged since version %d, which is later", r.ID, r.Since)
		}
	}
	for _, d := range c.Doomed {
		if d.Since > c.Version {
			return fmt.Errorf("%s is doomed since version %d, which is later", strconv.Quote(d.Key), d.Since)
		}
	}
	return nil
}

// check checks what a part says of a file against the file's key.
func (f *CatalogFile) check() error {
	name, ok := ParseDataKey(f.Key)
	switch {
	case !ok:
		return errors.New("it is no key of a data file")
	case name.EscapedTenant != chain.Escape(f.Tenant):
		return errors.New("the key is of another tenant")
	case name.Day != f.Day:
		return errors.New("the key is of another day")
	case name.FirstSeq != f.FirstSeq || name.LastSeq != f.LastSeq:
		return errors.New("the key has other rows")
	case f.Rows != f.LastSeq-f.FirstSeq+1:
		return fmt.Errorf("%d rows from seq %d to %d", f.Rows, f.FirstSeq, f.LastSeq)
	case (f.FirstOffset == nil) != (f.LastOffset == nil) || (f.MinCreatedAt == nil) != (f.MaxCreatedAt == nil):
		return errors.New("the first of a range is null, and the last is not, or the other way round")
	}
	return nil
}

// readDoc reads text as one document.
func readDoc(text []byte, fields ...field) error { return jsondoc.Read(text, fields...) }
