package pipeline

import (
	"bytes"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
)

// authorise returns what says why a control record of the archive may not govern
// it; nil where anything in the control topic may, as the settings name no keys.
func (s *Settings) authorise() func(*audit.Record, *audit.Message) string {
	if len(s.AnchorKeys.Control) == 0 {
		return nil
	}
	ring := &sign.Ring{}
	for _, vkey := range s.AnchorKeys.Control {
		_ = ring.Add(vkey, sign.Control, "settings") // one that is no key signs nothing
	}
	id := s.Root.ArchiveID
	return func(r *audit.Record, m *audit.Message) string { return unauthorised(ring, id, r, m) }
}

// unauthorised returns "" where the record's signature is by a good key and over
// what the record says.
func unauthorised(ring *sign.Ring, id string, r *audit.Record, m *audit.Message) string {
	at := slices.IndexFunc(m.Headers, isSignature)
	if at < 0 {
		return "it has no header " + control.SignatureHeader + ", and control-keys are set"
	}
	if slices.ContainsFunc(m.Headers[at+1:], isSignature) {
		return "it has more than one header " + control.SignatureHeader
	}
	n, err := sign.Parse(m.Headers[at].Value)
	if err != nil {
		return control.SignatureHeader + ": " + err.Error()
	}
	// The context is the value, out of the framing that a client may add.
	if n.Text != chain.ControlText(id, r.TenantID.S, r.Kind.S, r.RecordID.S, r.Slots[audit.SlotContext]) {
		return control.SignatureHeader + ": it signs another archive, tenant, kind, record or value"
	}
	switch ring.Check(n, sign.Control, time.Time{}).State {
	case sign.Good:
		return ""
	case sign.Bad:
		return control.SignatureHeader + ": it is not by the key that it names"
	}
	return control.SignatureHeader + ": it is by none of control-keys"
}

func isSignature(h audit.MessageHeader) bool { return h.Name == control.SignatureHeader }

// unkeyedReader returns the reader of a topic for what was archived while there
// were no control keys.
func (s *Settings) unkeyedReader(topic string) *reader {
	d := s.reader(topic)
	d.Authorise = nil
	return d
}

// decode decodes a record of Kafka to hold it against a row. Where other settings
// made the row, other control keys may have been in force: whether the record
// was authorised then, only the row says.
func (c *comparison) decode(rec *audit.Record, r *kgo.Record, s *stretch) (*audit.Message, *audit.Reject) {
	m := message(r, nil)
	reject := c.reader.Decode(rec, m)
	if c.exact() {
		return m, reject
	}
	refused := s.row != nil && bytes.HasPrefix(s.row.Slots[audit.SlotContext], []byte(`{"reason":"`+audit.ReasonUnauthorised+`",`))
	switch {
	case refused && reject == nil && c.reader.Control:
		reject = c.reader.refuse(rec, m, audit.ReasonUnauthorised, "")
	case !refused && reject != nil && reject.Reason == audit.ReasonUnauthorised:
		reject = c.unkeyed.Decode(rec, m)
	}
	return m, reject
}
