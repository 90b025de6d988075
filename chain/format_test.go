package chain

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
)

// docs/format.md is what an auditor works from. Its tables must list the columns
// and slots that are hashed, in hashed order and with their types, and its
// example must be row 0 of the project's vectors.
func TestFormatPageSaysWhatIsHashed(t *testing.T) {
	page, err := os.ReadFile("../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	var header, slots []string
	for i, c := range audit.Header {
		header = append(header, fmt.Sprintf("%d %s %s", i+1, c.Name, typeWord(c)))
	}
	for s := range audit.NumSlots {
		slots = append(slots, fmt.Sprintf("%d %s", s+1, s))
	}
	if got := tableRows(section(t, page, "3.2 Header"), 3); !slices.Equal(got, header) {
		t.Errorf("header columns are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(header, "\n"))
	}
	if got := tableRows(section(t, page, "3.3 Slots"), 2); !slices.Equal(got, slots) {
		t.Errorf("slots are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(slots, "\n"))
	}
	checkExample(t, section(t, page, "2. Hashes"))
}

func typeWord(c audit.Column) string {
	word := map[audit.ColumnType]string{audit.String: "STRING", audit.Int32: "INT32", audit.Int64: "INT64", audit.Time: "TIME"}[c.Type]
	if c.Required {
		word += " R"
	}
	return word
}

// section returns the text under a heading, up to the next one.
func section(t *testing.T, page []byte, heading string) string {
	t.Helper()
	_, text, ok := strings.Cut(string(page), "# "+heading+"\n")
	if !ok {
		t.Fatalf("no heading %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n#")
	return text
}

var tableRow = regexp.MustCompile("(?m)^\\| (\\d+) \\| `([a-z_]+)` \\| ([^|]*) \\|")

// tableRows returns the first n cells of the rows that begin with a number.
func tableRows(text string, n int) []string {
	var rows []string
	for _, m := range tableRow.FindAllStringSubmatch(text, -1) {
		rows = append(rows, strings.Join(m[1:1+n], " "))
	}
	return rows
}

func checkExample(t *testing.T, text string) {
	t.Helper()
	data, err := os.ReadFile(ownVectors)
	if err != nil {
		t.Fatal(err)
	}
	v, err := readVectors(data)
	if err != nil {
		t.Fatal(err)
	}
	example := "    " + strings.ReplaceAll(strings.TrimSuffix(v.Rows[0].Preimage, "\n"), "\n", "\n    ") + "\n"
	if !strings.Contains(text, example) || !strings.Contains(text, v.Rows[0].RowHash.String()) {
		t.Errorf("the example is not\n%s%s", example, v.Rows[0].RowHash)
	}
}
