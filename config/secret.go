package config

import (
	"fmt"
	"io"
)

// A Secret is a text that does not print: every verb of fmt, JSON and YAML
// show a placeholder. The zero Secret is none.
type Secret struct{ text string }

// NewSecret returns the Secret that holds text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text.
func (s Secret) Reveal() string { return s.text }

// Format writes the placeholder, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) {
	text, _ := s.MarshalText()
	_, _ = f.Write(text)
}

// MarshalText returns the placeholder.
func (s Secret) MarshalText() ([]byte, error) {
	if s.text == "" {
		return []byte("(none)"), nil
	}
	return []byte("(secret)"), nil
}

var _ fmt.Formatter = Secret{}

// maxSecret is the longest secret, in bytes.
const maxSecret = 64 << 10

// readSecret reads a secret from a file of its own. One line end behind it is
// dropped, for that is what editors and echo leave.
func readSecret(r io.Reader) (string, bool) {
	b, err := io.ReadAll(io.LimitReader(r, maxSecret+1))
	if err != nil || len(b) > maxSecret {
		return "", false
	}
	text := string(b)
	if n := len(text); n > 0 && text[n-1] == '\n' {
		text = text[:n-1]
	}
	if n := len(text); n > 0 && text[n-1] == '\r' {
		text = text[:n-1]
	}
	return text, text != ""
}
