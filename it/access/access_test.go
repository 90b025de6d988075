//go:build it

package access

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/internal/workload"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

const (
	topic      = "audit.calls"
	bucket     = "acme-audit"
	anchors    = "acme-anchors" // the second bucket
	partitions = 2
)

// stores are the roles that have a policy of their own; brokers those that have
// ACLs.
var (
	stores  = []string{"ingest", "compact", "export", "serve", "auditor"}
	brokers = []string{"producer", "ingest", "compact", "export", "auditor", "operator"}
)

// Every program does all that it does, from the first record to the receipt of an
// erasure, with the rights of deploy/ alone: users of a bucket of versions by the
// policies of deploy/iam, principals of an Apache Kafka by deploy/kafka/acls.sh. No
// right is given that none of them used, and what is not given is refused.
func TestRights(t *testing.T) {
	s := newStage(t)
	s.works()
	s.store.requests(t)
	s.refused()
}

// A stage is a store and a broker that give nobody anything but his rights.
type stage struct {
	t     *testing.T
	dir   string
	kafka *parts.GuardedKafka
	store *guarded
	admin *kadm.Client
	line  archive.Line
	vkeys map[string]string
}

// A guarded is the store.
type guarded struct {
	*parts.S3
	policies map[string]*Policy
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, dir: t.TempDir(), vkeys: map[string]string{}}
	var group errgroup.Group
	group.Go(func() error { return s.startKafka(t.Context()) })
	group.Go(func() error { return s.startStore(t.Context()) })
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"anchors", "catalogs", "control"} {
		vkey, err := parts.MakeKey(s.key(role), "it.example/"+role)
		if err != nil {
			t.Fatal(err)
		}
		s.vkeys[role] = vkey
	}
	return s
}

func (s *stage) key(role string) string { return filepath.Join(s.dir, role+".key") }

// startKafka starts a broker, makes its topics, and has acls.sh give all roles
// their rights.
func (s *stage) startKafka(ctx context.Context) (err error) {
	if s.kafka, err = parts.StartGuardedKafka(filepath.Join(s.dir, "kafka"), brokers...); err != nil {
		return err
	}
	s.t.Cleanup(s.kafka.Kill)
	client, err := kgo.NewClient(kgo.SeedBrokers(s.kafka.Addr))
	if err != nil {
		return err
	}
	s.t.Cleanup(client.Close)
	s.admin = kadm.NewClient(client)
	made, err := s.admin.CreateTopic(ctx, partitions, 1, nil, topic)
	if err != nil {
		return err
	}
	s.line = archive.Line{Topic: topic, TopicID: base64.RawURLEncoding.EncodeToString(made.ID[:])}
	if _, err := s.admin.CreateTopic(ctx, 1, 1, nil, audit.ControlTopic); err != nil {
		return err
	}
	return s.giveACLs()
}

// giveACLs runs acls.sh for each role, all at once: each of its lines starts a JVM.
func (s *stage) giveACLs() error {
	tool := filepath.Join(s.dir, "kafka-acls.sh")
	command := "exec '" + strings.Join(parts.KafkaTool("org.apache.kafka.tools.AclCommand"), "' '") + "' \"$@\"\n"
	if err := os.WriteFile(tool, []byte("#!/bin/sh\n"+command), 0o700); err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(3)
	for _, role := range []string{"producers", "ingest", "compact", "export", "auditor", "operators"} {
		group.Go(func() error {
			cmd := exec.Command(filepath.Join(parts.Root(), "deploy", "kafka", "acls.sh"), role)
			cmd.Env = append(os.Environ(), "BOOTSTRAP="+s.kafka.Addr, "KAFKA_ACLS="+tool, "TOPICS="+topic)
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("acls.sh %s: %w: %s", role, err, out)
			}
			return nil
		})
	}
	return group.Wait()
}

// startStore starts a store with a user for each role, an archive of a short grace,
// and the policies as that of its bucket.
func (s *stage) startStore(ctx context.Context) (err error) {
	s.store = &guarded{policies: map[string]*Policy{}}
	if s.store.S3, err = parts.StartS3With(filepath.Join(s.dir, "s3"), append([]string{"stranger"}, stores...)...); err != nil {
		return err
	}
	s.t.Cleanup(func() {
		s.store.Kill()
		if log, err := os.ReadFile(s.store.Log()); s.t.Failed() && err == nil {
			s.t.Logf("the store:\n%s", log[max(0, len(log)-3000):])
		}
	})
	if err := parts.MakeBucket(ctx, s.store.Endpoint, bucket); err != nil {
		return err
	}
	if err := parts.SetVersioning(ctx, s.store.Endpoint, bucket, true); err != nil {
		return err
	}
	if err := parts.MakeArchive(ctx, s.store.Endpoint, bucket, "", "01KBCDEFGHJKMNPQRSTVWXYZ08", time.Second); err != nil {
		return err
	}
	if err := parts.MakeBucket(ctx, s.store.Endpoint, anchors); err != nil {
		return err
	}
	return errors.Join(s.store.govern(ctx, bucket, stores...), s.store.govern(ctx, anchors, "ingest-anchor-bucket"))
}

// govern makes the policies of some roles that of a bucket, for their users.
func (g *guarded) govern(ctx context.Context, bucket string, roles ...string) error {
	var all []map[string]any
	for _, role := range roles {
		p, err := Read(parts.Root(), role)
		if err != nil {
			return err
		}
		g.policies[role] = p
		user, _, _ := strings.Cut(role, "-")
		for _, st := range p.Statement {
			all = append(all, map[string]any{
				"Sid": user + st.Sid, "Effect": st.Effect, "Principal": map[string]any{"AWS": []string{user}}, "Action": st.Action, "Resource": in(bucket, st.Resource),
			})
		}
	}
	text, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": all})
	if err != nil {
		return err
	}
	_, err = parts.S3Client(g.Endpoint).PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: aws.String(bucket), Policy: aws.String(string(text))})
	return err
}

// in puts the name of a bucket in the place of the one of the files.
func in(bucket string, resources []string) (all []string) {
	for _, r := range resources {
		all = append(all, strings.Replace(r, ":::BUCKET", ":::"+bucket, 1))
	}
	return all
}

// roleOf returns the role that a user plays at a bucket.
func roleOf(bucket, user string) string {
	if bucket == anchors {
		return user + "-anchor-bucket"
	}
	return user
}

// as returns the environment of a program that plays one role at the store, and
// one at the brokers.
func as(store, broker string) []string {
	env := parts.CredentialsOf(store)
	if broker == "" {
		return env
	}
	return append(env, "LEDGERLAKE_KAFKA_SASL_MECHANISM=plain", "LEDGERLAKE_KAFKA_SASL_USER="+broker, "LEDGERLAKE_KAFKA_SASL_PASSWORD="+broker+"-secret")
}

func (s *stage) url() string { return parts.BucketURL(s.store.Endpoint, bucket) }

// start starts a program that runs until the test ends.
func (s *stage) start(name string, env []string, args ...string) *parts.Process {
	s.t.Helper()
	p, err := parts.Start(name, filepath.Join(s.dir, name+".log"), env, parts.Binary("ledgerlake-"+name), args...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		p.Kill()
		if s.t.Failed() {
			s.t.Logf("%s:\n%s", name, p.Output()[max(0, len(p.Output())-3000):])
		}
	})
	return p
}

// run runs a program to its end.
func (s *stage) run(name string, env []string, args ...string) (code int, out string) {
	cmd := exec.Command(parts.Binary("ledgerlake-"+name), args...)
	cmd.Env = parts.Environ(env)
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// wants runs a program and requires that it ends well.
func (s *stage) wants(name string, env []string, args ...string) string {
	s.t.Helper()
	code, out := s.run(name, env, args...)
	if code != 0 {
		s.t.Fatalf("ledgerlake-%s %s: exit %d: %s", name, args[0], code, out)
	}
	return out
}

// until asks until something holds.
func (s *stage) until(what string, holds func() bool) {
	s.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not within two minutes: %s", what)
		}
	}
}

// works goes through all that the programs do.
func (s *stage) works() {
	upload := s.begin()
	row := s.produce(600)
	ingest := s.ingest()
	s.export()
	s.read(row) // from segments
	s.wants("compact", as("compact", "compact"), "doctor", "--bucket", s.url(), "--brokers", s.kafka.Guarded)
	s.start("compact", as("compact", "compact"), "run", "--brokers", s.kafka.Guarded, "--bucket", s.url(), "--topics", topic,
		"--control-key", s.key("control"), "--key", s.vkeys["anchors"], "--catalog-key", s.key("catalogs"), "--purge-after", "1s", "--late-window", "1s",
		"--compact.every", "500ms", "--compact.max-age", "1s", "--compact.min-segments", "2", "--compact.sweep-every", "1s", "--compact.sql-manifests", "--http.listen", "none")
	s.until("rows in data files", func() bool { return s.has("data/") })
	s.wants("compact", as("auditor", "operator"), "erase", "--brokers", s.kafka.Guarded, "--bucket", s.url(), "--control-key", s.key("control"), "--key", s.vkeys["anchors"],
		"--tenant", row.tenant, "--record-id", row.recordID, "--reason", "it", "--request-ref", "case 1", "--force")
	s.until("the receipt of an erasure", func() bool {
		_, out := s.run("compact", as("auditor", ""), "erasures", "--json", "--bucket", s.url(), "--key", s.vkeys["anchors"])
		return strings.Contains(out, `"receipted"`) || strings.Contains(out, `"closed"`)
	})
	s.until("no unfinished upload", func() bool { return !s.uploading(upload) })
	s.read(row) // from data files
	s.wants("export", as("export", ""), "backfill", "files", "--tenant", row.tenant, "--bucket", s.url())
	s.until("rows sent once more", func() bool {
		return strings.Contains(s.wants("export", as("export", ""), "status", "--bucket", s.url()), "done 2")
	})
	s.wants("export", as("export", ""), "pause", "files", "--bucket", s.url())
	if code, err := ingest.Stop(30 * time.Second); code != 0 || err != nil {
		s.t.Errorf("ingest: exit %d, %v", code, err)
	}
	again := s.ingest() // above what is compacted
	s.until("all partitions, once more", func() bool { return strings.Count(again.Output(), "partition assigned") == 2*(partitions+1) })
}

// ingest starts ingest.
func (s *stage) ingest() *parts.Process {
	s.t.Helper()
	return s.start("ingest", as("ingest", "ingest"), "run", "--brokers", s.kafka.Guarded, "--bucket", s.url(), "--topics", topic,
		"--control-keys", s.vkeys["control"], "--catalog-keys", s.vkeys["catalogs"], "--anchor-key", s.key("anchors"), "--anchor-every", "1s",
		"--anchor-bucket", parts.BucketURL(s.store.Endpoint, anchors), "--http.listen", "none", "--batch.empty-age", "1s", "--progress", "0s")
}

// read asks as who only reads.
func (s *stage) read(r known) {
	for _, args := range [][]string{
		{"range", "--tenant", r.tenant, "--from", "2020-01-01"},
		{"record", r.recordID},
		{"subject", "--user", "user-1"},
	} {
		s.wants("export", as("serve", ""), append(args, "--key", s.vkeys["anchors"], s.url())...)
	}
	s.wants("export", as("export", ""), "status", "--bucket", s.url())
	flags := []string{"--key", s.vkeys["anchors"], "--expect-from", "kafka://" + s.kafka.Guarded}
	s.until("proved by verify", func() bool {
		code, out := s.run("verify", as("auditor", "auditor"), append(flags, s.url())...)
		if code != 0 && code != 4 {
			s.t.Logf("verify: exit %d: %s", code, out)
		}
		return code == 0 || code == 4
	})
}

// A known is a record that was sent.
type known struct{ tenant, recordID string }

// produce sends records as a producer, and returns one of them.
func (s *stage) produce(n int) (one known) {
	s.t.Helper()
	g := workload.New(8, 3)
	client := s.client("producer")
	var records []*kgo.Record
	for range n {
		r := g.Next()
		var said struct{ RecordID string }
		if r.Reason == "" && json.Unmarshal(r.Value, &said) == nil && said.RecordID != "" {
			one = known{r.Tenant, said.RecordID}
		}
		records = append(records, &kgo.Record{Topic: topic, Key: r.Key, Value: r.Value})
	}
	if err := client.ProduceSync(s.t.Context(), records...).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
	return one
}

// client returns a client of a principal.
func (s *stage) client(user string) *kgo.Client {
	s.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(s.kafka.Guarded), kgo.SASL(plain.Auth{User: user, Pass: user + "-secret"}.AsMechanism()), kgo.RecordDeliveryTimeout(10*time.Second))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// export starts delivery to a folder.
func (s *stage) export() {
	file := filepath.Join(s.dir, "export.yaml")
	text := fmt.Sprintf("destinations:\n- name: files\n  type: file\n  path: %s\n  linger: 0s\n", filepath.Join(s.dir, "files"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.start("export", as("export", "export"), "stream", "--config", file, "--bucket", s.url(), "--brokers", s.kafka.Guarded, "--key", s.vkeys["anchors"],
		"--stream.audit-topic", topic, "--stream.audit-tenant", "ops", "--stream.poll", "200ms", "--http.listen", "none")
	s.until("rows delivered", func() bool {
		found, err := filepath.Glob(filepath.Join(s.dir, "files", "*"))
		return err == nil && len(found) > 0
	})
}

// begin begins an upload that nobody finishes.
func (s *stage) begin() (id string) {
	s.t.Helper()
	out, err := parts.S3Client(s.store.Endpoint).CreateMultipartUpload(s.t.Context(), &s3.CreateMultipartUploadInput{
		Bucket: aws.String(bucket), Key: aws.String(archive.SegmentKey(s.line, 1_000_000)),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return *out.UploadId
}

func (s *stage) uploading(id string) bool {
	out, err := parts.S3Client(s.store.Endpoint).ListMultipartUploads(s.t.Context(), &s3.ListMultipartUploadsInput{Bucket: aws.String(bucket)})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, u := range out.Uploads {
		if *u.UploadId == id {
			return true
		}
	}
	return false
}

func (s *stage) has(prefix string) bool {
	out, err := parts.S3Client(s.store.Endpoint).ListObjectsV2(s.t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String(prefix), MaxKeys: aws.Int32(1)})
	return err == nil && *out.KeyCount > 0
}

// refused tries what no role may.
func (s *stage) refused() {
	key := s.first("anchor/")
	for _, role := range append([]string{"stranger"}, stores...) {
		s.refusedBy(role, key)
	}
	for _, user := range []string{"producer", "ingest", "export", "auditor"} {
		err := s.client(user).ProduceSync(s.t.Context(), &kgo.Record{Topic: audit.ControlTopic, Value: []byte("{}")}).FirstErr()
		if !errors.Is(err, kerr.TopicAuthorizationFailed) {
			s.t.Errorf("%s writes to the control topic: %v", user, err)
		}
	}
	for _, user := range []string{"ingest", "compact", "auditor", "operator"} {
		err := s.client(user).ProduceSync(s.t.Context(), &kgo.Record{Topic: topic, Value: []byte("{}")}).FirstErr()
		if !errors.Is(err, kerr.TopicAuthorizationFailed) {
			s.t.Errorf("%s writes to %s: %v", user, topic, err)
		}
	}
	ends, err := kadm.NewClient(s.client("compact")).ListGroups(s.t.Context())
	if err == nil && len(ends) > 1 {
		s.t.Errorf("compact sees all groups: %v", ends.Groups())
	}
}

// refusedBy tries at the store what a role may not.
func (s *stage) refusedBy(role, key string) {
	ctx, c, b := s.t.Context(), parts.S3ClientOf(s.store.Endpoint, role), aws.String(bucket)
	put := func(key string) error {
		_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: b, Key: aws.String(key), Body: strings.NewReader("x"), IfNoneMatch: aws.String("*")})
		return err
	}
	tries := map[string]error{}
	for folder := range folders {
		if may := roles[role]; !slices.Contains(may.makes, folder) {
			tries["put "+folder] = put(folder + "never")
		}
		if may := roles[role]; !slices.Contains(may.takes, folder) {
			_, tries["delete "+folder] = c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: b, Key: aws.String(folder + "never")})
		}
	}
	_, tries["change the policy"] = c.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: b, Policy: aws.String("{}")})
	_, tries["read elsewhere"] = c.GetObject(ctx, &s3.GetObjectInput{Bucket: b, Key: aws.String("elsewhere")})
	if role == "stranger" {
		_, tries["read"] = c.GetObject(ctx, &s3.GetObjectInput{Bucket: b, Key: aws.String(key)})
		_, tries["list"] = c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: b})
	}
	for what, err := range tries {
		var api smithy.APIError
		if !errors.As(err, &api) || api.ErrorCode() != "AccessDenied" {
			s.t.Errorf("%s: %s: %v", role, what, err)
		}
	}
}

func (s *stage) first(prefix string) string {
	s.t.Helper()
	out, err := parts.S3Client(s.store.Endpoint).ListObjectsV2(s.t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String(prefix), MaxKeys: aws.Int32(1)})
	if err != nil || len(out.Contents) == 0 {
		s.t.Fatalf("nothing in %s: %v", prefix, err)
	}
	return *out.Contents[0].Key
}

// operations says which actions of IAM the requests of a store's log take. Those
// that name no object are of the bucket.
var operations = map[string][]string{
	"s3_GetObject": {"s3:GetObject"}, "s3_HeadObject": {"s3:GetObject"}, "s3_PutObject": {"s3:PutObject"},
	"s3_DeleteObject": {"s3:DeleteObject"}, "s3_DeleteObjects": {"s3:DeleteObject", "s3:DeleteObjectVersion"}, "s3_AbortMultipartUpload": {"s3:AbortMultipartUpload"},
	"s3_ListObjectsV2": {"s3:ListBucket"}, "s3_ListObjectVersions": {"s3:ListBucketVersions"}, "s3_ListMultipartUploads": {"s3:ListBucketMultipartUploads"},
	"s3_GetBucketVersioning": {"s3:GetBucketVersioning"}, "s3_GetObjectLockConfiguration": {"s3:GetBucketObjectLockConfiguration"},
}

// unused are rights that are needed where this test does not come, and why.
var unused = map[string]string{
	"ingest/Archive/key/*": "with anchor-kms-key", "ingest-anchor-bucket/CopyAnchors/key/*": "with anchor-kms-key",
	"compact/Compact/key/*":        "with catalog-kms-key",
	"compact/SeeWhatLocksThem":     "where something is locked",
	"compact/EndUploads/data/*":    "as of log/",
	"compact/EndUploads/catalog/*": "as of log/",
}

// requests holds every request that a role made against its policy, and its policy
// against them.
func (g *guarded) requests(t *testing.T) {
	text, err := os.ReadFile(g.AccessLog())
	if err != nil {
		t.Fatal(err)
	}
	used, seen := map[string]bool{}, map[string]int{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 12 || g.policies[roleOf(f[1], f[5])] == nil {
			continue
		}
		g.request(t, roleOf(f[1], f[5]), f[7], f[8], f[10], used, seen)
	}
	for what, n := range seen {
		t.Logf("%6d %s", n, what)
	}
	for role, p := range g.policies {
		for i := range p.Statement {
			g.needs(t, role, &p.Statement[i], used)
		}
	}
}

func (g *guarded) request(t *testing.T, role, operation, key, status string, used map[string]bool, seen map[string]int) {
	actions := operations[operation]
	if actions == nil {
		t.Errorf("%s: a request %s: no policy speaks of it", role, operation)
	}
	resource := bucketARN
	if key != "-" {
		resource = objectsARN + key
		folder, _, _ := strings.Cut(key, "/")
		seen[role+" "+operation+" "+folder]++
	} else {
		seen[role+" "+operation]++
	}
	for _, action := range actions {
		if operation != "s3_DeleteObjects" && (status == "403") == g.policies[role].Allows(action, resource) {
			t.Errorf("%s: %s of %s: status %s, and the policy allows it: %v", role, operation, key, status, status == "403")
		}
		used[role+" "+action+" "+resource] = true
	}
}

// needs requires that each action of a statement was used, on each of its
// resources that this test comes to.
func (g *guarded) needs(t *testing.T, role string, s *Statement, used map[string]bool) {
	for _, r := range s.Resource {
		for _, action := range s.Action {
			name := strings.TrimPrefix(r, objectsARN)
			if name == "key/*" && s.Sid == "Read" {
				continue // notes on keys are there with a key of KMS alone
			}
			if unused[role+"/"+s.Sid] != "" || unused[role+"/"+s.Sid+"/"+name] != "" || isUsed(used, role, action, r) {
				continue
			}
			t.Errorf("%s: %s: nobody needed %s on %s", role, s.Sid, action, name)
		}
	}
}

func isUsed(used map[string]bool, role, action, pattern string) bool {
	for what := range used {
		f := strings.SplitN(what, " ", 3)
		if f[0] == role && f[1] == action && (matches(pattern, f[2]) || strings.HasPrefix(action, "s3:Delete")) {
			return true
		}
	}
	return false
}
