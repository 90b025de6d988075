package config

import (
	"context"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink/securitylake"
)

const lakeFile = `destinations:
  - name: lake
    type: security-lake
    url: s3://aws-security-data-lake-eu-central-1-abc?region=eu-central-1
    source: ledgerlake
    region-of-events: eu-central-1
    account: "123456789012"
`

// A lake is opened with its own format and linger; what it would refuse is
// refused before anything is sent, by the name of the setting.
func TestLakeSettings(t *testing.T) {
	all, err := parseDestinations([]byte(lakeFile), nil)
	if err != nil {
		t.Fatal(err)
	}
	d := all[0]
	if d.Format != event.OCSF13 || d.Linger != securitylake.Linger || !d.Stepwise {
		t.Errorf("%+v", d)
	}
	if s, err := d.Open(context.Background()); err != nil {
		t.Error(err)
	} else if _, ok := s.(*securitylake.Sink); !ok {
		t.Errorf("a %T", s)
	}
	for _, c := range []struct{ from, to, names string }{
		{"source: ledgerlake", "source: much-too-long-for-a-source", "source"},
		{"region-of-events: eu-central-1", "region-of-events: frankfurt", "region-of-events"},
		{`account: "123456789012"`, "account: acme", "account"},
		{"    source: ledgerlake\n", "", "source"},
		{"    account:", "    format: cef\n    account:", "format"},
	} {
		_, err := parseDestinations([]byte(strings.Replace(lakeFile, c.from, c.to, 1)), nil)
		if err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: %v", c.to, err)
		}
	}
}
