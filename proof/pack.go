package proof

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// The formats of a pack and of what is in it. Source: docs/proofs.md.
const (
	PackFormat  = "ledgerlake pack v1"
	RangeFormat = "ledgerlake range v1"
)

// Names of files in a pack.
const (
	packManifest = "manifest.json"
	packRows     = "rows.jsonl"
	packReadme   = "README.txt"
	packKeys     = "public-keys.txt"
)

// MaxPackRows is how many rows a pack can show.
const MaxPackRows = 100_000

// maxWithheld is how many rows may stand between two that are shown, for both to
// be in one range.
const maxWithheld = 1000

// A PackWant says which rows a pack is to show: those of a turn, of a session or
// of a tenant, in a stretch of archived_at.
type PackWant struct {
	Want
	TurnID, SessionID string
	From, To          time.Time // From is in it, To is not; zero: no bound
}

// A Range is consecutive rows of a log, by their hashes, in the log's tree.
type Range struct {
	Format        string       `json:"format"`
	ArchiveID     string       `json:"archiveId"`
	Log           BundleLog    `json:"log"`
	Scheme        string       `json:"scheme"`
	First         int64        `json:"first"` // seq
	Hashes        []chain.Hash `json:"hashes"`
	Tree          BundleTree   `json:"tree"`
	Nodes         []chain.Hash `json:"nodes"`
	Checkpoint    *string      `json:"checkpoint"`
	Anchor        *string      `json:"anchor"`        // name of a file
	Introductions []string     `json:"introductions"` // names of files
}

// A packRow is a line of rows.jsonl.
type packRow struct {
	Range string `json:"range"`
	BundleRow
}

// A Pack is the files of an evidence pack.
type Pack struct {
	ArchiveID string
	Tenant    string
	Rows      int64
	Ranges    int64
	Gated     int64 // of Rows: those of which an erasure was ordered, and is not carried out

	files map[string][]byte
	by    map[string]bool // vkeys that signed
}

// Pack makes an evidence pack. programs are files that are put into it as they
// are. An error matches [ErrNoRow] if no anchored row is what w asks for.
func (p *Prover) Pack(ctx context.Context, w PackWant, d Disclosure, programs map[string][]byte) (*Pack, error) {
	return steady(ctx, p, func() (*Pack, error) { return p.packOnce(ctx, w, d, programs) })
}

func (p *Prover) packOnce(ctx context.Context, w PackWant, d Disclosure, programs map[string][]byte) (*Pack, error) {
	lines, err := p.lines(ctx, w.Want)
	if err != nil {
		return nil, err
	}
	k := &packer{p: p, w: w, d: d, pack: &Pack{ArchiveID: p.root.ArchiveID, files: maps.Clone(programs), by: map[string]bool{}}}
	if k.pack.files == nil {
		k.pack.files = map[string][]byte{}
	}
	for _, l := range lines {
		if err := k.line(ctx, l); err != nil {
			return nil, err
		}
	}
	if k.pack.Rows == 0 {
		return nil, ErrNoRow
	}
	k.pack.Tenant = k.tenants[0]
	return k.pack, k.end()
}

// A packer makes a pack.
type packer struct {
	p       *Prover
	w       PackWant
	d       Disclosure
	pack    *Pack
	tenants []string // of rows
	rows    bytes.Buffer
	told    []string // lines of the README
}

func (k *packer) line(ctx context.Context, l *provenLine) error {
	tenants, err := k.tenantsOf(ctx, l)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		rows, err := k.find(ctx, l, tenant)
		if err != nil || len(rows) == 0 {
			if err != nil {
				return err
			}
			continue
		}
		if !slices.Contains(k.tenants, tenant) {
			k.tenants = append(k.tenants, tenant)
		}
		if len(k.tenants) > 1 {
			return fmt.Errorf("there are such rows of more than one tenant (%s, %s): say whose are meant by --tenant", Printable(k.tenants[0]), Printable(k.tenants[1]))
		}
		if err := k.log(ctx, l.log(tenant), rows); err != nil {
			return err
		}
	}
	return nil
}

// tenantsOf returns whose logs of a line are to be looked through.
func (k *packer) tenantsOf(ctx context.Context, l *provenLine) ([]string, error) {
	newest, err := l.newest(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for n := newest; n >= 0; n-- {
		a, err := l.anchor(ctx, n)
		if err != nil {
			return nil, err
		}
		for i := range a.Heads {
			if k.w.Tenant == "" || k.w.Tenant == a.Heads[i].Tenant {
				all[a.Heads[i].Tenant] = true
			}
		}
		if a.Full || k.w.Tenant != "" && len(all) > 0 {
			break
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// bounds returns the rows of a log that anchors place in the time that is asked
// for, and some more.
func (k *packer) bounds(ctx context.Context, l *provenLine, tenant string) (s seqSpan, err error) {
	_, h, err := l.newestHead(ctx, tenant)
	if err != nil {
		return s, err
	}
	s.hi = h.Size
	if !k.w.From.IsZero() {
		a, err := l.atTime(ctx, k.w.From)
		if err != nil {
			if errors.Is(err, ErrNotAnchored) {
				err = nil
				s.lo = s.hi
			}
			return s, err
		}
		if _, h, err := l.headBefore(ctx, tenant, a.Number); err == nil {
			s.lo = h.Size
		} else if !errors.Is(err, ErrNoRow) {
			return s, err
		}
	}
	if !k.w.To.IsZero() {
		// Rows may be stamped up to some minutes after the anchor that covers them.
		if a, err := l.atTime(ctx, k.w.To.Add(anchorDelay)); err == nil {
			_, h, err := l.headBefore(ctx, tenant, a.Number+1)
			if err != nil {
				return seqSpan{}, ignoreNoRow(err)
			}
			s.hi = h.Size
		} else if !errors.Is(err, ErrNotAnchored) {
			return s, err
		}
	}
	return s, nil
}

func ignoreNoRow(err error) error {
	if errors.Is(err, ErrNoRow) {
		return nil
	}
	return err
}

// wants reports whether a row is asked for.
func (k *packer) wants(r *chain.Row) bool {
	at := time.UnixMicro(r.ArchivedAt.N)
	return (k.w.TurnID == "" || r.TurnID.Valid && r.TurnID.S == k.w.TurnID) &&
		(k.w.SessionID == "" || r.SessionID.Valid && r.SessionID.S == k.w.SessionID) &&
		(k.w.From.IsZero() || !at.Before(k.w.From)) && (k.w.To.IsZero() || at.Before(k.w.To))
}

// find returns the rows of a log that are asked for.
func (k *packer) find(ctx context.Context, l *provenLine, tenant string) (rows []chain.Row, err error) {
	s, err := k.bounds(ctx, l, tenant)
	if err != nil {
		return nil, err
	}
	c, err := l.compacted(ctx)
	if err != nil {
		return nil, err
	}
	g := l.log(tenant)
	for at, n := max(s.lo, c.begin(tenant)), 1; at < s.hi; n++ {
		o, err := g.objectOf(ctx, at)
		if err != nil {
			return nil, err
		}
		end := o.endOf(tenant)
		if n%100 == 0 {
			k.p.progress("looking for rows: at seq %d of %d of tenant %s in %s/%d", at, s.hi, Printable(tenant), Printable(l.line.Topic), l.line.Partition)
		}
		if rows, err = k.findIn(ctx, o, tenant, rows); err != nil {
			return nil, err
		}
		if end <= at {
			return nil, tampered("%s does not have seq %d, which it should", o.key, at)
		}
		at = end
	}
	return rows, nil
}

func (k *packer) findIn(ctx context.Context, o *piece, tenant string, rows []chain.Row) ([]chain.Row, error) {
	if !o.mayHave("turn_id", k.w.TurnID) || !o.mayHave("session_id", k.w.SessionID) {
		o.tail, o.file = nil, nil
		return rows, nil
	}
	if err := o.open(ctx, k.p.src); err != nil {
		return nil, err
	}
	var gateErr error
	_, err := o.row(func(r *chain.Row) bool {
		if r.TenantID.S != tenant || !k.wants(r) {
			return false
		}
		row := *r
		var ids []string
		if ids, gateErr = k.p.gate(ctx, &row); gateErr != nil || !k.wants(&row) {
			return gateErr != nil
		}
		if len(ids) > 0 {
			k.pack.Gated++
		}
		rows = append(rows, row)
		return len(rows) > MaxPackRows
	})
	o.tail, o.file = nil, nil
	if gateErr != nil {
		return nil, gateErr
	}
	if err == nil && len(rows) > MaxPackRows {
		err = fmt.Errorf("there are more than %d such rows: ask for a shorter time", MaxPackRows)
	}
	return rows, err
}

// log adds rows of a log, in ranges.
func (k *packer) log(ctx context.Context, g *provenLog, rows []chain.Row) error {
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Seq.N-rows[n-1].Seq.N <= maxWithheld {
			n++
		}
		if err := k.addRange(ctx, g, rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// addRange adds one range, and the rows that are shown of it.
func (k *packer) addRange(ctx context.Context, g *provenLog, rows []chain.Row) error {
	s := seqSpan{rows[0].Seq.N, rows[len(rows)-1].Seq.N + 1}
	r, signed, err := g.proveRange(ctx, s)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("ranges/%04d.json", k.pack.Ranges)
	k.pack.Ranges++
	r.Checkpoint = nullString(signed.Checkpoint)
	if signed.Anchor != "" {
		file := fmt.Sprintf("anchors/%s", noteName(signed.Anchor))
		k.pack.files[file] = []byte(signed.Anchor)
		r.Anchor = &file
	}
	for _, text := range signed.Introductions {
		file := fmt.Sprintf("introductions/%s", noteName(text))
		k.pack.files[file] = []byte(text)
		r.Introductions = append(r.Introductions, file)
	}
	if k.pack.files[name], err = encodeJSON(r, " "); err != nil {
		return err
	}
	k.signers(signed)
	k.told = append(k.told, fmt.Sprintf("  %s  tenant %s, %s/%d: rows %d to %d, of them %d shown; tree of %d rows, anchor %d",
		name, Printable(r.Log.Tenant), Printable(r.Log.Topic), r.Log.Partition, s.lo, s.hi-1, len(rows), r.Tree.Size, signed.number))
	return k.addRows(name, r, rows)
}

func noteName(note string) string {
	return fmt.Sprintf("%x.note", sha256.Sum256([]byte(note)))
}

func (k *packer) addRows(name string, r *Range, rows []chain.Row) error {
	for i := range rows {
		if rows[i].RowHash != r.Hashes[rows[i].Seq.N-r.First] {
			return tampered("seq %d has two hashes", rows[i].Seq.N)
		}
		row, err := Disclose(r.Scheme, &rows[i], k.d)
		if err != nil {
			return err
		}
		line, err := encodeJSON(packRow{name, *row}, "")
		if err != nil {
			return err
		}
		k.rows.Write(line)
		k.pack.Rows++
		if k.rows.Len() > MaxBundleBytes {
			return fmt.Errorf("the rows have more than %d bytes: ask for a shorter time", MaxBundleBytes)
		}
	}
	return nil
}

// signers notes the keys that signed: the given ones, and those which they
// introduce.
func (k *packer) signers(s *Signed) {
	ring := k.p.keys.Clone()
	if introduce(ring, s.Introductions, k.p.root.ArchiveID) != nil {
		return
	}
	for _, text := range []string{s.Checkpoint, s.Anchor} {
		if n, err := sign.Parse([]byte(text)); err == nil {
			for _, vkey := range ring.Check(n, sign.Anchor, s.time).By {
				k.pack.by[vkey] = true
			}
		}
	}
}

// proveRange proves consecutive rows in the first tree that has all of them.
func (g *provenLog) proveRange(ctx context.Context, rows seqSpan) (*Range, *Signed, error) {
	a, h, err := g.l.covering(ctx, g.name.Tenant, rows.hi-1)
	if err != nil {
		return nil, nil, err
	}
	r := &Range{
		Format: RangeFormat, ArchiveID: g.name.ArchiveID, Log: logOf(g.name), Scheme: h.Scheme,
		First: rows.lo, Hashes: []chain.Hash{}, Tree: BundleTree{h.Size, h.Root}, Introductions: []string{},
	}
	err = g.each(ctx, rows, func(h chain.Hash) error { r.Hashes = append(r.Hashes, h); return nil })
	if err != nil {
		return nil, nil, err
	}
	at, err := g.pieceOf(ctx, rows.lo)
	if err != nil {
		return nil, nil, err
	}
	spans := rangeSpans(h.Size, rows)
	if err := g.know(ctx, h, at, spans, rows.hi); err != nil {
		return nil, nil, err
	}
	if r.Nodes, err = g.forest.roots(spans); err != nil {
		return nil, nil, err
	}
	root, err := rangeRoot(h.Size, rows.lo, r.Hashes, r.Nodes)
	if err != nil || root != h.Root {
		return nil, nil, tampered("the stored hashes do not lead from rows %d to %d to the root that anchor %d states", rows.lo, rows.hi-1, a.Number)
	}
	signed, err := g.l.signed(ctx, a, g.name.Tenant)
	return r, signed, err
}

// end adds what tells of the whole.
func (k *packer) end() error {
	f := k.pack.files
	f[packRows] = k.rows.Bytes()
	f[packKeys] = []byte(k.keysText())
	f[packReadme] = []byte(k.readme())
	m := manifest{Format: PackFormat, ArchiveID: k.pack.ArchiveID}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		m.Files = append(m.Files, packFile{name, int64(len(f[name])), sha256.Sum256(f[name])})
	}
	text, err := encodeJSON(m, "  ")
	f[packManifest] = text
	return err
}

func (k *packer) keysText() string {
	text := "# Keys that signed what is in this pack. Whoever made it could have written others here: compare them with what you\n# have from elsewhere, and give yours to the checker.\n"
	for _, vkey := range slices.Sorted(maps.Keys(k.pack.by)) {
		text += vkey + "\n"
	}
	return text
}

func (k *packer) asked() string {
	var parts []string
	add := func(format, value string) {
		if value != "" {
			parts = append(parts, fmt.Sprintf(format, Printable(value)))
		}
	}
	add("tenant %s", k.tenants[0])
	add("turn %s", k.w.TurnID)
	add("session %s", k.w.SessionID)
	if !k.w.From.IsZero() {
		add("archived from %s", k.w.From.UTC().Format(archive.TimeLayout))
	}
	if !k.w.To.IsZero() {
		add("archived before %s", k.w.To.UTC().Format(archive.TimeLayout))
	}
	return strings.Join(parts, ", ")
}

func (k *packer) readme() string {
	return fmt.Sprintf(`Evidence from the archive %s: %s.
%d rows.

rows.jsonl has them, one JSON object a line: the columns of a row (times in microseconds since 1970), and what it said in its
slots. A slot with "commit" in place of its content is withheld, or was erased; the commitment is all that stands here of it.

ranges/ has the proofs: the hashes of consecutive rows of a log, and how they lead to the root of the log's tree, which is
signed. Rows between those that are shown are withheld, and stand there as their hashes.

%s

To check it, you need the public key of the archive's anchors, from somebody you trust: not from this pack.

  ledgerlake-verify proof PACK.zip --key VKEY
  python3 check.py pack FOLDER --key VKEY          (Python 3 and nothing else)

That shows: the rows are what their producer's records said when they were archived, in this order, with exactly the withheld
ones between; and a key signed that. It does not show that the producer told the truth, nor that rows which nobody asked for
do not exist. Rows that no signed anchor covered when the pack was made are not in it. This text, public-keys.txt and the
programs are the word of whoever made the pack.

docs/proofs.md of ledgerlake describes the files, so that you can check them by a program of your own.
`, k.pack.ArchiveID, k.asked(), k.pack.Rows, strings.Join(k.told, "\n"))
}

type manifest struct {
	Format    string     `json:"format"`
	ArchiveID string     `json:"archiveId"`
	Files     []packFile `json:"files"`
}

type packFile struct {
	Name   string     `json:"name"`
	Bytes  int64      `json:"bytes"`
	SHA256 chain.Hash `json:"sha256"`
}

// noTime is the first time that a zip can state. A pack has none.
var noTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// Zip returns the pack as a zip; equal packs give equal bytes.
func (k *Pack) Zip() ([]byte, error) {
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, name := range slices.Sorted(maps.Keys(k.files)) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: noTime})
		if err == nil {
			_, err = w.Write(k.files[name])
		}
		if err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return buf.Bytes(), err
}
