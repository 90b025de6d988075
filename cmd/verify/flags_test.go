package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

var auditor = prooftest.Signer("example/auditor")

// kept is what an auditor keeps elsewhere of the archive of signedFolder: the
// newest anchor, and the head of acme.
type kept struct {
	anchor []byte
	head   string // as --expect wants it
}

// signedFolder lays an archive that is signed and anchored, and the same as it
// was before its newest segment and anchor.
func signedFolder(t *testing.T) (whole, older string, k kept) {
	t.Helper()
	a := prooftest.New()
	a.Signers = []*sign.Signer{auditor}
	l := a.Line("audit.calls", 0)
	for range 3 {
		l.Segment(func(b *prooftest.Batch) {
			b.Call("acme")
			b.Call("a,b")
			b.Reject("acme", audit.ReasonInvalidJSON, []byte("{"))
		})
		l.Anchor()
	}
	objects := a.Objects()
	whole, older = t.TempDir(), t.TempDir()
	write(t, whole, objects)
	delete(objects, l.Key(2))
	delete(objects, l.AnchorKey(2))
	write(t, older, objects)
	return whole, older, kept{l.Anchors[2].Body, fmt.Sprintf("tenant=a%%2Cb,topic=audit.calls,partition=0,size=3,head=%s", l.Logs["a,b"].Head)}
}

func write(t *testing.T, dir string, objects map[string][]byte) {
	t.Helper()
	for key, body := range objects {
		path := filepath.Join(dir, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// asked runs the command as it is called, and requires an exit code and a text
// on stdout, or in the error.
func asked(t *testing.T, exit int, says string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	code, err := run(context.Background(), args, nil, &out, &bytes.Buffer{})
	said := out.String()
	if err != nil {
		said += err.Error()
	}
	if code != exit || !strings.Contains(said, says) {
		t.Errorf("%q: exit %d, want %d and %q: %s", args, code, exit, says, said)
	}
	return out.String()
}

// Exit 0 takes a key that signed, or the word that none is asked for.
func TestKeysAreGiven(t *testing.T) {
	whole, _, _ := signedFolder(t)
	other := prooftest.Signer("example/other")
	asked(t, 0, "consistent and signed by a known key (T1)", "--key", auditor.VKey(), whole)
	asked(t, 0, "(T1)", "--key", file(t, "# ours\n\n"+other.VKey()+"\n"+auditor.VKey()+"\n"), whole)
	asked(t, 3, "no key was given", whole)
	asked(t, 0, "(T0)", "--allow-unsigned", whole)
	asked(t, 3, "no anchor by a good key", "--key", other.VKey(), whole)
	asked(t, 2, "that is a private key", "--key", "PRIVATE+KEY+x+00000000+AAAA", whole)
	asked(t, 2, "that is a private key", "--key", file(t, "PRIVATE+KEY+x+00000000+AAAA\n"), whole)
	asked(t, 2, "there is no key in it", "--key", file(t, "\n# none\n"), whole)
	asked(t, 2, "not a key", "--key", strings.Replace(auditor.VKey(), "+", "+f", 1), whole)
	asked(t, 2, "no such file", "--key", "nowhere", whole)
}

// A head from elsewhere shows what a consistent and signed archive cannot.
func TestHeadsFromElsewhere(t *testing.T) {
	whole, older, k := signedFolder(t)
	key := []string{"--key", auditor.VKey()}
	report := asked(t, 0, "", append(key, "--json", whole)...)
	state := filepath.Join(t.TempDir(), "state")
	asked(t, 0, "(T1)", append(key, "--state", state, whole)...)
	anchor := file(t, string(k.anchor))
	for name, args := range map[string][]string{
		"a head":           {"--expect", k.head},
		"an anchor":        {"--expect", anchor},
		"an anchor, again": {"--expect-from", anchor},
		"a report":         {"--expect", file(t, report)},
		"a state":          {"--expect", state},
		"a folder":         {"--expect-from", whole + "/."},
	} {
		t.Run(name, func(t *testing.T) {
			args = append(key, args...)
			asked(t, 0, "(T", append(args, whole)...)
			asked(t, 1, "newest", append(args, older)...)
		})
	}
	asked(t, 0, "no shorter than an independent head (T2)", append(key, "--expect", anchor, whole)...)
	asked(t, 3, "the tenant was not asked for", append(key, "--expect", anchor, "--expect", strings.Replace(k.head, "size=3", "size=1,archive="+prooftest.ID, 1), "--tenant", "acme", "--json", whole)...)
	wrong := strings.Replace(k.head, "head=", "root=", 1)
	asked(t, 1, "the root of the log's tree at 3 rows is not the one", append(key, "--expect", wrong, whole)...)
	for _, bad := range []string{"tenant=x", "tenant=x,topic=y,partition=0,size=1,head=zz", "tenant=x,topic=y,partition=-1,size=1", "size=x", "nonsense=1", "tenant=%zz"} {
		asked(t, 2, "want", append(key, "--expect", bad, whole)...)
	}
	asked(t, 2, "neither a report", append(key, "--expect", file(t, "{}"), whole)...)
	asked(t, 2, "the archive itself", append(key, "--expect-from", whole, whole)...)
	asked(t, 2, "no such file", append(key, "--expect-from", "nowhere", whole)...)
	asked(t, 2, "want kafka://", append(key, "--expect-from", "kafka://", whole)...)
}

// The topic that ingest copies anchors to is an independent place: whatever else
// lies there is passed over.
func TestHeadsFromKafka(t *testing.T) {
	whole, older, k := signedFolder(t)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, anchorTopic), kfake.SeedTopics(1, "empty"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	brokers := strings.Join(cluster.ListenAddrs(), ",")
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i, value := range [][]byte{[]byte("no note"), k.anchor, nil, []byte(strings.Replace(string(k.anchor), `"number":2`, `"number":9`, 1))} {
		r := &kgo.Record{Topic: anchorTopic, Partition: int32(i % 2), Key: []byte("k"), Value: value}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	from := func(path string) []string {
		return []string{"--key", auditor.VKey(), "--expect-from", "kafka://" + brokers + path}
	}
	asked(t, 0, "(T2)", append(from(""), whole)...)
	asked(t, 0, "2 notes passed over", append(from("/"+anchorTopic), whole)...)
	asked(t, 1, "the line's anchors end before 2; kafka://", append(from(""), older)...)
	asked(t, 3, "has no head of audit.calls/0", append(from("/empty"), whole)...)
	asked(t, 2, "UNKNOWN_TOPIC", append(from("/nowhere"), whole)...)
}

// The next verification goes on from where one ended, and says so; what the
// first one saw must still be there.
func TestStates(t *testing.T) {
	whole, older, _ := signedFolder(t)
	key := []string{"--key", auditor.VKey()}
	state := filepath.Join(t.TempDir(), "state")
	asked(t, 0, "(T1)", append(key, "--state", state, older)...)
	before, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	asked(t, 0, "6 rows by verifications from", append(key, "--state", state, whole)...)
	asked(t, 1, "2 segments are there; at the verification of", append(key, "--state", state, older)...)
	if after, err := os.ReadFile(state); err != nil || bytes.Equal(before, after) {
		t.Errorf("%v: the state did not move on", err)
	}
	if info, err := os.Stat(state); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v: mode %v", err, info.Mode())
	}
	asked(t, 2, "it is damaged; remove it", append(key, "--state", file(t, "x"), whole)...)
	asked(t, 2, "not with --tenant", append(key, "--state", state, "--tenant", "acme", whole)...)
	asked(t, 2, "save the state", append(key, "--state", filepath.Join(t.TempDir(), "no", "where"), whole)...)
}

// A part of the rows can be asked for.
func TestParts(t *testing.T) {
	whole, _, _ := signedFolder(t)
	key := []string{"--key", auditor.VKey()}
	asked(t, 0, "they were hashed, not decoded", append(key, "--tenant", "acme", "--from-seq", "4", whole)...)
	asked(t, 3, "3 rows before those that were asked for", append(key, "--since", "2099-01-01", "--tenant", "a,b", whole)...)
	asked(t, 0, "(T1)", append(key, "--since", "2020-01-01T00:00:00Z", "--topic", "audit.calls", "--partition", "0", whole)...)
	asked(t, 3, "no segment of the topic", append(key, "--topic", "other", whole)...)
	asked(t, 2, "give --tenant", append(key, "--from-seq", "4", whole)...)
	for _, bad := range [][]string{{"--from-seq", "-1"}, {"--since", "yesterday"}, {"--partition", "x"}, {"--partition", "-1"}} {
		asked(t, 2, "want", append(append(key, bad...), whole)...)
	}
}

// A witness is a key of another kind.
func TestWitnessFlag(t *testing.T) {
	whole, _, _ := signedFolder(t)
	asked(t, 2, "witness", "--key", auditor.VKey(), "--witness", auditor.VKey(), whole)
	asked(t, 2, "there is no witness in it", "--key", auditor.VKey(), "--witness", file(t, "#\n"), whole)
	asked(t, 3, "no checkpoint with a cosignature by a given witness of 2 logs", "--key", auditor.VKey(),
		"--witness", witnessKey(), whole)
}

// witnessKey returns the vkey of a witness that has cosigned nothing.
func witnessKey() string {
	const name = "example/witness"
	data := append([]byte{4}, make([]byte, ed25519.PublicKeySize)...)
	hash := sha256.Sum256(append([]byte(name+"\n"), data...))
	return fmt.Sprintf("%s+%x+%s", name, hash[:4], base64.StdEncoding.EncodeToString(data))
}
