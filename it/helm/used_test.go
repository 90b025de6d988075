package helm

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// others are values that differ from every default and are no mistake, by the end of
// the path; of other paths another one follows from the default.
func others() map[string]any {
	from := map[string]any{"secret": "other", "key": "other"}
	peer := []any{map[string]any{"podSelector": map[string]any{}}}
	return map[string]any{
		"settings":            map[string]any{"s3": map[string]any{"attempts": 7}, "memory": "333MiB"},
		"secretFiles":         map[string]any{"s3.session-token-file": from},
		"env":                 map[string]any{"OTHER": "other"},
		"secretEnv":           map[string]any{"OTHER": from},
		"serve.tokens":        from,
		"kind":                "StatefulSet",
		"autoscaling.by":      "lag",
		"memory":              "333MiB",
		"resources":           map[string]any{"requests": map[string]any{"cpu": "333m"}},
		"ingress":             peer,
		"egress":              peer,
		"ingressFrom":         peer,
		"metricsFrom":         peer,
		"stream.destinations": []any{map[string]any{"name": "other", "type": "file", "path": "/tmp"}},
		"topologySpread":      []any{},
		"volumes":             []any{map[string]any{"name": "other"}},
		"volumeMounts":        []any{map[string]any{"name": "other", "mountPath": "/other"}},
		"tolerations":         []any{map[string]any{"key": "other"}},
	}
}

// another returns a value that is not the default; of a switch either may be.
func another(path string, n *yaml.Node) []any {
	best := ""
	for end := range others() {
		if (path == end || strings.HasSuffix(path, "."+end)) && len(end) > len(best) {
			best = end
		}
	}
	switch {
	case best != "":
		return []any{others()[best]}
	case n.Tag == "!!bool":
		return []any{true, false}
	case n.Tag == "!!int":
		return []any{7}
	case n.Kind == yaml.SequenceNode:
		return []any{[]any{"other"}}
	case n.Kind == yaml.MappingNode:
		return []any{map[string]any{"other": "other"}}
	}
	return []any{"other"}
}

// leaves calls f for each value that can be set, with its path.
func leaves(n *yaml.Node, path string, f func(path string, n *yaml.Node)) {
	for i := 0; i < len(n.Content); i += 2 {
		name := strings.TrimPrefix(path+"."+n.Content[i].Value, ".")
		_, special := specialOf(special(), name)
		if v := n.Content[i+1]; v.Kind == yaml.MappingNode && len(v.Content) > 0 && !special {
			leaves(v, name, f)
		} else {
			f(name, v)
		}
	}
}

// rendered is all that a chart makes of values, or why it refuses them.
func rendered(t *testing.T, c *chart.Chart, values map[string]any) string {
	t.Helper()
	release := chartutil.ReleaseOptions{Name: "audit", Namespace: "ledgerlake", IsInstall: true}
	all, err := chartutil.ToRenderValuesWithSchemaValidation(c, values, release, chartutil.DefaultCapabilities, true)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		b.WriteString(files[name])
	}
	return b.String()
}

// set returns values in which one is another.
func set(values map[string]any, path []string, v any) map[string]any {
	changed := maps.Clone(values)
	if len(path) == 1 {
		changed[path[0]] = v
		return changed
	}
	below, _ := values[path[0]].(map[string]any)
	if below == nil {
		below = map[string]any{}
	}
	changed[path[0]] = set(below, path[1:], v)
	return changed
}

// Every value of values.yaml changes what is rendered, in one of the cases at least:
// one that nothing reads would be a promise that is not kept.
func TestEveryValueIsUsed(t *testing.T) {
	c := loadChart(t)
	cases := []string{"full", "keda", "aws-irsa", "plain-serve"}
	values, before := map[string]map[string]any{}, map[string]string{}
	for _, name := range cases {
		values[name] = set(readValues(t, chartDir+"/ci/"+name+".yaml"), []string{"monitoring", "dashboards"}, name == "plain-serve")
		before[name] = rendered(t, c, values[name])
	}
	seen := 0
	leaves(valuesNode(t), "", func(path string, n *yaml.Node) {
		seen++
		used := slices.ContainsFunc(cases, func(name string) bool {
			return slices.ContainsFunc(another(path, n), func(v any) bool {
				return rendered(t, c, set(values[name], strings.Split(path, "."), v)) != before[name]
			})
		})
		if !used {
			t.Errorf("%s changes nothing", path)
		}
	})
	if seen < 100 {
		t.Errorf("%d values seen", seen)
	}
}
