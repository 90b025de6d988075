package helm

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	alerts     = root + "/deploy/prometheus/ledgerlake.rules.yaml"
	dashboards = root + "/deploy/grafana"
)

// The chart's alerts are those of deploy/prometheus: its copy is the same bytes, and
// what is rendered of it says the same.
func TestRules(t *testing.T) {
	want, err := os.ReadFile(alerts)
	if err != nil {
		t.Fatal(err)
	}
	isFile(t, chartDir+"/files/ledgerlake.rules.yaml", want) // with -update, loadChart has written it
	var rules map[string]any
	if err := yaml.Unmarshal(want, &rules); err != nil {
		t.Fatal(err)
	}
	o := one(t, mustRender(t, readValues(t, chartDir+"/ci/full.yaml")), "PrometheusRule", "ledgerlake")
	if !reflect.DeepEqual(o.at("spec"), any(rules)) {
		t.Error("the PrometheusRule does not say what the file says")
	}
}

// The chart's dashboards are those of deploy/grafana, byte for byte, each in a
// ConfigMap that Grafana's sidecar finds; unless they are asked for, there is none.
func TestDashboards(t *testing.T) {
	files, err := filepath.Glob(dashboards + "/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	values := parseValues(t, "settings: {bucket: 's3://audit', topics: [audit.calls]}\nmonitoring: {dashboards: true}")
	all := mustRender(t, values)
	copies, err := filepath.Glob(chartDir + "/files/dashboards/*.json")
	if err != nil || len(copies) != len(files) {
		t.Errorf("the chart has %d of %d dashboards: run go test ./it/helm -update", len(copies), len(files))
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		isFile(t, chartDir+"/files/dashboards/"+name, want)
		o := one(t, all, "ConfigMap", "-dashboard-"+strings.TrimSuffix(name, ".json"))
		if strings.TrimSpace(o.text("data", name)) != strings.TrimSpace(string(want)) || o.text("metadata", "labels", "grafana_dashboard") != "1" {
			t.Errorf("%s is not the ConfigMap of %s", o.name(), name)
		}
		if err := newJudge(versions[0]).check(o); err != nil {
			t.Error(err)
		}
	}
	delete(values, "monitoring")
	if strings.Contains(textOf(mustRender(t, values)), "grafana") {
		t.Error("there are dashboards that nobody asked for")
	}
}

// textOf is all that was rendered.
func textOf(all []object) string {
	var b strings.Builder
	for _, o := range all {
		b.WriteString(o.Text + "\n")
	}
	return b.String()
}

var (
	metricName = regexp.MustCompile(`\bledgerlake_[a-z0-9_]+`)
	matcher    = regexp.MustCompile(`(?:job_name|cronjob)=~"([^"]+)"`)
)

// What the alerts call the Jobs of verify is what the chart calls them, whatever the
// release is called.
func TestAlertsKnowTheJobs(t *testing.T) {
	text, err := os.ReadFile(alerts)
	if err != nil {
		t.Fatal(err)
	}
	found := matcher.FindAllStringSubmatch(string(text), -1)
	if len(found) < 2 {
		t.Fatalf("%v: the alerts must name Jobs otherwise now", found)
	}
	for _, values := range []string{"full", "plain-serve"} { // plain-serve has another name
		name := one(t, mustRender(t, readValues(t, chartDir+"/ci/"+values+".yaml")), "CronJob", "verify").name()
		for _, m := range found {
			if !regexp.MustCompile("^(?:" + m[1] + ")$").MatchString(name) {
				t.Errorf("%s: the CronJob %s is none that %s means", values, name, m[0])
			}
		}
	}
}

// Every metric that an alert asks for is one that the documented tables have, which
// are made from the code.
func TestAlertsAskForMetricsThatAreThere(t *testing.T) {
	text, err := os.ReadFile(alerts)
	if err != nil {
		t.Fatal(err)
	}
	var docs strings.Builder
	for _, page := range []string{"operations", "compaction", "streams", "serve", "verify", "metrics"} {
		body, err := os.ReadFile(root + "/docs/" + page + ".md")
		if err != nil && page != "metrics" {
			t.Fatal(err)
		}
		docs.Write(body)
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			for _, name := range metricName.FindAllString(r.Expr, -1) {
				asked++
				if !strings.Contains(docs.String(), "`"+name+"`") {
					t.Errorf("%s asks for %s, which no table has", r.Alert, name)
				}
			}
		}
	}
	if asked < 20 {
		t.Errorf("%d metrics found in the alerts: the pattern must be wrong", asked)
	}
}
