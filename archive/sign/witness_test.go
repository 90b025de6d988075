package sign

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"testing"
	"time"
)

// cosigner signs as a witness does.
type cosigner struct {
	name string
	key  ed25519.PrivateKey
	at   int64
}

func (c cosigner) public() ed25519.PublicKey { return c.key.Public().(ed25519.PublicKey) }
func (c cosigner) vkey() string              { return encodeVKey(c.name, algCosignature, c.public()) }
func (c cosigner) Name() string              { return c.name }

func (c cosigner) KeyHash() uint32 {
	return keyHash(c.name, append([]byte{algCosignature}, c.public()...))
}

func (c cosigner) Sign(msg []byte) ([]byte, error) {
	at := binary.BigEndian.AppendUint64(nil, uint64(c.at))
	return append(at, ed25519.Sign(c.key, cosigned(c.at, string(msg)))...), nil
}

const checkpointText = "example.org/log\n7\nqEou0UazWJWDZZeNiDErzfP+6WHcsxgheuxeJEKnlv8=\n"

// A note that github.com/transparency-dev/formats v0.1.1 cosigned, with the key
// whose seed is the bytes 0 to 31.
const (
	otherWitness   = "witness.example/w1+e75f6532+BAOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4"
	otherCosigned  = checkpointText + "\n— witness.example/w1 519lMgAAAABrDSEcYIFlL1M2/fTbj8RwaCaHOPNkcbXGQPSt1ynqSaDur5K9VhWul645nN3TnC26xLWPvbehQaiK2qo0+xBhfJupBQ==\n"
	otherTimestamp = 0x6b0d211c
)

func TestCosignaturesOfAnotherImplementation(t *testing.T) {
	w, err := ParseWitness(otherWitness + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if w.VKey() != otherWitness || w.Name() != "witness.example/w1" {
		t.Errorf("%s, %s", w.Name(), w.VKey())
	}
	n := parse(t, []byte(otherCosigned))
	at, err := w.Check(n.Text, n.Signatures[0])
	if err != nil || at.Unix() != otherTimestamp {
		t.Errorf("%v, %v", at, err)
	}
}

// A cosignature holds one text and one time: every bit of both is bound.
func TestCosignaturesBindTextAndTime(t *testing.T) {
	c := cosigner{"witness.example/w1", newSigner(t, "any").key, 1764486000}
	w, err := ParseWitness(c.vkey())
	if err != nil {
		t.Fatal(err)
	}
	body, err := Sign(checkpointText, newSigner(t, "log"), c)
	if err != nil {
		t.Fatal(err)
	}
	n := parse(t, body)
	s := n.Signatures[1]
	if at, err := w.Check(n.Text, s); err != nil || !at.Equal(time.Unix(c.at, 0)) {
		t.Fatalf("%v, %v", at, err)
	}
	for i := range len(n.Text) * 8 {
		if _, err := w.Check(string(flip([]byte(n.Text), i)), s); !errors.Is(err, ErrCosignature) {
			t.Fatalf("bit %d of the text flipped: %v", i, err)
		}
	}
	for i := range len(s.Bytes) * 8 {
		if _, err := w.Check(n.Text, Signature{s.Name, s.Hash, flip(s.Bytes, i)}); !errors.Is(err, ErrCosignature) {
			t.Fatalf("bit %d of the signature flipped: %v", i, err)
		}
	}
	for name, bad := range map[string]Signature{
		"name":     {"other", s.Hash, s.Bytes},
		"hash":     {s.Name, s.Hash + 1, s.Bytes},
		"short":    {s.Name, s.Hash, s.Bytes[:71]},
		"long":     {s.Name, s.Hash, append(s.Bytes[:72:72], 0)},
		"the logs": n.Signatures[0],
	} {
		if _, err := w.Check(n.Text, bad); !errors.Is(err, ErrCosignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A witness's key is no key for anchors, and the other way round: the same 32
// bytes stand under another hash.
func TestWitnessesAreNoSigners(t *testing.T) {
	s := newSigner(t, "witness.example/w1")
	c := cosigner{s.Name(), s.key, 1}
	var ring Ring
	if err := ring.Add(c.vkey(), AllRoles, "given"); !errors.Is(err, ErrKey) || !ring.Empty() {
		t.Errorf("a ring takes a witness: %v", err)
	}
	if _, err := ParseWitness(s.VKey()); !errors.Is(err, ErrKey) {
		t.Errorf("a signer is a witness: %v", err)
	}
	if err := ring.Add(s.VKey(), AllRoles, "given"); err != nil {
		t.Fatal(err)
	}
	body, err := Sign(checkpointText, c)
	if err != nil {
		t.Fatal(err)
	}
	if got := ring.Check(parse(t, body), Anchor, time.Time{}); got.State != Unknown {
		t.Errorf("a cosignature counts as a signature: %+v", got)
	}
}

// flip returns b with one bit changed.
func flip(b []byte, bit int) []byte {
	c := append([]byte(nil), b...)
	c[bit/8] ^= 1 << (bit % 8)
	return c
}
