//go:build it

package lookup

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/it/parts"
)

// What a look-up of a turn may cost, in an archive of 300,000 rows: files of two
// row groups each, and segments above the watermark.
func TestLookupKeepsItsLimits(t *testing.T) {
	var out strings.Builder
	err := Run(t.Context(), []string{"-bin", filepath.Join(parts.Build(), "bin"), "-rows", "300000", "-tenants", "2", "-asks", "8"}, &out)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
}
