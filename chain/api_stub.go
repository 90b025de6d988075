package chain

// STUB: replaced while the package is written; the signatures are agreed.

import (
	"github.com/ledgerlake/ledgerlake/audit"
)

// Scheme names.
const (
	SchemeV1     = "ledgerlake-v1"
	SchemeHMACv1 = "ledgerlake-hmac-v1"
)

func (h Hash) String() string                   { panic("stub") } // lower-case hex
func (h Hash) MarshalText() ([]byte, error)     { panic("stub") }
func (h *Hash) UnmarshalText(text []byte) error { panic("stub") } // strict: 64 lower-case hex digits
func ParseHash(hex string) (Hash, error)        { panic("stub") }
func Escape(name string) string                 { panic("stub") } // FORMAT 5
func AppendNull(b []byte) []byte                { panic("stub") }
func AppendInt(b []byte, n int64) []byte        { panic("stub") }
func AppendString(b []byte, s string) []byte    { panic("stub") }

// Log names a log, and is what its genesis commits to.
type Log struct {
	ArchiveID string
	Tenant    string
	Topic     string
	TopicID   string
	Partition int32
}

// Genesis: epoch 0.
func Genesis(scheme string, l Log) Hash { panic("stub") }

// ResetGenesis: the genesis of a later epoch.
func ResetGenesis(scheme string, l Log, epoch int32, previousHead Hash, previousSize int64, reason audit.Text) Hash {
	panic("stub")
}

func SlotSalt(rowSalt Hash, name string) Hash                             { panic("stub") }
func SlotCommit(salt Hash, name string, content []byte) Hash              { panic("stub") }
func UserCommit(salt Hash, userID string) Hash                            { panic("stub") }
func PayloadCommit(starSalt Hash, commits *[audit.NumSlots]NullHash) Hash { panic("stub") }

// A Hasher computes row hashes of one log. It keeps buffers, so that a row costs no allocation. Not for concurrent use.
type Hasher struct{ key []byte }

// NewHasher returns a Hasher; key is nil for SchemeV1, the log's key for SchemeHMACv1.
func NewHasher(key []byte) *Hasher { panic("stub") }

// Stamp makes a live row of row's record: it sets PrevHash, RowSalt, UserSalt, UserCommit, PayloadCommit, RowHash.
func (h *Hasher) Stamp(row *Row, prev Hash, salt Hash) { panic("stub") }

// RowHash computes row_hash from the header and the stored commitments and PrevHash.
func (h *Hasher) RowHash(row *Row) Hash { panic("stub") }

// Commits recomputes user_commit and payload_commit of a row from what is stored, whatever its state
// (from row_salt, from residual; for erased rows it returns the stored payload_commit). Errors if the state is a fault.
func (h *Hasher) Commits(row *Row) (user NullHash, payload Hash, err error) { panic("stub") }

// Check checks the state, the commitments and the row hash of a row (not its link to prev). Hard-erased rows: see doc.
func (h *Hasher) Check(row *Row) error { panic("stub") }

// State of 3.1.
type State int

const (
	Live State = iota
	PartlyErased
	Erased
	HardErased
)

// StateOf returns the state of a row, or an error that names the first column that does not fit any state.
func StateOf(row *Row) (State, error) { panic("stub") }

func LeafHash(rowHash Hash) Hash     { panic("stub") }
func NodeHash(left, right Hash) Hash { panic("stub") }

// A Tree is the compact state of an RFC 6962 tree. The zero Tree is the empty tree.
type Tree struct {
	Size     int64
	Frontier []Hash // roots of the perfect subtrees, largest first
}

func (t *Tree) Append(rowHash Hash) { panic("stub") }
func (t *Tree) Root() Hash          { panic("stub") }
func (t *Tree) Clone() Tree         { panic("stub") }

// AppendTree joins another tree's rows (those after t's) given their subtree... optional
func CheckFrontier(size int64, frontier []Hash) error { panic("stub") } // length = popcount(size)

// Proofs, in the verb pairs of RFC 6962. leaves: row hashes.
func ProveInclusion(rowHashes []Hash, index int64) []Hash                           { panic("stub") }
func CheckInclusion(root Hash, size, index int64, rowHash Hash, proof []Hash) error { panic("stub") }
func ProveConsistency(rowHashes []Hash, from int64) []Hash                          { panic("stub") }
func CheckConsistency(from, to int64, oldRoot, newRoot Hash, proof []Hash) error    { panic("stub") }

// CheckpointOrigin returns ledgerlake/{archiveId}/{escaped tenant}/{escaped topic}/{topicId}/{partition}
func CheckpointOrigin(l Log) string { panic("stub") }

// CheckpointText returns the C2SP checkpoint body: origin, size, base64 root, a line each.
func CheckpointText(origin string, size int64, root Hash) string { panic("stub") }
