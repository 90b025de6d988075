// Package chain links the rows of one log into a tamper-evident sequence: it
// is the arithmetic of the ledgerlake-v1 format, and the states of a row.
//
//	slot_salt(name)   = SHA-256("ledgerlake.salt.v1\n"    T(name) hex(row_salt) "\n")
//	slot_commit(name) = SHA-256("ledgerlake.slot.v1\n"    T(name) hex(slot_salt(name)) "\n" stored bytes)
//	payload_commit    = SHA-256("ledgerlake.payload.v1\n" hex(slot_salt("*")) "\n" { T(name) (hex(slot_commit(name)) | "-") "\n" })
//	user_commit       = SHA-256("ledgerlake.user.v1\n"    hex(slot_salt("user_id")) "\n" T(user_id)), null where user_id is
//	row_hash          = SHA-256("ledgerlake.row.v1\n"     hex(prev_hash) "\n" { T(header column) } "\n"
//	                            (hex(user_commit) | "-") "\n" hex(payload_commit) "\n")
//	leaf              = SHA-256(0x00 row_hash), node = SHA-256(0x01 left right)
//
//	T(null) = "n,"    T(integer) = "i" decimal ","    T(string) = "s" length ":" bytes ","
//
// prev_hash is the row_hash of the row before, or the log's [Genesis]. What a
// person may ask to have erased enters row_hash through a salted commitment
// only, so that it can go and leave every hash where it was: a [Hasher] stamps
// and checks rows, [Residual] and [Sentinel] say what is left of an erased one,
// and [StateOf] tells the states apart.
//
// The package is pure: no clock, no network, no randomness. Equal inputs give
// equal bytes on every machine, and testdata/ledgerlake-v1.json pins them for
// verifiers written in other languages:
//
//	go test ./chain -vectors FILE
//
// Hostile input gives errors; only what a caller in its right mind cannot do
// (a frontier that does not fit its size, a proof for a leaf that is not there)
// panics.
//
// # What a chain does not prove
//
// Heads expose a change, a swap or a hole inside a range. They do not expose a
// missing tail, and whoever owns the bucket can recompute all of them. Signed
// anchors answer both; their texts are made here, but signed and kept
// elsewhere. Nor does this package say whether an erasure was ordered, whether
// the columns agree with the slots, or whether the rows follow each other.
package chain

import (
	"crypto/sha256"

	"github.com/ledgerlake/ledgerlake/audit"
)

// The schemes of a log. They differ in one place: the outer hash of row_hash.
const (
	SchemeV1     = "ledgerlake-v1"      // SHA-256: anybody can check it
	SchemeHMACv1 = "ledgerlake-hmac-v1" // HMAC-SHA256 under the log's key
)

// A Log names a log: the rows of one tenant in one partition of one topic of
// one archive. All of it enters the log's genesis.
type Log struct {
	ArchiveID string // a ULID
	Tenant    string // opaque, 1 to 256 bytes
	Topic     string // Kafka's name for it
	TopicID   string // Kafka's topic UUID, base64url without padding: 22 characters
	Partition int32
}

// Genesis returns what stands for prev_hash in the first row of a log, in
// epoch 0: nothing came before.
func Genesis(scheme string, l Log) Hash {
	return genesis(scheme, l, 0, NullHash{}, 0, audit.Text{})
}

// ResetGenesis returns what stands for prev_hash in the first row of a later
// epoch, a chain-reset row. previousHead and previousSize are those of the last
// good row of the epoch before: the head is a hash, the size counts rows of the
// log from seq 0 on. A null reason differs from an empty one.
func ResetGenesis(scheme string, l Log, epoch int32, previousHead Hash, previousSize int64, reason audit.Text) Hash {
	return genesis(scheme, l, epoch, NullHash{Hash: previousHead, Valid: true}, previousSize, reason)
}

// genesis = SHA-256("ledgerlake.genesis.v1\n" T(scheme) T(archiveId) T(tenant) T(topic) T(topicId) T(partition)
// T(epoch) T(hex(previous head)|null) T(previous size) T(reason|null))
func genesis(scheme string, l Log, epoch int32, head NullHash, size int64, reason audit.Text) Hash {
	b := []byte("ledgerlake.genesis.v1\n")
	for _, s := range [...]string{scheme, l.ArchiveID, l.Tenant, l.Topic, l.TopicID} {
		b = AppendString(b, s)
	}
	b = AppendInt(b, int64(l.Partition))
	b = AppendInt(b, int64(epoch))
	b = appendText(b, audit.Text{S: head.Hash.String(), Valid: head.Valid})
	b = AppendInt(b, size)
	b = appendText(b, reason)
	return sha256.Sum256(b)
}
