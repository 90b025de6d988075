package chain

import "github.com/ledgerlake/ledgerlake/audit"

// A Row is a record with its place in a chain: all columns of docs/format.md,
// section 3. The zero Row is no row; [Hasher.Stamp] makes a live one.
type Row struct {
	audit.Record

	PrevHash      Hash       // row_hash of the row before, or genesis
	RowHash       Hash       // commits to the row and all before it
	PayloadCommit Hash       // commits to the slots, and stays when they go
	UserCommit    NullHash   // null where user_id was null when stamped
	RowSalt       NullHash   // 32 random bytes; set in live rows only
	UserSalt      NullHash   // slot_salt("user_id"); set where an erasure kept user_id
	Residual      audit.Text // JSON: the [Residual] of a partly erased row
	Redaction     audit.Text // JSON: the [Sentinel] of a row that is not live
	RedactionID   audit.Text // record_id of the control row that ordered it first
}
