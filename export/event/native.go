package event

import (
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// Version is the member "v" of our own JSON. Members may be added to a version;
// none is taken away, renamed or given another meaning.
const Version = 1

// timeLayout is RFC 3339 to the microsecond, UTC.
const timeLayout = "2006-01-02T15:04:05.000000Z"

func appendTime(dst []byte, t time.Time) []byte {
	return t.AppendFormat(dst, timeLayout)
}

func (o *object) time(name string, t time.Time) {
	o.name(name)
	o.dst = append(appendTime(append(o.dst, '"'), t), '"')
}

// micros appends a time column unless it is null.
func (o *object) micros(name string, n audit.Int) {
	if n.Valid {
		o.time(name, time.UnixMicro(n.N).UTC())
	}
}

func (o *object) hash(name string, h chain.Hash) { o.str(name, h.String()) }

// appendJSON appends an event in our own JSON.
func (e *Encoder) appendJSON(dst []byte, ev *Event) ([]byte, error) {
	o := &object{dst: dst}
	o.open()
	o.int("v", Version)
	o.str("event", string(ev.Kind))
	o.str("id", ev.ID)
	if e.o.ArchiveID != "" {
		o.str("archiveId", e.o.ArchiveID)
	}
	o.time("time", ev.Time)
	if ev.Kind != KindCheck {
		o.str("tenant", ev.Tenant)
		o.str("topic", ev.Line.Topic)
		o.str("topicId", ev.Line.TopicID)
		o.int("partition", int64(ev.Line.Partition))
	}
	switch {
	case ev.Row != nil:
		o.row(ev)
	case ev.Head != nil:
		o.head(ev.Head)
	case ev.Erasure != nil:
		o.erasure(ev.Erasure)
	case ev.Check != nil:
		o.check(ev.Check)
	}
	o.close()
	return o.dst, nil
}

// row appends what is said of a row, and the row's content unless ev is a
// pointer.
func (o *object) row(ev *Event) {
	r := ev.Row
	o.int("seq", ev.Seq)
	o.number("epoch", r.Epoch)
	o.hash("prevHash", r.PrevHash)
	o.hash("rowHash", r.RowHash)
	o.bool("verified", ev.Verified)
	o.number("offset", r.KafkaOffset)
	o.number("repeatOf", r.RepeatOf)
	o.text("kind", r.Kind)
	o.text("recordId", r.RecordID)
	o.micros("createdAt", r.CreatedAt)
	o.micros("archivedAt", r.ArchivedAt)
	o.text("redactionPolicy", r.RedactionPolicy)
	if r.Redaction.Valid {
		o.raw("redaction", []byte(r.Redaction.S))
	}
	if ev.Kind == KindRecord {
		o.object("record")
		o.columns(r)
		o.close()
	}
}

// columns appends the columns and slots of a row that are not null.
func (o *object) columns(r *chain.Row) {
	for i := range audit.Header {
		c := &audit.Header[i]
		if c.Text != nil {
			o.text(c.Name, *c.Text(&r.Record))
		} else {
			o.number(c.Name, *c.Int(&r.Record))
		}
	}
	o.text("user_id", r.UserID)
	for s, content := range r.Slots {
		if content != nil {
			o.raw(audit.Slot(s).String(), content)
		}
	}
}

func (o *object) head(h *Head) {
	o.object("head")
	o.int("size", h.Size)
	o.hash("hash", h.Hash)
	o.hash("root", h.Root)
	o.int("epoch", int64(h.Epoch))
	o.int("anchor", h.Anchor)
	if h.Note != "" {
		o.str("note", h.Note)
	}
	o.close()
}

func (o *object) erasure(e *Erasure) {
	o.object("erasure")
	o.raw("redaction", []byte(e.What.String()))
	if e.RequestRef != "" {
		o.str("requestRef", e.RequestRef)
	}
	o.ranges("ranges", e.Ranges)
	o.close()
}

// ranges appends [[first, last], …].
func (o *object) ranges(name string, ranges [][2]int64) {
	o.name(name)
	o.dst = append(o.dst, '[')
	for i, r := range ranges {
		if i > 0 {
			o.dst = append(o.dst, ',')
		}
		o.dst = appendRange(append(o.dst, '['), r, ',')
		o.dst = append(o.dst, ']')
	}
	o.dst = append(o.dst, ']')
}

func (o *object) check(c *Check) {
	o.object("check")
	o.bool("test", true)
	o.str("destination", c.Destination)
	o.str("nonce", c.Nonce)
	o.close()
}
