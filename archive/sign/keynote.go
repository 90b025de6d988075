package sign

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ledgerlake/ledgerlake/archive/jsondoc"
	"github.com/ledgerlake/ledgerlake/chain"
)

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

// GenerateMember makes a key that another one is to certify, from 32 bytes of
// rand. It is called name "/" base64url(public key): who finds a signature finds
// the certificate with it ([Signature.KeyNoteKey]), among any number.
func GenerateMember(rand io.Reader, name string) (*Signer, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(rand, seed); err != nil {
		return nil, err
	}
	key := ed25519.NewKeyFromSeed(seed)
	public := key.Public().(ed25519.PublicKey)
	name += "/" + base64.RawURLEncoding.EncodeToString(public)
	return &Signer{name, KeyHash(name, public), key}, nil
}

// KeyNoteKey returns the key of the object that would certify the key of a
// signature, where that is one of [GenerateMember]. Nothing about it is proved.
func (s Signature) KeyNoteKey() (string, bool) {
	_, text, _ := cutLast(s.Name, "/")
	public, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(public) != ed25519.PublicKeySize || KeyHash(s.Name, public) != s.Hash {
		return "", false
	}
	return KeyNoteKey(VKey(s.Name, public)), true
}
