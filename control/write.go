package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ledgerlake/ledgerlake/archive/jsondoc"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A Document is what the value of a control record says.
type Document interface {
	// Kind returns the kind of its rows.
	Kind() string
	// Value returns the value of the record with that id of a tenant, in one line.
	// It is made in one way alone, and an error where a reader would not take it.
	Value(tenant, id string, createdAt time.Time) ([]byte, error)
}

// Kind returns [audit.KindRedaction].
func (*Redaction) Kind() string { return audit.KindRedaction }

// Kind returns [audit.KindRedactionCancelled].
func (*Cancel) Kind() string { return audit.KindRedactionCancelled }

// Kind returns [audit.KindErasureDone].
func (*Receipt) Kind() string { return audit.KindErasureDone }

// Kind returns [audit.KindRetentionCut].
func (*Cut) Kind() string { return audit.KindRetentionCut }

// Kind returns [audit.KindLegalHold].
func (*Hold) Kind() string { return audit.KindLegalHold }

// An envelope is what each value begins with.
type envelope struct {
	RecordID  string `json:"recordId"`
	TenantID  string `json:"tenantId"`
	CreatedAt string `json:"createdAt"`
}

type erasureJSON struct {
	Slots any  `json:"slots"`
	User  bool `json:"user"`
	Hard  bool `json:"hard"`
}

func (e Erasure) json() erasureJSON {
	if e.All {
		return erasureJSON{"*", e.User, e.Hard}
	}
	names := []string{}
	for s := range audit.NumSlots {
		if e.Slots.Has(s) {
			names = append(names, s.String())
		}
	}
	return erasureJSON{names, e.User, e.Hard}
}

type lineJSON struct {
	Topic     string `json:"topic"`
	TopicID   string `json:"topicId"`
	Partition int32  `json:"partition"`
}

type targetJSON struct {
	Record  *string `json:"recordId,omitempty"`
	Session *string `json:"sessionId,omitempty"`
	Turn    *string `json:"turnId,omitempty"`
	Stage   *string `json:"stageId,omitempty"`
	Within  *int64  `json:"seqWithinTurn,omitempty"`
	User    *string `json:"userId,omitempty"`
	*lineJSON
	Offset *int64 `json:"offset,omitempty"`
	Before *int64 `json:"seqBefore,omitempty"`
}

func (t *Target) json() targetJSON {
	j := targetJSON{t.Record, t.Session, t.Turn, t.Stage, t.Within, t.User, nil, t.Offset, t.Before}
	if t.Log != nil {
		l := lineJSON(*t.Log)
		j.lineJSON = &l
	}
	return j
}

type scopeJSON struct {
	Tenant  bool    `json:"tenant,omitempty"`
	Session *string `json:"sessionId,omitempty"`
	User    *string `json:"userId,omitempty"`
}

// Value returns the value of a redaction's record.
func (r *Redaction) Value(tenant, id string, createdAt time.Time) ([]byte, error) {
	return encode(r.Kind(), tenant, id, createdAt, struct {
		Target targetJSON `json:"target"`
		erasureJSON
		Reason     string  `json:"reason"`
		RequestRef *string `json:"requestRef"`
		By         string  `json:"by"`
	}{r.Target.json(), r.json(), r.Reason, r.RequestRef, r.By})
}

// Value returns the value of a cancellation's record.
func (c *Cancel) Value(tenant, id string, createdAt time.Time) ([]byte, error) {
	return encode(c.Kind(), tenant, id, createdAt, struct {
		RedactionID string `json:"redactionId"`
		Reason      string `json:"reason"`
		By          string `json:"by"`
	}{c.RedactionID, c.Reason, c.By})
}

// Value returns the value of the record of one part of a receipt.
func (r *Receipt) Value(tenant, id string, createdAt time.Time) ([]byte, error) {
	type erased struct {
		lineJSON
		Ranges [][2]int64 `json:"ranges"`
	}
	type deleted struct {
		Key      string   `json:"key"`
		Versions []string `json:"versions"`
	}
	doc := struct {
		RedactionID string `json:"redactionId"`
		erasureJSON
		Reason     string    `json:"reason"`
		RequestRef *string   `json:"requestRef"`
		Part       int64     `json:"part"`
		Parts      int64     `json:"parts"`
		Erased     []erased  `json:"erased"`
		Deleted    []deleted `json:"deleted"`
		OutOfReach []string  `json:"outOfReach"`
	}{r.RedactionID, r.json(), r.Reason, r.RequestRef, r.Part, r.Parts, []erased{}, []deleted{}, orEmpty(r.OutOfReach)}
	n := 0
	for _, e := range r.Erased {
		n += len(e.Ranges)
		doc.Erased = append(doc.Erased, erased{lineJSON(e.Log), orEmpty(e.Ranges)})
	}
	for _, d := range r.Deleted {
		doc.Deleted = append(doc.Deleted, deleted{d.Key, orEmpty(d.Versions)})
	}
	if n > MaxRanges {
		return nil, fmt.Errorf("%s: %d ranges in one part, at most %d are: make more parts", r.Kind(), n, MaxRanges)
	}
	return encode(r.Kind(), tenant, id, createdAt, doc)
}

// Value returns the value of a cut's record.
func (c *Cut) Value(tenant, id string, createdAt time.Time) ([]byte, error) {
	return encode(c.Kind(), tenant, id, createdAt, struct {
		lineJSON
		Size     int64        `json:"size"`
		Head     chain.Hash   `json:"head"`
		Frontier []chain.Hash `json:"frontier"`
		Policy   string       `json:"policy"`
	}{lineJSON(c.Log), c.Size, c.Head, orEmpty(c.Frontier), c.Policy})
}

// Value returns the value of a hold's record.
func (h *Hold) Value(tenant, id string, createdAt time.Time) ([]byte, error) {
	return encode(h.Kind(), tenant, id, createdAt, struct {
		Scope  scopeJSON `json:"scope"`
		Set    bool      `json:"set"`
		Reason string    `json:"reason"`
		By     string    `json:"by"`
	}{scopeJSON(h.Scope), h.Set, h.Reason, h.By})
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// encode writes the envelope and the members of doc as one object.
func encode(kind, tenant, id string, createdAt time.Time, doc any) ([]byte, error) {
	if canonical, err := audit.ParseRecordID(id); err != nil || canonical != id {
		return nil, fmt.Errorf("%s: record id %.40q is no ULID in upper case", kind, id)
	}
	head, err := marshal(envelope{id, tenant, createdAt.UTC().Format(jsondoc.TimeLayout)})
	if err != nil {
		return nil, err
	}
	rest, err := marshal(doc)
	if err != nil {
		return nil, err
	}
	value := append(append(head[:len(head)-1:len(head)-1], ','), rest[1:]...)
	return value, readBack(kind, value)
}

// marshal writes JSON as it would be written by hand. Text that is not UTF-8 is
// refused: an id must not become another one.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	if replaced(b.Bytes()) {
		return nil, errors.New("a text in it is not UTF-8")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// replaced reports whether encoding/json put a replacement in the place of what
// is not UTF-8. It escapes that one, and no other that it writes.
func replaced(b []byte) bool {
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(b[i+1:], []byte("ufffd")) {
			return true
		}
		i++
	}
	return false
}
