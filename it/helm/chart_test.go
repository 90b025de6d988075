// Package helm holds the tests of helm/ledgerlake, of the Dockerfile and of what is
// said of both: what the chart renders is held against golden files, against the
// schemas of Kubernetes and of the operators, and against the parsers of the
// commands that are to read it.
package helm

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files, the chart's README, its schema and its alerts anew")

const (
	root     = "../.."
	chartDir = root + "/helm/ledgerlake"
)

// An object is one manifest that the chart renders.
type object struct {
	Text string // as rendered
	Tree map[string]any
}

func (o object) kind() string { return o.text("kind") }
func (o object) name() string { return o.text("metadata", "name") }

// at returns what stands behind some keys, nil where nothing does.
func (o object) at(keys ...string) any {
	var v any = o.Tree
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

// text returns the text behind some keys.
func (o object) text(keys ...string) string {
	s, _ := o.at(keys...).(string)
	return s
}

// readValues reads a file of values as helm does.
func readValues(t *testing.T, file string) map[string]any {
	t.Helper()
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return parseValues(t, string(body))
}

func parseValues(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// renewed is whether renew was called.
var renewed bool

// renew makes anew what the chart has from elsewhere, before anything is rendered of it.
func renew(t *testing.T) {
	t.Helper()
	if renewed {
		return
	}
	renewed = true
	copyInto(t, chartDir+"/files/", alerts)
	boards, err := filepath.Glob(dashboards + "/*.json")
	if err != nil {
		t.Fatal(err)
	}
	copyInto(t, chartDir+"/files/dashboards/", boards...)
	if err := os.WriteFile(schemaFile, schemaText(t), 0o644); err != nil {
		t.Fatal(err)
	}
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	if *update {
		renew(t)
	}
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// copyInto copies files to a folder.
func copyInto(t *testing.T, folder string, files ...string) {
	t.Helper()
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(folder+filepath.Base(file), body, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// render does what helm template does, as far as the cluster has no part in it.
func render(t *testing.T, values map[string]any) ([]object, error) {
	t.Helper()
	c := loadChart(t)
	release := chartutil.ReleaseOptions{Name: "audit", Namespace: "ledgerlake", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	return objectsOf(t, files), nil
}

// objectsOf parses rendered files, in the order of their names.
func objectsOf(t *testing.T, files map[string]string) (all []object) {
	t.Helper()
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if path.Ext(name) != ".yaml" {
			continue
		}
		for _, text := range strings.Split("\n"+files[name], "\n---\n") {
			if text = strings.TrimSpace(text); text == "" {
				continue
			}
			o := object{Text: text}
			if err := yaml.UnmarshalStrict([]byte(text), &o.Tree); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, text)
			}
			all = append(all, o)
		}
	}
	return all
}

// mustRender renders values that are good.
func mustRender(t *testing.T, values map[string]any) []object {
	t.Helper()
	all, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// eachCase runs f for each file of values in the chart's ci folder.
func eachCase(t *testing.T, f func(t *testing.T, name string, all []object)) {
	t.Helper()
	files, err := filepath.Glob(chartDir + "/ci/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files of values, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) { f(t, name, mustRender(t, readValues(t, file))) })
	}
}

// one returns the object of a kind whose name has an end.
func one(t *testing.T, all []object, kind, end string) object {
	t.Helper()
	i := slices.IndexFunc(all, func(o object) bool { return o.kind() == kind && strings.HasSuffix(o.name(), end) })
	if i < 0 {
		t.Fatalf("no %s that is called …%s", kind, end)
	}
	return all[i]
}

// isFile requires that a file has this content, or writes it.
func isFile(t *testing.T, name string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what is made now: run go test ./it/helm -update, and look at the difference", name)
	}
}

// Each file of values renders to what its golden file has. Rendering twice gives the
// same: nothing in it is random or of the moment.
func TestGolden(t *testing.T) {
	eachCase(t, func(t *testing.T, name string, all []object) {
		var text bytes.Buffer
		for _, o := range all {
			fmt.Fprintf(&text, "---\n%s\n", o.Text)
		}
		isFile(t, "testdata/golden/"+name+".yaml", text.Bytes())
	})
}

// helm lint finds nothing to say, with the values of each case and with none.
func TestLint(t *testing.T) {
	loadChart(t)
	cases, err := filepath.Glob(chartDir + "/ci/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(cases, "") {
		values := map[string]any{}
		if file != "" {
			values = readValues(t, file)
		}
		for _, m := range lint.AllWithKubeVersion(chartDir, values, "ledgerlake", &chartutil.DefaultCapabilities.KubeVersion).Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%q: %v", file, m)
			}
		}
	}
}
