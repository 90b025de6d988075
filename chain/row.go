package chain

import "github.com/ledgerlake/ledgerlake/audit"

// A Hash is one SHA-256 (or HMAC-SHA256) value, or one salt: 32 bytes.
type Hash [32]byte

// A NullHash is a nullable hash column. The zero NullHash is null.
type NullHash struct {
	Hash  Hash
	Valid bool
}

// A Row is a record with its place in a chain: all columns of docs/format.md,
// section 3.
type Row struct {
	audit.Record

	PrevHash      Hash
	RowHash       Hash
	PayloadCommit Hash
	UserCommit    NullHash   // null where user_id was null when stamped
	RowSalt       NullHash   // erased with the payload
	UserSalt      NullHash   // slot_salt("user_id"), kept by erasures that keep user_id
	Residual      audit.Text // JSON; what is left of the salts of a partly erased row
	Redaction     audit.Text // JSON; the sentinel of an erased row
	RedactionID   audit.Text
}
