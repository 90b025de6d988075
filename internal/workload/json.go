package workload

import (
	"strconv"
	"time"
)

// timeLayout is ISO 8601 in milliseconds, UTC.
const timeLayout = "2006-01-02T15:04:05.000Z"

// object appends one JSON object, member by member. Names and texts are
// literals of this package that need no escape, or ids made of plain letters.
type object struct{ b []byte }

// name begins a member.
func (o *object) name(n string) {
	if last := o.b[len(o.b)-1]; last != '{' && last != '[' {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, n...)
	o.b = append(o.b, '"', ':')
}

func (o *object) open(n string) { o.name(n); o.b = append(o.b, '{') }
func (o *object) close()        { o.b = append(o.b, '}') }

// str writes a member whose value is text without characters to escape.
func (o *object) str(n, v string) {
	o.name(n)
	o.b = append(o.b, '"')
	o.b = append(o.b, v...)
	o.b = append(o.b, '"')
}

// maybe writes text, or null for "".
func (o *object) maybe(n, v string) {
	if v == "" {
		o.raw(n, "null")
		return
	}
	o.str(n, v)
}

func (o *object) int(n string, v int) {
	o.name(n)
	o.b = strconv.AppendInt(o.b, int64(v), 10)
}

// tenths writes v/10 with one decimal, as producers write latencies.
func (o *object) tenths(n string, v int) {
	o.int(n, v/10)
	o.b = append(o.b, '.', byte('0'+v%10))
}

func (o *object) bool(n string, v bool) {
	o.name(n)
	o.b = strconv.AppendBool(o.b, v)
}

// raw writes a member whose value is JSON already.
func (o *object) raw(n, json string) {
	o.name(n)
	o.b = append(o.b, json...)
}

func (o *object) strs(n string, vs []string) {
	o.name(n)
	o.b = append(o.b, '[')
	for i, v := range vs {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = append(o.b, '"')
		o.b = append(o.b, v...)
		o.b = append(o.b, '"')
	}
	o.b = append(o.b, ']')
}

func (o *object) time(n string, t time.Time) {
	o.name(n)
	o.b = append(o.b, '"')
	o.b = t.UTC().AppendFormat(o.b, timeLayout)
	o.b = append(o.b, '"')
}

// hex64 writes 256 random-looking bits in hex, as a fingerprint would be.
func (o *object) hex64(n string, g *Generator) {
	o.name(n)
	o.b = append(o.b, '"')
	o.b = g.appendHex(o.b, 64)
	o.b = append(o.b, '"')
}

// appendHex appends n random hex digits.
func (g *Generator) appendHex(b []byte, n int) []byte {
	const digits = "0123456789abcdef"
	var v uint64
	for i := range n {
		if i%16 == 0 {
			v = g.rng.Uint64()
		}
		b = append(b, digits[v&15])
		v >>= 4
	}
	return b
}
