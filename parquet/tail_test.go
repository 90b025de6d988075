package parquet_test

import (
	"errors"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// The bounds of a column come from the end of an object alone; a column that
// is never bounded, one that is not there and damaged bytes give none.
func TestTailBounds(t *testing.T) {
	rows := make([]chain.Row, 3)
	for i, id := range []string{"01B", "01A", "01C"} {
		h := chain.NewHasher(nil)
		rows[i].TenantID, rows[i].Topic, rows[i].Kind, rows[i].TopicID = audit.Str("acme"), audit.Str("t"), audit.Str("call"), audit.Str("id")
		rows[i].Partition, rows[i].Seq, rows[i].ArchivedAt, rows[i].Epoch = audit.I64(0), audit.I64(int64(i)), audit.I64(1), audit.I64(0)
		rows[i].RecordID, rows[i].UserID = audit.Str(id), audit.Str("user-7")
		h.Stamp(&rows[i], chain.Hash{}, chain.Hash{1})
	}
	object, err := parquet.NewEncoder().Encode(rows, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	size := int64(len(object))
	for column, want := range map[string][2]string{"record_id": {"01A", "01C"}, "tenant_id": {"acme", "acme"}, "user_id": {}, "session_id": {}, "nonsense": {}} {
		low, high, ok, err := parquet.TailBounds(object[8:], size, column)
		if err != nil || ok != (want[0] != "") || ok && (low != want[0] || high != want[1]) {
			t.Errorf("%s: %q to %q, %t, %v", column, low, high, ok, err)
		}
	}
	var short *parquet.ShortTailError
	if _, _, _, err := parquet.TailBounds(object[size-9:], size, "record_id"); !errors.As(err, &short) {
		t.Errorf("a tail that is too short: %v", err)
	}
	object[size-1] ^= 1
	if _, _, _, err := parquet.TailBounds(object, size, "record_id"); !errors.Is(err, parquet.ErrMalformed) {
		t.Errorf("damaged: %v", err)
	}
	huge := append(make([]byte, 100), 0xff, 0xff, 0xff, 0x7f, 'P', 'A', 'R', '1')
	if _, _, _, err := parquet.TailBounds(huge, 1<<40, "record_id"); err == nil || errors.As(err, &short) {
		t.Errorf("a footer of 2 GiB is asked for: %v", err)
	}
}
