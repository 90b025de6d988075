package sign

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// ErrCosignature: a signature is not one of a witness over a text.
var ErrCosignature = errors.New("not a cosignature of this text by this witness")

// A Witness is a key of somebody who follows logs and cosigns their checkpoints:
// an Ed25519 cosigner of c2sp.org/tlog-cosignature. (Its other kind, ML-DSA-44,
// is not known here.)
type Witness struct{ verifierKey }

// ParseWitness reads the vkey of a witness, whose algorithm byte is 4. An error
// matches [ErrKey].
func ParseWitness(vkey string) (*Witness, error) {
	k, err := parseVKey(strings.TrimSpace(vkey))
	if err != nil {
		return nil, err
	}
	if k.alg != algCosignature {
		return nil, fmt.Errorf("%w of a witness: algorithm %d, want %d", ErrKey, k.alg, algCosignature)
	}
	return &Witness{k}, nil
}

// Name returns the witness's name.
func (w *Witness) Name() string { return w.name }

// VKey returns the witness's verifier key.
func (w *Witness) VKey() string { return encodeVKey(w.name, algCosignature, w.key) }

// Signed reports whether a signature is in the name of the witness. Whether it
// is the witness's, Check says.
func (w *Witness) Signed(s Signature) bool { return s.Name == w.name && s.Hash == w.hash }

// Check returns when, by its own clock, the witness cosigned a checkpoint: that
// it knew of no larger tree of that log, and of none that this one does not
// continue. text is the checkpoint's, with its final newline. An error matches
// [ErrCosignature].
func (w *Witness) Check(text string, s Signature) (time.Time, error) {
	if !w.Signed(s) || len(s.Bytes) != 8+ed25519.SignatureSize {
		return time.Time{}, ErrCosignature
	}
	at := binary.BigEndian.Uint64(s.Bytes)
	if at > math.MaxInt64 || !ed25519.Verify(w.key, cosigned(int64(at), text), s.Bytes[8:]) {
		return time.Time{}, ErrCosignature
	}
	return time.Unix(int64(at), 0).UTC(), nil
}

// cosigned returns what a witness signs. It does not hold the witness's name.
func cosigned(seconds int64, text string) []byte {
	return fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", seconds, text)
}
