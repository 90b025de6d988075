// Package audit says what a record is: its kinds, its form on the wire, the
// columns and slots that it becomes, and the coordinates by which a repeat of
// it is known.
//
//	Kafka message ── Decoder.Decode ──▶ Record ── Coordinates, ContentHash ──▶ a repeat or not
//	                                     │
//	                 31 header columns ──┤  hashed as they are
//	                 user_id             ──┤  hashed through a commitment, erasable
//	                 17 slots            ──┤  the producer's bytes, hashed through commitments, erasable
//	                 derived columns     ──┘  not hashed, see Derive
//
// Decoding is strict and keeps bytes. Names match exactly, no object names a
// member twice at any depth, text is UTF-8 without lone surrogates, integers
// are exact; nesting ends at [MaxDepth], size at [MaxValueBytes], and what is
// looked at member by member at [MaxMembers]. What has no column is kept as the
// producer wrote it: in the slot of its name, in context, or in ext under its
// path. So a record comes back from its row value for value; only members that
// were null may be missing then, and prompts that nobody asked to keep: [Restore]
// is the inverse of [Decoder.Decode].
// docs/wire-columns.md has the map of every kind.
//
// A message that cannot be archived as it is becomes a row all the same, of
// kind rejected, with the reason and its bytes. Which reason it is depends on
// the message alone. The first of these that holds is given: no value or an
// empty one, size, UTF-8, JSON (in order of position), the kind, slots and
// groups in the order of the text, the columns in the order of the map, the
// timestamp.
//
// The package is pure: no clock, no network. It stamps nothing (seq,
// archived_at and the hashes belong to package chain and to the engine),
// scrubs nothing (package redact), checks no signature of a control record, and
// does not look into what a control record orders.
package audit
