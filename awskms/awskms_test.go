package awskms

import (
	"context"
	"crypto/ed25519"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/awskms/kmstest"
)

const keyID = "1234abcd-12ab-34cd-56ef-1234567890ab"

func private(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(slices.Repeat([]byte{n}, ed25519.SeedSize))
}

// options reach a server, and try again without waiting.
func options(s *kmstest.Server) Options {
	return Options{Name: "example.org/kms", Endpoint: s.URL, backoff: retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })}
}

func open(t *testing.T, s *kmstest.Server, id string) *Key {
	t.Helper()
	k, err := Open(t.Context(), id, options(s))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A note that KMS signed is good for whoever has the vkey, and knows no KMS.
func TestNotesSignedByKMSAreGood(t *testing.T) {
	s := kmstest.New(t, map[string]kmstest.Key{keyID: kmstest.Ed25519(private(1))})
	s.Alias("alias/ledgerlake", keyID)
	for _, id := range []string{keyID, kmstest.ARN(keyID), "alias/ledgerlake"} {
		k := open(t, s, id)
		if k.ARN() != kmstest.ARN(keyID) || k.Name() != "example.org/kms" {
			t.Errorf("%s, %s", k.ARN(), k.Name())
		}
		body, err := sign.Sign("text\n", k)
		if err != nil {
			t.Fatal(err)
		}
		n, err := sign.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		var ring sign.Ring
		if err := ring.Add(k.VKey(), sign.AllRoles, "given"); err != nil {
			t.Fatal(err)
		}
		if got := ring.Check(n, sign.Anchor, time.Time{}); got.State != sign.Good {
			t.Errorf("%+v", got)
		}
	}
}

func TestKeysThatAreUnfitAreRefused(t *testing.T) {
	good := kmstest.Ed25519(private(1))
	p256 := kmstest.P256(t)
	with := func(change func(*kmstest.Key)) kmstest.Key {
		k := good
		change(&k)
		return k
	}
	for says, k := range map[string]kmstest.Key{
		`KeySpec is "ECC_NIST_P256"`:     p256,
		`KeySpec is "SYMMETRIC_DEFAULT"`: with(func(k *kmstest.Key) { k.Spec = "SYMMETRIC_DEFAULT" }),
		`KeyUsage is "KEY_AGREEMENT"`:    with(func(k *kmstest.Key) { k.Usage = "KEY_AGREEMENT" }),
		"does not offer ED25519_SHA_512": with(func(k *kmstest.Key) { k.Algorithms = []string{"ED25519_PH_SHA_512"} }),
		"its public key is not Ed25519":  with(func(k *kmstest.Key) { k.Public = p256.Public }),
		`its KeySpec is ""`:              with(func(k *kmstest.Key) { k.Spec = "" }),
	} {
		t.Run(says, func(t *testing.T) {
			s := kmstest.New(t, map[string]kmstest.Key{keyID: k})
			_, err := Open(t.Context(), keyID, options(s))
			if !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
			if got := s.Calls(); !slices.Equal(got, []string{"GetPublicKey"}) {
				t.Errorf("it asked %v", got)
			}
		})
	}
}

func TestMessagesThatAreTooLongStayHere(t *testing.T) {
	s := kmstest.New(t, map[string]kmstest.Key{keyID: kmstest.Ed25519(private(1))})
	k := open(t, s, keyID)
	if _, err := k.Sign(make([]byte, MaxMessage+1)); !errors.Is(err, ErrTooLong) {
		t.Errorf("%v", err)
	}
	if _, err := k.Sign(make([]byte, MaxMessage)); err != nil {
		t.Error(err)
	}
	if got := s.Calls(); !slices.Equal(got, []string{"GetPublicKey", "Sign"}) {
		t.Errorf("it asked %v", got)
	}
}

func TestSignaturesAreChecked(t *testing.T) {
	s := kmstest.New(t, map[string]kmstest.Key{keyID: kmstest.Ed25519(private(1))})
	k := open(t, s, keyID)
	s.Tamper()
	if signature, err := k.Sign([]byte("x")); !errors.Is(err, ErrForged) || signature != nil {
		t.Errorf("%x, %v", signature, err)
	}
}

// An alias that is moved to another key moves nothing that is open: the notes of
// a process stay by the vkey that it named.
func TestAliasesAreAskedOnce(t *testing.T) {
	const other = "ffffabcd-12ab-34cd-56ef-1234567890ab"
	s := kmstest.New(t, map[string]kmstest.Key{keyID: kmstest.Ed25519(private(1)), other: kmstest.Ed25519(private(2))})
	s.Alias("alias/a", keyID)
	k := open(t, s, "alias/a")
	s.Alias("alias/a", other)
	signature, err := k.Sign([]byte("x"))
	if err != nil || !ed25519.Verify(private(1).Public().(ed25519.PublicKey), []byte("x"), signature) {
		t.Errorf("%v", err)
	}
	if moved := open(t, s, "alias/a"); moved.VKey() == k.VKey() {
		t.Error("the alias stands for the old key")
	}
}

// KMS throttles, fails and is cut off: each is tried again, a few times.
func TestFaultsThatPassAreTriedAgain(t *testing.T) {
	s := kmstest.New(t, map[string]kmstest.Key{keyID: kmstest.Ed25519(private(1))})
	s.Fail(kmstest.Throttled, kmstest.Internal, kmstest.Busy, kmstest.Cut)
	k := open(t, s, keyID)
	s.Fail(kmstest.Cut, kmstest.Throttled, kmstest.Throttled, kmstest.Internal)
	if _, err := k.Sign([]byte("x")); err != nil {
		t.Error(err)
	}
	s.Fail(slices.Repeat([]kmstest.Fault{kmstest.Throttled}, 5)...)
	before := len(s.Calls())
	var answer *Error
	if _, err := k.Sign([]byte("x")); !errors.As(err, &answer) || answer.Code != "ThrottlingException" || !Transient(err) {
		t.Errorf("%v", err)
	}
	if got := len(s.Calls()) - before; got != 5 {
		t.Errorf("%d attempts", got)
	}
}

// Whoever does not hear from KMS may ask again; whoever was refused may not.
func TestWhatMayPass(t *testing.T) {
	s := kmstest.New(t, map[string]kmstest.Key{keyID: kmstest.Ed25519(private(1))})
	for name, fault := range map[string]kmstest.Fault{"cut": kmstest.Cut, "busy": kmstest.Busy, "internal": kmstest.Internal, "throttled": kmstest.Throttled} {
		s.Fail(slices.Repeat([]kmstest.Fault{fault}, 5)...)
		if _, err := Open(t.Context(), keyID, options(s)); err == nil || !Transient(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := options(s)
	o.Endpoint = "http://127.0.0.1:1"
	if _, err := Open(t.Context(), keyID, o); err == nil || !Transient(err) {
		t.Errorf("nobody there: %v", err)
	}
	for _, err := range []error{ErrUnfit, ErrForged, ErrTooLong, sign.ErrKey, context.DeadlineExceeded} {
		if Transient(err) {
			t.Errorf("%v", err)
		}
	}
}

// What does not pass is said once, in one line that names the key.
func TestFaultsThatStayAreSaid(t *testing.T) {
	s := kmstest.New(t, map[string]kmstest.Key{keyID: kmstest.Ed25519(private(1))})
	for name, test := range map[string]struct {
		id    string
		fault []kmstest.Fault
		want  string
	}{
		"no such key": {"alias/none", nil, "kms: get public key of alias/none: NotFoundException: Key 'alias/none' does not exist"},
		"denied":      {keyID, []kmstest.Fault{kmstest.Denied}, "kms: get public key of " + keyID + ": AccessDeniedException: so the test wants it"},
	} {
		s.Fail(test.fault...)
		before := len(s.Calls())
		_, err := Open(t.Context(), test.id, options(s))
		if err == nil || err.Error() != test.want || Transient(err) {
			t.Errorf("%s: %v", name, err)
		}
		if got := len(s.Calls()) - before; got != 1 {
			t.Errorf("%s: %d attempts", name, got)
		}
	}
}

func TestNothingIsSignedWhenItIsTooLate(t *testing.T) {
	s := kmstest.New(t, map[string]kmstest.Key{keyID: kmstest.Ed25519(private(1))})
	k := open(t, s, keyID)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.SignContext(ctx, []byte("x")); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	for says, o := range map[string]Options{
		"a name is not empty":                {},
		"neither spaces nor +":               {Name: "a b"},
		"endpoint=kms:1":                     {Name: "a", Endpoint: "kms:1"},
		"endpoint=http://h/p":                {Name: "a", Endpoint: "http://h/p"},
		"endpoint holds credentials":         {Name: "a", Endpoint: "http://user:word@h"},
		"endpoint is not a URL":              {Name: "a", Endpoint: "http://%zz"},
		"endpoint=ftp://h: want http://host": {Name: "a", Endpoint: "ftp://h"},
	} {
		if _, err := Open(t.Context(), keyID, o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// Who gives no credentials is told where they are looked for.
func TestCredentialsAreNeeded(t *testing.T) {
	s := kmstest.New(t, nil)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	_, err := Open(t.Context(), keyID, options(s))
	if err == nil || !strings.Contains(err.Error(), "credentials") || strings.Contains(err.Error(), "\n") || Transient(err) {
		t.Errorf("%v", err)
	}
	if got := s.Calls(); len(got) != 0 {
		t.Errorf("it asked %v", got)
	}
}

// A key lies in one region, and an ARN names it: the requests are then signed
// for that one, which the server checks.
func TestARNsNameTheirRegion(t *testing.T) {
	s := kmstest.New(t, map[string]kmstest.Key{keyID: kmstest.Ed25519(private(1))})
	t.Setenv("AWS_REGION", "us-west-2")
	open(t, s, kmstest.ARN(keyID))
	o := options(s)
	o.Region = kmstest.Region
	if _, err := Open(t.Context(), keyID, o); err != nil {
		t.Error(err)
	}
}
