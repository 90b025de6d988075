package s3sink

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// docs/s3.md holds the settings as the code has them, and every finding.
func TestDocsAreComplete(t *testing.T) {
	raw, err := os.ReadFile("../docs/s3.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(raw)
	table := "| setting | meaning | in URLs |\n|---|---|---|\n"
	for _, s := range Settings() {
		inURL := "yes"
		if s.Secret {
			inURL = "refused: a secret"
		}
		table += fmt.Sprintf("| `%s` | %s | %s |\n", s.Name, s.Doc, inURL)
	}
	if !strings.Contains(doc, table) {
		t.Errorf("docs/s3.md does not hold this table:\n%s", table)
	}
	for _, name := range []string{
		FindingList, FindingLock, FindingVersioning, FindingVersions, FindingDelete, FindingChecksum, FindingCreateOnly,
		FindingRead, FindingListed, FindingErrors, FindingClock, FindingCleanUp,
	} {
		if !strings.Contains(doc, "`"+name+"`") {
			t.Errorf("docs/s3.md says nothing about `%s`", name)
		}
	}
}
