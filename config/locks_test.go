package config_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// A lock goes to the folders that a command signs, and to no other bucket's
// options than those of Store.
func TestLocks(t *testing.T) {
	var s config.Ingest
	if _, err := config.Load(s.Sections(), s.Sections(), config.Input{Args: []string{
		"--topics", "t", "--bucket", "s3://bucket", "--anchor-lock", "compliance", "--anchor-lock-days", "3650",
	}}); err != nil {
		t.Fatal(err)
	}
	lock := s3sink.Lock{Mode: s3sink.Compliance, Days: 3650}
	if got := s.Store().Locks; !maps.Equal(got, map[string]s3sink.Lock{"anchor": lock, "key": lock}) {
		t.Errorf("ingest locks %v", got)
	}
	if s.S3.Locks != nil || s.Anchors.S3.Locks != nil {
		t.Errorf("locks for all: %v, %v", s.S3.Locks, s.Anchors.S3.Locks)
	}
	var c config.Compact
	if _, err := config.Load(c.Sections(), c.Sections(), config.Input{Args: []string{
		"--topics", "t", "--bucket", "s3://bucket", "--catalog-lock", "governance", "--catalog-lock-days", "30",
	}}); err != nil {
		t.Fatal(err)
	}
	lock = s3sink.Lock{Mode: s3sink.Governance, Days: 30}
	if got := c.Store().Locks; !maps.Equal(got, map[string]s3sink.Lock{"catalog": lock, "key": lock}) {
		t.Errorf("compact locks %v", got)
	}
}

// A lock says for how long, and what it says is looked at.
func TestLockFaults(t *testing.T) {
	for want, args := range map[string][]string{
		"anchor-lock-days: not set: anchor-lock needs a number of days":          {"--anchor-lock", "governance"},
		"anchor-lock-days (flag --anchor-lock-days): has no use without":         {"--anchor-lock-days", "3"},
		"want a whole number from 1 to 36500":                                    {"--anchor-lock", "governance", "--anchor-lock-days", "0"},
		`"GOVERNANCE" is not allowed: want none, governance or compliance`:       {"--anchor-lock", "GOVERNANCE", "--anchor-lock-days", "3"},
		"anchor-lock-days (flag --anchor-lock-days): has no use without anchor-": {"--anchor-lock", "none", "--anchor-lock-days", "3"},
	} {
		var s config.Ingest
		origins, err := config.Load(s.Sections(), s.Sections(), config.Input{Args: append([]string{"--topics", "t", "--bucket", "s3://bucket"}, args...)})
		if err == nil {
			err = s.Check(origins)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", args, err, want)
		}
	}
}
