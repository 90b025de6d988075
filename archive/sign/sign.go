// Package sign makes and checks C2SP signed notes: keys, signatures, rings of
// keys that are good for a role, and keys that certify others.
//
// Signatures are Ed25519 in the form of golang.org/x/mod/sumdb/note. That
// package's own reader accepts a signature whose base64 has non-zero trailing
// bits; this one accepts of a note only the bytes that writing it again gives.
package sign

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"
)

var (
	// ErrNote: bytes are not a note.
	ErrNote = errors.New("not a note: a text, an empty line, and signature lines")
	// ErrKey: text is not a key.
	ErrKey = errors.New("not a key")
)

// maxSignatures bounds the signature lines of a note.
const maxSignatures = 100

// algEd25519 is the first byte of a key's data: RFC 8032 over the text.
const algEd25519 = 1

// Generate makes a key under a name, from 32 bytes of rand. skey signs and is to
// be kept; vkey verifies and is to be given away.
func Generate(rand io.Reader, name string) (skey, vkey string, err error) {
	if !isName(name) {
		return "", "", fmt.Errorf("%w: a name is not empty and has no spaces and no +: %q", ErrKey, name)
	}
	return note.GenerateKey(rand, name)
}

// A Signer signs with an Ed25519 key at hand. It is a [note.Signer].
type Signer struct {
	name string
	hash uint32
	key  ed25519.PrivateKey
}

// NewSigner reads a key of [Generate]. An error matches [ErrKey], and has
// nothing of the key in it.
func NewSigner(skey string) (*Signer, error) {
	skey = strings.TrimSpace(skey)
	s, err := note.NewSigner(skey)
	if err != nil {
		return nil, fmt.Errorf("%w: want PRIVATE+KEY+name+hash+data, as keygen writes it", ErrKey)
	}
	parts := strings.SplitN(skey, "+", 5)
	data, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil || len(data) != 1+ed25519.SeedSize {
		return nil, fmt.Errorf("%w: it is not Ed25519", ErrKey)
	}
	return &Signer{s.Name(), s.KeyHash(), ed25519.NewKeyFromSeed(data[1:])}, nil
}

// Name returns the key's name.
func (s *Signer) Name() string { return s.name }

// KeyHash returns the first four bytes of the key's hash.
func (s *Signer) KeyHash() uint32 { return s.hash }

// Sign returns the signature of msg.
func (s *Signer) Sign(msg []byte) ([]byte, error) { return ed25519.Sign(s.key, msg), nil }

// VKey returns the verifier key.
func (s *Signer) VKey() string { return VKey(s.name, s.key.Public().(ed25519.PublicKey)) }

// VKey returns the verifier key of an Ed25519 key under a name.
func VKey(name string, key ed25519.PublicKey) string {
	data := append([]byte{algEd25519}, key...)
	return fmt.Sprintf("%s+%08x+%s", name, keyHash(name, data), base64.StdEncoding.EncodeToString(data))
}

func keyHash(name string, data []byte) uint32 {
	sum := sha256.Sum256(append([]byte(name+"\n"), data...))
	return binary.BigEndian.Uint32(sum[:])
}

// isName reports whether a key may have a name.
func isName(name string) bool {
	return name != "" && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return r == '+' || unicode.IsSpace(r) || unicode.IsControl(r) })
}

// Sign returns the note of a text: signed by each signer, or the text and an
// empty line without any. The text ends with a newline.
func Sign(text string, signers ...note.Signer) ([]byte, error) {
	if len(signers) == 0 {
		return []byte(text + "\n"), nil
	}
	return note.Sign(&note.Note{Text: text}, signers...)
}

// A Note is a note as it was read. Nothing about it is proved.
type Note struct {
	Text       string // with its final newline: exactly what is signed
	Signatures []Signature
}

// A Signature is one signature line.
type Signature struct {
	Name  string
	Hash  uint32 // of the key
	Bytes []byte // without the hash
}

// Parse takes a note apart. It refuses every form but the one that writing the
// note again gives; an error matches [ErrNote].
func Parse(body []byte) (*Note, error) {
	text, lines, ok := cutLast(string(body), "\n\n")
	if !ok || !utf8.Valid(body) {
		return nil, ErrNote
	}
	n := &Note{Text: text}
	for lines != "" {
		line, rest, ok := strings.Cut(lines, "\n")
		if !ok || len(n.Signatures) == maxSignatures {
			return nil, ErrNote
		}
		s, ok := parseSignature(line)
		if !ok {
			return nil, ErrNote
		}
		n.Signatures = append(n.Signatures, s)
		lines = rest
	}
	if !bytes.Equal(n.encode(), body) {
		return nil, ErrNote
	}
	return n, nil
}

// cutLast cuts behind the first newline of the last sep.
func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", "", false
	}
	return s[:i+1], s[i+len(sep):], true
}

// parseSignature parses a dash, the key's name, and base64 of the key's hash and
// the signature.
func parseSignature(line string) (s Signature, ok bool) {
	rest, isLine := strings.CutPrefix(line, "— ")
	name, text, found := strings.Cut(rest, " ")
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	if !isLine || !found || err != nil || len(data) <= 4 || !isName(name) {
		return s, false
	}
	return Signature{name, binary.BigEndian.Uint32(data), data[4:]}, true
}

func (n *Note) encode() []byte {
	var b bytes.Buffer
	b.WriteString(n.Text + "\n")
	for _, s := range n.Signatures {
		data := append(binary.BigEndian.AppendUint32(nil, s.Hash), s.Bytes...)
		fmt.Fprintf(&b, "— %s %s\n", s.Name, base64.StdEncoding.EncodeToString(data))
	}
	return b.Bytes()
}

// A verifierKey is a vkey taken apart.
type verifierKey struct {
	name string
	hash uint32
	alg  byte
	key  ed25519.PublicKey
}

// parseVKey parses name+hash+data, in the one form that it has.
func parseVKey(vkey string) (k verifierKey, err error) {
	fail := func(why string) (verifierKey, error) {
		return verifierKey{}, fmt.Errorf("%w: %s: want name+hash+data, as keygen prints it", ErrKey, why)
	}
	parts := strings.SplitN(vkey, "+", 3)
	if len(parts) != 3 || !isName(parts[0]) || len(parts[1]) != 8 {
		return fail("it has not three parts")
	}
	hash, err := strconv.ParseUint(parts[1], 16, 32)
	if err != nil || strings.ToLower(parts[1]) != parts[1] {
		return fail("its hash is no hex")
	}
	data, err := base64.StdEncoding.Strict().DecodeString(parts[2])
	if err != nil || len(data) != 1+ed25519.PublicKeySize || base64.StdEncoding.EncodeToString(data) != parts[2] {
		return fail("its data is not Ed25519")
	}
	if keyHash(parts[0], data) != uint32(hash) {
		return fail("its hash is another key's")
	}
	return verifierKey{parts[0], uint32(hash), data[0], data[1:]}, nil
}
