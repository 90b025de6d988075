package audit

import (
	"bytes"
	"slices"
)

// FirstDifference returns the name of the first column in which two records
// differ, "" where they are equal in all of them.
func FirstDifference(a, b *Record) string {
	for i := range Header {
		c := &Header[i]
		if c.Text != nil && *c.Text(a) != *c.Text(b) || c.Int != nil && *c.Int(a) != *c.Int(b) {
			return c.Name
		}
	}
	if a.UserID != b.UserID {
		return "user_id"
	}
	for s := range NumSlots {
		if (a.Slots[s] == nil) != (b.Slots[s] == nil) || !bytes.Equal(a.Slots[s], b.Slots[s]) {
			return s.String()
		}
	}
	switch {
	case a.RequestedModel != b.RequestedModel:
		return "requested_model"
	case a.SelectedReason != b.SelectedReason:
		return "selected_reason"
	case a.RungOrdinal != b.RungOrdinal:
		return "rung_ordinal"
	case (a.FallbackChain == nil) != (b.FallbackChain == nil) || !slices.Equal(a.FallbackChain, b.FallbackChain):
		return "fallback_chain"
	case a.TopicID != b.TopicID:
		return "topic_id"
	case a.Epoch != b.Epoch:
		return "epoch"
	case a.RepeatOf != b.RepeatOf:
		return "repeat_of"
	}
	return ""
}
