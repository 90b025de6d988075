package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every alert has its page, which its annotation names and the index lists, and
// every page of an alert has its alert. Each says what it means, how to look, what
// to do, and how to know that it is over.
func TestRunbook(t *testing.T) {
	rules, err := os.ReadFile(filepath.Join(root, "deploy/prometheus/ledgerlake.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile("runbook/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var alerts []string
	for _, m := range regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(string(rules), -1) {
		alerts = append(alerts, m[1])
	}
	if len(alerts) < 20 {
		t.Fatalf("found %d alerts; the pattern must be wrong", len(alerts))
	}
	for _, name := range alerts {
		page, err := os.ReadFile("runbook/" + name + ".md")
		if err != nil {
			t.Error(err)
			continue
		}
		for _, part := range []string{"# " + name + "\n", "\n## What it means\n", "\n## How to look\n", "\n## What to do\n", "\n## How you know that it is over\n"} {
			if !strings.Contains(string(page), part) {
				t.Errorf("runbook/%s.md has no %q", name, strings.TrimSpace(part))
			}
		}
		if !strings.Contains(string(rules), "/docs/runbook/"+name+".md\n") {
			t.Errorf("%s: its runbook_url is not its page", name)
		}
	}
	pages, err := filepath.Glob("runbook/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		if name != "README" && !strings.Contains(string(index), "]("+name+".md)") {
			t.Errorf("runbook/README.md does not list %s", page)
		}
		if strings.HasPrefix(name, "Ledgerlake") && !slices.Contains(alerts, name) {
			t.Errorf("%s: there is no such alert", page)
		}
	}
}

// What the pages say of metrics is of metrics that are there.
func TestMetricsInPages(t *testing.T) {
	table, err := os.ReadFile("metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(ledgerlake_[a-z_]+)` \\|").FindAllStringSubmatch(string(table), -1) {
		known[m[1]] = true
	}
	named := 0
	walk(t, ".md", func(path string, body []byte) {
		for _, name := range regexp.MustCompile(`\bledgerlake_(?:ingest|compact|export|verify)_[a-z_]*[a-z]\b`).FindAllString(string(body), -1) {
			named++
			base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			if !known[name] && !known[base] {
				t.Errorf("%s: there is no metric %s", path, name)
			}
		}
	})
	if named < 100 {
		t.Errorf("found %d names of metrics; the pattern must be wrong", named)
	}
}
