package serve

import (
	"fmt"

	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/export/render"
)

// appendRecord appends a record as it is shown: in the shape in which it was sent,
// with $ledgerlake, which says where it stands. docs/export-formats.md describes
// it.
func appendRecord(b []byte, r *export.Row) ([]byte, error) {
	with, err := render.AppendJSON(b, r, render.Options{})
	if err != nil {
		return b, fmt.Errorf("%w: %s, seq %d: %w", export.ErrTampered, r.Key, r.Seq.N, err)
	}
	return with, nil
}
