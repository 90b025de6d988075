package sign

import (
	"cmp"
	"crypto/ed25519"
	"fmt"
	"slices"
	"sync"
	"time"
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
// ready. Keys are only ever added. It may be used by several goroutines.
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

// Add adds a key for some roles; of a key that is there the roles are united, and
// the first source stays. An error matches [ErrKey]: a witness's key is refused
// too, for a cosignature speaks of one log alone.
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
		if old := &r.keys[i]; old.VKey == vkey && old.NotAfter.Equal(notAfter) {
			old.Roles |= roles
			return nil
		}
	}
	r.keys = append(r.keys, ringKey{k, KeyInfo{vkey, k.name, roles, source, notAfter}})
	return nil
}

// Clone returns a ring with the same keys, to be changed apart; of a nil ring an
// empty one.
func (r *Ring) Clone() *Ring {
	if r == nil {
		return &Ring{}
	}
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

// Keys returns what is known of each key, in the order of their names. A key
// that was given and is certified too stands there twice.
func (r *Ring) Keys() []KeyInfo {
	if r == nil {
		return nil
	}
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
// role, and for a document of that time. The zero time is that of no document:
// certified keys then do not count. A nil ring is empty.
func (r *Ring) Check(n *Note, role Role, at time.Time) Verdict {
	if len(n.Signatures) == 0 {
		return Verdict{State: Unsigned}
	}
	v := Verdict{State: Unknown}
	if r == nil {
		return v
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, s := range n.Signatures {
		by, named := r.signerOf(n.Text, s, role, at)
		switch {
		case !named:
		case by == "":
			return Verdict{State: Bad}
		default:
			v.State = Good
			if !slices.Contains(v.By, by) {
				v.By = append(v.By, by)
			}
		}
	}
	return v
}

// signerOf returns the good key that made a signature. named reports whether
// the signature is in the name of one: "" is then the verdict of a forgery.
func (r *Ring) signerOf(text string, s Signature, role Role, at time.Time) (by string, named bool) {
	for i := range r.keys {
		k := &r.keys[i]
		if k.name != s.Name || k.hash != s.Hash || !k.goodFor(role, at) {
			continue
		}
		if named = true; ed25519.Verify(k.key, []byte(text), s.Bytes) {
			return k.VKey, true
		}
	}
	return "", named
}

func (k *KeyInfo) goodFor(role Role, at time.Time) bool {
	return k.Roles&role != 0 && (k.NotAfter.IsZero() || !at.IsZero() && !at.After(k.NotAfter))
}
