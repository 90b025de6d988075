package chain

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"

	"github.com/ledgerlake/ledgerlake/audit"
)

// A Hasher stamps and checks rows. It keeps buffers, so that a row costs no
// allocation. It holds nothing of a row between two calls, so that one Hasher
// serves any number of logs of a scheme; but one goroutine at a time.
type Hasher struct {
	plain hash.Hash // SHA-256: salts and commitments
	outer hash.Hash // the outer hash of row_hash, and only that
	buf   []byte    // the text that is being hashed
	sum   Hash      // where a digest lands: a local one would be allocated

	// Of the row at hand.
	saltLine [2*len(Hash{}) + 1]byte // hex(row_salt) "\n"
	residual Residual                // if it is partly erased
	commits  [audit.NumSlots]NullHash
}

// NewHasher returns a Hasher. key is nil for [SchemeV1], and the log's key for
// [SchemeHMACv1]; an empty key that is not nil panics, for it would look like a
// secret and be none.
func NewHasher(key []byte) *Hasher {
	h := &Hasher{plain: sha256.New(), buf: make([]byte, 0, 2048)}
	switch {
	case key == nil:
		h.outer = h.plain
	case len(key) == 0:
		panic("chain: empty key for " + SchemeHMACv1)
	default:
		h.outer = hmac.New(sha256.New, key)
	}
	return h
}

// Stamp makes a live row of row's record: it links it to prev, the row_hash of
// the row before or the log's genesis, and commits to its content. salt is 32
// bytes of the system's CSPRNG, used for this row alone.
//
// It sets PrevHash, RowSalt, UserCommit, PayloadCommit and RowHash, and makes
// null what a live row does not have. It does not look at the record; Seq and
// ArchivedAt must be set before.
func (h *Hasher) Stamp(row *Row, prev Hash, salt Hash) {
	row.PrevHash = prev
	row.RowSalt = NullHash{Hash: salt, Valid: true}
	row.UserSalt = NullHash{}
	row.Residual, row.Redaction, row.RedactionID = audit.Text{}, audit.Text{}, audit.Text{}
	row.UserCommit, row.PayloadCommit = h.liveCommits(row)
	row.RowHash = h.RowHash(row)
}

// RowHash computes row_hash from the header columns, PrevHash and the stored
// commitments of a row. It is not what was stamped where a hard erasure took
// header columns.
//
//	row_hash = SHA256("ledgerlake.row.v1\n" hex(prev_hash) "\n" { T(header column) } "\n"
//	           (hex(user_commit) | "-") "\n" hex(payload_commit) "\n")
//
// In [SchemeHMACv1] the outer SHA256 is HMAC-SHA256 under the log's key.
func (h *Hasher) RowHash(row *Row) Hash {
	h.buf = appendRow(h.buf[:0], row)
	return h.digest(h.outer, h.buf, nil)
}

// Commits recomputes user_commit and payload_commit from what a row still has:
// from row_salt and the slots of a live row; from residual, user_salt and the
// slots of a partly erased one. What can no longer be recomputed is returned as
// it is stored: payload_commit of an erased row, user_commit where user_id went.
//
// It returns a [*Fault] where row is in no state of [StateOf].
func (h *Hasher) Commits(row *Row) (user NullHash, payload Hash, err error) {
	state, err := stateOf(row, &h.residual)
	if err != nil {
		return NullHash{}, Hash{}, err
	}
	user, payload = h.commitsIn(state, row)
	return user, payload, nil
}

// commitsIn is Commits of a row whose state is known.
func (h *Hasher) commitsIn(state State, row *Row) (user NullHash, payload Hash) {
	switch state {
	case Live:
		return h.liveCommits(row)
	case PartlyErased:
		return h.keptUserCommit(row), h.residualCommit(row)
	}
	return h.keptUserCommit(row), row.PayloadCommit
}

// Check checks all of a row that the row itself can show: its state, its
// commitments and its row_hash. It returns nil or a [*Fault]. Of a hard-erased
// row only the state is left to check: its row_hash is bound by the rows beside
// it and by the tree.
//
// Check does not know whether the row continues another one.
func (h *Hasher) Check(row *Row) error {
	state, err := stateOf(row, &h.residual)
	if err != nil {
		return err
	}
	if state == HardErased {
		return nil
	}
	user, payload := h.commitsIn(state, row)
	switch {
	case user != row.UserCommit:
		return &Fault{"user_commit", "does not recompute"}
	case payload != row.PayloadCommit:
		return &Fault{"payload_commit", "does not recompute"}
	case h.RowHash(row) != row.RowHash:
		return &Fault{"row_hash", "does not recompute"}
	}
	return nil
}

// liveCommits computes the commitments of a live row from row_salt.
func (h *Hasher) liveCommits(row *Row) (user NullHash, payload Hash) {
	h.setSalt(&row.RowSalt.Hash)
	if row.UserID.Valid {
		salt := h.salt(userPrefix)
		user = NullHash{Hash: h.userCommit(&salt, row.UserID.S), Valid: true}
	}
	for s := range audit.NumSlots {
		h.commits[s].Valid = row.Slots[s] != nil
		if h.commits[s].Valid {
			salt := h.salt(slotPrefixes[s].salt)
			h.commits[s].Hash = h.slotCommit(s, &salt, row.Slots[s])
		}
	}
	star := h.salt(starPrefix)
	return user, h.payloadCommit(&star)
}

// residualCommit computes payload_commit of a partly erased row from
// h.residual.
func (h *Hasher) residualCommit(row *Row) Hash {
	h.commits = h.residual.Commits
	for s := range audit.NumSlots {
		if salt := &h.residual.Salts[s]; salt.Valid {
			h.commits[s] = NullHash{Hash: h.slotCommit(s, &salt.Hash, row.Slots[s]), Valid: true}
		}
	}
	return h.payloadCommit(&h.residual.Star)
}

// keptUserCommit computes user_commit of a row that is not live from
// user_salt, or returns the stored one where user_id went.
func (h *Hasher) keptUserCommit(row *Row) NullHash {
	if !row.UserSalt.Valid {
		return row.UserCommit
	}
	return NullHash{Hash: h.userCommit(&row.UserSalt.Hash, row.UserID.S), Valid: true}
}

// setSalt sets the row_salt that h.salt derives salts from.
func (h *Hasher) setSalt(rowSalt *Hash) {
	appendHex(h.saltLine[:0], rowSalt)
	h.saltLine[len(h.saltLine)-1] = '\n'
}

// salt computes [SlotSalt].
func (h *Hasher) salt(prefix []byte) Hash {
	h.buf = append(h.buf[:0], prefix...)
	h.buf = append(h.buf, h.saltLine[:]...)
	return h.digest(h.plain, h.buf, nil)
}

// slotCommit computes [SlotCommit].
func (h *Hasher) slotCommit(s audit.Slot, salt *Hash, content []byte) Hash {
	h.buf = append(h.buf[:0], slotPrefixes[s].commit...)
	h.buf = appendHex(h.buf, salt)
	h.buf = append(h.buf, '\n')
	return h.digest(h.plain, h.buf, content)
}

// userCommit computes [UserCommit].
func (h *Hasher) userCommit(salt *Hash, userID string) Hash {
	h.buf = appendUser(h.buf[:0], salt, userID)
	return h.digest(h.plain, h.buf, nil)
}

// payloadCommit computes [PayloadCommit] of h.commits.
func (h *Hasher) payloadCommit(star *Hash) Hash {
	h.buf = appendPayload(h.buf[:0], star, &h.commits)
	return h.digest(h.plain, h.buf, nil)
}

// digest hashes head and tail. The tail is not copied: a slot can have 16 MiB.
func (h *Hasher) digest(with hash.Hash, head, tail []byte) Hash {
	with.Reset()
	with.Write(head)
	with.Write(tail)
	with.Sum(h.sum[:0])
	return h.sum
}

// appendRow appends the text whose hash is row_hash.
func appendRow(b []byte, row *Row) []byte {
	b = append(b, "ledgerlake.row.v1\n"...)
	b = appendHex(b, &row.PrevHash)
	b = append(b, '\n')
	b = appendHeader(b, &row.Record)
	b = append(b, '\n')
	b = appendNullHash(b, &row.UserCommit)
	b = append(b, '\n')
	b = appendHex(b, &row.PayloadCommit)
	return append(b, '\n')
}
