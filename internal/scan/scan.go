// Package scan looks for values in the objects of an archive: in every byte of
// them, and in all that can be decoded from these bytes.
//
//	texts of an object = its bytes
//	                   + the content of each zstd frame, at whatever offset one begins
//	                   + each of these without the escapes of JSON, as often as there are some
//	forms of a value   = its bytes, hex, base64 at each of three alignments
//
// Frames are searched for by their magic number, not by what a footer says, so
// that a page which no footer knows any more is found too. Besides, [Texts] goes
// through a Parquet object by its footer and page headers, and fails where a page
// is in a codec or an encoding that could hide a value.
//
// The package is for tests, and shares no code with package parquet.
//
// # What it does not find
//
// A value that was cut (bounds may be), that stands in two pieces, or of which
// only a hash is left, as in a bloom filter.
package scan

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/klauspost/compress/zstd"
)

// A Text is something that can be read from an object.
type Text struct {
	Where string
	Bytes []byte // valid until the next step
}

// maxFrame is the content of the largest zstd frame that is decoded, in bytes.
const maxFrame = 512 << 20

// frameMagic begins a zstd frame. Source: RFC 8878, section 3.1.1.
var frameMagic = binary.LittleEndian.AppendUint32(nil, 0xFD2FB528)

var decoder = must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame)))

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Texts yields all that can be read from an object. An error says that something
// cannot: the last step.
func Texts(object []byte) iter.Seq2[Text, error] {
	return func(yield func(Text, error) bool) {
		s := scanner{yield: yield, decoded: map[int]bool{}}
		if !s.text("bytes", object) || !s.frames(object) {
			return
		}
		if err := checkPages(object, s.decoded); err != nil {
			yield(Text{}, err)
		}
	}
}

type scanner struct {
	yield   func(Text, error) bool
	decoded map[int]bool // offsets of frames
	buf     []byte
}

// maxUnescape is how many levels of JSON within JSON strings are looked through.
const maxUnescape = 8

// text yields b, and what it becomes without escapes.
func (s *scanner) text(where string, b []byte) bool {
	for range maxUnescape {
		if !s.yield(Text{Where: where, Bytes: b}, nil) {
			return false
		}
		plain, changed := unescape(b)
		if !changed {
			return true
		}
		where, b = where+", unescaped", plain
	}
	return true
}

// frames yields the content of all frames. What only looks like the beginning of
// one does not decode.
func (s *scanner) frames(object []byte) bool {
	for at := 0; ; at++ {
		i := bytes.Index(object[at:], frameMagic)
		if i < 0 {
			return true
		}
		at += i
		content, ok := s.frame(object[at:])
		if !ok {
			continue
		}
		s.decoded[at] = true
		if !s.text(fmt.Sprintf("frame at %d", at), content) {
			return false
		}
	}
}

// frame decodes the frame that b begins with. What follows it is no frame, or
// another one, which has its turn.
func (s *scanner) frame(b []byte) (content []byte, ok bool) {
	var h zstd.Header
	if err := h.Decode(b); err != nil || h.Skippable || h.HasFCS && h.FrameContentSize > maxFrame {
		return nil, false
	}
	n, ok := frameLength(b, &h)
	if !ok {
		return nil, false
	}
	content, err := decoder.DecodeAll(b[:n], s.buf[:0])
	s.buf = content
	return content, err == nil
}

// frameLength returns the length of a frame, by the headers of its blocks.
// Source: RFC 8878, section 3.1.1.2.
func frameLength(b []byte, h *zstd.Header) (n int, ok bool) {
	n = h.HeaderSize
	for last := false; !last; {
		if n+3 > len(b) {
			return 0, false
		}
		head := uint32(b[n]) | uint32(b[n+1])<<8 | uint32(b[n+2])<<16
		last = head&1 == 1
		size := int(head >> 3)
		switch head >> 1 & 3 {
		case 1: // one byte, repeated
			size = 1
		case 3:
			return 0, false
		}
		if n += 3 + size; n > len(b) {
			return 0, false
		}
	}
	if h.HasCheckSum {
		n += 4
	}
	return n, n <= len(b)
}
