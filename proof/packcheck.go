package proof

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// maxPackFiles bounds the files of a pack.
const maxPackFiles = 2 * MaxPackRows

// IsZip reports whether a file is a zip, by its first bytes.
func IsZip(body []byte) bool { return bytes.HasPrefix(body, []byte("PK\x03\x04")) }

// CheckPack checks a pack that is a zip.
func CheckPack(body []byte, o CheckOptions) *Checked {
	files, err := unzip(body)
	if err != nil {
		return Failed("", err)
	}
	return checkFiles(files, o)
}

func unzip(body []byte) (map[string][]byte, error) {
	if !isOneZip(body) {
		return nil, errors.New("it is not one zip and nothing else: bytes stand before, behind or in a comment, and another program may see other files")
	}
	z, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return nil, err
	}
	if len(z.File) > maxPackFiles {
		return nil, fmt.Errorf("more than %d files", maxPackFiles)
	}
	files, room := map[string][]byte{}, int64(2*MaxBundleBytes)
	for _, f := range z.File {
		if _, twice := files[f.Name]; twice {
			return nil, fmt.Errorf("%q is there twice", f.Name)
		}
		r, err := f.Open()
		if err != nil {
			return nil, fmt.Errorf("%q: %w", f.Name, err)
		}
		content, err := io.ReadAll(io.LimitReader(r, room+1))
		_ = r.Close()
		if err != nil {
			return nil, fmt.Errorf("%q: %w", f.Name, err)
		}
		if room -= int64(len(content)); room < 0 {
			return nil, fmt.Errorf("it inflates to more than %d bytes", 2*MaxBundleBytes)
		}
		files[f.Name] = content
	}
	return files, nil
}

// isOneZip reports whether a file is a zip from its first byte to its last: a
// file comes first, and the directory ends where its end says.
func isOneZip(body []byte) bool {
	const end = 22 // bytes of the end of a directory without a comment
	if !IsZip(body) || len(body) < end {
		return false
	}
	tail := body[len(body)-end:]
	size, at := binary.LittleEndian.Uint32(tail[12:]), binary.LittleEndian.Uint32(tail[16:])
	return bytes.HasPrefix(tail, []byte("PK\x05\x06")) && binary.LittleEndian.Uint16(tail[20:]) == 0 && int64(at)+int64(size)+end == int64(len(body))
}

// checkPackNames refuses names that unpack outside a folder, or over each other.
func checkPackNames(files map[string][]byte) error {
	folded := map[string]bool{}
	for name := range files {
		if !fs.ValidPath(name) || strings.ContainsAny(name, `\:`) || folded[strings.ToLower(name)] {
			return fmt.Errorf("%q is not the name of a file in a pack, or another name is the same in other letters", name)
		}
		folded[strings.ToLower(name)] = true
	}
	return nil
}

// CheckPackFolder checks a pack that was unpacked.
func CheckPackFolder(folder fs.FS, o CheckOptions) *Checked {
	files, room := map[string][]byte{}, int64(2*MaxBundleBytes)
	err := fs.WalkDir(folder, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if room -= info.Size(); room < 0 || len(files) == maxPackFiles || !info.Mode().IsRegular() {
			return fmt.Errorf("%q: too large, or no plain file", name)
		}
		files[name], err = fs.ReadFile(folder, name)
		return err
	})
	if err != nil {
		return Failed("", err)
	}
	return checkFiles(files, o)
}

// A packChecker checks the files of a pack.
type packChecker struct {
	files  map[string][]byte
	o      CheckOptions
	c      *Checked
	id     string
	ranges map[string]*Range
	seen   map[string]map[int64]bool    // rows, by range
	shown  map[BundleLog]map[int64]bool // rows, by log
	whole  int64                        // rows whose hash recomputes
	told   int64                        // things that are not proved of rows
}

// maxTold bounds what is said of single rows that is not proved.
const maxTold = 20

func checkFiles(files map[string][]byte, o CheckOptions) *Checked {
	k := &packChecker{files: files, o: o, c: newChecked(""), ranges: map[string]*Range{}, seen: map[string]map[int64]bool{}, shown: map[BundleLog]map[int64]bool{}}
	if err := k.check(); err != nil {
		return Failed(k.id, err)
	}
	return k.c.end()
}

func (k *packChecker) check() error {
	if err := checkPackNames(k.files); err != nil {
		return err
	}
	if err := k.manifest(); err != nil {
		return fmt.Errorf("%s: %w", packManifest, err)
	}
	k.c.ArchiveID = k.id
	for _, name := range slices.Sorted(maps.Keys(k.files)) {
		if !strings.HasPrefix(name, "ranges/") {
			continue
		}
		if err := k.checkRange(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := k.rows(); err != nil {
		return fmt.Errorf("%s: %w", packRows, err)
	}
	if k.c.Rows == 0 {
		k.c.less = true
		k.c.not("any row: none is shown")
	}
	k.c.not("%s, %s and the programs: they are the word of whoever made the pack", packReadme, packKeys)
	return nil
}

// manifest compares the files with the manifest.
func (k *packChecker) manifest() error {
	var listed []packFile
	err := readDocument(k.files[packManifest],
		field{Name: "format", Read: func(d *document) { d.Constant(PackFormat) }},
		field{Name: "archiveId", Read: func(d *document) { k.id = d.ULID() }},
		field{Name: "files", Read: func(d *document) {
			d.Array(func(d *document) { listed = append(listed, readPackFile(d)) })
		}})
	if err != nil {
		return err
	}
	known := map[string]bool{packManifest: true}
	for _, f := range listed {
		body, ok := k.files[f.Name]
		switch {
		case known[f.Name]:
			return fmt.Errorf("%q is listed twice", f.Name)
		case !ok:
			return fmt.Errorf("%q is missing", f.Name)
		case int64(len(body)) != f.Bytes || f.SHA256 != sha256.Sum256(body):
			return fmt.Errorf("%q does not have the size and hash that are listed", f.Name)
		}
		known[f.Name] = true
	}
	for name := range k.files {
		if !known[name] {
			return fmt.Errorf("%q is not listed", name)
		}
	}
	return nil
}

func readPackFile(d *document) (f packFile) {
	d.Object(
		field{Name: "name", Read: func(d *document) { f.Name = d.Str() }},
		field{Name: "bytes", Read: func(d *document) { f.Bytes = d.Count() }},
		field{Name: "sha256", Read: func(d *document) { f.SHA256 = d.Hash() }})
	return f
}

func readRange(text []byte) (*Range, error) {
	r := &Range{Format: RangeFormat}
	err := readDocument(text,
		field{Name: "format", Read: func(d *document) { d.Constant(RangeFormat) }},
		field{Name: "archiveId", Read: func(d *document) { r.ArchiveID = d.ULID() }},
		field{Name: "log", Read: func(d *document) { r.Log = readBundleLog(d) }},
		field{Name: "scheme", Read: func(d *document) { r.Scheme = d.Scheme() }},
		field{Name: "first", Read: func(d *document) { r.First = d.Count() }},
		field{Name: "hashes", Read: func(d *document) { r.Hashes = d.Hashes() }},
		field{Name: "tree", Read: func(d *document) { r.Tree = readBundleTree(d) }},
		field{Name: "nodes", Read: func(d *document) { r.Nodes = d.Hashes() }},
		field{Name: "checkpoint", Read: func(d *document) { r.Checkpoint = readNullString(d) }},
		field{Name: "anchor", Read: func(d *document) { r.Anchor = readNullString(d) }},
		field{Name: "introductions", Read: func(d *document) {
			d.Array(func(d *document) { r.Introductions = append(r.Introductions, d.Str()) })
		}})
	return r, err
}

// checkRange checks that a range leads to its root, and whose that is.
func (k *packChecker) checkRange(name string) error {
	r, err := readRange(k.files[name])
	if err != nil {
		return err
	}
	if r.ArchiveID != k.id {
		return fmt.Errorf("it is of archive %s, the pack of %s", r.ArchiveID, k.id)
	}
	root, err := rangeRoot(r.Tree.Size, r.First, r.Hashes, r.Nodes)
	if err != nil {
		return err
	}
	if root != r.Tree.Root {
		return fmt.Errorf("its hashes do not lead to its root")
	}
	s := statement{log: r.Log.in(r.ArchiveID), scheme: r.Scheme, tree: r.Tree, checkpoint: r.Checkpoint}
	if r.Anchor != nil {
		if s.anchor, err = k.note(*r.Anchor); err != nil {
			return err
		}
	}
	for _, file := range r.Introductions {
		text, err := k.note(file)
		if err != nil {
			return err
		}
		s.introductions = append(s.introductions, *text)
	}
	k.c.proved("rows %d to %d of the log of tenant %s in %s/%d are those of its tree of %d rows, root %s", r.First, r.First+int64(len(r.Hashes))-1, Printable(r.Log.Tenant), Printable(r.Log.Topic), r.Log.Partition, r.Tree.Size, r.Tree.Root)
	k.ranges[name], k.seen[name] = r, map[int64]bool{}
	return s.check(k.c, k.o)
}

func (k *packChecker) note(file string) (*string, error) {
	body, ok := k.files[file]
	if !ok {
		return nil, fmt.Errorf("there is no %q", file)
	}
	text := string(body)
	return &text, nil
}

// rows checks the rows that are shown.
func (k *packChecker) rows() error {
	body, ok := k.files[packRows]
	if !ok {
		return fmt.Errorf("it is missing")
	}
	for n := 1; len(body) > 0; n++ {
		line, rest, ok := bytes.Cut(body, []byte("\n"))
		if !ok {
			return fmt.Errorf("line %d is cut", n)
		}
		if err := k.row(line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		body = rest
	}
	withheld := int64(0)
	for name, r := range k.ranges {
		withheld += int64(len(r.Hashes) - len(k.seen[name]))
	}
	if k.whole > 0 {
		k.c.proved("%s: all that is shown of them is what their row_hash commits to", Count(k.whole, "row"))
	}
	if k.told > maxTold {
		k.c.not("and %s more of that kind", Count(k.told-maxTold, "thing"))
	}
	if withheld > 0 {
		k.c.not("what %s said that stand between those that are shown", Count(withheld, "row"))
	}
	return nil
}

func (k *packChecker) row(line []byte) error {
	var row packRow
	err := readDocument(line, append(rowFields(&row.BundleRow), field{Name: "range", Read: func(d *document) { row.Range = d.Str() }})...)
	if err != nil {
		return err
	}
	r := k.ranges[row.Range]
	switch {
	case r == nil:
		return fmt.Errorf("there is no range %q", row.Range)
	case row.Scheme != r.Scheme:
		return fmt.Errorf("its scheme is not that of its range")
	case row.Seq < r.First || row.Seq-r.First >= int64(len(r.Hashes)):
		return fmt.Errorf("seq %d is not in its range", row.Seq)
	case k.shown[r.Log][row.Seq]:
		return fmt.Errorf("seq %d is there twice", row.Seq)
	}
	if k.shown[r.Log] == nil {
		k.shown[r.Log] = map[int64]bool{}
	}
	k.shown[r.Log][row.Seq], k.seen[row.Range][row.Seq] = true, true
	return k.inRange(r, &row.BundleRow)
}

func (k *packChecker) inRange(r *Range, row *BundleRow) error {
	at := row.Seq - r.First
	if row.RowHash != r.Hashes[at] {
		return fmt.Errorf("rowHash is not that of row %d in the range", row.Seq)
	}
	if at > 0 && row.PrevHash != nil && *row.PrevHash != r.Hashes[at-1] && !isReset(row) {
		return fmt.Errorf("prevHash is not the hash of the row before")
	}
	c := newChecked(k.id)
	if err := row.check(c, r.Log.in(r.ArchiveID), k.o.LogKeys); err != nil {
		return err
	}
	k.c.Rows++
	k.c.less, k.c.look = k.c.less || c.less, k.c.look || c.look
	if len(c.Proved) > 0 {
		k.whole++
	}
	for _, text := range c.NotProved {
		if k.told++; k.told <= maxTold {
			k.c.not("%s", text)
		}
	}
	return nil
}

// isReset reports whether a row begins an epoch: its prevHash is a genesis.
func isReset(row *BundleRow) bool {
	return row.Header != nil && row.Header.Kind.S == "chain-reset"
}
