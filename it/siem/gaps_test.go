//go:build it

package siem

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink/syslog"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

var plainName = regexp.MustCompile(`^[a-z0-9-]+$`)

// plainEvents are those of tenants whose names no control character can make one.
func plainEvents(n int) (all []*event.Event) {
	for _, ev := range someEvents(n) {
		if plainName.MatchString(ev.Tenant) {
			all = append(all, ev)
		}
	}
	return all
}

// without returns events without the row of a tenant that has one before and one
// behind it, and that tenant.
func without(events []*event.Event) (left []*event.Event, tenant string) {
	rows := map[string]int{}
	for i, ev := range events {
		if !ev.IsRow() {
			continue
		}
		if rows[ev.Tenant]++; rows[ev.Tenant] == 4 {
			tenant = ev.Tenant
			return append(append(left, events[:i]...), events[i+1:]...), tenant
		}
	}
	return events, ""
}

// The query of docs/export-gaps.md over rsyslog's files finds nothing in what was
// delivered, and the one row that was not.
func TestGapQueryOfSyslogFiles(t *testing.T) {
	c := certificates(t)
	for _, whole := range []bool{true, false} {
		r, err := parts.StartRsyslog(filepath.Join(t.TempDir(), "rsyslog"), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Kill)
		s, err := syslog.New(syslog.Options{Address: r.Addr, CA: mustRead(t, c.CA), Cert: mustRead(t, c.ClientCert), Key: mustRead(t, c.ClientKey)})
		if err != nil {
			t.Fatal(err)
		}
		events, tenant := plainEvents(1500), ""
		if !whole {
			events, tenant = without(events)
		}
		deliverAll(t, s, event.LEEF, events)
		deliverAll(t, s, event.CEF, events[:100]) // repeats
		if _, err := r.Messages(); err != nil {
			t.Fatal(err)
		}
		for _, db := range parts.DuckDBs() {
			found, err := db.Query(syslogQuery(t, filepath.Dir(r.File)))
			if err != nil {
				t.Fatal(err)
			}
			if whole && len(found) != 0 || !whole && (len(found) != 1 || found[0][0] != tenant || found[0][4] != "1 missing before it") {
				t.Errorf("DuckDB %s, whole %v: %v", db.Version, whole, found)
			}
		}
	}
}

// syslogQuery returns the query over files of syslog in a folder.
func syslogQuery(t *testing.T, folder string) string {
	t.Helper()
	all, err := parts.GapQueries(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range all {
		if strings.Contains(q, folder+"/messages*") {
			return q
		}
	}
	t.Fatal("docs/export-gaps.md has no query over files of syslog")
	return ""
}

// So does the query in LogsQL.
func TestGapQueryOfVictoriaLogsBySyslog(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(parts.Root(), "docs", "export-gaps.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, query, _ := strings.Cut(string(page), "## VictoriaLogs, by syslog")
	_, query, _ = strings.Cut(query, "```\n")
	query, _, _ = strings.Cut(query, "\n```")
	c := certificates(t)
	for _, whole := range []bool{true, false} {
		at, err := parts.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		v, err := parts.StartVictoria(filepath.Join(t.TempDir(), "victoria"), "-syslog.listenAddr.tcp="+at, "-syslog.tls", "-syslog.tlsCertFile="+c.Cert, "-syslog.tlsKeyFile="+c.Key)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(v.Kill)
		s, err := syslog.New(syslog.Options{Address: at, CA: mustRead(t, c.CA)})
		if err != nil {
			t.Fatal(err)
		}
		events, tenant := plainEvents(1500), ""
		if !whole {
			events, tenant = without(events)
		}
		deliverAll(t, s, event.JSON, events)
		deliverAll(t, s, event.JSON, events[:100]) // repeats
		found, err := v.Query(t.Context(), 0, query)
		if err != nil {
			t.Fatal(err)
		}
		if whole && len(found) != 0 || !whole && (len(found) != 1 || found[0]["ledgerlake@32473.tenant"] != tenant || found[0]["missing"] != "1") {
			t.Errorf("whole %v: %v", whole, found)
		}
	}
}
