// Package archive is the archive in a bucket: its keys and documents, the
// commit that lets any number of confused writers make one line, and the way
// back from the bucket to the state that the next segment builds on.
//
// A line (one partition of one topic) is a sequence of segments whose keys are
// their ordinals. Each is written by one create-only PUT, so an ordinal is a
// write-once register; and each writer builds only on an ordinal that it has
// seen. There is no lease, no epoch and no coordinator:
//
//	Create(ordinal n) -> created                         durable: Advance
//	                  -> exists, the same bytes          durable: the reply was lost
//	                  -> exists, bytes that continue     somebody was faster: adopt them
//	                  -> exists, bytes that do not       start again from the bucket
//	                  -> anything else                   try again; nothing is known
//
// Once a line is compacted, an ordinal can be free again that was written long ago,
// compacted, and deleted. So a reply counts only for some time after a look at the
// line's catalog ([Committer].Believe), and readers begin at its watermark
// ([ReadSnapshot]).
//
// The package knows a store only as a [Bucket]. It does not know Kafka, it
// does not decide what a row is, and it does not prove anything: package proof
// trusts nothing that this package reads.
package archive
