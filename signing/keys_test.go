package signing

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
)

// newKey makes a key and a file that holds it.
func newKey(t *testing.T, name string) (file string, s *sign.Signer) {
	t.Helper()
	skey, _, err := sign.Generate(rand.Reader, name)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = sign.NewSigner(skey); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "a.key")
	if err := os.WriteFile(file, []byte(skey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, s
}

func ringOf(t *testing.T, vkeys ...string) *sign.Ring {
	t.Helper()
	r := &sign.Ring{}
	for _, v := range vkeys {
		if err := r.Add(v, sign.AllRoles, "given"); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// Each key of a file signs; anchors say of it, and of those that are only named,
// that they are good, whatever the order of the settings.
func TestKeysOfFiles(t *testing.T) {
	fileA, a := newKey(t, "a")
	fileB, b := newKey(t, "b")
	_, c := newKey(t, "c")
	for _, files := range [][]string{{fileA, fileB}, {fileB, fileA}} {
		k, err := New(zap.NewNop(), Anchors, config.Keys{Files: files, Anchor: []string{c.VKey(), a.VKey()}, Catalog: []string{b.VKey()}, Control: []string{c.VKey()}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Begin(t.Context(), "ID", archive.NewMemory(), nil); err != nil {
			t.Fatal(err)
		}
		says := k.Says()
		if !slices.Equal(says.Anchor, []string{a.VKey(), b.VKey(), c.VKey()}) || !slices.Equal(says.Catalog, []string{b.VKey()}) || !slices.Equal(says.Control, []string{c.VKey()}) {
			t.Errorf("%+v", says)
		}
		body, err := sign.Sign("x\n", k.Signers()(time.Now())...)
		if err != nil {
			t.Fatal(err)
		}
		n, err := sign.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		if got := k.Ring().Check(n, sign.Anchor, time.Now()); got.State != sign.Good || len(got.By) != 2 {
			t.Errorf("%+v", got)
		}
	}
}

func TestWithoutKeysNothingIsSigned(t *testing.T) {
	log := new(safeBuffer)
	k, err := New(daemon.NewLogger(log, config.Log{Level: "info"}), Anchors, config.Keys{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Begin(t.Context(), "ID", archive.NewMemory(), nil); err != nil || k.Signers() != nil || !k.Ring().Empty() {
		t.Errorf("%v, %+v", err, k.Ring().Keys())
	}
	if !strings.Contains(log.String(), "anchors are not signed") {
		t.Errorf("it says nothing of it: %s", log)
	}
}

// What is wrong with a file is a fault of its setting, and shows nothing of it.
func TestKeyFilesThatHoldNone(t *testing.T) {
	good, s := newKey(t, "a")
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "b.key")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	secret := string(text[len(text)-20 : len(text)-1])
	for name, files := range map[string][]string{
		"no file":       {filepath.Join(t.TempDir(), "none")},
		"a vkey":        {write(s.VKey())},
		"cut":           {write(string(text[:len(text)-3]))},
		"one key twice": {good, write(string(text))},
		"empty":         {write("")},
	} {
		_, err := New(zap.NewNop(), Anchors, config.Keys{Files: files}, config.Origins{"anchor-key": "flag --anchor-key"})
		var fault *config.Error
		if !errors.As(err, &fault) || fault.Source != "flag --anchor-key" || !strings.Contains(err.Error(), files[len(files)-1]) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A world is a bucket, a copy of it, and a KMS that certifies, all of which can
// be away.
type world struct {
	*sign.Signer
	bucket, copy flaky
	log          *safeBuffer
	keys         *Keys

	mu   sync.Mutex
	away bool
}

var errAway = errors.New("away")

func (w *world) Sign(msg []byte) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away {
		return nil, errAway
	}
	return w.Signer.Sign(msg)
}

func (w *world) set(away bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = away
}

// A flaky bucket can be away, and can lose its replies.
type flaky struct {
	*archive.Memory
	mu         sync.Mutex
	away, mute bool
}

func (f *flaky) set(away, mute bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away, f.mute = away, mute
}

func (f *flaky) Create(ctx context.Context, key string, body []byte) (time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away {
		return time.Time{}, errAway
	}
	at, err := f.Memory.Create(ctx, key, body)
	if f.mute {
		return time.Time{}, errAway
	}
	return at, err
}

const life = 168 * time.Hour

func newWorld(t *testing.T) *world {
	t.Helper()
	_, kms := newKey(t, "example.org/kms")
	w := &world{Signer: kms, log: new(safeBuffer)}
	w.bucket.Memory, w.copy.Memory = archive.NewMemory(), archive.NewMemory()
	for _, b := range []*archive.Memory{w.bucket.Memory, w.copy.Memory} {
		if _, err := b.Create(t.Context(), archive.RootKey, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	w.keys = &Keys{
		log: daemon.NewLogger(w.log, config.Log{Level: "info"}), use: Anchors, settings: config.Keys{Life: life}, ring: ringOf(t, kms.VKey()),
		kms: w, id: "ID", bucket: &w.bucket, second: &w.copy,
	}
	return w
}

// start certifies the first key and renews.
func (w *world) start(t *testing.T) {
	t.Helper()
	if err := w.keys.first(t.Context()); err != nil {
		t.Fatal(err)
	}
	go w.keys.renew(t.Context())
	synctest.Wait()
}

// verdict is what somebody who knows the KMS key alone, and reads the
// certificates from a bucket, says of an anchor of now; Unsigned where there is
// none, for nothing signs.
func (w *world) verdict(t *testing.T, b *archive.Memory) sign.State {
	t.Helper()
	ring := ringOf(t, w.VKey())
	for key, body := range objects(t, b) {
		vkey, err := ring.AddKeyNote(body, "ID")
		if err != nil || key != sign.KeyNoteKey(vkey) {
			t.Errorf("%s: %s, %v", key, body, err)
		}
	}
	signers := w.keys.signers(time.Now())
	if len(signers) == 0 {
		return sign.Unsigned
	}
	body, err := sign.Sign("x\n", signers...)
	if err != nil {
		t.Fatal(err)
	}
	n, err := sign.Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	return ring.Check(n, sign.Anchor, time.Now()).State
}

func objects(t *testing.T, b *archive.Memory) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for o, err := range b.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if o.Key == archive.RootKey {
			continue
		}
		body, err := b.Get(t.Context(), o.Key)
		if err != nil {
			t.Fatal(err)
		}
		all[o.Key] = body
	}
	return all
}

// A key signs for half of its life; then the next one does, whose certificate is
// in the bucket before, and in the second one too. What is signed is always good.
func TestKeysAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(t)
		time.Sleep(renewAgain)
		synctest.Wait()
		for day := range 28 {
			for _, b := range []*archive.Memory{w.bucket.Memory, w.copy.Memory} {
				if got := w.verdict(t, b); got != sign.Good {
					t.Fatalf("day %d: %v", day, got)
				}
			}
			time.Sleep(24 * time.Hour)
			synctest.Wait()
		}
		if got := len(objects(t, w.bucket.Memory)); got != 1+28*24/84 {
			t.Errorf("%d certificates in 28 days", got)
		}
	})
}

// KMS may be away for the second half of a key's life. After it nothing signs,
// until KMS is there again.
func TestKeysEndWithoutKMS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(t)
		w.set(true)
		time.Sleep(life - 90*time.Second)
		if got := w.verdict(t, w.bucket.Memory); got != sign.Good {
			t.Errorf("before the end: %v", got)
		}
		if strings.Count(w.log.String(), "is not renewed; trying again") == 0 || strings.Contains(w.log.String(), "anchors wait") {
			t.Errorf("the log begins with: %.1000s", w.log)
		}
		time.Sleep(time.Hour)
		if got := w.verdict(t, w.bucket.Memory); got != sign.Unsigned {
			t.Errorf("behind the end: %v", got)
		}
		if !strings.Contains(w.log.String(), `"level":"error"`) || !strings.Contains(w.log.String(), "anchors wait") {
			t.Errorf("the log begins with: %.1000s", w.log)
		}
		w.set(false)
		time.Sleep(renewAgain)
		synctest.Wait()
		if got := w.verdict(t, w.bucket.Memory); got != sign.Good {
			t.Errorf("when KMS is there again: %v", got)
		}
	})
}

// A key does not sign before its certificate is in the bucket: an anchor by it
// would be a forgery to whoever reads the bucket.
func TestKeysWaitForTheirCertificate(t *testing.T) {
	for name, trouble := range map[string]func(*flaky){
		"away":               func(f *flaky) { f.set(true, false) },
		"its reply was lost": func(f *flaky) { f.set(false, true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start(t)
				before := w.keys.current.Load()
				trouble(&w.bucket)
				time.Sleep(life/2 + 10*time.Minute)
				synctest.Wait()
				if w.keys.current.Load() != before || w.verdict(t, w.bucket.Memory) != sign.Good {
					t.Error("another key signs")
				}
				w.bucket.set(false, false)
				time.Sleep(renewAgain)
				synctest.Wait()
				if w.keys.current.Load() == before || w.verdict(t, w.bucket.Memory) != sign.Good {
					t.Error("no other key signs")
				}
				if got := len(objects(t, w.bucket.Memory)); got != 2 {
					t.Errorf("%d certificates of 2 keys", got)
				}
			})
		})
	}
}

// The second bucket may be away: anchors are signed all the same, and it gets
// the certificates when it is back.
func TestCopiesGetTheirCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.copy.set(true, false)
		w.start(t)
		time.Sleep(life/2 + time.Hour)
		synctest.Wait()
		if got := w.verdict(t, w.bucket.Memory); got != sign.Good || len(objects(t, w.copy.Memory)) != 0 {
			t.Errorf("%v", got)
		}
		w.copy.set(false, false)
		time.Sleep(renewAgain)
		synctest.Wait()
		if got := w.verdict(t, w.copy.Memory); got != sign.Good || len(objects(t, w.copy.Memory)) != 2 || len(w.keys.owed) != 0 {
			t.Errorf("%v, %d owed", got, len(w.keys.owed))
		}
	})
}

// A bucket that is no copy of this archive gets nothing.
func TestOtherArchivesGetNoCertificates(t *testing.T) {
	for name, root := range map[string]string{"none": "", "another": "{ }"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.copy.Memory = archive.NewMemory()
			if root != "" {
				if _, err := w.copy.Create(t.Context(), archive.RootKey, []byte(root)); err != nil {
					t.Fatal(err)
				}
			}
			w.start(t)
			time.Sleep(life)
			synctest.Wait()
			if got := objects(t, w.copy.Memory); len(got) > 0 || !strings.Contains(w.log.String(), "the second bucket does not get") {
				t.Errorf("%s: %v", name, got)
			}
		})
	}
}

// Somebody who writes something else where the certificate is to be only costs a
// key.
func TestCertificatesThatAreSquatted(t *testing.T) {
	w := newWorld(t)
	c, err := w.keys.generate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w.keys.pending = c
	if _, err := w.bucket.Memory.Create(t.Context(), sign.KeyNoteKey(c.signer.VKey()), []byte("squatter")); err != nil {
		t.Fatal(err)
	}
	if err := w.keys.certify(t.Context(), time.Now()); !errors.Is(err, errOtherCertificate) || len(w.keys.signers(time.Now())) != 0 {
		t.Errorf("%v", err)
	}
	if err := w.keys.certify(t.Context(), time.Now()); err != nil || w.keys.current.Load().signer.VKey() == c.signer.VKey() {
		t.Errorf("%v", err)
	}
}

// A safeBuffer may be read while somebody writes.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

var _ note.Signer = (*world)(nil)
