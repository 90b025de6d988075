package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/config"
)

func loadCompact(t *testing.T, environ []string, args ...string) (config.Compact, error) {
	t.Helper()
	var c config.Compact
	all := c.Sections()
	origins, err := config.Load(all, all, config.Input{Args: args, Environ: environ})
	if err == nil {
		err = c.Check(origins)
	}
	return c, err
}

// What governs has the periods that docs/erasure.md promises, and compact meets
// ingest neither in its group nor at its port.
func TestCompactDefaults(t *testing.T) {
	c, err := loadCompact(t, nil, "--bucket", "s3://bucket", "--topics", "t")
	if err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	if c.PurgeAfter != 7*day || c.LateWindow != 7*day || c.ErasureWithin != 30*day || c.RetentionFile != "" {
		t.Errorf("%v, %v, %v, %q", c.PurgeAfter, c.LateWindow, c.ErasureWithin, c.RetentionFile)
	}
	if c.Group != "ledgerlake-compact" || c.HTTP.Listen != "127.0.0.1:9405" || c.Kafka.ClientID != "ledgerlake-compact" || c.Assign != config.AssignGroup || c.Bucket != "s3://bucket" {
		t.Errorf("%+v", c)
	}
}

// Settings of another command that stand in the environment are checked, and are
// no error.
func TestCompactSharesItsFile(t *testing.T) {
	shared := []string{"LEDGERLAKE_BATCH_ROWS=7", "LEDGERLAKE_PURGE_AFTER=3d", "LEDGERLAKE_TOPICS=t"}
	c, err := loadCompact(t, shared, "--bucket", "s3://bucket")
	if err != nil || c.PurgeAfter != 72*time.Hour {
		t.Errorf("%v, %v", c.PurgeAfter, err)
	}
	if s, _, err := load(t, needed[:2], shared, ""); err != nil || s.Batch.Rows != 7 {
		t.Errorf("ingest: %v, %v", s.Batch.Rows, err)
	}
	if _, err := loadCompact(t, []string{"LEDGERLAKE_BATCH_ROWS=many"}, "--bucket", "s3://bucket"); err == nil || !strings.HasPrefix(err.Error(), "batch.rows (environment LEDGERLAKE_BATCH_ROWS)") {
		t.Errorf("%v", err)
	}
	if _, err := loadCompact(t, nil, "--bucket", "s3://bucket", "--batch.rows", "7"); err == nil || !strings.Contains(err.Error(), "this command has no use for it") {
		t.Errorf("%v", err)
	}
}

func TestCompactFaults(t *testing.T) {
	needed := []string{"--bucket", "s3://bucket", "--topics", "t"}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--bucket", "s3://bucket"}, "topics: not set: give the topics that ledgerlake-ingest archives"},
		{append(needed, "--purge-after", "40d"), "erasure-within: is less than purge-after, 40d"},
		{append(needed, "--purge-after", "7"), `purge-after (flag --purge-after): "7" is not allowed: want a duration of 1s or more, in s, m, h or d, such as 30d`},
		{append(needed, "--purge-after", "0d"), `purge-after (flag --purge-after): "0d" is not allowed`},
		{append(needed, "--purge-after", "-1d"), `purge-after (flag --purge-after): "-1d" is not allowed`},
		{append(needed, "--late-window", "0s"), `late-window (flag --late-window): "0s" is not allowed`},
		{append(needed, "--compact.group", "ledgerlake"), "compact.group (flag --compact.group): is the group of ledgerlake-ingest"},
		{append(needed, "--topics", "ledgerlake.control"), "topics (flag --topics): has the control topic"},
		{append(needed, "--catalog-kms-key", "k"), "catalog-key-name: not set: catalog-kms-key needs it"},
		{append(needed, "--catalog-key", "PRIVATE+KEY+x"), "catalog-key (flag --catalog-key): want one or more of"},
	} {
		if _, err := loadCompact(t, nil, tt.args...); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q: %v", tt.args, err)
		}
	}
}
