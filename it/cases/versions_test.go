//go:build it

package cases

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/it/oracle"
)

// In a bucket that keeps versions, or kept them once, an erased value is in no
// version of any object: not in what was written over, nor below a marker, nor
// in a copy that somebody left, nor in the parts of one that was not finished.
func TestAnErasureReachesEveryVersion(t *testing.T) {
	for _, suspended := range []bool{false, true} {
		t.Run(map[bool]string{false: "versioned", true: "suspended"}[suspended], func(t *testing.T) {
			s := newStage(t, faults3.Options{Versioned: true, PageSize: 3}, topic)
			s.govern()
			s.archiving()
			s.sendTwoTenants(20)
			s.drain()
			segments := s.store.Keys("log/" + topic + "/")
			s.overwrite(segments[0])
			if suspended {
				s.store.Suspend()
			}
			s.overwrite(segments[2])
			s.leaveBehind(segments[2])
			if found := s.scan(token); len(found) < 9 {
				t.Fatalf("only %q hold what is to be erased: the case shows nothing", found)
			}
			s.compactor()
			s.compacted(topic, 0)
			file := last(s.dataFiles(s.store.Keys("data/"), "acme"))[0] // strays are of another day
			s.overwrite(file)
			id := s.erase("--tenant", "acme", "--user", token)
			s.await(id, "closed")
			if found := s.scan(token); len(found) > 0 {
				t.Errorf("after the receipt the value is in %q", found)
			}
			s.wantCounts(10, 10, 0)
			s.stop()
			s.verify(oracle.Proved)
			r := s.receipt(id)
			versions := 2 // a suspended bucket has one that is called null, whoever wrote over it
			if suspended {
				versions = 1
			}
			i := slices.IndexFunc(r.Deleted, func(d deletedKey) bool { return d.Key == file })
			if i < 0 || len(r.Deleted[i].Versions) != versions {
				t.Errorf("the receipt says of %s, of which there were %d versions: %+v", file, versions, r.Deleted)
			}
		})
	}
}

// A person goes from every place where the id was put: columns that are no place
// for it, slots, the key, a header, a record that was rejected, a row that comes
// late; and nobody else's row is touched.
func TestAnErasureReachesEveryPlace(t *testing.T) {
	s := newStage(t, faults3.Options{Versioned: true}, topic)
	s.govern()
	s.archiving()
	of := []string{`"userId":"u-1"`, `"userId":"` + token + `"`}
	with := func(n int, edits ...string) string { return call("acme", n, slices.Concat(of, edits)...) }
	s.produce(topic, "acme",
		with(0), with(1, `"model":"claude-x"`, `"model":"`+token+`"`), with(2, `"finishReason":"stop"`, `"finishReason":"`+token+`"`),
		with(3, `"x":1`, `"x":"`+token+`"`), with(4, `"requestedModel":"claude-x"`, `"requestedModel":"`+token+`"`),
		strings.Replace(with(5), `"turnId":"t-5"`, `"turnId":7`, 1), // wrong_type: rejected
		`{"note":"`+token+`"`,                                       // invalid_json: rejected
	)
	keyed := record(topic, "acme", with(6))
	keyed.Key, keyed.Headers = []byte(token), append(keyed.Headers, kgo.RecordHeader{Key: "who", Value: []byte(token)})
	s.send(keyed)
	s.produce(topic, "acme", calls("acme", 10, 10)...)
	s.produce(topic, "globex", with(20, `"tenantId":"acme"`, `"tenantId":"globex"`, `"principal":{"tenantId":"acme"`, `"principal":{"tenantId":"globex"`))
	s.drain()
	if found := s.scan(token); len(found) < 9 {
		t.Fatalf("only %q hold what is to be erased: the case shows nothing", found)
	}
	before := s.rows(s.archive(), everything("not coalesce(user_id = '"+token+"', false) and kind = 'call'"))
	s.compactor("--late-window", "15s")
	id := s.erase("--tenant", "acme", "--user", token)
	s.await(id, "receipted")
	s.produce(topic, "acme", with(7)) // it was made before the order, says createdAt
	s.await(id, "closed")
	s.stop()
	s.verify(oracle.Proved)
	a := s.archive()
	if after := s.rows(a, everything("redaction is null and tenant_id = 'acme' and kind = 'call'")); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("rows of others are\n%v, were\n%v", after, before)
	}
	got := s.rows(a, `select count(*) filter (kind = 'call'), count(*) filter (kind = 'rejected') from rows where redaction is not null and topic = '`+topic+`'`)
	if fmt.Sprint(got) != "[[7 2]]" {
		t.Errorf("erased calls and rejects are %v, want 7 and 2", got)
	}
	for _, name := range s.scan(token) {
		if !strings.HasPrefix(name, "data/globex/") {
			t.Errorf("the value is still in %s", name)
		}
	}
}

// everything is what some rows hold, in order.
func everything(where string) string {
	return "select tenant_id, seq, kafka_offset, epoch_us(archived_at), row_hash, prev_hash, row_salt, user_id, record_id, turn_id, model_id, " +
		"finish_reason, decision, token_cost, plugin_payloads, context, ext from rows where topic = '" + topic + "' and " + where + " order by partition, tenant_id, seq"
}

// overwrite writes an object's bytes once more, as a tool that copies does.
func (s *stage) overwrite(key string) {
	s.Helper()
	body, _ := s.store.Object(key)
	_, err := s.sdk().PutObject(s.Context(), &s3.PutObjectInput{Bucket: bucketName, Key: &key, Body: bytes.NewReader(body)})
	s.must(err)
}

// leaveBehind has somebody put copies of a segment where data files lie, as a
// compactor that died does, delete one copy, and not finish another.
func (s *stage) leaveBehind(key string) {
	s.Helper()
	body, _ := s.store.Object(key)
	copyOf := func(id string) *string {
		return awssdk.String("data/acme/day=2026-01-20/" + s.topicID(topic) + ".00000.00000000000000000000-00000000000000000000." + id + ".parquet")
	}
	const copied, deleted, begunID = "01KB0000000000000000000001", "01KB0000000000000000000002", "01KB0000000000000000000003"
	for _, name := range []string{copied, deleted} {
		_, err := s.sdk().PutObject(s.Context(), &s3.PutObjectInput{Bucket: bucketName, Key: copyOf(name), Body: bytes.NewReader(body)})
		s.must(err)
	}
	_, err := s.sdk().DeleteObject(s.Context(), &s3.DeleteObjectInput{Bucket: bucketName, Key: copyOf(deleted)})
	s.must(err)
	begun, err := s.sdk().CreateMultipartUpload(s.Context(), &s3.CreateMultipartUploadInput{Bucket: bucketName, Key: copyOf(begunID)})
	s.must(err)
	_, err = s.sdk().UploadPart(s.Context(), &s3.UploadPartInput{
		Bucket: bucketName, Key: copyOf(begunID), UploadId: begun.UploadId, PartNumber: awssdk.Int32(1), Body: bytes.NewReader(body),
	})
	s.must(err)
}

// A receipt is what an erasure-done row says, as far as cases ask.
type receipt struct {
	RedactionID string
	Deleted     []deletedKey
	OutOfReach  []string
}

type deletedKey struct {
	Key      string
	Versions []string
}

// receipt returns what the receipts of an order say together.
func (s *stage) receipt(id string) (all receipt) {
	s.Helper()
	for _, row := range s.rows(s.archive(), "select context from rows where kind = 'erasure-done' order by seq") {
		var r receipt
		s.must(json.Unmarshal([]byte(row[0].(string)), &r))
		if r.RedactionID == id {
			all.Deleted = append(all.Deleted, r.Deleted...)
			all.OutOfReach = append(all.OutOfReach, r.OutOfReach...)
		}
	}
	if len(all.Deleted) == 0 {
		s.Errorf("no receipt of %s names a deleted object", id)
	}
	return all
}

// What a lock keeps is named in the receipt, with the lock, and nothing waits
// for it; all else goes. A lock on catalogs, which hold no payload, is no
// obstacle, and the catalogs stay for as long as it lasts.
func TestAnErasureNamesWhatIsLocked(t *testing.T) {
	s := newStage(t, faults3.Options{Versioned: true, ObjectLock: true}, topic)
	s.govern()
	s.archiving("--anchor-lock", "compliance", "--anchor-lock-days", "1")
	s.sendTwoTenants(20)
	s.drain()
	locked := s.store.Keys("log/" + topic + "/")[0]
	body, _ := s.store.Object(locked)
	_, err := s.sdk().PutObject(s.Context(), &s3.PutObjectInput{
		Bucket: bucketName, Key: &locked, Body: bytes.NewReader(body),
		ObjectLockMode: types.ObjectLockModeCompliance, ObjectLockRetainUntilDate: awssdk.Time(time.Now().Add(24 * time.Hour)),
	})
	s.must(err)
	s.compactor("--catalog-lock", "governance", "--catalog-lock-days", "1")
	id := s.erase("--tenant", "acme", "--user", token)
	s.await(id, "closed")
	found := s.scan(token)
	if len(found) != 1 || !strings.HasPrefix(found[0], locked+"?") {
		t.Errorf("the value is in %q, want the locked version of %s alone", found, locked)
	}
	r := s.receipt(id)
	if !slices.ContainsFunc(r.OutOfReach, func(text string) bool { return strings.Contains(text, locked) && strings.Contains(text, "lock") }) {
		t.Errorf("what is out of reach is %q; want %s, and its lock", r.OutOfReach, locked)
	}
	for _, d := range r.Deleted {
		for _, version := range d.Versions {
			if slices.Contains(found, d.Key+"?"+version) {
				t.Errorf("the receipt calls %s deleted, version %s, which is there", d.Key, version)
			}
		}
	}
	s.stop()
	s.allLocked("anchor/", "catalog/")
	v := s.verify(oracle.LookAt)
	if !strings.Contains(v.Stdout, locked) {
		t.Errorf("verify does not name the locked object: %s", v.Stdout)
	}
}

// allLocked requires a lock on each object of some folders.
func (s *stage) allLocked(folders ...string) {
	s.Helper()
	for _, folder := range folders {
		keys := s.store.Keys(folder)
		if len(keys) == 0 {
			s.Errorf("nothing is in %s", folder)
		}
		for _, key := range keys {
			out, err := s.sdk().HeadObject(context.WithoutCancel(s.Context()), &s3.HeadObjectInput{Bucket: bucketName, Key: &key})
			s.must(err)
			if out.ObjectLockMode == "" {
				s.Errorf("%s is not locked", key)
			}
		}
	}
}

// A bucket where nothing could be erased is refused before anything is
// promised, with what to change.
func TestCompactRefusesABucketThatKeepsAll(t *testing.T) {
	for name, c := range map[string]struct {
		rule faults3.Rule
		says string
	}{
		"versions may not be seen": {faults3.Rule{Op: faults3.Versions, Times: faults3.Always, Fault: faults3.Denied()}, "s3:ListBucketVersions"},
		"nothing may be deleted":   {faults3.Rule{Op: faults3.DeleteMany, Times: faults3.Always, Fault: faults3.Denied()}, "s3:DeleteObjectVersion"},
		"uploads may not be seen":  {faults3.Rule{Op: faults3.Upload, Times: faults3.Always, Fault: faults3.Denied()}, "s3:ListBucketMultipartUploads"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, faults3.Options{Versioned: true}, topic)
			s.govern()
			s.store.Add(c.rule)
			if name == "nothing may be deleted" {
				s.store.Add(faults3.Rule{Op: faults3.Delete, Times: faults3.Always, Fault: faults3.Denied()})
			}
			p := s.compactor()
			code, err := p.Wait(waitLong)
			s.must(err)
			if code != 1 || !strings.Contains(p.Output(), c.says) {
				t.Errorf("compact run: exit %d, %s; want 1, and %q", code, tail(p.Output()), c.says)
			}
			if out := s.compact(1, "doctor"); !strings.Contains(out, c.says) {
				t.Errorf("the doctor says %s, want %q", out, c.says)
			}
			if keys := s.store.Keys("catalog/"); len(keys) > 0 {
				t.Error(fmt.Sprint("it wrote ", keys))
			}
		})
	}
}
