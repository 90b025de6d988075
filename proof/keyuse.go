package proof

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A KeyUse says of one key how it came to be good, and what it signed.
type KeyUse struct {
	Name     string     `json:"name"`
	VKey     string     `json:"vkey"` // "" where only the name and the hash in signatures are known
	Hash     string     `json:"hash"` // 8 hex digits
	Good     bool       `json:"good"`
	Roles    []string   `json:"roles"`
	Source   string     `json:"source"`             // how it became good
	NotAfter *time.Time `json:"notAfter,omitempty"` // of a certified key
	Signed   []Signings `json:"signed"`
}

// Signings are the notes of one folder and line that a key signed.
type Signings struct {
	Folder string `json:"folder"` // anchor, catalog or key
	Line   string `json:"line"`   // topic/partition; "" for key notes
	First  int64  `json:"first"`  // number
	Last   int64  `json:"last"`
	Count  int64  `json:"count"`
	Forged int64  `json:"forged"` // in the name of the key, and not its signature
}

// KeyUses reads all notes of an archive and says which keys signed what. Keys
// count as good as they do for [Verify]: those in o.Keys, and what they
// introduce.
func KeyUses(ctx context.Context, src archive.Source, o Options) ([]*KeyUse, error) {
	v := newVerifier(src, o)
	body, err := src.Get(ctx, archive.RootKey)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", archive.RootKey, err)
	}
	if v.root, err = readRoot(body); err != nil {
		return nil, tampered("%s: %v", archive.RootKey, err)
	}
	if err := v.collectKeys(ctx, nil); err != nil {
		return nil, err
	}
	u := &keyUses{v: v}
	for _, k := range v.keys.Keys() {
		u.good(k)
	}
	for _, prefix := range []string{"anchor/", "catalog/", "key/"} {
		for o, err := range src.List(ctx, prefix, "") {
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", prefix, err)
			}
			if !strings.HasSuffix(o.Key, ".note") {
				continue
			}
			if err := u.note(ctx, o); err != nil {
				return nil, err
			}
		}
	}
	return u.all, nil
}

type keyUses struct {
	v   *verifier
	all []*KeyUse
}

func (u *keyUses) good(k sign.KeyInfo) {
	name, rest, _ := strings.Cut(k.VKey, "+")
	hash, _, _ := strings.Cut(rest, "+")
	use := &KeyUse{Name: name, VKey: k.VKey, Hash: hash, Good: true, Roles: roleNames(k.Roles), Source: k.Source, Signed: []Signings{}}
	if !k.NotAfter.IsZero() {
		use.NotAfter = &k.NotAfter
	}
	u.all = append(u.all, use)
}

// note counts the signatures of one note.
func (u *keyUses) note(ctx context.Context, o archive.Object) error {
	body, wrong, err := u.v.note(ctx, o)
	if err != nil || wrong != nil {
		return err
	}
	n, err := sign.Parse(body)
	if err != nil {
		return nil // what is wrong with a note, Verify says
	}
	folder, _, _ := strings.Cut(o.Key, "/")
	s := Signings{Folder: folder}
	role, at := sign.Anchor|sign.Catalog, time.Time{}
	if line, number, ok := parseNoteKey(o.Key); ok {
		s.Line, s.First = fmt.Sprintf("%s/%d", unescape(line.topic), line.partition), number
		role, at = sign.Anchor, timeOf(n.Text)
		if folder == "catalog" {
			role = sign.Catalog
		}
	}
	for _, sig := range n.Signatures {
		one := &sign.Note{Text: n.Text, Signatures: []sign.Signature{sig}}
		u.count(sig, s, u.v.keys.Check(one, role, at))
	}
	return nil
}

// timeOf returns the time that a document states, or zero.
func timeOf(text string) (at time.Time) {
	if _, doc, err := chain.ParseNoteText(text); err == nil {
		_ = readDocument(doc, field{Name: "time", Read: func(d *document) { at = d.Time() }})
	}
	return at
}

// count counts one signature.
func (u *keyUses) count(sig sign.Signature, s Signings, verdict sign.Verdict) {
	use := u.use(sig, verdict)
	i := slices.IndexFunc(use.Signed, func(old Signings) bool { return old.Folder == s.Folder && old.Line == s.Line })
	if i < 0 {
		s.Last = s.First
		use.Signed = append(use.Signed, s)
		i = len(use.Signed) - 1
	}
	at := &use.Signed[i]
	at.First, at.Last = min(at.First, s.First), max(at.Last, s.First)
	if verdict.State == sign.Bad {
		at.Forged++
	} else {
		at.Count++
	}
}

// use returns what is known of the key of a signature.
func (u *keyUses) use(sig sign.Signature, verdict sign.Verdict) *KeyUse {
	hash := fmt.Sprintf("%08x", sig.Hash)
	for _, use := range u.all {
		if len(verdict.By) > 0 && use.VKey == verdict.By[0] || len(verdict.By) == 0 && use.Name == sig.Name && use.Hash == hash {
			return use
		}
	}
	use := &KeyUse{Name: sig.Name, Hash: hash, Roles: []string{}, Source: "not known: it was not given, and nothing that a given key signed introduces it", Signed: []Signings{}}
	u.all = append(u.all, use)
	return use
}
