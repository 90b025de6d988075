package proof

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A keyring is what is known of keys before the first line is read: the keys
// that were given, those that anchors signed by a good key introduce, and those
// that a good key certifies. The order in which they stand in the archive plays
// no part.
type keyring struct {
	*sign.Ring
	given  bool // a key was given: without one no signature is checked
	signed bool // some note of the archive is signed by a good key
	kept   noteCache
}

func newKeyring(memory int64) *keyring {
	return &keyring{Ring: &sign.Ring{}, kept: noteCache{room: memory / 8, byKey: map[string][]byte{}}}
}

// collectKeys reads all notes of the archive for the keys in them, again and
// again until there are no more.
func (v *verifier) collectKeys(ctx context.Context, s *survey) error {
	if v.o.Keys.Empty() {
		return nil
	}
	v.keys.Ring, v.keys.given = v.o.Keys.Clone(), true
	c := &collector{v: v, roles: map[string]sign.Role{}}
	for _, k := range v.keys.Keys() {
		c.roles[k.VKey] = k.Roles
	}
	anchors := []scope{{prefix: "anchor/"}}
	if v.useSavedKeys() {
		anchors = nil
		for _, l := range s.lines {
			anchors = append(anchors, scope{l.prefix("anchor"), v.savedOf(l).afterAnchor(l)})
		}
	}
	all := slices.Concat([]scope{{prefix: "key/"}, {prefix: "catalog/"}}, anchors)
	for again := true; again; {
		known := c.known()
		c.open = 0
		for _, at := range all {
			if err := c.list(ctx, at); err != nil {
				return err
			}
		}
		again = c.known() != known && (c.open > 0 || s.keys > 0) // a key that signed a key note may be good for more by now
	}
	return nil
}

// useSavedKeys takes the keys that a saved state knows, and reports whether they
// are those that all anchors before it introduce: they are as long as what was
// given then is given now.
func (v *verifier) useSavedKeys() bool {
	s := v.o.Saved
	if s == nil || len(s.Given) == 0 {
		return false
	}
	given := v.o.Keys.Keys()
	for _, vkey := range s.Given {
		if !slices.ContainsFunc(given, func(k sign.KeyInfo) bool { return k.VKey == vkey }) {
			return false
		}
	}
	for _, k := range s.Keys {
		if v.keys.Add(k.VKey, k.Roles, k.Source) != nil {
			return false
		}
	}
	return true
}

// A scope is a part of a listing: the keys that begin with prefix and sort after
// after.
type scope struct{ prefix, after string }

// A collector collects keys.
type collector struct {
	v     *verifier
	roles map[string]sign.Role // of keys without an end
	open  int64                // notes that would add keys, and are not signed by a good key yet
}

// list reads the notes below a prefix.
func (c *collector) list(ctx context.Context, at scope) error {
	w := newWindow(16<<20, 2, 32)
	notes := func(yield func(archive.Object, error) bool) {
		for o, err := range c.v.src.List(ctx, at.prefix, at.after) {
			if err == nil && !strings.HasSuffix(o.Key, ".note") {
				continue
			}
			if !yield(o, err) {
				return
			}
		}
	}
	read := ahead(ctx, notes,
		func(ctx context.Context, o archive.Object) error { return w.acquire(ctx, o.Size) },
		func(ctx context.Context, o archive.Object) (readNote, error) {
			defer w.release(o.Size)
			if body := c.v.keys.kept.get(o.Key); body != nil {
				return readNote{o, body}, nil
			}
			body, _, err := c.v.get(ctx, o) // what is wrong with it is named where it belongs
			return readNote{o, body}, err
		})
	for n, err := range read {
		if err != nil {
			return err
		}
		c.v.keys.kept.put(n.Key, n.body)
		if !c.note(n) {
			c.open++
		}
	}
	return nil
}

// known grows whenever a key becomes good, or good for more.
func (c *collector) known() (n int) {
	for _, k := range c.v.keys.Keys() {
		n += bits.OnesCount8(uint8(k.Roles))
	}
	return n
}

type readNote struct {
	archive.Object
	body []byte
}

// note takes the keys of one note, and reports whether it is done with: it adds
// no key that is not known, or it was signed by a good one.
func (c *collector) note(n readNote) bool {
	folder, _, _ := strings.Cut(n.Key, "/")
	note, err := sign.Parse(n.body)
	if err != nil {
		return true
	}
	switch folder {
	case "key":
		return c.keyNote(n, note)
	case "anchor":
		return c.anchor(note)
	}
	if !c.v.keys.signed {
		// When it was written does not matter for this question.
		c.v.keys.signed = c.v.keys.Check(note, sign.Catalog, time.Unix(0, 1)).State == sign.Good
	}
	return true
}

func (c *collector) keyNote(n readNote, note *sign.Note) bool {
	if c.v.keys.Check(note, sign.Anchor|sign.Catalog, time.Time{}).State != sign.Good {
		return false
	}
	c.v.keys.signed = true
	vkey, err := c.v.keys.AddKeyNote(n.body, c.v.root.ArchiveID)
	return err == nil && sign.KeyNoteKey(vkey) == n.Key
}

// anchor takes the keys that an anchor introduces.
func (c *collector) anchor(note *sign.Note) bool {
	a, err := archive.DecodeAnchor(note.Text)
	if err != nil || c.v.root.ArchiveID != "" && a.ArchiveID != c.v.root.ArchiveID {
		return true // a fault, which is named where the line is read
	}
	lists := map[sign.Role][]string{sign.Anchor: a.Keys.Anchor, sign.Catalog: a.Keys.Catalog, sign.Control: a.Keys.Control}
	adds := false
	for role, keys := range lists {
		for _, vkey := range keys {
			adds = adds || c.roles[vkey]&role == 0
		}
	}
	if !adds && c.v.keys.signed {
		return true
	}
	if c.v.keys.Check(note, sign.Anchor, a.Time.Time).State != sign.Good {
		return !adds
	}
	c.v.keys.signed = true
	for role, keys := range lists {
		for _, vkey := range keys {
			// One that is no key can sign nothing.
			if c.v.keys.Add(vkey, role, fmt.Sprintf("anchor %d of %s/%d", a.Number, Printable(a.Topic), a.Partition)) == nil {
				c.roles[vkey] |= role
			}
		}
	}
	return true
}

// keyNotes checks each key note: its form, whose it is, and with keys at hand
// its signatures.
func (v *verifier) keyNotes(ctx context.Context, r *Report) error {
	for o, err := range v.src.List(ctx, "key/", "") {
		if err != nil {
			return fmt.Errorf("list key notes: %w", err)
		}
		if !isKeyNote(o.Key) {
			continue // a stray, named by the survey
		}
		body, wrong, err := v.note(ctx, o)
		if err != nil {
			return err
		}
		if wrong == nil {
			wrong = v.keyNote(o.Key, body, r)
		}
		if wrong != nil {
			r.fault(Fault{Kind: wrong.kind, Key: o.Key, Ordinal: -1, Text: wrong.text})
		}
		v.progress(0)
	}
	return nil
}

func (v *verifier) keyNote(key string, body []byte, r *Report) *problem {
	n, err := sign.Parse(body)
	if err != nil {
		return &problem{FaultUnreadable, err.Error()}
	}
	c, err := readKeyNote(n.Text)
	switch {
	case err != nil:
		return &problem{FaultUnreadable, err.Error()}
	case sign.KeyNoteKey(c.vkey) != key:
		return &problem{FaultMisplaced, "its key is not the hash of the vkey that it certifies"}
	case v.root.ArchiveID != "" && c.archiveID != v.root.ArchiveID:
		return &problem{FaultMisplaced, fmt.Sprintf("it is of archive %.40q", c.archiveID)}
	}
	verdict, err := v.keys.judge(n, sign.Anchor|sign.Catalog, time.Time{})
	if err != nil {
		return &problem{FaultSignature, err.Error()}
	}
	r.notes.count(verdict)
	return nil
}

type keyNote struct {
	archiveID, vkey string
	notAfter        time.Time
}

func readKeyNote(text string) (c keyNote, err error) {
	kind, doc, err := chain.ParseNoteText(text)
	if err == nil && kind != chain.KeyNote {
		err = fmt.Errorf("it is a note of another kind: %s", kind)
	}
	if err != nil {
		return c, err
	}
	return c, readDocument(doc,
		field{Name: "archiveId", Read: func(d *document) { c.archiveID = d.Str() }},
		field{Name: "vkey", Read: func(d *document) { c.vkey = d.Str() }},
		field{Name: "notAfter", Read: func(d *document) { c.notAfter = d.Time() }})
}

// note reads an anchor, a catalog version or a key note: the bytes that were
// read for their keys, where they are at hand.
func (v *verifier) note(ctx context.Context, o archive.Object) ([]byte, *problem, error) {
	if body := v.keys.kept.take(o.Key); body != nil && int64(len(body)) == o.Size {
		return body, nil, nil
	}
	return v.get(ctx, o)
}

// What can be wrong with the signature lines of a note.
var (
	errForged   = errors.New("a signature in the name of a good key is not its signature: the text or the signature was changed")
	errStranger = errors.New("it is signed, but by no key that is good for it, while others of this archive are")
)

// judge says what the signatures of a note are worth. An error is a fault.
func (k *keyring) judge(n *sign.Note, role sign.Role, at time.Time) (sign.Verdict, error) {
	if !k.given {
		return sign.Verdict{}, nil
	}
	verdict := k.Check(n, role, at)
	switch {
	case verdict.State == sign.Bad:
		return verdict, errForged
	case verdict.State == sign.Unknown && k.signed:
		return verdict, fmt.Errorf("%w: signed by %s", errStranger, archive.Signers(n))
	}
	return verdict, nil
}

// A noteCache keeps notes that were read for their keys until they are read for
// what they say, as far as there is room.
type noteCache struct {
	mu    sync.Mutex
	room  int64
	byKey map[string][]byte
}

func (c *noteCache) put(key string, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := int64(len(body)); n > 0 && n <= c.room && c.byKey[key] == nil {
		c.room -= n
		c.byKey[key] = body
	}
}

func (c *noteCache) get(key string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey[key]
}

// take returns what was kept, which is then no longer.
func (c *noteCache) take(key string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	body := c.byKey[key]
	delete(c.byKey, key)
	c.room += int64(len(body))
	return body
}
