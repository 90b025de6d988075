package config

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// A Secret is a text that does not print: every verb of fmt, JSON and YAML
// show a placeholder. The zero Secret is none.
type Secret struct {
	text string
	path string // of the file that it came from, "" if from none
}

// NewSecret returns the Secret that holds text.
func NewSecret(text string) Secret { return Secret{text: text} }

// NewFileSecret returns the Secret that the file at path holds, or an error.
func NewFileSecret(path string) (Secret, error) {
	text, err := readSecretFile(path)
	return Secret{text, path}, err
}

// IsZero reports whether there is none.
func (s Secret) IsZero() bool { return s.text == "" }

// Reveal returns the text as it was when the settings were loaded.
func (s Secret) Reveal() string { return s.text }

// Renewed returns the text as it is now: a secret that has a file of its own is
// read again, because files of secrets are replaced while a process runs.
func (s Secret) Renewed() (string, error) {
	if s.path == "" {
		return s.text, nil
	}
	text, err := readSecretFile(s.path)
	if errors.Is(err, errNoSecret) {
		err = fmt.Errorf("%s: %w", s.path, err)
	}
	return text, err
}

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

// errNoSecret: a file does not hold what a secret can be.
var errNoSecret = errors.New("want a file with a secret in it, of 1 byte to " + FormatBytes(maxSecret))

// readSecretFile reads the file of a secret.
func readSecretFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	text, ok := readSecret(f)
	if !ok {
		return "", errNoSecret
	}
	return text, nil
}

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
