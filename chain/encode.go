package chain

import (
	"strconv"

	"github.com/ledgerlake/ledgerlake/audit"
)

// AppendNull appends T(null), which no T(string) and no T(integer) equals:
//
//	T(null) = "n,"
func AppendNull(b []byte) []byte { return append(b, "n,"...) }

// AppendInt appends T(n). Times are integers, microseconds since 1970-01-01
// UTC.
//
//	T(integer) = "i" decimal ","            no plus sign, no leading zeros
func AppendInt(b []byte, n int64) []byte {
	b = append(b, 'i')
	b = strconv.AppendInt(b, n, 10)
	return append(b, ',')
}

// AppendString appends T(s). The bytes are taken as they are: whether they are
// valid UTF-8 was decided where the record was decoded, and nothing is
// normalised.
//
//	T(string) = "s" length ":" bytes ","    length in bytes
func AppendString(b []byte, s string) []byte {
	b = append(b, 's')
	b = strconv.AppendInt(b, int64(len(s)), 10)
	b = append(b, ':')
	b = append(b, s...)
	return append(b, ',')
}

func appendText(b []byte, t audit.Text) []byte {
	if !t.Valid {
		return AppendNull(b)
	}
	return AppendString(b, t.S)
}

func appendIntColumn(b []byte, n audit.Int) []byte {
	if !n.Valid {
		return AppendNull(b)
	}
	return AppendInt(b, n.N)
}

// appendHeader appends { T(header column) }, all 31 in hashed order.
func appendHeader(b []byte, r *audit.Record) []byte {
	for i := range audit.Header {
		if c := &audit.Header[i]; c.Text != nil {
			b = appendText(b, *c.Text(r))
		} else {
			b = appendIntColumn(b, *c.Int(r))
		}
	}
	return b
}
