package helm

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// The versions of Kubernetes whose schemas manifests are held against: those that
// kubectl-validate has, from the least that Chart.yaml allows. Beside them all is
// decoded strictly into the types of the client-go in go.mod.
var versions = []string{"1.27", "1.28", "1.29", "1.30"}

// schemaDir is where kubectl-validate has the schemas of Kubernetes' own kinds, as
// the API servers publish them (OpenAPI 3).
var schemaDir = sync.OnceValues(func() (string, error) {
	c := exec.Command("go", "mod", "download", "-json", "sigs.k8s.io/kubectl-validate")
	c.Dir = root + "/it/kubevalidate"
	c.Env = append(os.Environ(), "GOWORK=off")
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("go mod download: %w: %s", err, out)
	}
	var module struct{ Dir string }
	err = json.Unmarshal(out, &module)
	return filepath.Join(module.Dir, "pkg/openapiclient/builtins"), err
})

// A judge holds manifests against the schemas of one version of Kubernetes, and of
// the operators' kinds.
type judge struct {
	version string
	schemas map[string]*jsonschema.Schema // by apiVersion and kind
}

// schemaFor returns the schema of a kind, strict: what it does not list is not
// allowed.
func (j *judge) schemaFor(o object) (*jsonschema.Schema, error) {
	apiVersion, kind := o.text("apiVersion"), o.kind()
	if s := j.schemas[apiVersion+" "+kind]; s != nil {
		return s, nil
	}
	s, err := j.compile(apiVersion, kind)
	if err == nil {
		j.schemas[apiVersion+" "+kind] = s
	}
	return s, err
}

func (j *judge) compile(apiVersion, kind string) (*jsonschema.Schema, error) {
	doc, pointer, err := j.find(apiVersion, kind)
	if err != nil {
		return nil, err
	}
	tighten(doc)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	if err := c.AddResource("mem:///schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("mem:///schema.json#" + pointer)
}

// find returns a document that has the schema of a kind, and where in it.
func (j *judge) find(apiVersion, kind string) (doc any, pointer string, err error) {
	if doc, ok, err := customSchema(apiVersion, kind); ok || err != nil {
		return doc, "", err
	}
	dir, err := schemaDir()
	if err != nil {
		return nil, "", err
	}
	file := "api/v1.json"
	if strings.Contains(apiVersion, "/") {
		file = "apis/" + apiVersion + ".json"
	}
	body, err := os.ReadFile(filepath.Join(dir, j.version, file))
	if err != nil {
		return nil, "", err
	}
	if doc, err = jsonschema.UnmarshalJSON(strings.NewReader(string(body))); err != nil {
		return nil, "", err
	}
	name, err := definitionOf(doc, apiVersion, kind)
	return doc, "/components/schemas/" + name, err
}

// definitionOf finds the schema that says it is of a kind.
func definitionOf(doc any, apiVersion, kind string) (string, error) {
	group, version, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group, version = "", apiVersion
	}
	all := doc.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any)
	for name, s := range all {
		kinds, _ := s.(map[string]any)["x-kubernetes-group-version-kind"].([]any)
		for _, k := range kinds {
			m := k.(map[string]any)
			if len(kinds) == 1 && m["group"] == group && m["version"] == version && m["kind"] == kind {
				return name, nil
			}
		}
	}
	return "", fmt.Errorf("no schema of %s %s", apiVersion, kind)
}

// customSchema returns the schema of an operator's kind, by its CRD.
func customSchema(apiVersion, kind string) (any, bool, error) {
	files, err := filepath.Glob("testdata/crd/*.yaml")
	if err != nil {
		return nil, false, err
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, false, err
		}
		var crd struct {
			Spec struct {
				Group    string
				Names    struct{ Kind string }
				Versions []struct {
					Name   string
					Schema struct {
						OpenAPIV3Schema map[string]any
					}
				}
			}
		}
		if err := yaml.Unmarshal(body, &crd); err != nil {
			return nil, false, err
		}
		for _, v := range crd.Spec.Versions {
			if crd.Spec.Group+"/"+v.Name == apiVersion && crd.Spec.Names.Kind == kind {
				doc := v.Schema.OpenAPIV3Schema
				doc["properties"].(map[string]any)["metadata"] = map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
				return any(doc), true, nil
			}
		}
	}
	return nil, false, nil
}

// tighten makes a schema of Kubernetes one of JSON Schema that refuses what it does
// not list: an object with properties has no others, unless it says that it keeps
// what is unknown. Formats that JSON Schema has no name for are dropped.
func tighten(v any) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			tighten(one)
		}
	case map[string]any:
		for name, one := range v {
			if name != "default" && name != "example" && name != "enum" {
				tighten(one)
			}
		}
		_, isSchema := v["properties"].(map[string]any)
		_, open := v["additionalProperties"]
		if isSchema && !open && v["x-kubernetes-preserve-unknown-fields"] != true && v["type"] == "object" {
			v["additionalProperties"] = false
		}
		if v["x-kubernetes-int-or-string"] == true {
			delete(v, "type")
		}
		if v["nullable"] == true {
			delete(v, "nullable")
		}
		if format, ok := v["format"].(string); ok && strings.HasPrefix(format, "int") {
			delete(v, "format")
		}
	}
}

// check says what is wrong with a manifest.
func (j *judge) check(o object) error {
	s, err := j.schemaFor(o)
	if err != nil {
		return err
	}
	return s.Validate(any(o.Tree))
}

func newJudge(version string) *judge {
	return &judge{version: version, schemas: map[string]*jsonschema.Schema{}}
}

// decode reads a manifest of Kubernetes' own kinds strictly into its type, and checks
// its metadata as the API server does.
func decode(o object) error {
	body, err := yaml.YAMLToJSON([]byte(o.Text))
	if err != nil {
		return err
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	decoded, _, err := decoder.Decode(body, nil, nil)
	if err != nil {
		return err
	}
	m, err := meta.Accessor(decoded)
	if err != nil {
		return err
	}
	return checkMetadata(m)
}

func checkMetadata(m metav1.Object) error {
	return validation.ValidateObjectMetaAccessor(m, true, validation.NameIsDNSSubdomain, field.NewPath("metadata")).ToAggregate()
}

// What is rendered is what Kubernetes and the operators know, and nothing else, in
// each of their versions.
func TestStrict(t *testing.T) {
	for _, version := range versions {
		j := newJudge(version)
		t.Run(version, func(t *testing.T) {
			eachCase(t, func(t *testing.T, _ string, all []object) {
				for _, o := range all {
					if err := j.check(o); err != nil {
						t.Errorf("%s %s: %v", o.kind(), o.name(), err)
					}
				}
			})
		})
	}
	eachCase(t, func(t *testing.T, _ string, all []object) {
		for _, o := range all {
			if custom := strings.Contains(o.text("apiVersion"), "coreos") || strings.Contains(o.text("apiVersion"), "keda"); custom {
				continue
			}
			if err := decode(o); err != nil {
				t.Errorf("%s %s: %v", o.kind(), o.name(), err)
			}
		}
	})
}

// A judge that lets everything through would be none: each of these mistakes is seen.
func TestStrictSeesMistakes(t *testing.T) {
	all := mustRender(t, readValues(t, chartDir+"/ci/full.yaml"))
	all = append(all, one(t, mustRender(t, readValues(t, chartDir+"/ci/keda.yaml")), "ScaledObject", "ingest"))
	for _, m := range []struct{ kind, end, from, to string }{
		{"Deployment", "ingest", "readOnlyRootFilesystem", "readOnlyRootFileSystem"},
		{"Deployment", "ingest", "replicas: 3", "replicas: three"},
		{"Deployment", "ingest", "containerPort: 9404", "containerPort: metrics"},
		{"Deployment", "ingest", "selector:\n    matchLabels", "selector:\n    matchLabel"},
		{"CronJob", "verify", "concurrencyPolicy", "concurrency"},
		{"PodDisruptionBudget", "ingest", "maxUnavailable: 1", "maxUnavailable: 1\n  minimum: 1"},
		{"NetworkPolicy", "serve", "podSelector", "podselector"},
		{"Service", "serve", "targetPort", "toPort"},
		{"ConfigMap", "ingest", "data:", "date:"},
		{"ServiceMonitor", "ingest", "interval: 30s", "interval: often"},
		{"PrometheusRule", "ledgerlake", "expr:", "expression:"},
		{"ScaledObject", "ingest", "triggers:", "trigger:"},
	} {
		o := one(t, all, m.kind, m.end)
		bad := object{Text: strings.Replace(o.Text, m.from, m.to, 1)}
		if bad.Text == o.Text {
			t.Errorf("%s %s has no %q", m.kind, m.end, m.from)
			continue
		}
		if err := yaml.Unmarshal([]byte(bad.Text), &bad.Tree); err != nil {
			t.Fatal(err)
		}
		for _, version := range versions {
			if newJudge(version).check(bad) == nil {
				t.Errorf("Kubernetes %s: %s: %q for %q is not seen", version, m.kind, m.to, m.from)
			}
		}
	}
	long := one(t, all, "Deployment", "ingest")
	long.Text = strings.Replace(long.Text, "name: audit-ledgerlake-ingest", "name: Audit_Ingest", 1)
	if decode(long) == nil {
		t.Error("a name that no object may have is not seen")
	}
}
