package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/internal/devstack"
	"github.com/ledgerlake/ledgerlake/internal/scan"
	"github.com/ledgerlake/ledgerlake/pipeline"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// A stage is a Kafka and an S3 in this process, an ingest that archives what is
// produced, and what the commands are given to reach both.
type stage struct {
	t      *testing.T
	stack  *devstack.Stack
	bucket *s3sink.Bucket
	client *kgo.Client
	keys   map[string]string // files, by what they sign
	vkeys  map[string]string
	args   []string // of commands that order
	ingest func()   // stops it
	sent   int
	traces string // where compactors send them
}

const audited = "audit.calls"

// newStage brings it all up. The grace is short, so that a test sees the end of
// an erasure.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, keys: map[string]string{}, vkeys: map[string]string{}}
	var err error
	s.stack, err = devstack.Up(t.Context(), devstack.Options{Dir: t.TempDir(), Topics: []devstack.Topic{{Name: audited, Partitions: 2}, {Name: "ledgerlake.control", Partitions: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.stack.Close() })
	dir := t.TempDir()
	for _, what := range []string{"anchors", "catalogs", "control"} {
		skey, vkey, err := sign.Generate(rand.Reader, what+".example")
		if err != nil {
			t.Fatal(err)
		}
		s.keys[what], s.vkeys[what] = filepath.Join(dir, what), vkey
		if err := os.WriteFile(s.keys[what], []byte(skey+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	url := fmt.Sprintf("s3://%s?endpoint=%s&region=%s", devstack.DefaultBucket, s.stack.Endpoint(), devstack.Region)
	s.bucket, err = s3sink.Open(t.Context(), url, s3sink.Options{AccessKey: devstack.AccessKey, SecretKey: devstack.SecretKey})
	if err != nil {
		t.Fatal(err)
	}
	root := fmt.Sprintf(`{"format":"ledgerlake-v1","archiveId":%q,"createdAt":"2026-05-28T20:26:40.000000Z","graceSeconds":2}`, ulid.Make())
	if _, err := s.bucket.Create(t.Context(), archive.RootKey, []byte(root)); err != nil {
		t.Fatal(err)
	}
	if s.client, err = kgo.NewClient(kgo.SeedBrokers(s.stack.Brokers()), kgo.RecordPartitioner(kgo.ManualPartitioner())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	s.args = []string{"--bucket", url, "--brokers", s.stack.Brokers(), "--key", s.vkeys["anchors"], "--control-key", s.keys["control"], "--purge-after", "8s", "--late-window", "4s"}
	return s
}

var environ = []string{"LEDGERLAKE_S3_ACCESS_KEY=" + devstack.AccessKey, "LEDGERLAKE_S3_SECRET_KEY=" + devstack.SecretKey, "USER=dpo"}

// archiving starts an ingest.
func (s *stage) archiving() {
	s.t.Helper()
	text, err := os.ReadFile(s.keys["anchors"])
	if err != nil {
		s.t.Fatal(err)
	}
	signer, err := sign.NewSigner(string(text))
	if err != nil {
		s.t.Fatal(err)
	}
	ring := &sign.Ring{}
	for what, role := range map[string]sign.Role{"anchors": sign.AllRoles, "catalogs": sign.Catalog, "control": sign.Control} {
		if err := ring.Add(s.vkeys[what], role, "test"); err != nil {
			s.t.Fatal(err)
		}
	}
	settings := pipeline.Settings{
		Archive: s.bucket, Client: []kgo.Opt{kgo.SeedBrokers(s.stack.Brokers())}, Topics: []string{audited}, ControlTopic: "ledgerlake.control",
		Signers: func(time.Time) []note.Signer { return []note.Signer{signer} }, Keys: ring, AnchorEvery: 500 * time.Millisecond,
		AnchorKeys: archive.AnchorKeys{Anchor: []string{s.vkeys["anchors"]}, Catalog: []string{s.vkeys["catalogs"]}, Control: []string{s.vkeys["control"]}},
	}
	if settings.Root, err = pipeline.OpenArchive(s.t.Context(), settings); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	events := pipeline.Events{Stopped: func(l archive.Line, err error) { s.t.Errorf("ingest of %v stopped: %v", l, err) }}
	go func() { ended <- pipeline.New(settings, events).Run(ctx) }()
	s.ingest = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(s.ingest)
}

// produce sends one record of a tenant.
func (s *stage) produce(tenant, user, session, turn, secret string, at time.Time) (id string, offset int64) {
	s.t.Helper()
	s.sent++
	id = ulid.Make().String()
	r := &kgo.Record{Topic: audited, Partition: partitionOf(tenant), Value: fmt.Appendf(nil,
		`{"recordId":%q,"sessionId":%q,"turnId":%q,"stageId":"synthesize","seqWithinTurn":%d,"createdAt":%q,"tenantId":%q,"principal":{"userId":%q},"decision":{"said":%q}}`,
		id, session, turn, s.sent, at.UTC().Format("2006-01-02T15:04:05.000Z"), tenant, user, secret)}
	if err := s.client.ProduceSync(s.t.Context(), r).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
	return id, r.Offset
}

func partitionOf(tenant string) int32 {
	if tenant == "acme" {
		return 0
	}
	return 1
}

// call runs a command as main does.
func (s *stage) call(args ...string) (stdout string, code int, err error) {
	s.t.Helper()
	var out, log bytes.Buffer
	err = run(s.t.Context(), args, environ, &out, &log)
	if code = exitCode(err); code == exitFailed {
		s.t.Logf("%q: %v\n%s%s", args, err, &out, &log)
	}
	return out.String(), code, err
}

// order runs a command that orders something, and requires an exit code.
func (s *stage) order(want int, args ...string) (told placed) {
	s.t.Helper()
	out, code, err := s.call(slices.Concat(args, s.args, []string{"--json"})...)
	if code != want {
		s.t.Fatalf("%q: exit %d, want %d: %v", args, code, want, err)
	}
	if code == exitDone {
		if err := json.Unmarshal([]byte(out), &told); err != nil {
			s.t.Fatalf("%q: %v: %s", args, err, out)
		}
	}
	return told
}

// states returns how all orders stand, by id.
func (s *stage) states() map[string]erasureJSON {
	s.t.Helper()
	out, code, err := s.call(slices.Concat([]string{"erasures", "--json"}, s.looks())...)
	if code != exitDone {
		s.t.Fatalf("erasures: exit %d: %v", code, err)
	}
	var told struct{ Erasures []erasureJSON }
	if err := json.Unmarshal([]byte(out), &told); err != nil {
		s.t.Fatal(err)
	}
	all := map[string]erasureJSON{}
	for _, e := range told.Erasures {
		all[e.ID] = e
	}
	return all
}

// looks are the arguments of commands that only read.
func (s *stage) looks() (args []string) {
	for i := 0; i < len(s.args); i += 2 {
		if s.args[i] != "--brokers" && s.args[i] != "--control-key" {
			args = append(args, s.args[i:i+2]...)
		}
	}
	return args
}

// until waits for something that is about to happen.
func (s *stage) until(what string, happened func() bool) {
	s.t.Helper()
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(100 * time.Millisecond) {
		if happened() {
			return
		}
	}
	s.t.Fatalf("a minute, and not yet: %s: %+v", what, s.states())
}

// compacting starts a compactor, which the returned func stops.
func (s *stage) compacting(args ...string) (stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log := new(safeBuffer)
	ended := make(chan error, 1)
	args = slices.Concat([]string{
		"run", "--topics", audited, "--catalog-key", s.keys["catalogs"], "--compact.every", "200ms", "--compact.max-age", "1s",
		"--compact.sweep-every", "1s", "--http.listen", "127.0.0.1:0", "--log-level", "debug",
	}, args, s.args)
	environ := append(slices.Clone(environ), "OTEL_EXPORTER_OTLP_ENDPOINT="+s.traces)
	go func() { ended <- run(ctx, args, environ, new(bytes.Buffer), log) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("compact: %v", err)
		}
		if s.t.Failed() {
			s.t.Logf("log of compact:\n%s", log)
		}
	})
	s.t.Cleanup(stop)
	return stop
}

// verify requires an exit code of a verification by the vkey of the anchors alone.
func (s *stage) verify(want int) {
	s.t.Helper()
	ring := &sign.Ring{}
	if err := ring.Add(s.vkeys["anchors"], sign.AllRoles, "test"); err != nil {
		s.t.Fatal(err)
	}
	r, err := proof.Verify(s.t.Context(), s.bucket, proof.Options{Keys: ring})
	if err != nil {
		s.t.Fatal(err)
	}
	if r.ExitCode() != want {
		s.t.Errorf("verify: exit %d, want %d: faults %v, less %q, looks %q, strays %q", r.ExitCode(), want, r.Faults, r.Less, r.Looks, r.Strays)
	}
}

// holders returns the objects that hold one of some values.
func (s *stage) holders(values ...string) (keys []string) {
	s.t.Helper()
	n, err := scan.NewNeedles(values)
	if err != nil {
		s.t.Fatal(err)
	}
	for o, err := range s.bucket.List(s.t.Context(), "", "") {
		if err != nil {
			s.t.Fatal(err)
		}
		body, err := s.bucket.Get(s.t.Context(), o.Key)
		if errors.Is(err, archive.ErrNotFound) {
			continue
		}
		if err != nil {
			s.t.Fatal(err)
		}
		hits, err := n.Find(body)
		if err != nil {
			s.t.Fatal(o.Key, err)
		}
		if len(hits) > 0 {
			keys = append(keys, o.Key)
		}
	}
	return keys
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

// An archive that is written to all the while: orders by each kind of target, a
// hold, one that is taken back, one of nothing, and a row that comes late. What
// was ordered is nowhere afterwards, all else is there, and it verifies.
func TestErasures(t *testing.T) {
	s := newStage(t)
	s.archiving()
	now := time.Now()
	secrets := map[string]string{}
	tell := func(what, tenant, user, session, turn string) (id string, offset int64) {
		secrets[what] = "the secret of " + what + " in the archive"
		return s.produce(tenant, user, session, turn, secrets[what], now)
	}
	record, _ := tell("a record", "acme", "u-0", "s-0", "t-0")
	tell("a turn", "acme", "u-0", "s-0", "t-1")
	tell("a session", "acme", "u-0", "s-1", "t-2")
	tell("a user", "acme", "u-1-of-acme", "s-0", "t-3")
	_, offset := tell("an offset", "acme", "u-0", "s-0", "t-4")
	tell("coordinates", "acme", "u-0", "s-0", "t-5")
	within := s.sent
	tell("one who is held", "acme", "u-2-of-acme", "s-0", "t-6")
	tell("one taken back", "acme", "u-0", "s-0", "t-7")
	tell("another tenant", "globex", "u-1-of-acme", "s-1", "t-1")
	secrets["a reject of nobody"] = "the secret of u-9-of-nobody in a reject"
	if err := s.client.ProduceSync(t.Context(), &kgo.Record{Topic: audited, Value: []byte(`{"userId":"u-9-of-nobody","said":"` + secrets["a reject of nobody"] + `"`)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	tell("who stays", "acme", "u-0", "s-0", "t-9")
	var line archive.Line
	s.until("all is archived", func() bool {
		lines, err := archive.Lines(t.Context(), s.bucket)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(lines, func(l archive.Line) bool { return l.Topic == audited && l.Partition == partitionOf("acme") })
		if i < 0 {
			return false
		}
		line = lines[i]
		return len(s.holders(secrets["who stays"])) == 1
	})

	// Before anything was compacted: a dry run says what is meant, and orders
	// nothing; what is not known is refused.
	because := []string{"--reason", "a test", "--request-ref", "DSR-1"}
	erase := func(args ...string) []string {
		return slices.Concat([]string{"erase", "--tenant", "acme"}, because, args)
	}
	dry := s.order(exitDone, erase("--user", "u-1-of-acme", "--dry-run")...)
	if dry.Ordered || len(dry.Found) != 1 || dry.Found[0].Rows != 1 || lineJSON(line) != dry.Found[0].lineJSON {
		t.Errorf("%+v", dry)
	}
	s.order(exitNothing, erase("--user", "nobody")...)
	s.order(exitBadUse, erase("--user", "u", "--turn", "t")...)
	worm := filepath.Join(t.TempDir(), "retention.yaml")
	if err := os.WriteFile(worm, []byte("tenants: {acme: {profile: sec17a4}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.order(exitFailed, erase("--turn", "t-1", "--retention-file", worm)...)
	if n := len(s.states()); n > 0 {
		t.Errorf("%d orders", n)
	}

	stop := s.compacting()
	s.compacting()
	hold := s.order(exitDone, "hold", "--tenant", "acme", "--user", "u-2-of-acme", "--reason", "a case", "--wait", "30s")
	if !hold.Archived {
		t.Errorf("%+v", hold)
	}
	ids := map[string]string{"one taken back": s.order(exitDone, erase("--turn", "t-7")...).ID}
	s.order(exitDone, "cancel", ids["one taken back"], "--tenant", "acme", "--reason", "the wrong turn", "--force")
	for what, args := range map[string][]string{
		"a record":        {"--record-id", record, "--hard"},
		"a turn":          {"--turn", "t-1"},
		"a session":       {"--session", "s-1", "--slots", "decision"},
		"a user":          {"--user", "u-1-of-acme"},
		"an offset":       {"--offset", fmt.Sprintf("%s/%s/%d/%d", line.Topic, line.TopicID, line.Partition, offset)},
		"coordinates":     {"--session", "s-0", "--turn", "t-5", "--stage", "synthesize", "--seq-within-turn", fmt.Sprint(within)},
		"one who is held": {"--turn", "t-6"},
	} {
		ids[what] = s.order(exitDone, erase(args...)...).ID
	}
	ids["a reject of nobody"] = s.order(exitDone, slices.Concat([]string{"erase", "--tenant", "_unattributed", "--user", "u-9-of-nobody"}, because)...).ID
	ids["nothing"] = s.order(exitDone, erase("--turn", "t-none", "--force", "--wait", "30s")...).ID
	s.order(exitNothing, "cancel", ulid.Make().String(), "--tenant", "acme", "--reason", "none")

	done := []string{"a record", "a turn", "a session", "a user", "an offset", "coordinates", "a reject of nobody", "nothing"}
	s.until("receipts", func() bool {
		st := s.states()
		return !slices.ContainsFunc(done, func(what string) bool { return st[ids[what]].Receipts == 0 })
	})
	s.produce("acme", "u-1-of-acme", "s-9", "t-9", "the secret that came late", now.Add(-time.Hour))
	for _, what := range done[:7] {
		if keys := s.holders(secrets[what]); len(keys) > 0 {
			t.Errorf("the secret of %s is in %q", what, keys)
		}
	}
	st := s.states()
	if st[ids["one who is held"]].State != "held" || st[ids["one taken back"]].State != "cancelled" {
		t.Errorf("%+v, %+v", st[ids["one who is held"]], st[ids["one taken back"]])
	}
	stop() // one of two compactors

	s.order(exitNothing, "release", "--tenant", "acme", "--user", "nobody", "--reason", "none")
	s.order(exitDone, "release", "--tenant", "acme", "--user", "u-2-of-acme", "--reason", "the case is over")
	s.until("all is closed", func() bool {
		for _, e := range s.states() {
			if e.State != "closed" && e.State != "cancelled" {
				return false
			}
		}
		return true
	})
	for _, what := range append(done[:7:7], "one who is held") {
		if keys := s.holders(secrets[what]); len(keys) > 0 {
			t.Errorf("the secret of %s is in %q", what, keys)
		}
	}
	if keys := s.holders("the secret that came late"); len(keys) > 0 {
		t.Errorf("what came late is in %q", keys)
	}
	for _, what := range []string{"one taken back", "another tenant", "who stays"} {
		if keys := s.holders(secrets[what]); len(keys) == 0 {
			t.Errorf("the secret of %s is nowhere", what)
		}
	}
	s.ingest()
	s.verify(0)
	out, code, err := s.call(append([]string{"status"}, s.looks()...)...)
	if code != exitDone || strings.Count(out, audited) != 2 {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
}

// once runs the command once, and requires exit code 0.
func (s *stage) once() {
	s.t.Helper()
	if out, code, err := s.call(slices.Concat([]string{"once", "--catalog-key", s.keys["catalogs"]}, s.args)...); code != exitDone {
		s.t.Fatalf("once: exit %d: %v: %s", code, err, out)
	}
}

// Who signs catalogs by a key that no anchor names is told so, and nobody else is.
func TestUnvouchedKey(t *testing.T) {
	s := newStage(t)
	s.archiving()
	s.produce("acme", "u-0", "s-0", "t-0", "a secret", time.Now())
	s.until("there is an anchor", func() bool {
		lines, err := archive.Lines(t.Context(), s.bucket)
		if err != nil || len(lines) == 0 {
			return false
		}
		newest, err := archive.NewestAnchor(t.Context(), s.bucket, lines[0], -1)
		return err == nil && newest >= 0
	})
	const told = "names no key that signs catalogs here"
	for key, want := range map[string]bool{"catalogs": false, "anchors": false, "control": true} {
		c := &config.Compact{}
		args := slices.Concat([]string{"--topics", audited, "--catalog-key", s.keys[key]}, s.args)
		log := new(safeBuffer)
		in := invocation{args: args, environ: environ, stdout: new(bytes.Buffer), stderr: log}
		origins, done, err := load(in, c, config.Section{}, anySetting, runHelp)
		if done || err != nil {
			t.Fatal(done, err)
		}
		p, err := newProcess(t.Context(), in, c, origins)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.begin(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		p.close()
		if got := strings.Contains(log.String(), told); got != want {
			t.Errorf("catalogs signed by the key of %s: told %v, want %v: %s", key, got, want, log)
		}
	}
}

// A tenant is offboarded by single runs: first shown, then ordered. What was
// shown changes nothing; in the end nothing of it is left but its control log, and
// of the other tenant all.
func TestOffboarding(t *testing.T) {
	s := newStage(t)
	s.archiving()
	now := time.Now()
	const mine, others = "the secret of who leaves", "the secret of who stays"
	for range 3 {
		s.produce("acme", "u-of-acme", "s", "t", mine, now)
		s.produce("globex", "u-of-globex", "s", "t", others, now)
	}
	s.until("all is archived", func() bool { return len(s.holders(others)) > 0 && len(s.holders(mine)) > 0 })
	s.order(exitDone, "hold", "--tenant", "acme", "--user", "u-of-acme", "--reason", "a case", "--wait", "30s")
	s.order(exitDone, "release", "--tenant", "acme", "--user", "u-of-acme", "--reason", "the case is over", "--force", "--wait", "30s")
	time.Sleep(time.Second) // an anchor covers them
	plan, code, err := s.call(append([]string{"plan"}, s.looks()...)...)
	if code != exitDone || !strings.Contains(plan, "compact segments") && !strings.Contains(plan, "wait: too few") {
		t.Errorf("plan: exit %d, %v: %s", code, err, plan)
	}
	s.once()
	if lines := s.statuses(); lines[archive.Line{Topic: audited, Partition: 0}].Rows != 3 {
		t.Errorf("%+v", lines)
	}

	offboard := []string{"offboard", "--tenant", "acme", "--reason", "the contract ended"}
	shown, code, err := s.call(slices.Concat(offboard, s.args)...)
	if code != exitDone || !strings.Contains(shown, "cut at 3") || !strings.Contains(shown, "contexts of orders and holds to be erased: 2") || !strings.Contains(shown, "nothing was ordered") {
		t.Fatalf("exit %d, %v: %s", code, err, shown)
	}
	s.once()
	if len(s.holders(mine)) == 0 {
		t.Fatal("it went although it was only shown")
	}
	if _, code, err := s.call(slices.Concat([]string{"offboard", "--tenant", "nobody", "--reason", "r"}, s.args)...); code != exitNothing {
		t.Errorf("nobody: exit %d, %v", code, err)
	}
	if out, code, err := s.call(slices.Concat(offboard, []string{"--yes"}, s.args)...); code != exitDone {
		t.Fatalf("exit %d, %v: %s", code, err, out)
	}
	s.until("nothing is left", func() bool {
		s.once()
		time.Sleep(time.Second)
		return len(s.holders(mine, "u-of-acme")) == 0
	})
	if len(s.holders(others)) == 0 {
		t.Error("the other tenant went too")
	}
	s.until("the orders of it are closed", func() bool {
		s.once()
		time.Sleep(time.Second)
		for _, e := range s.states() {
			if e.State != "closed" {
				return false
			}
		}
		return true
	})
	s.ingest()
	s.once()
	s.verify(0)
	if out, code, err := s.call(append([]string{"versions"}, s.looks()...)...); code != exitDone {
		t.Errorf("versions: exit %d, %v: %s", code, err, out)
	}
}

// statuses returns how far each line is; topic ids are left out.
func (s *stage) statuses() map[archive.Line]statusJSON {
	s.t.Helper()
	out, code, err := s.call(slices.Concat([]string{"status", "--json"}, s.looks())...)
	if code != exitDone {
		s.t.Fatalf("status: exit %d: %v", code, err)
	}
	var told struct{ Lines []statusJSON }
	if err := json.Unmarshal([]byte(out), &told); err != nil {
		s.t.Fatal(err)
	}
	all := map[archive.Line]statusJSON{}
	for _, l := range told.Lines {
		all[archive.Line{Topic: l.Topic, Partition: l.Partition}] = l
	}
	return all
}

// Two processes of a group share the lines, and one of them leads; what one had
// goes to the other when it stops.
func TestSharing(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, audited), kfake.SeedTopics(1, "ledgerlake.control"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	join := func() *group {
		c := &config.Compact{Brokers: cluster.ListenAddrs(), Topics: []string{audited}, ControlTopic: "ledgerlake.control", Group: "g", Kafka: config.Kafka{ClientID: "t", SessionTimeout: 6 * time.Second, MetadataAge: time.Second}}
		tl := &tool{settings: c, log: zap.NewNop(), often: zap.NewNop(), kafka: []kgo.Opt{kgo.SeedBrokers(c.Brokers...)}}
		g, err := tl.join()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	shares := func(groups ...*group) (lines []int, leads int) {
		for _, g := range groups {
			s, err := g.share(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, len(s.Assigned))
			if s.Leads() {
				leads++
			}
		}
		return lines, leads
	}
	until := func(what string, happened func() bool) {
		for range 300 {
			if happened() {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Fatalf("30 s, and not yet: %s", what)
	}
	one := join()
	until("one is told that it was given some", func() bool { return len(one.given()) == 1 })
	until("one has all", func() bool { n, leads := shares(one); return n[0] == 4 && leads == 1 })
	two := join()
	until("each has half", func() bool { n, leads := shares(one, two); return n[0] == 2 && n[1] == 2 && leads == 1 })
	one.leave()
	until("two has all", func() bool { n, leads := shares(two); return n[0] == 4 && leads == 1 })
	two.leave()
}
