package helm

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/ledgerlake/ledgerlake/config"
)

// A schema is a part of a JSON schema.
type schema = map[string]any

// The settings that the chart sets itself.
var ownSettings = []string{"http.listen", "kafka.instance-id"}

// secretNames returns the settings of some sections that are secrets: they are those
// with a file of their own.
func secretNames(settings []config.Setting) (names []string) {
	for _, s := range config.WithSecretFiles(settings) {
		if plain, ok := strings.CutSuffix(s.Name, "-file"); ok && slices.ContainsFunc(settings, func(o config.Setting) bool { return o.Name == plain }) {
			names = append(names, plain)
		}
	}
	return names
}

func flatten(sections []config.Section) (all []config.Setting) {
	for _, s := range sections {
		all = append(all, s.Settings...)
	}
	return all
}

// valueSchema says what a file may give a setting: the kind of value, and its words
// where these are few. What is allowed beyond that, the command checks.
func valueSchema(s config.Setting) schema {
	description := strings.TrimSuffix(s.Help, ".") + "; " + s.Value.Allowed + "."
	v := schema{"description": description}
	switch kind := s.Value.Type; {
	case kind == "":
		v["type"] = "boolean"
	case kind == "COUNT":
		v["type"] = "integer"
	case strings.HasSuffix(kind, ",..."):
		v["type"] = []string{"string", "array"}
		v["items"] = schema{"type": "string"}
	case strings.Contains(kind, "|"):
		v["enum"] = strings.Split(kind, "|")
	case kind == "VALUE":
		v["type"] = []string{"string", "boolean", "integer"}
	default:
		v["type"] = "string"
	}
	return v
}

// settingsSchema is the tree of settings as a file has it, strict. Secrets have no
// place in it.
func settingsSchema(settings []config.Setting, keep func(string) bool) schema {
	secrets := secretNames(settings)
	top := strict(schema{})
	for _, s := range settings {
		if slices.Contains(secrets, s.Name) || slices.Contains(ownSettings, s.Name) || !keep(s.Name) {
			continue
		}
		put(top, strings.Split(s.Name, "."), valueSchema(s))
	}
	return top
}

// put adds a property to a tree of strict objects. What is there already stays.
func put(tree schema, path []string, v schema) {
	properties := tree["properties"].(schema)
	if len(path) == 1 {
		if _, there := properties[path[0]]; !there {
			properties[path[0]] = v
		}
		return
	}
	if _, there := properties[path[0]]; !there {
		properties[path[0]] = strict(schema{})
	}
	put(properties[path[0]].(schema), path[1:], v)
}

func strict(properties schema) schema {
	return schema{"type": "object", "additionalProperties": false, "properties": properties}
}

func ref(name string) schema { return schema{"$ref": "#/definitions/" + name} }

// fileSchema lists the settings that may lie in files of Secrets.
func fileSchema(settings []config.Setting, keep func(string) bool) schema {
	properties := schema{}
	for _, s := range config.WithSecretFiles(settings) {
		many := s.Value.Type == "FILE,..."
		if !many && s.Value.Type != "FILE" || !keep(s.Name) || s.Name == "scrub-policy" || s.Name == "retention-file" {
			continue
		}
		properties[s.Name] = ref("secretKey")
		if many {
			properties[s.Name] = schema{"oneOf": []any{ref("secretKey"), schema{"type": "array", "minItems": 1, "items": ref("secretKey")}}}
		}
	}
	return strict(properties)
}

// destinationSchema is strict for each type of destination. Secrets are named by
// file or variable.
func destinationSchema() schema {
	types := config.SinkTypes()
	var rules []any
	for _, name := range types {
		one := strict(schema{"name": schema{"type": "string"}, "type": schema{"const": name}})
		sections := config.SinkSettings(name)
		for _, section := range sections {
			secrets := secretNames(section.Settings)
			for _, s := range section.Settings {
				path := strings.Split(s.Name, ".")
				if !slices.Contains(secrets, s.Name) {
					put(one, path, valueSchema(s))
					continue
				}
				for _, end := range []string{"-file", "-env"} {
					put(one, append(slices.Clone(path[:len(path)-1]), path[len(path)-1]+end), schema{"type": "string", "description": "Where " + s.Name + " is: " + s.Help})
				}
			}
		}
		rules = append(rules, schema{"if": schema{"properties": schema{"type": schema{"const": name}}}, "then": one})
	}
	return schema{
		"type": "object", "required": []string{"name", "type"},
		"properties": schema{"name": schema{"type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,62}$"}, "type": schema{"enum": types}},
		"allOf":      rules,
	}
}

// components, and which settings each has a use for.
func componentSettings() map[string]struct {
	settings []config.Setting
	uses     func(string) bool
} {
	type component = struct {
		settings []config.Setting
		uses     func(string) bool
	}
	var ingest config.Ingest
	var compact config.Compact
	var stream config.Stream
	any := func(string) bool { return true }
	begins := func(some ...string) func(string) bool {
		return func(name string) bool {
			return slices.ContainsFunc(some, func(s string) bool { return name == s || strings.HasPrefix(name, s) })
		}
	}
	all := flatten(ingest.Sections())
	return map[string]component{
		"ingest":  {all, any},
		"compact": {flatten(compact.Sections()), any},
		"stream":  {flatten(stream.Sections()), any},
		"serve":   {all, begins("bucket", "s3.", "chain.key-dir", "chain.master-key", "control-topic")},
		"verify":  {all, begins("bucket", "s3.", "chain.key-dir", "chain.master-key", "kafka.")},
	}
}

func shared(name string) bool {
	return strings.HasPrefix(name, "s3.") || strings.HasPrefix(name, "kafka.") || strings.HasPrefix(name, "chain.")
}

// special are the values that their default does not describe, by the end of their
// path.
func special() map[string]schema {
	texts := schema{"type": "object", "additionalProperties": schema{"type": "string"}}
	objects := schema{"type": "array", "items": schema{"type": "object"}}
	names := schema{"type": "array", "items": schema{"type": "string", "minLength": 1}, "uniqueItems": true}
	name := schema{"type": "string", "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"}
	kind := schema{"enum": []string{"Deployment", "StatefulSet"}}
	size := schema{"type": "string", "pattern": "^[0-9]+(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)$"}
	quantities := schema{"type": "object", "additionalProperties": schema{"type": []string{"string", "number"}}}
	all := map[string]schema{
		"image.digest":        {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
		"image.pullPolicy":    {"enum": []string{"Always", "IfNotPresent", "Never"}},
		"image.repository":    {"type": "string", "minLength": 1},
		".pullSecrets":        names,
		"nameOverride":        name,
		"fullnameOverride":    name,
		"commonLabels":        texts,
		".podLabels":          texts,
		".podAnnotations":     texts,
		".annotations":        texts,
		".labels":             texts,
		".dashboardLabels":    texts,
		".nodeSelector":       texts,
		".affinity":           {"type": "object"},
		".tolerations":        objects,
		".volumes":            objects,
		".volumeMounts":       objects,
		".ingressFrom":        objects,
		".metricsFrom":        objects,
		"Policy.ingress":      objects,
		"Policy.egress":       objects,
		".secretMounts":       names,
		".keys":               names,
		".witnesses":          names,
		".args":               {"type": "array", "items": schema{"type": "string", "pattern": "^--"}},
		".kind":               kind,
		"autoscaling.by":      {"enum": []string{"none", "cpu", "lag"}},
		"autoscaling.min":     {"type": "integer", "minimum": 1},
		"autoscaling.max":     {"type": "integer", "minimum": 1},
		"autoscaling.cpu":     {"type": "integer", "minimum": 1},
		"autoscaling.lag":     {"type": "integer", "minimum": 1},
		".resources":          strict(schema{"limits": quantities, "requests": quantities, "claims": objects}),
		".tokens":             {"oneOf": []any{ref("secretKey"), schema{"type": "object", "maxProperties": 0}}},
		".memory":             size,
		"service.type":        {"enum": []string{"ClusterIP", "LoadBalancer", "NodePort"}},
		"stream.destinations": {"type": "array", "items": ref("destination")},
		"verify.schedule":     {"type": "string", "minLength": 9},
		"monitoring.interval": {"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"},
		"verify.expectFrom":   {"type": "string", "pattern": "^((kafka|s3)://.+)?$"},
		"env":                 ref("env"),
		"secretEnv":           ref("secretEnv"),
		"topologySpread": {"type": "array", "items": schema{
			"type": "object", "additionalProperties": false, "required": []string{"topologyKey", "maxSkew", "whenUnsatisfiable"},
			"properties": schema{
				"topologyKey": schema{"type": "string"}, "maxSkew": schema{"type": "integer", "minimum": 1}, "minDomains": schema{"type": "integer", "minimum": 1},
				"whenUnsatisfiable":  schema{"enum": []string{"ScheduleAnyway", "DoNotSchedule"}},
				"nodeAffinityPolicy": schema{"enum": []string{"Honor", "Ignore"}}, "nodeTaintsPolicy": schema{"enum": []string{"Honor", "Ignore"}},
			},
		}},
		"settings":    ref("settings"),
		"secretFiles": ref("secretFiles"),
	}
	for name := range componentSettings() {
		all[name+".settings"] = ref(name + "Settings")
		all[name+".secretFiles"] = ref(name + "SecretFiles")
	}
	return all
}

// specialOf finds the special with the longest end of a path.
func specialOf(all map[string]schema, path string) (schema, bool) {
	best, found := "", false
	for end := range all {
		fits := path == end || strings.HasSuffix(path, "."+end) || strings.HasPrefix(end, ".") && strings.HasSuffix(path, end) || end == "Policy.ingress" && strings.HasSuffix(path, end) || end == "Policy.egress" && strings.HasSuffix(path, end)
		if fits && len(end) >= len(best) {
			best, found = end, true
		}
	}
	return all[best], found
}

// definitions are what the schema refers to.
func definitions() schema {
	d := schema{
		"secretKey": schema{
			"type": "object", "additionalProperties": false, "required": []string{"secret", "key"},
			"properties": schema{
				"secret": schema{"type": "string", "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "description": "The name of a Secret."},
				"key":    schema{"type": "string", "pattern": "^[-._a-zA-Z0-9]+$", "description": "A key of it."},
			},
		},
		"env": schema{
			"type": "object", "additionalProperties": schema{"type": []string{"string", "number", "boolean"}},
			"propertyNames": schema{"pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "not": schema{"pattern": "^LEDGERLAKE_|SECRET|PASSWORD|TOKEN$|_HEADERS$"}},
		},
		"secretEnv": schema{
			"type": "object", "additionalProperties": ref("secretKey"), "propertyNames": schema{"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
		},
		"destination": destinationSchema(),
	}
	var every []config.Setting
	for _, name := range []string{"ingest", "compact", "stream", "serve", "verify"} {
		c := componentSettings()[name]
		every = append(every, c.settings...)
		d[name+"Settings"] = settingsSchema(c.settings, c.uses)
		d[name+"SecretFiles"] = fileSchema(c.settings, c.uses)
	}
	d["settings"] = settingsSchema(every, func(string) bool { return true })
	d["secretFiles"] = fileSchema(every, shared)
	return d
}

// schemaOf makes the schema of values out of their defaults and comments.
func schemaOf(t *testing.T, n *yaml.Node, path string, all map[string]schema) schema {
	t.Helper()
	if s, ok := specialOf(all, path); ok {
		return s
	}
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) > 0:
		properties := schema{}
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			one := schemaOf(t, n.Content[i+1], strings.TrimPrefix(path+"."+key.Value, "."), all)
			if text := comment(key); text != "" {
				if _, isRef := one["$ref"]; isRef {
					one = schema{"allOf": []any{one}}
				}
				one = with(one, "description", text)
			}
			properties[key.Value] = one
		}
		return strict(properties)
	case n.Tag == "!!bool":
		return schema{"type": "boolean"}
	case n.Tag == "!!int":
		return schema{"type": "integer", "minimum": 0}
	case n.Tag == "!!str":
		return schema{"type": "string"}
	}
	t.Fatalf("%s: the default does not say what is allowed: add it to special", path)
	return nil
}

func with(s schema, name string, v any) schema {
	more := schema{name: v}
	for k, old := range s {
		more[k] = old
	}
	return more
}

// comment returns what stands above a key, without the titles of sections.
func comment(key *yaml.Node) string {
	var lines []string
	for line := range strings.Lines(key.HeadComment) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "## ") {
			lines = append(lines, strings.TrimSpace(strings.TrimPrefix(line, "#")))
		}
	}
	return strings.TrimSpace(strings.Join(lines, " "))
}

// valuesNode reads values.yaml with its comments.
func valuesNode(t *testing.T) *yaml.Node {
	t.Helper()
	body, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Content[0]
}

const schemaFile = chartDir + "/values.schema.json"

// schemaText makes the schema of the values.
func schemaText(t *testing.T) []byte {
	t.Helper()
	s := schemaOf(t, valuesNode(t), "", special())
	s["properties"].(schema)["global"] = schema{"type": "object"} // helm gives it to charts within others
	s["$schema"] = "http://json-schema.org/draft-07/schema#"
	s["title"] = "Values of the chart ledgerlake. Made by go test ./it/helm -update."
	s["definitions"] = definitions()
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(s); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// values.schema.json is made from values.yaml and from the table of settings: a
// value or a setting that does not exist is refused before anything is installed.
func TestSchema(t *testing.T) { isFile(t, schemaFile, schemaText(t)) }

// No secret can be given as a value, whatever the place is called.
func TestNoSecretIsAValue(t *testing.T) {
	for name, c := range componentSettings() {
		secrets := secretNames(c.settings)
		if len(secrets) < 5 {
			t.Errorf("%s: %v: secrets must be found by another sign", name, secrets)
		}
		for _, secret := range secrets {
			text := tree(strings.Split(secret, "."), "hunter2")
			for _, values := range []map[string]any{
				{"settings": text}, {name: map[string]any{"settings": text}},
			} {
				if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), "additional properties") {
					t.Errorf("%v: %v", values, err)
				}
			}
		}
	}
}

// tree is a value behind some keys.
func tree(path []string, v any) map[string]any {
	if len(path) == 1 {
		return map[string]any{path[0]: v}
	}
	return map[string]any{path[0]: tree(path[1:], v)}
}

// What cannot be right is refused, in words that say what is to be done.
func TestBadValues(t *testing.T) {
	const good = "settings: {bucket: 's3://audit', brokers: 'kafka:9092', topics: [audit.calls]}\n"
	for values, says := range map[string]string{
		"":                                 `settings.bucket is not set`,
		"settings: {bucket: 's3://audit'}": "settings.topics is not set",
		"setings: {}":                      `'setings' not allowed`,
		"settings: {bucket: 's3://audit', topic: x}":                                                                    `'topic' not allowed`,
		"settings: {bucket: 's3://audit', batch: {row: 1}}":                                                             `'row' not allowed`,
		"settings: {bucket: 's3://audit', batch: {rows: many}}":                                                         `got string, want integer`,
		"settings: {http: {listen: ':80'}}":                                                                             `'http.listen' not allowed|'listen' not allowed`,
		good + "ingest: {kind: DaemonSet}":                                                                              `'Deployment', 'StatefulSet'`,
		good + "ingest: {replicas: -1}":                                                                                 `minimum: got -1`,
		good + "ingest: {settings: {purge-after: 1d}}":                                                                  `'purge-after' not allowed`,
		good + "ingest: {autoscaling: {by: lag, min: 4, max: 2}}":                                                       "ingest.autoscaling.max is less than",
		good + "ingest: {autoscaling: {by: memory}}":                                                                    `'none', 'cpu', 'lag'`,
		good + "fullnameOverride: Audit":                                                                                "does not match pattern",
		good + "image: {digest: latest}":                                                                                "does not match pattern",
		good + "env: {LEDGERLAKE_MEMORY: 1GiB}":                                                                         "LEDGERLAKE_MEMORY",
		good + "env: {AWS_SECRET_ACCESS_KEY: hunter2}":                                                                  "AWS_SECRET_ACCESS_KEY",
		good + "secretFiles: {kafka.sasl.password-file: hunter2}":                                                       "want object",
		good + "secretFiles: {anchor-key: {secret: a, key: b}}":                                                         `'anchor-key' not allowed`,
		good + "stream: {enabled: true}":                                                                                "stream.destinations is empty",
		good + "stream: {enabled: true, destinations: [{name: a, type: splunk}]}":                                       "destinations/0/type",
		good + "stream: {enabled: true, destinations: [{name: a, type: splunk-hec, url: 'https://a', token: hunter2}]}": `'token' not allowed`,
		good + "serve: {enabled: true}":                                                                                 "serve.tokens is not set",
		good + "serve: {enabled: true, tokens: {secret: a, key: b}}":                                                    "serve.tls.secret is not set",
		good + "serve: {memory: 256}":                                                                                   "got number, want string",
		good + "verify: {enabled: true}":                                                                                "verify.keys is empty",
		good + "verify: {args: [once]}":                                                                                 "does not match pattern",
		good + "monitoring: {serviceMonitor: true, podMonitor: true}":                                                   "would scrape each pod twice",
		good + "ingest: {autoscaling: {by: lag}, settings: {kafka: {tls: true}}}":                                       "ingest.autoscaling.authentication is not set",
		good + "topologySpread: [{topologyKey: zone, maxSkew: 1}]":                                                      "missing property 'whenUnsatisfiable'",
	} {
		_, err := render(t, parseValues(t, values))
		if err == nil || !regexp.MustCompile(says).MatchString(err.Error()) {
			t.Errorf("%s\n got %v\nwant %s", values, err, says)
		}
	}
}
