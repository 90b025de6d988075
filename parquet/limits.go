package parquet

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go/format"
)

// maxBound is the longest text that is kept as a bound, in bytes. Bounds are
// paid for twice in each object, and are there to find ids and names by.
const maxBound = 64

// limits are the least and the greatest of some values, which are text, by its
// bytes, or numbers. The zero limits are those of no value.
type limits struct {
	low, high []byte // text
	min, max  int64  // numbers
	there     bool
}

// reset returns the zero limits with the same memory.
func (l limits) reset() limits { return limits{low: l.low[:0], high: l.high[:0]} }

func (l *limits) text(v []byte) {
	if !l.there || bytes.Compare(v, l.low) < 0 {
		l.low = append(l.low[:0], v...)
	}
	if !l.there || bytes.Compare(v, l.high) > 0 {
		l.high = append(l.high[:0], v...)
	}
	l.there = true
}

func (l *limits) number(n int64) {
	if !l.there {
		l.min, l.max, l.there = n, n, true
		return
	}
	l.min, l.max = min(l.min, n), max(l.max, n)
}

// join widens the limits by others of the same column.
func (l *limits) join(o *limits, k kind) {
	switch {
	case !o.there:
	case k.isText():
		l.text(o.low)
		l.text(o.high)
	default:
		l.number(o.min)
		l.number(o.max)
	}
}

func (k kind) isText() bool { return k == kindText || k == kindBinary || k == kindList }

// bound returns a limit as it stands in a footer or an index.
func (w *chunkWriter) bound(text []byte, n int64) []byte {
	var b [8]byte
	switch k := w.column.kind; {
	case k.isText():
		return text
	case k == kindInt32:
		return w.hold(binary.LittleEndian.AppendUint32(b[:0], uint32(n)))
	default:
		return w.hold(binary.LittleEndian.AppendUint64(b[:0], uint64(n)))
	}
}

// pageBounds is what an index says of a page.
type pageBounds struct {
	limits limits
	nulls  int64
}

// statistics returns what the footer says of the chunk's values.
func (w *chunkWriter) statistics() format.Statistics {
	s := format.Statistics{NullCount: w.nulls}
	if w.column.unbounded() {
		return s
	}
	all := limits{}
	if len(w.bounds) == 1 {
		all = w.bounds[0].limits
	} else {
		for i := range w.bounds {
			all.join(&w.bounds[i].limits, w.column.kind)
		}
	}
	low, high := w.bound(all.low, all.min), w.bound(all.high, all.max)
	if all.there && len(low) <= maxBound && len(high) <= maxBound {
		s.MinValue, s.MaxValue = notNil(low), notNil(high)
	}
	return s
}

// notNil keeps the bound "" apart from none.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// columnIndex appends the column index of the chunk, or nothing where it has none:
// a sealed column, a list, and values so long and odd that no shorter text is
// greater.
func (w *chunkWriter) columnIndex(b []byte) []byte {
	if w.column.unbounded() {
		return b
	}
	x := &w.index
	*x = format.ColumnIndex{
		BoundaryOrder: order(w.bounds, w.column.kind), NullPages: x.NullPages[:0], MinValues: x.MinValues[:0], MaxValues: x.MaxValues[:0], NullCounts: x.NullCounts[:0],
	}
	for i := range w.bounds {
		p := &w.bounds[i]
		low, high, ok := []byte{}, []byte{}, true
		if p.limits.there {
			low = w.bound(cutLow(p.limits.low), p.limits.min)
			high, ok = cutHigh(p.limits.high)
			high = w.bound(high, p.limits.max)
		}
		if !ok {
			return b
		}
		x.NullPages = append(x.NullPages, !p.limits.there)
		x.MinValues, x.MaxValues = append(x.MinValues, low), append(x.MaxValues, high)
		x.NullCounts = append(x.NullCounts, p.nulls)
	}
	return appendColumnIndex(b, x)
}

// order says whether the bounds of pages ascend or descend, all of them: a
// reader may then search by halves.
func order(all []pageBounds, k kind) format.BoundaryOrder {
	up, down := true, true
	var last *limits
	for i := range all {
		l := &all[i].limits
		if !l.there {
			continue
		}
		if last != nil {
			low, high := last.compare(l, k)
			up, down = up && low <= 0 && high <= 0, down && low >= 0 && high >= 0
		}
		last = l
	}
	switch {
	case up:
		return format.Ascending
	case down:
		return format.Descending
	default:
		return format.Unordered
	}
}

// compare compares the least and the greatest values, as they stand in an index:
// cut texts keep their order, or become equal.
func (l *limits) compare(o *limits, k kind) (low, high int) {
	if k.isText() {
		return bytes.Compare(l.low, o.low), bytes.Compare(l.high, o.high)
	}
	return cmp.Compare(l.min, o.min), cmp.Compare(l.max, o.max)
}

// cutLow returns a text of no more than maxBound bytes that is not greater.
func cutLow(b []byte) []byte {
	if len(b) <= maxBound {
		return b
	}
	n := maxBound
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return b[:n]
}

// cutHigh returns a text of no more than maxBound bytes that is not less: the
// next greater one of those that are shorter. ok is false where there is none.
func cutHigh(b []byte) (_ []byte, ok bool) {
	if len(b) <= maxBound {
		return b, true
	}
	b = bytes.Clone(cutLow(b))
	for len(b) > 0 {
		r, n := utf8.DecodeLastRune(b)
		b = b[:len(b)-n]
		if r++; r == 0xD800 {
			r = 0xE000 // behind the surrogates
		}
		if r <= utf8.MaxRune && len(b)+utf8.RuneLen(r) <= maxBound {
			return utf8.AppendRune(b, r), true
		}
	}
	return nil, false
}
