package parquet

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Footers, page headers and indexes are Thrift structs in the compact protocol:
// https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md

// The types of fields and list elements. A boolean field has its value in its
// type.
const (
	thriftStop   = 0
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13
)

// maxThriftDepth bounds the nesting of structs and lists that are skipped. The
// structs of Parquet nest six deep.
const maxThriftDepth = 16

// A thriftReader reads structs from b, which may be hostile: it allocates
// nothing, and after the first fault every read gives zero and err says why.
type thriftReader struct {
	b       []byte
	at      int
	err     error
	unknown int // fields that were skipped because nobody knows them
}

// A thriftField is the header of a field. The zero thriftField is the place
// before the first one.
type thriftField struct {
	id  int
	typ byte
}

func (r *thriftReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// whole returns an error unless exactly b was read, and all of it understood.
func (r *thriftReader) whole() error {
	if r.at != len(r.b) {
		r.fail("thrift: %d bytes after the end", len(r.b)-r.at)
	}
	if r.unknown > 0 {
		r.fail("thrift: unknown field")
	}
	return r.err
}

// next reads the header of the field after f, and reports whether there is one.
// Ids must ascend: where one came twice, two readers could take two values.
func (r *thriftReader) next(f *thriftField) bool {
	head := r.byte()
	if r.err != nil || head == thriftStop {
		return false
	}
	id := f.id + int(head>>4)
	if head>>4 == 0 {
		id = int(r.varint(math.MinInt16, math.MaxInt16))
	}
	if id <= f.id {
		r.fail("thrift: field %d after %d", id, f.id)
	}
	f.id, f.typ = id, head&0xF
	return r.err == nil
}

func (r *thriftReader) want(f thriftField, typ byte) {
	if f.typ != typ {
		r.fail("thrift: field %d has type %d, want %d", f.id, f.typ, typ)
	}
}

func (r *thriftReader) i32(f thriftField) int32 {
	r.want(f, thriftI32)
	return int32(r.varint(math.MinInt32, math.MaxInt32))
}

func (r *thriftReader) i64(f thriftField) int64 {
	r.want(f, thriftI64)
	return r.varint(math.MinInt64, math.MaxInt64)
}

// list reads the header of a list and returns its length. Every element takes a
// byte or more, so that a length beyond the bytes that are left is a fault.
func (r *thriftReader) list(f thriftField, elem byte) int {
	r.want(f, thriftList)
	typ, n := r.listHeader()
	if n > 0 && typ != elem && (typ != thriftFalse || elem != thriftTrue) {
		r.fail("thrift: field %d lists type %d, want %d", f.id, typ, elem)
		return 0
	}
	return n
}

func (r *thriftReader) listHeader() (elem byte, n int) {
	head := r.byte()
	n = int(head >> 4)
	if n == 15 {
		n = r.length()
	}
	if n > len(r.b)-r.at {
		r.fail("thrift: list of %d elements in %d bytes", n, len(r.b)-r.at)
		return 0, 0
	}
	return head & 0xF, n
}

func (r *thriftReader) byte() byte {
	if r.err == nil && r.at >= len(r.b) {
		r.fail("thrift: unexpected end")
	}
	if r.err != nil {
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

func (r *thriftReader) varint(low, high int64) int64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Varint(r.b[r.at:])
	if n <= 0 || v < low || v > high {
		r.fail("thrift: bad integer")
		return 0
	}
	r.at += n
	return v
}

// length reads the length of a list or of bytes.
func (r *thriftReader) length() int {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.b[r.at:])
	if n <= 0 || v > math.MaxInt32 {
		r.fail("thrift: bad length")
		return 0
	}
	r.at += n
	return int(v)
}

func (r *thriftReader) bytes() []byte {
	n := r.length()
	if n > len(r.b)-r.at {
		r.fail("thrift: %d bytes wanted, %d left", n, len(r.b)-r.at)
	}
	if r.err != nil {
		return nil
	}
	r.at += n
	return r.b[r.at-n : r.at : r.at]
}

// stranger skips a field that this package does not know, and counts it.
func (r *thriftReader) stranger(f thriftField) {
	r.unknown++
	r.skip(f.typ, false, maxThriftDepth)
}

// skip reads over a value. A boolean takes a byte in a list and none as a field.
func (r *thriftReader) skip(typ byte, inList bool, depth int) {
	if depth == 0 {
		r.fail("thrift: nested too deep")
		return
	}
	switch typ {
	case thriftTrue, thriftFalse:
		if inList {
			r.byte()
		}
	case thriftByte:
		r.byte()
	case thriftI16, thriftI32, thriftI64:
		r.varint(math.MinInt64, math.MaxInt64)
	case thriftDouble:
		r.advance(8)
	case thriftUUID:
		r.advance(16)
	case thriftBinary:
		r.bytes()
	case thriftList, thriftSet:
		r.skipList(depth)
	case thriftMap:
		r.skipMap(depth)
	case thriftStruct:
		r.skipStruct(depth)
	default:
		r.fail("thrift: unknown type %d", typ)
	}
}

func (r *thriftReader) advance(n int) {
	if r.err == nil && n > len(r.b)-r.at {
		r.fail("thrift: unexpected end")
	}
	if r.err == nil {
		r.at += n
	}
}

func (r *thriftReader) skipStruct(depth int) {
	for f := (thriftField{}); r.next(&f); {
		r.skip(f.typ, false, depth-1)
	}
}

func (r *thriftReader) skipList(depth int) {
	elem, n := r.listHeader()
	for ; n > 0 && r.err == nil; n-- {
		r.skip(elem, true, depth-1)
	}
}

func (r *thriftReader) skipMap(depth int) {
	n := r.length()
	if n == 0 {
		return
	}
	types := r.byte()
	for ; n > 0 && r.err == nil; n-- {
		r.skip(types>>4, true, depth-1)
		r.skip(types&0xF, true, depth-1)
	}
}
