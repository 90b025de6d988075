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
	page := bytes.NewBufferString(preamble)
	for _, part := range []struct {
		title, text string
		sections    []config.Section
	}{
		{"Settings of ledgerlake-ingest", "", ingest.Sections()},
		{"Settings of ledgerlake-compact", "Where the name is the same, it is the same setting; only defaults may differ.\n\n", compact.Sections()},
	} {
		fmt.Fprintf(page, "# %s\n\n%s", part.title, part.text)
		for _, section := range part.sections {
			writeTable(page, section)
		}
	}
	want := bytes.TrimRight(page.Bytes(), "\n")
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(docs, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the settings are: run go test ./config -update", docs)
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
