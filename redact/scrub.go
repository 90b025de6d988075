package redact

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/ledgerlake/ledgerlake/audit"
)

// The errors of [Policy.Scrub], both of which mean: what the record has must not
// be stored, and it is to be rejected without its bytes.
var (
	// ErrTooLarge: with marks in it, a slot would be larger than a record may be.
	ErrTooLarge = errors.New("larger than 16 MiB once it is scrubbed")
	// ErrScrub: scrubbing broke on the record, which is a fault of this package.
	ErrScrub = errors.New("scrubbing failed")
)

// Scrub replaces, in the slots of a record that a decoder made, what the policy's
// rules for its tenant find, and states the policy in redaction_policy. Of a
// rejected record it does so in raw, and in the key and headers that context has;
// size and sha256 there become those of raw as it is then, for by those of the
// original what went could be guessed, and redaction_policy stays null. Control
// rows, whose bytes are signed, and rows that ingest makes stay as they are. So
// do all columns but those that are derived from a slot.
//
// Slots are never changed in place: what changes is a new slice. The text around
// what went keeps its bytes, and JSON stays JSON. To scrub again changes nothing.
// The nil Policy scrubs nothing.
//
// After an error, which matches [ErrTooLarge] or [ErrScrub] and does not show the
// payload, the record may be half scrubbed.
func (p *Policy) Scrub(r *audit.Record) (err error) {
	if p == nil {
		return nil
	}
	rejected := r.Kind.S == audit.KindRejected
	if !rejected && !r.RedactionPolicy.Valid {
		return nil
	}
	n := size(r)
	if n > largeRecord {
		scrubbingLarge.Lock()
		defer scrubbingLarge.Unlock()
	}
	defer func() {
		if recover() != nil {
			err = ErrScrub // what was thrown may show the payload
		}
	}()
	w := borrow(p.rulesOf(r.TenantID.S), n)
	defer w.release()
	if rejected {
		return w.reject(r)
	}
	r.RedactionPolicy = audit.Str(p.id)
	return w.slots(r)
}

// largeRecord is the size of slots above which records are scrubbed one at a time:
// what one needs is a few times its size, and must not be needed for every
// partition at once.
const largeRecord = 1 << 20

var scrubbingLarge sync.Mutex

func size(r *audit.Record) (n int) {
	for _, slot := range r.Slots {
		n += len(slot)
	}
	return n
}

// Try returns what the policy makes of a text of a tenant, as it would of the
// value of a rejected record: as JSON where it is that, else as any bytes. Errors
// are those of [Policy.Scrub].
func (p *Policy) Try(tenant string, text []byte) ([]byte, error) {
	r := audit.Record{TenantID: audit.Str(tenant), Kind: audit.Str(audit.KindRejected)}
	r.Slots[audit.SlotRaw] = text
	err := p.Scrub(&r)
	return r.Slots[audit.SlotRaw], err
}

// slots scrubs the slots of a good record.
func (w *worker) slots(r *audit.Record) error {
	for s := range audit.NumSlots {
		if len(r.Slots[s]) == 0 {
			continue
		}
		text, changed, err := w.slot(r.Slots[s], s == audit.SlotExt || s == audit.SlotPrompts)
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		if !changed {
			continue
		}
		r.Slots[s] = text
		if s == audit.SlotDecision {
			r.Derived = audit.Derive(text)
		}
	}
	return nil
}

// slot returns what becomes of a JSON text, in memory of its own, and whether it
// is another one.
func (w *worker) slot(in []byte, paths bool) ([]byte, bool, error) {
	text := w.json(in, paths)
	if len(w.out) == 0 {
		return in, false, nil
	}
	switch {
	case len(text) > audit.MaxValueBytes:
		return nil, false, ErrTooLarge
	case !json.Valid(text):
		return nil, false, ErrScrub
	}
	return bytes.Clone(text), true, nil
}

// reject scrubs a rejected record.
func (w *worker) reject(r *audit.Record) error {
	raw, changed, err := w.raw(r.Slots[audit.SlotRaw])
	if err != nil {
		return fmt.Errorf("%s: %w", audit.SlotRaw, err)
	}
	context, err := w.rejectContext(r.Slots[audit.SlotContext], raw, changed)
	if err != nil {
		return fmt.Errorf("%s: %w", audit.SlotContext, err)
	}
	r.Slots[audit.SlotRaw], r.Slots[audit.SlotContext] = raw, context
	return nil
}

// framing is how many bytes stand before the JSON in Confluent's wire format.
const framing = 5

// raw scrubs the value of a rejected record: as JSON where it is that, else as
// any bytes.
func (w *worker) raw(in []byte) ([]byte, bool, error) {
	if len(in) == 0 {
		return in, false, nil
	}
	head := 0
	if in[0] == 0 && len(in) >= framing {
		head = framing
	}
	body, scrub := in[head:], w.loose
	if json.Valid(body) {
		scrub = func(in []byte) ([]byte, bool, error) { return w.slot(in, false) }
	}
	out, changed, err := scrub(body)
	if err != nil || !changed {
		return in, false, err
	}
	return append(bytes.Clone(in[:head]), out...), true, nil
}

// loose scrubs bytes that are no JSON. Keyed rules look at what stands between
// quotes; the names are those that a colon follows. The others look at all. Where
// there is ever more to find, all of it goes.
func (w *worker) loose(in []byte) ([]byte, bool, error) {
	text, changed := in, false
	for range maxRounds {
		next, more := w.looseOnce(text)
		switch {
		case len(next) > audit.MaxValueBytes:
			return nil, false, ErrTooLarge
		case !more:
			return text, changed, nil
		}
		text, changed = next, true
	}
	return appendMark(nil, w.rules.names[0]), true, nil
}

func (w *worker) looseOnce(in []byte) ([]byte, bool) {
	first := w.json(in, false)
	changed := len(w.out) > 0
	if changed {
		first = bytes.Clone(first)
	}
	w.subject.key, w.keyed = nil, 0
	if text, again := w.scrubbed(first); again {
		return bytes.Clone(text), true
	}
	return first, changed
}

// rejectContext scrubs the key and the headers in the context of a rejected
// record, and makes size and sha256 those of raw where that changed.
func (w *worker) rejectContext(context, raw []byte, changed bool) ([]byte, error) {
	var out []byte
	done := 0
	for name, at := range membersOf(context) {
		value := context[at.from:at.to]
		switch {
		case name == "size" && changed:
			value = strconv.AppendInt(nil, int64(len(raw)), 10)
		case name == "sha256" && changed:
			value = fmt.Appendf(nil, `"%x"`, sha256.Sum256(raw))
		case name == "key" || name == "headers":
			text, changed, err := w.slot(value, false)
			if err != nil {
				return nil, err
			}
			if !changed {
				continue
			}
			value = text
		default:
			continue
		}
		out = append(append(out, context[done:at.from]...), value...)
		done = at.to
	}
	if out == nil {
		return context, nil
	}
	return append(out, context[done:]...), nil
}
