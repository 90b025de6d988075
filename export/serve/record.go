package serve

import (
	"encoding/json"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/export"
)

// appendRecord appends a record as it is shown: in the shape in which it was sent,
// with $ledgerlake, which says where it stands.
func appendRecord(b []byte, r *export.Row) ([]byte, error) {
	text, err := (&audit.Restorer{Reserve: true}).Append(nil, &r.Record)
	if err != nil {
		return b, err
	}
	where, _ := json.Marshal(map[string]any{"tenant": r.TenantID.S, "topic": r.Line.Topic, "topicId": r.Line.TopicID, "partition": r.Line.Partition, "seq": r.Seq.N, "prevHash": r.PrevHash, "rowHash": r.RowHash})
	b = append(append(b, `{"$ledgerlake":`...), where...)
	if len(text) > 2 {
		b = append(b, ',')
	}
	return append(b, text[1:]...), nil
}
