package chain

import (
	"crypto/sha256"

	"github.com/ledgerlake/ledgerlake/audit"
)

// The names that are salted beside those of the slots.
const (
	nameStar = "*"       // the salt of payload_commit itself
	nameUser = "user_id" // the salt of user_commit
)

// SlotSalt returns the salt of one slot: its name, "*" for payload_commit, or
// "user_id". It can be given away for one slot without giving away those of the
// others.
//
//	slot_salt(name) = SHA256("ledgerlake.salt.v1\n" T(name) hex(row_salt) "\n")
func SlotSalt(rowSalt Hash, name string) Hash {
	b := saltPrefix(name)
	b = appendHex(b, &rowSalt)
	return sha256.Sum256(append(b, '\n'))
}

// SlotCommit returns the commitment to one slot that has content. salt is that
// of the slot, and content the bytes as they are stored; a slot that is null
// has no commitment, an empty one has.
//
//	slot_commit(name) = SHA256("ledgerlake.slot.v1\n" T(name) hex(slot_salt(name)) "\n" stored bytes)
func SlotCommit(salt Hash, name string, content []byte) Hash {
	b := commitPrefix(name)
	b = appendHex(b, &salt)
	b = append(b, '\n')
	return sha256.Sum256(append(b, content...))
}

// UserCommit returns the commitment to a user_id that is not null. salt is
// SlotSalt(row_salt, "user_id").
//
//	user_commit = SHA256("ledgerlake.user.v1\n" hex(slot_salt("user_id")) "\n" T(user_id))
func UserCommit(salt Hash, userID string) Hash {
	return sha256.Sum256(appendUser(nil, &salt, userID))
}

// PayloadCommit returns the commitment to all slots of a row: starSalt is
// SlotSalt(row_salt, "*"), commits has the commitment of each slot, null for a
// slot that is null.
//
//	payload_commit = SHA256("ledgerlake.payload.v1\n" hex(slot_salt("*")) "\n" { T(name) (hex(slot_commit(name)) | "-") "\n" })
func PayloadCommit(starSalt Hash, commits *[audit.NumSlots]NullHash) Hash {
	return sha256.Sum256(appendPayload(nil, &starSalt, commits))
}

func saltPrefix(name string) []byte { return AppendString([]byte("ledgerlake.salt.v1\n"), name) }

func commitPrefix(name string) []byte { return AppendString([]byte("ledgerlake.slot.v1\n"), name) }

func appendUser(b []byte, salt *Hash, userID string) []byte {
	b = append(b, "ledgerlake.user.v1\n"...)
	b = appendHex(b, salt)
	b = append(b, '\n')
	return AppendString(b, userID)
}

func appendPayload(b []byte, star *Hash, commits *[audit.NumSlots]NullHash) []byte {
	b = append(b, "ledgerlake.payload.v1\n"...)
	b = appendHex(b, star)
	b = append(b, '\n')
	for s := range audit.NumSlots {
		b = append(b, slotPrefixes[s].name...)
		b = appendNullHash(b, &commits[s])
		b = append(b, '\n')
	}
	return b
}

// appendNullHash appends hex(h), or "-" where h is null.
func appendNullHash(b []byte, h *NullHash) []byte {
	if !h.Valid {
		return append(b, '-')
	}
	return appendHex(b, &h.Hash)
}

// slotPrefixes has what is the same in every row: a slot's name in JSON, and
// the parts of its hashed texts.
var slotPrefixes = func() (all [audit.NumSlots]slotPrefix) {
	for s := range audit.NumSlots {
		name := s.String()
		all[s] = slotPrefix{quoted: `"` + name + `"`, name: AppendString(nil, name), salt: saltPrefix(name), commit: commitPrefix(name)}
	}
	return all
}()

type slotPrefix struct {
	quoted             string
	name, salt, commit []byte
}

var (
	starPrefix = saltPrefix(nameStar)
	userPrefix = saltPrefix(nameUser)
)
