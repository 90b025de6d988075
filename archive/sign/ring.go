package sign

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ledgerlake/ledgerlake/archive/jsondoc"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A Role is what a key may sign; roles are united by or.
type Role uint8

// The roles of keys.
const (
	Anchor Role = 1 << iota
	Catalog
	Control

	AllRoles = Anchor | Catalog | Control
)

// A State is what the signatures of a note say to a ring.
type State uint8

// The states of a note.
const (
	Unsigned State = iota // no signature line
	Unknown               // signature lines, and none by a good key
	Bad                   // a line in the name of a good key is not its signature
	Good                  // at least one by a good key, and none that is Bad
)

// A Verdict is what a ring finds of a note.
type Verdict struct {
	State State
	By    []string // vkeys of the good keys that signed it
}

// A Ring holds the keys that are good, and what for. The zero Ring is empty and
// ready. It may be used by several goroutines.
type Ring struct {
	mu   sync.RWMutex
	keys []ringKey
}

type ringKey struct {
	verifierKey
	KeyInfo
}

// A KeyInfo says what a ring knows of a key.
type KeyInfo struct {
	VKey     string
	Name     string
	Roles    Role
	Source   string    // where it came from, for people
	NotAfter time.Time // of a certified key; zero where it never ends
}

// Add adds a key for some roles; of a key that is there the roles are united. An
// error matches [ErrKey].
func (r *Ring) Add(vkey string, roles Role, source string) error {
	return r.add(vkey, roles, source, time.Time{})
}

func (r *Ring) add(vkey string, roles Role, source string, notAfter time.Time) error {
	k, err := parseVKey(vkey)
	if err != nil {
		return err
	}
	if k.alg != algEd25519 {
		return fmt.Errorf("%w: algorithm %d is not Ed25519", ErrKey, k.alg)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.keys {
		if old := &r.keys[i]; old.VKey == vkey && old.NotAfter.IsZero() == notAfter.IsZero() {
			old.Roles |= roles
			if notAfter.After(old.NotAfter) {
				old.NotAfter = notAfter
			}
			return nil
		}
	}
	r.keys = append(r.keys, ringKey{k, KeyInfo{vkey, k.name, roles, source, notAfter}})
	return nil
}

// Clone returns a ring with the same keys, to be changed apart.
func (r *Ring) Clone() *Ring {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return &Ring{keys: slices.Clone(r.keys)}
}

// Empty reports whether no key is good. A nil ring is empty.
func (r *Ring) Empty() bool {
	if r == nil {
		return true
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.keys) == 0
}

// Keys returns what is known of each key, in the order of their names.
func (r *Ring) Keys() []KeyInfo {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make([]KeyInfo, len(r.keys))
	for i := range r.keys {
		all[i] = r.keys[i].KeyInfo
	}
	slices.SortStableFunc(all, func(a, b KeyInfo) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.VKey, b.VKey)) })
	return all
}

// Check says what the signatures of a note are worth: by keys that are good for
// role, and for a document of that time (the zero time is that of no document:
// certified keys then do not count).
func (r *Ring) Check(n *Note, role Role, at time.Time) Verdict {
	if len(n.Signatures) == 0 {
		return Verdict{State: Unsigned}
	}
	v := Verdict{State: Unknown}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, s := range n.Signatures {
		for i := range r.keys {
			k := &r.keys[i]
			if k.Roles&role == 0 || k.name != s.Name || k.hash != s.Hash || !k.NotAfter.IsZero() && (at.IsZero() || at.After(k.NotAfter)) {
				continue
			}
			if !ed25519.Verify(k.key, []byte(n.Text), s.Bytes) {
				return Verdict{State: Bad}
			}
			v.State = Good
			if !slices.Contains(v.By, k.VKey) {
				v.By = append(v.By, k.VKey)
			}
		}
	}
	return v
}

// KeyNoteText returns the text of a key note: that vkey may sign anchors and
// catalogs of an archive whose time is not after notAfter.
func KeyNoteText(archiveID, vkey string, notAfter time.Time) string {
	doc, err := json.Marshal(struct {
		ArchiveID string `json:"archiveId"`
		VKey      string `json:"vkey"`
		NotAfter  string `json:"notAfter"`
	}{archiveID, vkey, notAfter.UTC().Format(jsondoc.TimeLayout)})
	if err != nil {
		panic(err) // strings always marshal
	}
	return chain.NoteText(chain.KeyNote, doc)
}

// KeyNoteKey returns the key of the object that certifies a vkey.
func KeyNoteKey(vkey string) string {
	sum := sha256.Sum256([]byte(vkey))
	return "key/" + hex.EncodeToString(sum[:]) + ".note"
}

// ErrUncertified: a key note is not signed by a good key.
var ErrUncertified = errors.New("not certified by a good key")

// AddKeyNote adds the key that a key note of the archive certifies, for anchors
// and catalogs, as far as the key that signed it may sign those. The error
// matches [ErrNote] where the bytes are no key note, and [ErrUncertified] where
// it counts for nothing.
func (r *Ring) AddKeyNote(body []byte, archiveID string) (vkey string, err error) {
	n, err := Parse(body)
	if err != nil {
		return "", err
	}
	kind, doc, err := chain.ParseNoteText(n.Text)
	if err != nil || kind != chain.KeyNote {
		return "", fmt.Errorf("%w of a key", ErrNote)
	}
	var id string
	var notAfter time.Time
	err = jsondoc.Read(doc,
		jsondoc.Field{Name: "archiveId", Read: func(d *jsondoc.Document) { id = d.Str() }},
		jsondoc.Field{Name: "vkey", Read: func(d *jsondoc.Document) { vkey = d.Str() }},
		jsondoc.Field{Name: "notAfter", Read: func(d *jsondoc.Document) { notAfter = d.Time() }})
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrNote, err)
	case id != archiveID:
		return vkey, fmt.Errorf("%w: it is of archive %.40q", ErrUncertified, id)
	}
	if _, err := parseVKey(vkey); err != nil {
		return vkey, err
	}
	var roles Role
	for _, role := range []Role{Anchor, Catalog} {
		if r.checkLongLived(n, role) {
			roles |= role
		}
	}
	if roles == 0 {
		return vkey, ErrUncertified
	}
	return vkey, r.add(vkey, roles, "key note", notAfter)
}

// checkLongLived reports whether a note is signed by a good key that is not
// certified itself: of those no chains are made.
func (r *Ring) checkLongLived(n *Note, role Role) bool {
	return r.Check(n, role, time.Time{}).State == Good
}
