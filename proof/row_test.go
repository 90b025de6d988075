package proof

import (
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// Text that is not UTF-8 is named, in whatever column it stands. No Encoder
// writes it, so rows are checked here without a file around them.
func TestTextMustBeUTF8(t *testing.T) {
	const bad = "a\xff"
	for i := range audit.Header {
		c := &audit.Header[i]
		if c.Text == nil {
			continue
		}
		var row chain.Row
		*c.Text(&row.Record) = audit.Str(bad)
		wantText(t, &row, c.Name)
	}
	for s := range audit.NumSlots {
		var row chain.Row
		row.Slots[s] = []byte(bad)
		if s == audit.SlotRaw {
			if err := checkText(&row); err != nil {
				t.Errorf("raw is bytes: %v", err)
			}
			continue
		}
		wantText(t, &row, s.String())
	}
	var row chain.Row
	row.UserID = audit.Str(bad)
	wantText(t, &row, "user_id")
}

func wantText(t *testing.T, row *chain.Row, column string) {
	t.Helper()
	if err := checkText(row); err == nil || !strings.HasPrefix(err.Error(), column+" ") {
		t.Errorf("%s: %v", column, err)
	}
}
