// Package sign makes and checks C2SP signed notes: keys, signatures, rings of
// keys that are good for a role, keys that certify others, and cosignatures.
//
//	note      = text "\n" { "— " name " " base64(hash signature) "\n" }
//	signature = Ed25519(text)                     of a signer
//	          | time Ed25519("cosignature/v1\ntime " seconds "\n" text)   of a witness
//	hash      = SHA256(name "\n" algorithm key)[:4]
//	vkey      = name "+" hex(hash) "+" base64(algorithm key)    algorithm: 1, of a witness 4
//
// The forms are those of golang.org/x/mod/sumdb/note. That package's own reader
// accepts a signature whose base64 has non-zero trailing bits, and drops lines
// that stand twice; this one accepts of a note only the bytes that writing it
// again gives. Sources: c2sp.org/signed-note, c2sp.org/tlog-cosignature, and
// docs/format.md, sections 5 and 7.
//
// The package has no clock and asks nobody: which keys are good to begin with,
// and the time of the document that a note holds, come from the caller. It does
// not look into documents, but for those of key notes.
package sign

import (
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Sign returns the note of a text: signed by each signer, or the text and an
// empty line without any. It fails where a signer does, and where Parse would
// refuse what came of it: a text without its final newline, for one.
func Sign(text string, signers ...note.Signer) ([]byte, error) {
	if !strings.HasSuffix(text, "\n") {
		return nil, fmt.Errorf("%w: the text does not end with a newline", ErrNote)
	}
	body := []byte(text + "\n")
	if len(signers) > 0 {
		var err error
		if body, err = note.Sign(&note.Note{Text: text}, signers...); err != nil {
			return nil, err
		}
	}
	if _, err := Parse(body); err != nil {
		return nil, err
	}
	return body, nil
}
