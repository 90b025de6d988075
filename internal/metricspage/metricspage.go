// Package metricspage holds docs/metrics.md against the metrics that commands
// have: each command's test writes, or checks, the section of its own.
//
//	| metric | type | labels | what |
//
// A section is what stands between its two comments. A metric that is registered
// and has no series is a fault of the test, which has to make one: it would be
// missing from the page without a word.
package metricspage

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Head is the head of each table.
const Head = "| metric | type | labels | what |\n|---|---|---|---|\n"

// Check requires that the section of a page is the table of what a registry
// has, of names that begin with prefix; update writes it instead.
func Check(t *testing.T, page, section string, r *prometheus.Registry, prefix string, update bool) {
	t.Helper()
	body, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := fmt.Sprintf("<!-- %s, made by its tests with -update; do not edit it. -->\n\n%s", section, Head), fmt.Sprintf("\n<!-- End of %s. -->", section)
	head, rest, ok := strings.Cut(string(body), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no section %q", page, section)
	}
	want := head + begin + Table(t, r, prefix) + end + tail
	switch {
	case want == string(body):
	case !update:
		t.Errorf("%s is not what the code has: run its test with -update (make generate)", page)
	default:
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Table returns a line for each metric of a registry whose name begins with
// prefix, by name.
func Table(t *testing.T, r *prometheus.Registry, prefix string) string {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	seen := map[string]bool{}
	for _, f := range families {
		seen[f.GetName()] = true
		if !strings.HasPrefix(f.GetName(), prefix) {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp())
	}
	for _, name := range registered(r) {
		if strings.HasPrefix(name, prefix) && !seen[name] {
			t.Errorf("%s is registered and has no series: have the test make one", name)
		}
	}
	return table.String()
}

var fqName = regexp.MustCompile(`fqName: "([^"]+)"`)

// registered returns the names of all metrics of a registry, also of those that
// have no series yet.
func registered(r *prometheus.Registry) (names []string) {
	all := make(chan *prometheus.Desc)
	go func() { r.Describe(all); close(all) }()
	for d := range all {
		if m := fqName.FindStringSubmatch(d.String()); m != nil {
			names = append(names, m[1])
		}
	}
	return names
}
