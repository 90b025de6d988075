package sign

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"
)

// ErrKey: a text is not a key, or not one of a kind that is used here.
var ErrKey = errors.New("not a key")

// What a key signs stands in the first byte of its data.
const (
	algEd25519     = 1 // the text
	algCosignature = 4 // a time and the text
)

// Generate makes a key under a name, from 32 bytes of rand. skey signs and is to
// be kept; vkey verifies and is to be given away.
func Generate(rand io.Reader, name string) (skey, vkey string, err error) {
	if err := CheckName(name); err != nil {
		return "", "", err
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

// String returns the verifier key: a signer that is printed gives nothing away.
func (s *Signer) String() string { return s.VKey() }

// GoString does the same for %#v.
func (s *Signer) GoString() string { return s.VKey() }

// VKey returns the verifier key of an Ed25519 key under a name.
func VKey(name string, key ed25519.PublicKey) string { return encodeVKey(name, algEd25519, key) }

func encodeVKey(name string, alg byte, key ed25519.PublicKey) string {
	data := append([]byte{alg}, key...)
	return fmt.Sprintf("%s+%08x+%s", name, keyHash(name, data), base64.StdEncoding.EncodeToString(data))
}

func keyHash(name string, data []byte) uint32 {
	sum := sha256.Sum256(append([]byte(name+"\n"), data...))
	return binary.BigEndian.Uint32(sum[:])
}

// KeyHash returns the hash by which signature lines name an Ed25519 key.
func KeyHash(name string, key ed25519.PublicKey) uint32 {
	return keyHash(name, append([]byte{algEd25519}, key...))
}

// CheckName returns an error, matching [ErrKey], where no key may be called so.
func CheckName(name string) error {
	if !isName(name) {
		return fmt.Errorf("%w: a name is not empty and has neither spaces nor +: %q", ErrKey, name)
	}
	return nil
}

// isName reports whether a key may have a name.
func isName(name string) bool {
	return name != "" && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return r == '+' || unicode.IsSpace(r) || unicode.IsControl(r) })
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

// Lines returns the lines of a file of public keys, without the blanks around
// them. Empty lines, and those that begin with #, are none.
func Lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !yield(line) {
				return
			}
		}
	}
}
