package pipeline

import (
	"errors"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/redact"
)

// A reader makes rows of the records of a topic: decoded, and scrubbed before
// anything else sees them.
type reader struct {
	*audit.Decoder
	policy *redact.Policy // nil scrubs nothing
}

// Decode is that of the decoder, scrubbed. A record that cannot be scrubbed is
// rejected without its bytes: they stay in Kafka for as long as the topic keeps
// them, and nothing unscrubbed is stored.
func (d *reader) Decode(dst *audit.Record, m *audit.Message) *audit.Reject {
	return d.scrub(dst, m, d.Decoder.Decode(dst, m))
}

// refuse is [audit.Refuse], scrubbed.
func (d *reader) refuse(dst *audit.Record, m *audit.Message, reason audit.Reason, detail string) *audit.Reject {
	return d.scrub(dst, m, audit.Refuse(dst, m, reason, detail))
}

// scrub scrubs a row, rejected or not.
func (d *reader) scrub(dst *audit.Record, m *audit.Message, reject *audit.Reject) *audit.Reject {
	err := d.policy.Scrub(dst)
	if err == nil {
		return reject
	}
	if reject == nil {
		reject = &audit.Reject{Reason: audit.ReasonInvalidJSON}
		if errors.Is(err, redact.ErrTooLarge) {
			reject.Reason = audit.ReasonTooLarge
		}
	} else {
		reject.Detail += "; "
	}
	return audit.Withhold(dst, m, reject.Reason, reject.Detail+"policy "+d.policy.ID()+": "+err.Error()+"; its bytes are withheld")
}

// plain decodes a message as nobody may store it.
func (d *reader) plain(m *audit.Message) *audit.Record {
	r := &audit.Record{}
	d.Decoder.Decode(r, m)
	return r
}

// contentOf returns the content of a stored row, by which a repeat of it is known.
// Of a row that another policy scrubbed it is the content of what ours makes of it
// besides, and foreign is true: where that is not a record's content, the row
// itself is to be compared ([redact.Same]), for the difference may be one that the
// change of policy makes.
func (sh *shared) contentOf(r *audit.Record) (content audit.Fingerprint, foreign bool) {
	if !r.RedactionPolicy.Valid || r.RedactionPolicy.S == sh.writer.Policy {
		return r.ContentHash(), false
	}
	scrubbed := *r
	if sh.Scrub.Scrub(&scrubbed) != nil {
		return r.ContentHash(), true
	}
	return scrubbed.ContentHash(), true
}
