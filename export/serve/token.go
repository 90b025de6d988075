package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/internal/strictyaml"
)

// TokenPrefix begins every token, so that scanners for secrets find one that
// was left somewhere.
const TokenPrefix = "llt_"

// tokenBytes is how much of a token is random: 256 bits, so that its SHA-256
// can lie in a file without salt or stretching.
const tokenBytes = 32

// AllTenants in the place of a list of tenants means every tenant, also those
// to come.
const AllTenants = "*"

// A Token says what whoever shows it may see. It holds no secret: SHA256 is of
// the token's text.
type Token struct {
	Name     string   // for people and logs; unique in its file
	Tenants  []string // ids, exact; nil where All
	All      bool     // every tenant
	SHA256   [sha256.Size]byte
	NotAfter time.Time // UTC; zero is no end
}

// May reports whether the token is good for a tenant.
func (t *Token) May(tenant string) bool { return t.All || slices.Contains(t.Tenants, tenant) }

// expired reports whether the token's time is over.
func (t *Token) expired(now time.Time) bool { return !t.NotAfter.IsZero() && now.After(t.NotAfter) }

// NewToken makes a token from 32 bytes of random: the secret that its holder
// gets, which is kept nowhere, and the entry of the file of tokens.
func NewToken(random io.Reader, name string, tenants []string, notAfter time.Time) (secret string, t *Token, err error) {
	var b [tokenBytes]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", nil, fmt.Errorf("make a token: %w", err)
	}
	t = &Token{Name: name, NotAfter: notAfter}
	if err := t.setTenants(tenants); err != nil {
		return "", nil, err
	}
	if name == "" {
		return "", nil, errors.New("a token needs a name, by which it is told from others")
	}
	secret = TokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
	t.SHA256 = sha256.Sum256([]byte(secret))
	return secret, t, nil
}

func (t *Token) setTenants(tenants []string) error {
	if len(tenants) == 0 {
		return errors.New("no tenant: want ids of tenants, or all of them")
	}
	for _, id := range tenants {
		switch {
		case id == AllTenants && len(tenants) > 1:
			return errors.New("* is all tenants: not together with others")
		case id == AllTenants:
			t.All = true
			return nil
		case audit.IsReservedTenant(id):
		default:
			if err := audit.ValidTenant(id); err != nil {
				return fmt.Errorf("%q: %w", id, err)
			}
		}
	}
	t.Tenants = slices.Clone(tenants)
	return nil
}

// String returns the entry of the file of tokens.
func (t *Token) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "- name: %q\n", t.Name)
	if t.All {
		b.WriteString("  tenants: \"*\"\n")
	} else {
		b.WriteString("  tenants:\n")
		for _, id := range t.Tenants {
			fmt.Fprintf(&b, "  - %q\n", id)
		}
	}
	fmt.Fprintf(&b, "  sha256: %q\n", hex.EncodeToString(t.SHA256[:]))
	if !t.NotAfter.IsZero() {
		fmt.Fprintf(&b, "  not-after: %s\n", t.NotAfter.UTC().Format(time.RFC3339))
	}
	return b.String()
}

// Tokens are the entries of a file of tokens. A nil *Tokens has none.
type Tokens struct{ all []*Token }

// Len returns how many there are.
func (s *Tokens) Len() int { return len(s.all) }

// ParseTokens reads a file of tokens: YAML, read strictly.
//
//	tokens:
//	- name: acme-app          # unique
//	  tenants: [acme]         # or "*"
//	  sha256: 9f86d0…         # of the token's text, 64 hex digits
//	  not-after: 2027-06-30   # a day (its end, UTC) or a time; may be left out
//
// An error names the member and its line, and never shows a value that could be
// a secret. A file without entries is an error too: nobody could ask anything.
func ParseTokens(text []byte) (*Tokens, error) {
	top, some, err := strictyaml.Document(text)
	if err != nil {
		return nil, err
	}
	if !some {
		return nil, errors.New("the file of tokens is empty: `ledgerlake-export token new` prints an entry")
	}
	members, err := top.Members("tokens")
	if err != nil {
		return nil, err
	}
	s := &Tokens{}
	for _, m := range members {
		list, err := m.Value.List("tokens")
		if err != nil {
			return nil, err
		}
		for _, n := range list {
			if err := s.add(n); err != nil {
				return nil, err
			}
		}
	}
	if len(s.all) == 0 {
		return nil, top.Fault("no tokens: `ledgerlake-export token new` prints an entry")
	}
	return s, nil
}

func (s *Tokens) add(n strictyaml.Node) error {
	members, err := n.Members("name", "tenants", "sha256", "not-after")
	if err != nil {
		return err
	}
	t := &Token{}
	seen := map[string]bool{}
	for _, m := range members {
		seen[m.Name] = true
		if err := t.set(m); err != nil {
			return err
		}
	}
	for _, name := range []string{"name", "tenants", "sha256"} {
		if !seen[name] {
			return n.Fault("no %s", name)
		}
	}
	for _, other := range s.all {
		switch {
		case other.Name == t.Name:
			return n.Fault("the name %q is there twice", t.Name)
		case other.SHA256 == t.SHA256:
			return n.Fault("the same token as %q: make one for each", other.Name)
		}
	}
	s.all = append(s.all, t)
	return nil
}

func (t *Token) set(m strictyaml.Member) error {
	switch m.Name {
	case "tenants":
		return t.readTenants(m.Value)
	case "name":
		text, err := m.Value.Text("a name")
		t.Name = text
		return err
	case "sha256":
		return t.readSHA256(m.Value)
	}
	text, err := m.Value.Text("a day or a time")
	if err != nil {
		return err
	}
	if t.NotAfter, err = ParseNotAfter(text); err != nil {
		return m.Value.Fault("%v", err)
	}
	return nil
}

// ParseNotAfter reads the end of a token's time: a time, or a day, whose end it
// is.
func ParseNotAfter(text string) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1).Add(-time.Second).UTC(), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, errors.New("want a day such as 2027-06-30, or a time such as 2027-06-30T12:00:00Z")
	}
	return at.UTC(), nil
}

func (t *Token) readTenants(n strictyaml.Node) error {
	var ids []string
	if n.IsList() {
		list, err := n.List("tenants")
		if err != nil {
			return err
		}
		for _, e := range list {
			id, err := e.Text("a tenant")
			if err != nil {
				return err
			}
			ids = append(ids, id)
		}
	} else {
		id, err := n.Text(`a list of tenants, or "*"`)
		if err != nil {
			return err
		}
		ids = []string{id}
	}
	if err := t.setTenants(ids); err != nil {
		return n.Fault("%v", err)
	}
	return nil
}

func (t *Token) readSHA256(n strictyaml.Node) error {
	text, err := n.Text("the SHA-256 of the token")
	if err != nil {
		return err
	}
	if strings.HasPrefix(text, TokenPrefix) {
		return n.Fault("this is a token, and not its SHA-256: whoever can read this file has it; make a new one")
	}
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(t.SHA256) {
		return n.Fault("want 64 hex digits: the SHA-256 of the token's text")
	}
	t.SHA256 = [sha256.Size]byte(b)
	return nil
}

// find returns the entry of a secret; nil if there is none, or its time is
// over. It takes the same time whichever entry it is, and whether there is one.
func (s *Tokens) find(secret string, now time.Time) *Token {
	sum := sha256.Sum256([]byte(secret))
	var found *Token
	for _, t := range s.all {
		if subtle.ConstantTimeCompare(sum[:], t.SHA256[:]) == 1 {
			found = t
		}
	}
	if found == nil || found.expired(now) {
		return nil
	}
	return found
}
