package config_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/config"
)

var update = flag.Bool("update", false, "write docs/configuration.md anew")

const docs = "../docs/configuration.md"

// preamble is what docs/configuration.md says before its tables.
const preamble = `# Settings

This page is made from the code by ` + "`go test ./config -update`" + `; do not edit it.

A setting has one name. It can be given in four places, and the first of these that has it wins:

| place | form |
|---|---|
| flag | ` + "`--batch.rows 64`" + ` or ` + "`--batch.rows=64`" + ` |
| environment | ` + "`LEDGERLAKE_BATCH_ROWS=64`" + `: capitals, and ` + "`_`" + ` for dots and dashes. An empty variable counts as not set |
| file | YAML, named by ` + "`--config FILE`" + ` or ` + "`LEDGERLAKE_CONFIG`" + `; dots are levels: ` + "`batch: {rows: 64}`" + ` |
| default | as below |

- Lists are separated by commas, or written as lists in the file. The flag of a list may be given several times. A switch is
  ` + "`--batch.strict`" + ` or ` + "`--batch.strict=false`" + `.
- Sizes and durations have units: ` + "`256MiB`" + `, ` + "`50ms`" + `. A bare number is refused.
- A flag, a variable that begins with ` + "`LEDGERLAKE_`" + `, or a key of the file that is no setting is an error (exit 2), so that a
  misspelt one cannot go unseen. (The variables that Kubernetes makes for a service called ledgerlake are left alone.)
- One file and one environment serve all commands: a setting that only another one has is checked, and has no use.
- Secrets have no flag. Each can be given by the environment, by the file, or in a file of its own, which the setting with
  ` + "`-file`" + ` behind its name points to; that one has a flag.

`

// docs/configuration.md says what the table of settings says.
func TestDocs(t *testing.T) {
	var ingest config.Ingest
	var compact config.Compact
	var stream config.Stream
	page := bytes.NewBufferString(preamble)
	for _, part := range []struct {
		title, text string
		sections    []config.Section
	}{
		{"Settings of ledgerlake-ingest", "", ingest.Sections()},
		{"Settings of ledgerlake-compact", "Where the name is the same, it is the same setting; only defaults may differ.\n\n", compact.Sections()},
		{"Settings of ledgerlake-export stream", "As above. Destinations are a list of the file: [destination-settings.md](destination-settings.md).\n\n", stream.Sections()},
	} {
		fmt.Fprintf(page, "# %s\n\n%s", part.title, part.text)
		for _, section := range part.sections {
			writeTable(page, section)
		}
	}
	isPage(t, docs, page)
}

const destinationDocs = "../docs/destination-settings.md"

const destinationPreamble = `# Settings of destinations

This page is made from the code by ` + "`go test ./config -update`" + `; do not edit it.

Destinations are the list ` + "`destinations`" + ` of the file that ` + "`ledgerlake-export stream --config FILE`" + ` reads. Other settings may
stand in the same file ([configuration.md](configuration.md)).

    destinations:
      - name: siem                  # stays: its cursors go by it
        type: s3
        url: s3://siem-in/audit?region=eu-central-1
        format: ocsf-1.8
        filter: {tenants: [acme, umbrella], kinds: [call, decision]}
        limits: {batch-events: 10000}

- A dot in a name below is a level of the file. Lists are lists. Sizes and durations have units.
- A **secret** does not stand in the file: it is given by the name of a file (its name with ` + "`-file`" + ` behind it) or of an environment
  variable (` + "`-env`" + `).
- What is not known, set twice, or not allowed is an error that names the setting and its line (exit code 2), and nothing starts.

`

// docs/destination-settings.md says what destinations can be set to.
func TestDestinationDocs(t *testing.T) {
	page := bytes.NewBufferString(destinationPreamble)
	for i, name := range config.SinkTypes() {
		sections := config.SinkSettings(name)
		if i == 0 {
			writeTable(page, sections[0])
		}
		fmt.Fprintf(page, "## Type %s\n\nIt is %s.\n\n", name, config.SinkHelp(name))
		var rows bytes.Buffer
		writeTable(&rows, sections[1])
		_, table, _ := strings.Cut(rows.String(), "\n\n")
		page.WriteString(table)
	}
	isPage(t, destinationDocs, page)
}

// isPage requires that a page of the docs is what was made, or writes it.
func isPage(t *testing.T, name string, page *bytes.Buffer) {
	t.Helper()
	want := bytes.TrimRight(page.Bytes(), "\n")
	want = append(want, '\n')
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
		t.Errorf("%s is not what the settings are: run go test ./config -update", name)
	}
}

func writeTable(w *bytes.Buffer, section config.Section) {
	fmt.Fprintf(w, "## %s\n\n| setting | default | what it does | allowed |\n|---|---|---|---|\n", section.Title)
	for _, s := range config.WithSecretFiles(section.Settings) {
		fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", s.Name, defaultCell(s), s.Help, strings.ReplaceAll(s.Value.Allowed, "|", `\|`))
	}
	w.WriteString("\n")
}

func defaultCell(s config.Setting) string {
	switch {
	case s.Required:
		return "required"
	case s.Default == "":
		return ""
	}
	return "`" + s.Default + "`"
}
