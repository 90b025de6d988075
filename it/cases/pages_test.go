//go:build it

package cases

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/it/oracle"
)

// Every command sees the keys of every page: what compaction, an erasure, a
// verification and the offboarding of a tenant leave out, they leave out
// because it is gone.
func TestListingsOfManyPages(t *testing.T) {
	for name, c := range map[string]struct {
		page, records int
	}{
		"two a page":        {2, 50},
		"a thousand a page": {0, 2500},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, faults3.Options{PageSize: c.page, Versioned: true}, topic)
			s.govern()
			s.archiving()
			s.sendTwoTenants(c.records)
			s.drain()
			if got := len(s.store.Keys("log/" + topic + "/")); got != c.records {
				t.Fatalf("%d segments, want %d", got, c.records)
			}
			s.verify(oracle.Proved)
			s.compactor()
			s.compacted(topic, 0)
			s.wantCounts(c.records/2, c.records/2, 5)
			s.verify(oracle.Proved)

			s.await(s.erase("--tenant", "acme", "--user", token), "closed")
			if found := s.scan(token); len(found) > 0 {
				t.Errorf("what was erased is still in %q", found)
			}
			s.wantCounts(c.records/2, c.records/2, 0)

			s.compact(0, "offboard", "--tenant", "globex", "--reason", "a case", "--yes")
			last := ""
			s.within(waitLong, "offboarding of globex", func() bool {
				left := s.dataOf("globex")
				last = strings.Join(left, " ")
				return len(left) == 0
			}, &last)
			s.wantCounts(c.records/2, 0, 0)
			s.stop()
			s.verify(oracle.Proved)
		})
	}
}

// sendTwoTenants sends n records, of acme and globex in turn. Five of acme's are
// a person's.
func (s *stage) sendTwoTenants(n int) {
	s.Helper()
	var records []*kgo.Record
	for i := range n {
		tenant, value := "globex", call("globex", i)
		if i%2 == 0 {
			tenant, value = "acme", call("acme", i)
			if i < 10 {
				value = call("acme", i, `"userId":"u-1"`, `"userId":"`+token+`"`, `"x":1`, `"mail":"`+token+`@example.com"`)
			}
		}
		records = append(records, record(topic, tenant, value))
	}
	s.send(records...)
}

// wantCounts requires so many data rows of acme and globex, and so many of the
// person's, by DuckDB and by verify.
func (s *stage) wantCounts(acme, globex, person int) {
	s.Helper()
	got := s.rows(s.archive(), fmt.Sprintf(`select count(*) filter (tenant_id = 'acme'), count(*) filter (tenant_id = 'globex'),
		count(*) filter (user_id = '%s') from rows where topic = '%s'`, token, topic))
	want := fmt.Sprint([]any{fmt.Sprint(acme), fmt.Sprint(globex), fmt.Sprint(person)})
	if len(got) != 1 || fmt.Sprint(got[0]) != want {
		s.Errorf("rows of acme, globex and the person are %v, want %s", got, want)
	}
}

// dataOf returns the versions of data files of a tenant, but for those of its
// control log, which stays as the receipt of what went.
func (s *stage) dataOf(tenant string) (found []string) {
	for name := range s.store.Everything() {
		if strings.HasPrefix(name, "data/"+tenant+"/") && !strings.Contains(name, "/"+s.topicID(audit.ControlTopic)+".") {
			found = append(found, name)
		}
	}
	return found
}
