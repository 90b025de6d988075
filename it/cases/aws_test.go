//go:build it

package cases

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/it/oracle"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// aws are the answers of AWS where other stores give others: a create-only PUT
// is let through where a key was deleted, and who loses a race hears of a
// conflict.
var aws = faults3.Options{Versioned: true, Conflicts: true}

// Two processes at one partition by hand race for every ordinal. A conflict is
// no verdict: who hears of it tries again, finds the other's segment, and takes
// it for what it is.
func TestWritersByHandWhereARaceIsAConflict(t *testing.T) {
	s := newStage(t, aws, topic)
	s.store.Add(faults3.Rule{Op: faults3.Put, Key: ".parquet", Times: faults3.Always, Fault: faults3.Slow(100 * time.Millisecond)})
	byHand := func() *parts.Process {
		s.must(s.startWith("--assign", topic+"/0", "--batch.rows", "5"))
		return s.ingest
	}
	first, second := byHand(), byHand()
	sent := 0
	for answered := 0; answered == 0 && sent < 1000; sent += 10 {
		s.produce(topic, "acme", calls("acme", sent, 10)...)
		time.Sleep(50 * time.Millisecond) // so that segments are many
		answered = s.answers()[http.StatusConflict]
	}
	s.drain()
	for _, p := range []*parts.Process{first, second} {
		if code, err := p.Stop(30 * time.Second); code != 0 || err != nil {
			t.Errorf("a writer: exit %d, %v", code, err)
		}
	}
	if got, there := s.answers(), len(s.store.Keys("log/")); got[http.StatusConflict] == 0 || got[http.StatusOK] != there {
		t.Errorf("answers to PUTs of segments: %v, of which %d are there", got, there)
	}
	a := s.check(oracle.Proved)
	n := strconv.Itoa(sent)
	s.wantRows(a, `select count(*), count(distinct kafka_offset) from {rows}`, []any{n, n})
}

// answers counts the answers to PUTs of segments by their status.
func (s *stage) answers() map[int]int {
	n := map[int]int{}
	for _, r := range s.store.Requests() {
		if r.Op == faults3.Put && strings.HasSuffix(r.Key, ".parquet") {
			n[r.Status]++
		}
	}
	return n
}

// startWith starts ingest on what args say, and not on the topics of a group.
func (s *stage) startWith(args ...string) error {
	s.runs++
	log := fmt.Sprintf("%s/ingest-%d.log", s.dir, s.runs)
	args = append([]string{"run", "--brokers", strings.Join(s.addrs, ","), "--bucket", s.bucket(), "--log-level", "debug"}, args...)
	p, err := parts.Start("ingest", log, s.env, parts.Binary("ledgerlake-ingest"), args...)
	if err != nil {
		return err
	}
	s.ingest = p
	s.Cleanup(func() {
		p.Kill()
		if s.Failed() {
			s.Logf("%s:\n%s", log, tail(p.Output()))
		}
	})
	return nil
}

// On AWS the key of a deleted segment is free. A writer that took it would make
// another archive of what is archived already: where the group's offset vouches
// for a segment that is not there, the partition stops instead.
func TestADeletedSegmentIsNotWrittenAgain(t *testing.T) {
	s := newStage(t, aws, topic)
	s.produce(topic, "acme", calls("acme", 0, 40)...)
	s.settle(oracle.Proved, "--batch.rows", "10", "--batch.strict")
	keys := s.store.Keys("log/")
	s.remove(keys[len(keys)-1])
	s.produce(topic, "acme", calls("acme", 40, 10)...)
	s.start()
	s.until("the alarm", func() bool { return strings.Contains(s.ingest.Output(), "partition stopped") })
	if _, err := s.ingest.Stop(30 * time.Second); err != nil {
		t.Error(err)
	}
	if got := s.store.Keys("log/"); len(got) != len(keys)-1 {
		t.Errorf("segments %v, there were %v", got, keys[:len(keys)-1])
	}
}

// remove deletes an object as a client does, which leaves a delete marker.
func (s *stage) remove(key string) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), http.MethodDelete, s.store.URL+"/"+faults3.Bucket+"/"+key, nil)
	s.must(err)
	res, err := http.DefaultClient.Do(req)
	s.must(err)
	s.must(res.Body.Close())
	if _, there := s.store.Object(key); there || res.StatusCode != http.StatusNoContent {
		s.Fatalf("DELETE %s: %s", key, res.Status)
	}
}

// Credentials run out while records come. Nothing moves until there are new
// ones, nothing is lost, and nobody has to start ingest again.
func TestCredentialsThatRunOut(t *testing.T) {
	for name, fault := range map[string]faults3.Fault{"400 ExpiredToken": faults3.Expired(), "403 AccessDenied": faults3.Denied()} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, aws, topic)
			file := s.file("credentials", nil)
			renew := func(id string) {
				text := fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = secret\n", id)
				s.must(os.WriteFile(file, []byte(text), 0o600))
			}
			renew("OLD")
			s.env = []string{"AWS_SHARED_CREDENTIALS_FILE=" + file, "AWS_REGION=" + parts.Region, "AWS_EC2_METADATA_DISABLED=true"}
			s.start("--batch.rows", "10")
			s.produce(topic, "acme", calls("acme", 0, 40)...)
			s.drain()
			s.store.Add(faults3.Rule{AccessKey: "OLD", Times: faults3.Always, Fault: fault})
			end := s.watch(topic)
			s.produce(topic, "acme", calls("acme", 40, 40)...)
			s.until("refusals", func() bool { return s.store.Fired() >= 3 })
			if stored := s.stored(topic); stored != 40 {
				t.Errorf("%d rows are stored by credentials that have run out", stored)
			}
			renew("NEW")
			s.drain()
			end()
			s.stop()
			a := s.check(oracle.Proved)
			s.wantRows(a, `select count(*), count(distinct kafka_offset) from {rows}`, []any{"80", "80"})
		})
	}
}

// A store's clock is its own. Half a minute between it and ours is no reason to
// lose or to repeat anything; a day is one not to start.
func TestAStoreWithAnotherClock(t *testing.T) {
	for _, off := range []time.Duration{-24 * time.Hour, -30 * time.Second, 30 * time.Second, 24 * time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			store := aws
			store.Now = func() time.Time { return time.Now().Add(off) }
			s := newStage(t, store, topic)
			s.produce(topic, "acme", calls("acme", 0, 40)...)
			if off.Abs() > time.Hour {
				s.start()
				if code, err := s.ingest.Wait(30 * time.Second); code == 0 || err != nil || !strings.Contains(s.ingest.Output(), "our clock is") {
					t.Errorf("exit %d, %v: %s", code, err, s.ingest.Output())
				}
				if keys := s.store.Keys("log/"); len(keys) != 0 {
					t.Errorf("segments %v", keys)
				}
				return
			}
			s.store.Add(faults3.Rule{Op: faults3.Put, Key: ".parquet", Times: 2, Fault: faults3.LostReply()})
			a := s.settle(oracle.Proved, "--batch.rows", "10", "--batch.strict")
			s.wantRows(a, `select count(*), count(distinct kafka_offset) from {rows}`, []any{"40", "40"})
		})
	}
}
