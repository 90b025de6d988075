package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/awskms/kmstest"
	"github.com/ledgerlake/ledgerlake/pipeline"
	"github.com/ledgerlake/ledgerlake/proof"
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

// certified proves the archive of a stage by one key alone.
func (s *stage) certified(vkey string) *proof.Report {
	s.t.Helper()
	r, err := proof.Verify(s.t.Context(), s.store.Memory, proof.Options{Keys: ringOf(s.t, vkey)})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *stage) requireSigned(vkey string, rows int64) {
	s.t.Helper()
	if r := s.certified(vkey); r.ExitCode() != 0 || r.Tier != "T1" || r.Totals.Rows != rows {
		s.t.Errorf("by %s: exit %d, %s, %d rows, %+v", vkey, r.ExitCode(), r.Tier, r.Totals.Rows, r.Faults)
	}
}

// One key takes the place of another in three starts, with no clock: old, both,
// new. Whoever was given any of the two proves all of it.
func TestRotationOfKeys(t *testing.T) {
	s := newStage(t, kfake.SeedTopics(1, "calls"))
	oldFile, old := newKey(t, "example.org/2026")
	newFile, next := newKey(t, "example.org/2027")
	_, other := newKey(t, "example.org/other")
	rows := int64(0)
	for _, files := range []string{oldFile, oldFile + "," + newFile, newFile} {
		s.produce("calls", 0, 2)
		rows += 2
		s.archive(rows, "--anchor-key", files)
		s.requireSigned(old.VKey(), rows)
	}
	s.requireSigned(next.VKey(), rows)
	if r := s.certified(other.VKey()); r.ExitCode() == 0 {
		t.Errorf("proved by a key that nobody introduced: %+v", r)
	}
}

// A key that nobody introduced does not go on from anchors of another: the
// partition stops before anything is signed. Told of the old key, it does; and
// whoever knows the new key alone proves all of it.
func TestKeysThatNobodyIntroduced(t *testing.T) {
	s := newStage(t, kfake.SeedTopics(1, "calls"))
	oldFile, old := newKey(t, "example.org/2026")
	newFile, next := newKey(t, "example.org/2027")
	s.produce("calls", 0, 2)
	s.archive(2, "--anchor-key", oldFile)
	s.produce("calls", 0, 2)
	a := s.start("--topics", "calls", "--anchor-key", newFile)
	s.until("the partition stops", func() bool { return strings.Contains(a.log.String(), "partition stopped") })
	if err := a.stop(); !errors.Is(err, pipeline.ErrPartitionStopped) || !strings.Contains(a.log.String(), "signed by a key that anchor-keys does not name: example.org/2026+") {
		t.Errorf("%v", err)
	}
	s.requireSigned(old.VKey(), 2)
	s.archive(4, "--anchor-key", newFile, "--anchor-keys", old.VKey())
	s.requireSigned(next.VKey(), 4)
	if r := s.certified(old.VKey()); r.ExitCode() != 1 {
		t.Errorf("by the old key alone, which introduced nobody: exit %d", r.ExitCode())
	}
}

// archive runs an ingest until so many records are archived.
func (s *stage) archive(records int64, args ...string) {
	s.t.Helper()
	a := s.start(append([]string{"--topics", "calls"}, args...)...)
	s.until("it runs", a.holds(1))
	s.until("all is archived", func() bool { return s.committed("calls", 0) == records })
	if err := a.stop(); err != nil {
		s.t.Fatal(err)
	}
}

const kmsID = "1234abcd-12ab-34cd-56ef-1234567890ab"

// kmsArgs have ingest certify by a stand-in of KMS.
func kmsArgs(s *kmstest.Server) []string {
	return []string{"--anchor-kms-key", kmsID, "--anchor-key-name", "example.org/kms", "--kms.endpoint", s.URL, "--kms.region", kmstest.Region}
}

// With KMS an auditor needs the vkey of the KMS key alone, whatever keys the
// processes made for themselves. KMS signs once for each of them.
func TestKMSCertifiesWhatSigns(t *testing.T) {
	private := ed25519.NewKeyFromSeed(slices.Repeat([]byte{7}, 32))
	server := kmstest.New(t, map[string]kmstest.Key{kmsID: kmstest.Ed25519(private)})
	s := newStage(t, kfake.SeedTopics(1, "calls"))
	server.Fail(kmstest.Throttled)
	for n := range 2 {
		s.produce("calls", 0, 2)
		s.archive(int64(2*n+2), kmsArgs(server)...)
	}
	s.requireSigned(sign.VKey("example.org/kms", private.Public().(ed25519.PublicKey)), 4)
	if got := server.Calls(); !slices.Equal(got, []string{"GetPublicKey", "GetPublicKey", "Sign", "GetPublicKey", "Sign"}) {
		t.Errorf("KMS was asked %v", got)
	}
	notes := 0
	for key, body := range objects(t, s.store.Memory) {
		if strings.HasPrefix(key, "key/") {
			notes++
		}
		if strings.HasPrefix(key, "anchor/") && !bytes.Contains(body, []byte(`"keys":{"anchor":["`+sign.VKey("example.org/kms", private.Public().(ed25519.PublicKey))+`"]`)) {
			t.Errorf("an anchor says: %s", body)
		}
	}
	if notes != 2 {
		t.Errorf("%d certificates of 2 keys", notes)
	}
}

// A KMS key that cannot sign notes ends the start as a fault of its setting.
func TestKMSKeysThatAreUnfit(t *testing.T) {
	server := kmstest.New(t, map[string]kmstest.Key{kmsID: kmstest.P256(t)})
	s := newStage(t, kfake.SeedTopics(1, "calls"))
	a := s.start(append(kmsArgs(server), "--topics", "calls")...)
	err := <-a.ended
	if exitCode(err) != exitBadUse || !strings.Contains(err.Error(), "anchor-kms-key (flag --anchor-kms-key): "+kmsID+": KMS key is unfit") {
		t.Errorf("%v", err)
	}
}
