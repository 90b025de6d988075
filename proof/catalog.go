package proof

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// A lineCatalog is what the catalog of a line says: the newest version, and what
// the versions before it that are still there list.
type lineCatalog struct {
	newest *archive.Catalog // nil where it cannot be read
	key    string           // of the newest version
	files  []*archive.CatalogFile
	order  []int64 // of files: the least offset that can come with it or a later one
	old    map[string]*archive.CatalogFile
	doomed map[string]int64        // keys, and the time of the version that first listed each, microseconds; 0 where it is not known
	parts  map[string]*catalogPart // by key
	lost   bool                    // a part of the newest version cannot be read
	notes  map[string]archive.Object
	times  map[int64]int64 // of versions that were read, microseconds
	none   bool            // there is no version: a first compaction was cut short, and its parts are strays
}

// A catalogPart is one part, as it was read.
type catalogPart struct {
	archive.Object
	here  bool
	files []*archive.CatalogFile
	wrong *problem
	used  bool
}

// catalogs reads the catalog of the line, and names what is wrong with it.
func (j *joiner) catalogs(ctx context.Context) (*lineCatalog, error) {
	c := &lineCatalog{
		old: map[string]*archive.CatalogFile{}, doomed: map[string]int64{}, parts: map[string]*catalogPart{}, notes: map[string]archive.Object{}, times: map[int64]int64{},
	}
	var versions []archive.Object
	for o, err := range j.v.src.List(ctx, j.l.prefix("catalog"), "") {
		switch _, _, isNote := parseNoteKey(o.Key); {
		case err != nil:
			return nil, fmt.Errorf("list the catalog: %w", err)
		case isNote:
			versions = append(versions, o)
		case j.l.isPart(o.Key):
			c.parts[o.Key] = &catalogPart{Object: o, here: true}
		}
	}
	var previous *catalogNote
	for i, o := range versions {
		last := i == len(versions)-1
		n, err := j.catalogVersion(ctx, o, previous, last)
		if err != nil {
			return nil, err
		}
		c.notes[o.Key] = o
		if n != nil {
			if err := j.listed(ctx, c, n, last); err != nil {
				return nil, err
			}
		}
		if last && n != nil {
			c.newest, c.key = n.Catalog, o.Key
		}
		previous = n
	}
	j.strayParts(c)
	c.sort()
	c.none = len(versions) == 0
	return c, nil
}

// isPart reports whether key is one of a part of the line's catalog.
func (k lineKey) isPart(key string) bool {
	name, ok := strings.CutPrefix(key, k.prefix("catalog")+"part/")
	hash, isJSON := strings.CutSuffix(name, ".json")
	return ok && isJSON && isHex64(hash)
}

// A catalogNote is one version of a catalog.
type catalogNote struct {
	*archive.Catalog
	sum chain.Hash // of its text
}

// catalogVersion reads one version. It returns nil where that says nothing. One
// that is not the newest may be gone since it was listed.
func (j *joiner) catalogVersion(ctx context.Context, o archive.Object, previous *catalogNote, newest bool) (*catalogNote, error) {
	body, wrong, err := j.v.note(ctx, o)
	if err != nil || !newest && wrong != nil && wrong.kind == FaultMissing {
		return nil, err
	}
	j.v.progress(0)
	j.rep.Catalogs++
	n := &catalogNote{}
	if wrong == nil {
		wrong = j.readCatalog(o.Key, body, n)
	}
	if wrong == nil {
		if text := n.follows(previous); text != "" {
			j.catalogFault(o.Key, FaultCatalog, text)
		}
		return n, nil
	}
	j.catalogFault(o.Key, wrong.kind, wrong.text)
	return nil, nil
}

func (j *joiner) catalogFault(key string, kind FaultKind, text string) {
	j.fault(Fault{Kind: kind, Key: key, Ordinal: -1, Text: text})
}

func (j *joiner) readCatalog(key string, body []byte, into *catalogNote) *problem {
	n, err := sign.Parse(body)
	if err != nil {
		return &problem{FaultCatalog, err.Error()}
	}
	c, err := archive.DecodeCatalog(n.Text)
	if err != nil {
		return &problem{FaultCatalog, err.Error()}
	}
	_, version, _ := parseNoteKey(key)
	at := lineKey{chain.Escape(c.Topic), chain.Escape(c.TopicID), c.Partition}
	switch {
	case at != j.l.lineKey:
		return &problem{FaultMisplaced, fmt.Sprintf("it says that it is of %s/%d", Printable(c.Topic), c.Partition)}
	case c.Version != version:
		return &problem{FaultMisplaced, fmt.Sprintf("it says that it is version %d", c.Version)}
	case j.v.root.ArchiveID != "" && c.ArchiveID != j.v.root.ArchiveID:
		return &problem{FaultMisplaced, fmt.Sprintf("it is of archive %.40q", c.ArchiveID)}
	}
	verdict, err := j.v.keys.judge(n, sign.Catalog, c.Time.Time)
	j.rep.signatures += int64(len(n.Signatures))
	j.rep.notes.count(verdict)
	if errors.Is(err, errForged) {
		return &problem{FaultSignature, err.Error()}
	}
	if err != nil {
		j.catalogFault(key, FaultSignature, err.Error())
	}
	into.Catalog, into.sum = c, archive.TextHash(n.Text)
	return nil
}

// follows says what is wrong between a version and the one before it that is
// there.
func (n *catalogNote) follows(before *catalogNote) string {
	switch {
	case before == nil:
		return ""
	case n.Version == before.Version+1 && (n.Previous == nil || *n.Previous != before.sum):
		return fmt.Sprintf("previous is not the hash of the text of version %d", before.Version)
	case n.Time.Before(before.Time.Time):
		return fmt.Sprintf("time is before that of version %d", before.Version)
	case n.Watermark < before.Watermark:
		return fmt.Sprintf("the watermark is %d, that of version %d is %d", n.Watermark, before.Version, before.Watermark)
	}
	return ""
}

// listed takes what a version lists and dooms.
func (j *joiner) listed(ctx context.Context, c *lineCatalog, n *catalogNote, newest bool) error {
	for _, d := range n.Doomed {
		switch at, known := c.doomed[d.Key]; {
		case d.Since == n.Version:
			c.doomed[d.Key] = n.Time.UnixMicro()
		case !known || at == 0:
			c.doomed[d.Key] = c.times[d.Since]
		}
	}
	c.times[n.Version] = n.Time.UnixMicro()
	for i := range n.Parts {
		ref := &n.Parts[i]
		p, err := j.part(ctx, c, ref)
		if err != nil {
			return err
		}
		text := ""
		switch {
		case p.wrong != nil:
			c.lost = c.lost || newest
			continue // named where it was read
		case !p.here && newest:
			c.lost = true
			j.catalogFault(ref.Key, FaultMissing, fmt.Sprintf("the part is missing, which version %d of the catalog lists", n.Version))
			continue
		case !p.here:
			continue
		case p.Size != ref.Bytes:
			text = fmt.Sprintf("the part of %s has %d bytes, the catalog says %d", ref.Day, p.Size, ref.Bytes)
		case int64(len(p.files)) != ref.Files:
			text = fmt.Sprintf("the part of %s has %d files, the catalog says %d", ref.Day, len(p.files), ref.Files)
		case slices.ContainsFunc(p.files, func(f *archive.CatalogFile) bool { return f.Day != ref.Day }):
			text = fmt.Sprintf("the part of %s has files of other days", ref.Day)
		}
		if text != "" {
			j.catalogFault(archive.CatalogKey(n.Line(), n.Version), FaultCatalog, text)
		}
		for _, f := range p.files {
			if newest {
				c.files = append(c.files, f)
			} else {
				c.old[f.Key] = f
			}
		}
	}
	if newest {
		for _, f := range c.files {
			delete(c.old, f.Key)
		}
	}
	return nil
}

// part reads a part, once.
func (j *joiner) part(ctx context.Context, c *lineCatalog, ref *archive.CatalogPartRef) (*catalogPart, error) {
	p := c.parts[ref.Key]
	if p == nil {
		p = &catalogPart{}
		c.parts[ref.Key] = p
	}
	if p.used || !p.here {
		return p, nil
	}
	p.used = true
	body, wrong, err := j.v.get(ctx, p.Object)
	if err != nil {
		return nil, err
	}
	j.v.progress(0)
	if wrong != nil && wrong.kind == FaultMissing {
		p.here = false
		return p, nil
	}
	if wrong == nil {
		wrong = p.read(body, ref, j.l.lineKey)
	}
	if p.wrong = wrong; wrong != nil {
		j.catalogFault(p.Key, wrong.kind, wrong.text)
	}
	return p, nil
}

func (p *catalogPart) read(body []byte, ref *archive.CatalogPartRef, line lineKey) *problem {
	if sum := chain.Hash(sha256.Sum256(body)); sum != ref.SHA256 {
		return &problem{FaultHash, fmt.Sprintf("its SHA-256 is %s; its name and the catalog state %s", short(sum), short(ref.SHA256))}
	}
	doc, err := archive.DecodeCatalogPart(body)
	if err != nil {
		return &problem{FaultCatalog, err.Error()}
	}
	for i := range doc.Files {
		f := &doc.Files[i]
		name, _ := archive.ParseDataKey(f.Key)
		if name.TopicID != line.topicID || name.Partition != line.partition {
			return &problem{FaultCatalog, fmt.Sprintf("it lists %s, which is of another line", Printable(f.Key))}
		}
		p.files = append(p.files, f)
	}
	return nil
}

// strayParts names parts that no version lists. Doomed ones are none.
func (j *joiner) strayParts(c *lineCatalog) {
	for key, p := range c.parts {
		if p.here && !p.used && !c.dooms(key) {
			j.rep.strays.add(key)
		}
		if p.here && !p.used {
			j.v.progress(0)
		}
	}
}

// sort puts the files of the newest version in the order of their offsets, those
// of a log in the order of their rows. A file of rows without offsets comes
// behind the one before it in its log.
func (c *lineCatalog) sort() {
	slices.SortStableFunc(c.files, func(a, b *archive.CatalogFile) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.FirstSeq, b.FirstSeq))
	})
	type placed struct {
		f  *archive.CatalogFile
		at int64
	}
	all := make([]placed, len(c.files))
	for i, f := range c.files {
		at := int64(0)
		if i > 0 && c.files[i-1].Tenant == f.Tenant {
			at = all[i-1].at
		}
		if f.FirstOffset != nil {
			at = max(at, *f.FirstOffset)
		}
		all[i] = placed{f, at}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	c.order = make([]int64, len(all))
	for i, p := range all {
		c.files[i], c.order[i] = p.f, p.at
	}
}

// checkIndex holds what the newest version says of control rows against the
// rows themselves. It is an index: nothing counts without the row behind it.
func (j *joiner) checkIndex(c *lineCatalog) {
	g := j.v.governs
	check := func(tenant, id, kind string) *control.Row {
		if !j.v.wants(tenant) {
			return nil
		}
		row := g.Tenant(tenant).Row(id, kind)
		if row == nil {
			j.fault(Fault{Kind: FaultCatalog, Key: c.key, Ordinal: -1, Tenant: tenant, Text: fmt.Sprintf("the catalog names the %s %s, and no control row of that id is archived", kind, id)})
		}
		return row
	}
	for _, r := range c.newest.Redactions {
		check(r.Tenant, r.ID, audit.KindRedaction)
	}
	for _, h := range c.newest.Holds {
		check(h.Tenant, h.ID, audit.KindLegalHold)
	}
	for i := range c.newest.Cuts {
		e := &c.newest.Cuts[i]
		row := check(e.Tenant, e.ID, audit.KindRetentionCut)
		if row == nil {
			continue
		}
		if cut := row.Cut; cut == nil || cut.Log != c.newest.Line() || cut.Size != e.Size || cut.Head != e.Head || !slices.Equal(cut.Frontier, e.Frontier) {
			j.fault(Fault{Kind: FaultCatalog, Key: c.key, Ordinal: -1, Tenant: e.Tenant, Seq: &e.Size, Text: fmt.Sprintf("the catalog's cut at %d is not what the control row %s says", e.Size, e.ID)})
		}
	}
}

// survivors checks data files that an older version lists: each has the hash that
// is stated of it, and nothing that a receipt names. It names what nothing lists.
func (j *joiner) survivors(ctx context.Context, c *lineCatalog) error {
	wanted := make(map[string]bool, len(c.files))
	for _, f := range c.files {
		wanted[f.Key] = true
	}
	for _, o := range j.l.data {
		if wanted[o.Key] {
			continue
		}
		if f := c.old[o.Key]; f != nil {
			if err := j.survivor(ctx, o, f, c.dooms(o.Key)); err != nil {
				return err
			}
			continue
		}
		j.v.progress(0)
		if !c.dooms(o.Key) {
			j.rep.strays.add(o.Key)
		}
		if err := j.straying(ctx, c, o); err != nil {
			return err
		}
	}
	return nil
}

// survivor checks one of them. A doomed one may be gone since it was listed.
func (j *joiner) survivor(ctx context.Context, o archive.Object, f *archive.CatalogFile, doomed bool) error {
	body, wrong, err := j.v.get(ctx, o)
	if err != nil || doomed && wrong != nil && wrong.kind == FaultMissing {
		return err
	}
	j.v.progress(0)
	sum := chain.Hash(sha256.Sum256(body))
	if wrong == nil && sum != f.SHA256 {
		wrong = &problem{FaultHash, fmt.Sprintf("its SHA-256 is %s; an older version of the catalog states %s", short(sum), short(f.SHA256))}
	}
	if wrong != nil {
		j.catalogFault(o.Key, wrong.kind, wrong.text)
		return nil
	}
	if !j.v.governed() || len(j.v.governs.Tenant(f.Tenant).Named(j.lineOf(), f.FirstSeq, f.LastSeq)) == 0 {
		return nil
	}
	names := j.v.governs.Tenant(f.Tenant).Sweep(j.lineOf(), f.FirstSeq, f.LastSeq)
	err = safely(func() error {
		return leftIn(body, names, func(row *chain.Row, n *control.Named, what string) bool {
			j.stillIn(o.Key, row, n, what+" is still there, in a file that was replaced")
			return false
		})
	})
	if err != nil {
		j.catalogFault(o.Key, FaultUnreadable, err.Error())
	}
	return nil
}

// lineOf returns the line, as far as its keys tell.
func (j *joiner) lineOf() archive.Line {
	return archive.Line{Topic: unescape(j.l.topic), TopicID: unescape(j.l.topicID), Partition: j.l.partition}
}

// awaits reports whether the newest version says that a redaction has erased a
// row which no receipt of it has named yet.
func (c *lineCatalog) awaits(row *chain.Row, id string) bool {
	return slices.ContainsFunc(c.newest.Redactions, func(r archive.CatalogRedaction) bool {
		return r.ID == id && r.Tenant == row.TenantID.S && slices.ContainsFunc(r.Erased, func(e [2]int64) bool { return e[0] <= row.Seq.N && row.Seq.N <= e[1] })
	})
}

// dooms reports whether a version lists a key as doomed.
func (c *lineCatalog) dooms(key string) bool {
	_, ok := c.doomed[key]
	return ok
}

// lingers reports whether an object with rows that a receipt calls erased may
// have come after the receipt: a process that slept left it, and it is not doomed
// yet, or was doomed later.
func (c *lineCatalog) lingers(key string, n *control.Named) bool {
	since, doomed := c.doomed[key]
	return !doomed || since > n.At
}

// straying looks into a data file that no version lists, for rows that receipts
// name. Nothing vouches for it, and it need not be one at all.
func (j *joiner) straying(ctx context.Context, c *lineCatalog, o archive.Object) error {
	name, _ := archive.ParseDataKey(o.Key)
	tenant := unescape(name.EscapedTenant)
	if !j.v.governed() || len(j.v.governs.Tenant(tenant).Named(j.lineOf(), name.FirstSeq, name.LastSeq)) == 0 {
		return nil
	}
	body, wrong, err := j.v.get(ctx, o)
	if err != nil || wrong != nil {
		return err
	}
	lingers := false
	// What cannot be read shows nothing.
	_ = safely(func() error {
		if err := parquet.CheckLayout(body); err != nil {
			return err
		}
		return leftIn(body, j.v.governs.Tenant(tenant).Sweep(j.lineOf(), name.FirstSeq, name.LastSeq), func(row *chain.Row, n *control.Named, what string) bool {
			if c.lingers(o.Key, n) {
				lingers = true
				return true
			}
			j.stillIn(o.Key, row, n, what+" is still there, in a file that no version of the catalog lists")
			return false
		})
	})
	if lingers {
		j.rep.lingering.add(o.Key)
	}
	return nil
}

// stillIn names a row that is there though a receipt calls it erased, unless it
// says as well that the object could not go.
func (j *joiner) stillIn(key string, row *chain.Row, n *control.Named, where string) {
	if j.v.governs.Kept(n.Order, key) {
		j.rep.locked.addOnce(key)
		return
	}
	f := Fault{Kind: FaultErasure, Key: key, Ordinal: -1, Text: fmt.Sprintf("the receipt of redaction %s says that the row was erased, and %s", n.Order, where)}
	locate(&f, row)
	j.fault(f)
}

// leftIn finds rows of a data file that a receipt calls erased, and that have
// content there: what. It stops where found returns false.
func leftIn(body []byte, names *control.Sweep, found func(row *chain.Row, n *control.Named, what string) bool) error {
	file, err := parquet.Open(body)
	if err != nil {
		return err
	}
	for row, err := range file.Rows() {
		if err != nil {
			return err
		}
		state, err := chain.StateOf(row)
		if err != nil {
			return err
		}
		for _, n := range names.At(row.Seq.N) {
			if what := n.Left(row, state); what != "" && n.Anchored && !found(row, &n, what) {
				return nil
			}
		}
	}
	return nil
}
