package control

import (
	"errors"
	"fmt"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/jsondoc"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// What this package reads documents with.
type (
	document = jsondoc.Document
	field    = jsondoc.Field
)

// The readers take a document whose members that change something are all there,
// of the right type and range. Members that only tell people something (reason,
// requestRef, by, policy, outOfReach) may be missing, for a request that lacks
// one is a request all the same; they may not be of another type.

func readRedaction(text []byte) (*Redaction, error) {
	r := &Redaction{}
	err := jsondoc.Read(text, append(erasureFields(&r.Erasure),
		field{Name: "target", Read: func(d *document) { r.Target = readTarget(d) }},
		textField("reason", &r.Reason), refField(&r.RequestRef), textField("by", &r.By))...)
	switch {
	case err != nil:
	case !r.Target.Valid():
		err = errors.New("target is none of the known forms")
	case r.IsZero():
		err = errors.New("nothing is to be erased")
	}
	return r, err
}

func textField(name string, into *string) field {
	return field{Name: name, Optional: true, Read: func(d *document) { *into = d.Str() }}
}

func refField(into **string) field {
	return field{Name: "requestRef", Optional: true, Read: func(d *document) {
		if t := d.NullStr(); t.Valid {
			*into = &t.S
		}
	}}
}

func erasureFields(e *Erasure) []field {
	return []field{
		{Name: "slots", Read: func(d *document) { e.All, e.Slots = readSlots(d) }},
		{Name: "user", Read: func(d *document) { e.User = d.Boolean() }},
		{Name: "hard", Read: func(d *document) { e.Hard = d.Boolean() }},
	}
}

// readSlots reads "*" or an array of the names of slots.
func readSlots(d *document) (all bool, set chain.SlotSet) {
	if !d.IsArray() {
		d.Constant("*")
		return true, 0
	}
	d.Array(func(d *document) {
		slot, ok := audit.ParseSlot(d.Str())
		if !ok {
			d.Fail("no slot")
			return
		}
		set |= chain.SlotSetOf(slot)
	})
	return false, set
}

// readID reads a ULID in either case.
func readID(d *document) string {
	id, err := audit.ParseRecordID(d.Str())
	if err != nil {
		d.Fail("no ULID")
	}
	return id
}

func strInto(into **string) func(*document) {
	return func(d *document) { s := d.Str(); *into = &s }
}

func numInto(into **int64) func(*document) {
	return func(d *document) { n := d.Integer(); *into = &n }
}

func readTarget(d *document) (t Target) {
	var log archive.Line
	var named int
	d.Object(
		field{Name: "recordId", Optional: true, Read: func(d *document) { id := readID(d); t.Record = &id }},
		field{Name: "sessionId", Optional: true, Read: strInto(&t.Session)},
		field{Name: "turnId", Optional: true, Read: strInto(&t.Turn)},
		field{Name: "stageId", Optional: true, Read: strInto(&t.Stage)},
		field{Name: "seqWithinTurn", Optional: true, Read: numInto(&t.Within)},
		field{Name: "userId", Optional: true, Read: strInto(&t.User)},
		field{Name: "topic", Optional: true, Read: func(d *document) { log.Topic = d.Str(); named++ }},
		field{Name: "topicId", Optional: true, Read: func(d *document) { log.TopicID = d.Str(); named++ }},
		field{Name: "partition", Optional: true, Read: func(d *document) { log.Partition = d.Int32(); named++ }},
		field{Name: "offset", Optional: true, Read: numInto(&t.Offset)},
		field{Name: "seqBefore", Optional: true, Read: numInto(&t.Before)})
	if named == 3 {
		t.Log = &log
	} else if named > 0 {
		d.Fail("topic, topicId and partition are not all there")
	}
	return t
}

func readCancel(text []byte) (*Cancel, error) {
	c := &Cancel{}
	err := jsondoc.Read(text, field{Name: "redactionId", Read: func(d *document) { c.RedactionID = readID(d) }},
		textField("reason", &c.Reason), textField("by", &c.By))
	return c, err
}

func readReceipt(text []byte) (*Receipt, error) {
	r := &Receipt{}
	err := jsondoc.Read(text, append(erasureFields(&r.Erasure),
		field{Name: "redactionId", Read: func(d *document) { r.RedactionID = readID(d) }},
		textField("reason", &r.Reason), refField(&r.RequestRef),
		field{Name: "part", Read: func(d *document) { r.Part = d.Count() }},
		field{Name: "parts", Read: func(d *document) { r.Parts = d.Count() }},
		field{Name: "erased", Read: func(d *document) { d.Array(func(d *document) { r.Erased = append(r.Erased, readErased(d)) }) }},
		field{Name: "deleted", Read: func(d *document) { d.Array(func(d *document) { r.Deleted = append(r.Deleted, readDeleted(d)) }) }},
		field{Name: "outOfReach", Optional: true, Read: func(d *document) { r.OutOfReach = readTexts(d) }})...)
	if err == nil && (r.Part < 1 || r.Part > r.Parts) {
		err = errors.New("part is not one of parts")
	}
	return r, err
}

func readErased(d *document) (e Erased) {
	d.Object(append(logFields(&e.Log), field{Name: "ranges", Read: func(d *document) {
		d.Array(func(d *document) {
			var r [2]int64
			d.Tuple(func(d *document) { r[0] = d.Count() }, func(d *document) { r[1] = d.Count() })
			if r[1] < r[0] {
				d.Fail("range from %d to %d", r[0], r[1])
			}
			e.Ranges = append(e.Ranges, r)
		})
	}})...)
	return e
}

func readDeleted(d *document) (e Deleted) {
	d.Object(
		field{Name: "key", Read: func(d *document) { e.Key = d.Str() }},
		field{Name: "versions", Optional: true, Read: func(d *document) { e.Versions = readTexts(d) }})
	return e
}

func readTexts(d *document) (all []string) {
	d.Array(func(d *document) { all = append(all, d.Str()) })
	return all
}

func logFields(log *archive.Line) []field {
	return []field{
		{Name: "topic", Read: func(d *document) { log.Topic = d.Str() }},
		{Name: "topicId", Read: func(d *document) { log.TopicID = d.Str() }},
		{Name: "partition", Read: func(d *document) { log.Partition = d.Int32() }},
	}
}

func readCut(text []byte) (*Cut, error) {
	c := &Cut{}
	err := jsondoc.Read(text, append(logFields(&c.Log),
		field{Name: "size", Read: func(d *document) { c.Size = d.Count() }},
		field{Name: "head", Read: func(d *document) { c.Head = d.Hash() }},
		field{Name: "frontier", Read: func(d *document) { c.Frontier = d.Hashes() }},
		textField("policy", &c.Policy))...)
	if err == nil {
		err = chain.CheckFrontier(c.Size, c.Frontier)
	}
	return c, err
}

func readHold(text []byte) (*Hold, error) {
	h := &Hold{}
	err := jsondoc.Read(text,
		field{Name: "scope", Read: func(d *document) { h.Scope = readScope(d) }},
		field{Name: "set", Read: func(d *document) { h.Set = d.Boolean() }},
		textField("reason", &h.Reason), textField("by", &h.By))
	return h, err
}

func readScope(d *document) (s Scope) {
	n := 0
	one := func(read func(*document)) func(*document) {
		return func(d *document) { read(d); n++ }
	}
	d.Object(
		field{Name: "tenant", Optional: true, Read: one(func(d *document) {
			if s.Tenant = d.Boolean(); !s.Tenant {
				d.Fail("is false")
			}
		})},
		field{Name: "sessionId", Optional: true, Read: one(strInto(&s.Session))},
		field{Name: "userId", Optional: true, Read: one(strInto(&s.User))})
	if n != 1 {
		d.Fail("%d of tenant, sessionId and userId, want one", n)
	}
	return s
}

// readBack checks that what a writer made is what a reader takes.
func readBack(kind string, value []byte) error {
	r := &Row{Kind: kind}
	if err := r.read(value); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return nil
}
