package audit

import (
	"encoding/base64"
	"fmt"
)

// An Envelope is what surrounded a record's value in Kafka.
type Envelope struct {
	Key      []byte          // nil is null
	Headers  []MessageHeader // those that a decoder does not read, in order
	SchemaID Int             // of Confluent's framing
}

// RestoreEnvelope returns what surrounded the value of a row, as ext keeps it. A
// key of which ext says nothing was the tenant's id. It returns an error
// matching [ErrRestore] if ext is not what a decoder writes.
func RestoreEnvelope(r *Record) (Envelope, error) {
	e := Envelope{Key: []byte(r.TenantID.S)}
	text := r.Slots[SlotExt]
	if text == nil {
		return e, nil
	}
	x := restorers.Get().(*restorer)
	defer x.release()
	if err := check(&x.ext, SlotExt, text, typeObject); err != nil {
		return e, fmt.Errorf("%w: %w", ErrRestore, err)
	}
	ok := true
	if m := x.ext.find("$key"); m != nil {
		e.Key, ok = bytesOf(x.ext.raw(m))
	}
	if m := x.ext.find("$schemaId"); m != nil {
		n, reason := exactInt(x.ext.raw(m))
		e.SchemaID = I64(n)
		ok = ok && m.typ == typeNumber && reason == ""
	}
	if m := x.ext.find("$headers"); m != nil && ok {
		e.Headers, ok = headersOf(x.ext.raw(m))
	}
	if !ok {
		return e, fmt.Errorf("%w: %s: key, headers or schema id are not what a decoder writes", ErrRestore, SlotExt)
	}
	return e, nil
}

// headersOf is the inverse of appendHeaders.
func headersOf(array []byte) (headers []MessageHeader, ok bool) {
	if array[0] != '[' {
		return nil, false
	}
	for _, at := range elementsOf(array) {
		pair := array[at.from:at.to]
		var parts [2][]byte
		n := 0
		if pair[0] != '[' {
			return nil, false
		}
		for i, v := range elementsOf(pair) {
			if i < 2 {
				if parts[i], ok = bytesOf(pair[v.from:v.to]); !ok {
					return nil, false
				}
			}
			n++
		}
		if n != 2 || parts[0] == nil {
			return nil, false
		}
		headers = append(headers, MessageHeader{string(parts[0]), parts[1]})
	}
	return headers, true
}

// bytesOf is the inverse of appendBytes.
func bytesOf(value []byte) (b []byte, ok bool) {
	switch value[0] {
	case 'n':
		return nil, true
	case '"':
		return append([]byte{}, unescaped(value[1:len(value)-1])...), true
	case '{':
		text, found := memberOf(value, "base64")
		if !found || text[0] != '"' {
			return nil, false
		}
		b, err := base64.StdEncoding.DecodeString(unescaped(text[1 : len(text)-1]))
		return b, err == nil
	}
	return nil, false
}
