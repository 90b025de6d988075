package helm

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const readmeTop = `# The chart ledgerlake

ledgerlake on Kubernetes: ingest, compact, export stream, export serve, and a verify on a schedule. How to install, upgrade and scale it, and
what each NetworkPolicy lets through, is in [docs/kubernetes.md](../../docs/kubernetes.md).

    helm install audit helm/ledgerlake --namespace ledgerlake --create-namespace --values values.yaml

The least that values.yaml must have (of files of values like this, ` + "`ci/`" + ` has more):

` + "```yaml" + `
image: {repository: registry.example.org/ledgerlake}
settings:
  bucket: s3://audit
  brokers: kafka:9092
  topics: [audit.calls]
` + "```" + `

Values and settings that do not exist are refused, and so are secrets: they come from Secrets that are there (` + "`secretFiles`, `secretEnv`, `secretMounts`" + `).

This page is made from values.yaml by ` + "`go test ./it/helm -update`" + `; do not edit it.
`

// The chart's README has a row for each value, made from values.yaml: its default, and
// the comment above it.
func TestReadme(t *testing.T) {
	page := bytes.NewBufferString(readmeTop)
	n := valuesNode(t)
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if title := title(key); title != "" {
			fmt.Fprintf(page, "\n## %s\n\n", title)
			if value.Kind == yaml.MappingNode && len(value.Content) > 0 && comment(key) != "" {
				fmt.Fprintf(page, "%s\n\n", comment(key))
			}
			page.WriteString("| value | default | |\n|---|---|---|\n")
		}
		writeRows(page, key.Value, key, value)
	}
	isFile(t, chartDir+"/README.md", page.Bytes())
}

// title returns the title of the section that begins with a key.
func title(key *yaml.Node) string {
	for line := range strings.Lines(key.HeadComment) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			return title
		}
	}
	return ""
}

// writeRows writes a row for each leaf below a key.
func writeRows(w *bytes.Buffer, path string, key, value *yaml.Node) {
	if value.Kind == yaml.MappingNode && len(value.Content) > 0 && value.Style != yaml.FlowStyle && path != "ingest.resources" {
		if text := comment(key); text != "" && strings.Contains(path, ".") {
			fmt.Fprintf(w, "| `%s` | | %s |\n", path, text)
		}
		for i := 0; i < len(value.Content); i += 2 {
			writeRows(w, path+"."+value.Content[i].Value, value.Content[i], value.Content[i+1])
		}
		return
	}
	fmt.Fprintf(w, "| `%s` | `%s` | %s |\n", path, shown(value), comment(key))
}

// shown is a default in one line.
func shown(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		if n.Value == "" {
			return `""`
		}
		return n.Value
	}
	flow := *n
	flow.Style = yaml.FlowStyle
	text, err := yaml.Marshal(&flow)
	if err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(string(text)), " ")
}
