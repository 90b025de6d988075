// Package promtool holds alert rules and dashboards against what the code
// exposes, by Prometheus' own parser. It is a module of its own: what Prometheus
// needs stays out of the product's.
//
// What the code exposes is docs/metrics.md, which is made from the code.
package promtool

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

const root = "../.."

// A metric is one that somebody exposes.
type metric struct {
	kind   string // counter, gauge or histogram
	labels []string
}

// target are the labels that Prometheus gives to what it scrapes, by itself or as
// the chart's ServiceMonitor and PodMonitor say.
var target = []string{"namespace", "job", "instance", "pod"}

// others are metrics that others expose.
var others = map[string]metric{
	"ALERTS":                        {"gauge", []string{"alertname", "alertstate", "severity"}}, // Prometheus itself
	"process_resident_memory_bytes": {"gauge", nil},                                             // client_golang
	"process_cpu_seconds_total":     {"counter", nil},                                           // client_golang
	// kube-state-metrics, docs/metrics/workload/{job,cronjob}-metrics.md
	"kube_job_status_failed":                   {"gauge", []string{"job_name", "reason"}},
	"kube_cronjob_status_last_successful_time": {"gauge", []string{"cronjob"}},
}

// exposed returns all metrics, by name; those of a histogram by its three names.
func exposed(t *testing.T) map[string]metric {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := maps.Clone(others)
	rows := regexp.MustCompile("(?m)^\\| `(ledgerlake_[a-z_]+)` \\| ([a-z]+) \\| ([^|]*) \\|").FindAllStringSubmatch(string(page), -1)
	for _, row := range rows {
		m := metric{kind: row[2]}
		for _, l := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[3], -1) {
			m.labels = append(m.labels, l[1])
		}
		if m.kind != "histogram" {
			all[row[1]] = m
			continue
		}
		all[row[1]+"_sum"], all[row[1]+"_count"] = metric{"counter", m.labels}, metric{"counter", m.labels}
		all[row[1]+"_bucket"] = metric{"counter", append(slices.Clone(m.labels), "le")}
	}
	if len(rows) < 80 {
		t.Fatalf("found %d metrics; the pattern must be wrong", len(rows))
	}
	return all
}

var variables = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$job", "x", "$namespace", "x")

// check returns what is wrong with an expression, and which labels its result may
// have.
func check(expr string, all map[string]metric) (out []string, faults []string) {
	e, err := parser.NewParser(parser.Options{}).ParseExpr(variables.Replace(expr))
	if err != nil {
		return nil, []string{err.Error()}
	}
	c := &checker{all: all}
	return c.labels(e, false), c.faults
}

type checker struct {
	all    map[string]metric
	faults []string
}

func (c *checker) fault(format string, a ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, a...))
}

// labels returns the labels that the result of an expression may have. ranged is
// whether it is looked at over some time.
func (c *checker) labels(e parser.Expr, ranged bool) []string {
	switch e := e.(type) {
	case *parser.VectorSelector:
		return c.selector(e, ranged)
	case *parser.MatrixSelector:
		return c.labels(e.VectorSelector, true)
	case *parser.AggregateExpr:
		from := c.labels(e.Expr, ranged)
		if e.Without {
			return without(from, e.Grouping)
		}
		c.know(from, e.Grouping, e)
		return e.Grouping
	case *parser.BinaryExpr:
		left, right := c.labels(e.LHS, ranged), c.labels(e.RHS, ranged)
		if e.VectorMatching != nil {
			c.know(left, e.VectorMatching.MatchingLabels, e)
			c.know(right, e.VectorMatching.MatchingLabels, e)
		}
		if e.Op == parser.LOR {
			return append(slices.Clone(left), right...)
		}
		if e.LHS.Type() == parser.ValueTypeScalar {
			return right
		}
		return left
	case *parser.Call:
		return c.call(e, ranged)
	case *parser.ParenExpr:
		return c.labels(e.Expr, ranged)
	case *parser.NumberLiteral, *parser.StringLiteral:
		return nil
	}
	c.fault("%s: this kind of expression (%T) is not checked", e, e)
	return nil
}

func (c *checker) call(e *parser.Call, ranged bool) (out []string) {
	for _, arg := range e.Args {
		out = append(out, c.labels(arg, ranged)...)
	}
	switch e.Func.Name {
	case "histogram_quantile":
		if !slices.Contains(out, "le") {
			c.fault("%s: no le", e)
		}
		return without(out, []string{"le"})
	case "absent", "vector", "time":
		return nil
	}
	return out
}

// selector looks at a metric: is it there, does it have those labels, and is it
// asked for as what it is.
func (c *checker) selector(e *parser.VectorSelector, ranged bool) []string {
	m, ok := c.all[e.Name]
	if !ok {
		c.fault("nobody exposes %q", e.Name)
		return nil
	}
	if ranged != (m.kind == "counter") {
		c.fault("%s is a %s: a counter is looked at by rate or increase, a gauge as it is", e.Name, m.kind)
	}
	has := slices.Concat(m.labels, target)
	for _, match := range e.LabelMatchers {
		if match.Name != "__name__" {
			c.know(has, []string{match.Name}, e)
		}
	}
	return has
}

func (c *checker) know(has, want []string, e parser.Expr) {
	for _, l := range want {
		if !slices.Contains(has, l) {
			c.fault("%s: no label %q there, only %q", e, l, has)
		}
	}
}

func without(all, gone []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(l string) bool { return slices.Contains(gone, l) })
}

// The check can fail.
func TestCheck(t *testing.T) {
	all := exposed(t)
	for expr, want := range map[string]string{
		`sum by (topic) (ledgerlake_ingest_lag_offsets{namespace=~"$namespace"}) > 5`:                            "",
		`histogram_quantile(0.9, sum by (le) (rate(ledgerlake_ingest_commit_seconds_bucket[$__rate_interval])))`: "",
		`time() - ledgerlake_verify_last_success_timestamp_seconds`:                                              "",
		`sum by (`:                                                                        "parse error",
		`ledgerlake_ingest_lags`:                                                          `nobody exposes "ledgerlake_ingest_lags"`,
		`ledgerlake_ingest_rows_total`:                                                    "is a counter",
		`rate(ledgerlake_ingest_lag_offsets[5m])`:                                         "is a gauge",
		`ledgerlake_ingest_lag_offsets{tenant="acme"}`:                                    `no label "tenant"`,
		`sum by (tenant) (rate(ledgerlake_ingest_rows_total[5m]))`:                        `no label "tenant"`,
		`sum by (job) (sum by (topic) (ledgerlake_ingest_lag_offsets))`:                   `no label "job"`,
		`histogram_quantile(0.9, sum(rate(ledgerlake_ingest_commit_seconds_bucket[5m])))`: "no le",
		`ledgerlake_ingest_ready == on (topic) ledgerlake_compact_ready`:                  `no label "topic"`,
		`ledgerlake_ingest_commit_seconds`:                                                "nobody exposes",
	} {
		_, faults := check(expr, all)
		if got := strings.Join(faults, "; "); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

const rulesFile = root + "/deploy/prometheus/ledgerlake.rules.yaml"

type rule struct {
	Alert               string
	Expr                string
	For                 string
	Labels, Annotations map[string]string
}

func readRules(t *testing.T) (all []rule) {
	t.Helper()
	body, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(body, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

var templated = regexp.MustCompile(`\$labels\.([a-z_]+)`)

// Each alert asks for what the code exposes, says only what its result has, and has
// what an operator needs to be told.
func TestAlerts(t *testing.T) {
	all := exposed(t)
	for _, r := range readRules(t) {
		out, faults := check(r.Expr, all)
		for _, f := range faults {
			t.Errorf("%s: %s", r.Alert, f)
		}
		if !strings.HasPrefix(r.Alert, "Ledgerlake") || !slices.Contains([]string{"critical", "warning"}, r.Labels["severity"]) {
			t.Errorf("%s: severity %q", r.Alert, r.Labels["severity"])
		}
		for _, name := range []string{"summary", "description", "runbook_url"} {
			text := r.Annotations[name]
			if text == "" {
				t.Errorf("%s has no %s", r.Alert, name)
			}
			for _, m := range templated.FindAllStringSubmatch(text, -1) {
				if !slices.Contains(out, m[1]) {
					t.Errorf("%s: %s names the label %q, which the result cannot have", r.Alert, name, m[1])
				}
			}
		}
		if url := r.Annotations["runbook_url"]; !strings.HasSuffix(url, "/docs/runbook/"+r.Alert+".md") {
			t.Errorf("%s: runbook_url %s", r.Alert, url)
		}
	}
}

// Each alert has a case in which it fires, and one in which it does not, for
// promtool to try.
func TestEveryAlertIsTried(t *testing.T) {
	body, err := os.ReadFile(root + "/deploy/prometheus/ledgerlake.rules.test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Tests []struct {
			Cases []struct {
				Expr    string
				Samples []any `yaml:"exp_samples"`
			} `yaml:"promql_expr_test"`
		}
	}
	if err := yaml.Unmarshal(body, &file); err != nil {
		t.Fatal(err)
	}
	fires, rests := map[string]bool{}, map[string]bool{}
	alert := regexp.MustCompile(`^ALERTS\{alertname="(\w+)",alertstate="firing"\}$`)
	for _, test := range file.Tests {
		for _, c := range test.Cases {
			if m := alert.FindStringSubmatch(c.Expr); m != nil {
				fires[m[1]], rests[m[1]] = fires[m[1]] || len(c.Samples) > 0, rests[m[1]] || len(c.Samples) == 0
			}
		}
	}
	for _, r := range readRules(t) {
		if !fires[r.Alert] || !rests[r.Alert] {
			t.Errorf("%s: tried where it fires: %v, where it does not: %v", r.Alert, fires[r.Alert], rests[r.Alert])
		}
	}
}

type dashboard struct {
	UID        string
	Title      string
	Tags       []string
	Templating struct {
		List []struct{ Name, Type string }
	}
	Panels []panel
}

type panel struct {
	ID         int
	Type       string
	Title      string
	Datasource struct{ Type, UID string }
	GridPos    struct{ X, Y, W, H int }
	Targets    []struct{ RefID, Expr, LegendFormat string }
}

func readDashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob(root + "/deploy/grafana/*.json")
	if err != nil || len(files) != 4 {
		t.Fatalf("%d dashboards, %v", len(files), err)
	}
	all := map[string]dashboard{}
	for _, name := range files {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(body, &d); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		all[filepath.Base(name)] = d
	}
	return all
}

var legend = regexp.MustCompile(`\{\{([a-z_]+)\}\}`)

// Each panel asks for what the code exposes, and names series by labels that they
// have.
func TestDashboards(t *testing.T) {
	all := exposed(t)
	asked := 0
	for name, d := range readDashboards(t) {
		if d.UID == "" || d.Title == "" || !slices.Contains(d.Tags, "ledgerlake") {
			t.Errorf("%s: uid %q, title %q, tags %q", name, d.UID, d.Title, d.Tags)
		}
		known := map[string]bool{}
		for _, v := range d.Templating.List {
			known[v.Name] = true
		}
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				asked++
				out, faults := check(q.Expr, all)
				for _, f := range faults {
					t.Errorf("%s: %s: %s", name, p.Title, f)
				}
				for _, m := range legend.FindAllStringSubmatch(q.LegendFormat, -1) {
					if !slices.Contains(out, m[1]) {
						t.Errorf("%s: %s: the legend names %q, which %s cannot have", name, p.Title, m[1], q.Expr)
					}
				}
				for _, m := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(q.Expr, -1) {
					if !known[m[1]] && !strings.HasPrefix(m[1], "__") {
						t.Errorf("%s: %s: no variable %s", name, p.Title, m[1])
					}
				}
			}
		}
	}
	if asked < 100 {
		t.Errorf("found %d expressions; the files must be read wrongly", asked)
	}
}

// Panels have ids of their own, take their data from the variable, and none lies on
// another.
func TestPanels(t *testing.T) {
	uids := map[string]bool{}
	for name, d := range readDashboards(t) {
		if uids[d.UID] {
			t.Errorf("%s: uid %s is another's too", name, d.UID)
		}
		uids[d.UID] = true
		ids, taken := map[int]bool{}, map[[2]int]string{}
		for _, p := range d.Panels {
			if ids[p.ID] {
				t.Errorf("%s: %s: id %d is another's too", name, p.Title, p.ID)
			}
			ids[p.ID] = true
			if p.Type != "row" && (len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" || p.Datasource.Type != "prometheus") {
				t.Errorf("%s: %s: %d targets from %+v", name, p.Title, len(p.Targets), p.Datasource)
			}
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
						t.Fatalf("%s: %s lies on %q, or beside the grid", name, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}
