package parquet

import (
	"bytes"
)

// TailBounds returns the smallest and the largest value of a text column of an
// object of size bytes, from its last bytes, as its footer states them. ok is
// false where it states none for a row group that has rows. Nothing vouches for
// them: they help to find a row, and prove nothing. If tail is too short the
// error is a [*ShortTailError], else it matches [ErrMalformed].
func TailBounds(tail []byte, size int64, column string) (low, high string, ok bool, err error) {
	defer boundary(&err)
	raw, err := splitFooter(tail, size)
	if err != nil {
		return "", "", false, err
	}
	meta, err := readFooter(raw)
	if err != nil {
		return "", "", false, err
	}
	for i := range meta.RowGroups {
		g := &meta.RowGroups[i]
		for j := range g.Columns {
			c := &g.Columns[j].MetaData
			if len(c.PathInSchema) != 1 || c.PathInSchema[0] != column || g.NumRows == 0 {
				continue
			}
			s := &c.Statistics
			if s.MinValue == nil || s.MaxValue == nil {
				return "", "", false, nil
			}
			if !ok || bytes.Compare(s.MinValue, []byte(low)) < 0 {
				low = string(s.MinValue)
			}
			high, ok = max(high, string(s.MaxValue)), true
		}
	}
	return low, high, ok, nil
}
