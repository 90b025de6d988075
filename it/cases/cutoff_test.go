//go:build it

package cases

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/it/oracle"
)

// Rows that are gone by a cut are gone by a chained, anchored row that says so.
// What is deleted by hand is missed: the oldest, the newest, a tenant, from
// segments and from data files; and verify says what is missing, and from where.
func TestACutIsNotAHandThatDeletes(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	s.govern()
	s.archiving()
	s.sendTwoTenants(20)
	s.drain()
	s.stop() // the newest segment is anchored
	segments := s.archive()
	s.archiving()
	cut := s.cutAt(segments, "globex", 5)

	s.compactor("--compact.merge-files", "1000") // so that each tenant has two files
	s.compacted(topic, 0)
	s.sendMore(20, 20)
	s.drain()
	s.compacted(topic, 0)
	s.dropped(cut)
	s.stop()
	files := s.archive()

	t.Run("by a cut", func(t *testing.T) {
		v := s.verifyFolder(t, files.Dir, oracle.Proved)
		if !strings.Contains(v.Stdout, "5 dropped") {
			t.Errorf("verify does not say that 5 rows were dropped: %s", v.Stdout)
		}
		got := s.rows(files, "select count(*), min(seq) from rows where tenant_id = 'globex' and topic = '"+topic+"'")
		if fmt.Sprint(got) != "[[15 5]]" {
			t.Errorf("rows of globex, and the first seq, are %v; want 15, from 5 on", got)
		}
	})
	log := "log/" + topic + "/" + s.topicID(topic) + "/00000/"
	for name, c := range map[string]struct {
		from oracle.Archive
		gone func(keys []string) []string
		says string // part of the fault that names what is missing
	}{
		"the oldest two segments": {segments, func(keys []string) []string { return below(keys, log)[:2] }, "00000000000000000000"},
		"the newest segment":      {segments, func(keys []string) []string { return last(below(keys, log)) }, "they end before 19"},
		"a segment in the middle": {segments, func(keys []string) []string { return below(keys, log)[7:8] }, "00000000000000000007"},
		"the oldest data file":    {files, func(keys []string) []string { return s.dataFiles(keys, "acme")[:1] }, "data/acme/"},
		"the newest data file":    {files, func(keys []string) []string { return last(s.dataFiles(keys, "globex")) }, "data/globex/"},
		"a whole tenant":          {files, func(keys []string) []string { return s.dataFiles(keys, "acme") }, "data/acme/"},
		"a tenant and what says so": {files, func(keys []string) []string {
			return append(below(keys, "data/acme/"), below(keys, "catalog/"+topic+"/")...)
		}, topic},
		"the order of the cut": {files, func(keys []string) []string {
			return append(below(keys, "log/"+audit.ControlTopic+"/"), s.controlFiles(keys)...)
		}, cut},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s.must(os.CopyFS(dir, os.DirFS(c.from.Dir)))
			gone := c.gone(keysOf(t, dir))
			if len(gone) == 0 {
				t.Fatal("nothing to delete: the case shows nothing")
			}
			for _, key := range gone {
				s.must(os.Remove(filepath.Join(dir, key)))
			}
			v := s.verifyFolder(t, dir, oracle.Tampered)
			_, faults, _ := strings.Cut(v.Stdout, "Faults")
			if !strings.Contains(faults, c.says) {
				t.Errorf("without %q verify says %s; want a fault that names %s", gone, v.Stdout, c.says)
			}
		})
	}
}

// cutAt orders a cut of a tenant's log below seq size, as compact does where a
// policy says so, and returns its id.
func (s *stage) cutAt(a oracle.Archive, tenant string, size int64) string {
	s.Helper()
	segments, err := a.Segments()
	s.must(err)
	for _, segment := range segments {
		for _, l := range segment.Logs {
			if l.Tenant != tenant || l.Size != size || segment.Topic != topic {
				continue
			}
			c := control.Cut{
				Log:  archive.Line{Topic: segment.Topic, TopicID: segment.TopicID, Partition: segment.Partition},
				Size: size, Head: l.HeadOut, Frontier: l.Frontier, Policy: "rows for 30 days",
			}
			const id = "01KBCVT0000000000000000CVT"
			value, err := c.Value(tenant, id, time.Now())
			s.must(err)
			m, err := control.Record(segment.ArchiveID, tenant, c.Kind(), id, value, nil)
			s.must(err)
			r := &kgo.Record{Topic: audit.ControlTopic, Key: m.Key, Value: m.Value}
			for _, h := range m.Headers {
				r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
			}
			s.send(r)
			return id
		}
	}
	s.Fatalf("no segment ends the log of %s at %d", tenant, size)
	return ""
}

// sendMore sends n more records of both tenants, from number first on.
func (s *stage) sendMore(first, n int) {
	s.Helper()
	for i := first; i < first+n; i++ {
		tenant := [2]string{"acme", "globex"}[i%2]
		s.produce(topic, tenant, call(tenant, i))
	}
}

// dropped waits until a cut is carried out.
func (s *stage) dropped(id string) {
	s.Helper()
	last := ""
	s.within(waitLong, "cut "+id, func() bool {
		keys := s.store.Keys("catalog/" + topic + "/")
		for _, key := range slices.Backward(keys) {
			if body, ok := s.store.Object(key); ok && strings.HasSuffix(key, ".note") {
				last = key
				return strings.Contains(string(body), id)
			}
		}
		return false
	}, &last)
}

func (s *stage) verifyFolder(t *testing.T, dir string, want int) oracle.Verdict {
	t.Helper()
	v, err := oracle.Verify(dir, s.env)
	if err != nil {
		t.Fatal(err)
	}
	if v.Code != want {
		t.Errorf("verify: exit %d, want %d: %s%s", v.Code, want, v.Stdout, v.Stderr)
	}
	return v
}

func keysOf(t *testing.T, dir string) (keys []string) {
	t.Helper()
	d, err := archive.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for o, err := range d.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, o.Key)
	}
	return keys
}

func below(keys []string, prefix string) (found []string) {
	for _, key := range keys {
		if strings.HasPrefix(key, prefix) {
			found = append(found, key)
		}
	}
	return found
}

func last(keys []string) []string { return keys[max(len(keys)-1, 0):] }

// dataFiles are those of a tenant's rows of the topic.
func (s *stage) dataFiles(keys []string, tenant string) []string {
	id := "/" + s.topicID(topic) + "."
	return slices.DeleteFunc(below(keys, "data/"+tenant+"/"), func(key string) bool { return !strings.Contains(key, id) })
}

// controlFiles are those of control logs.
func (s *stage) controlFiles(keys []string) []string {
	id := "/" + s.topicID(audit.ControlTopic) + "."
	return slices.DeleteFunc(below(keys, "data/"), func(key string) bool { return !strings.Contains(key, id) })
}
