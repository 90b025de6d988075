package parquet

import (
	"errors"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go/format"

	"github.com/ledgerlake/ledgerlake/chain"
)

// Values of a list stand in a chunk one after another. A repetition level of 0
// begins a row. Of the definition levels the highest is an element that is
// there; the lowest are a null list and an empty one; one between them is a null
// element, which the format does not have.

func (r *chunkReader) lists(rows []chain.Row) error {
	for i := range rows {
		list, err := r.nextList()
		if err != nil {
			return err
		}
		*r.column.list(&rows[i]) = list
	}
	return nil
}

func (r *chunkReader) nextList() ([]string, error) {
	if err := r.need(); err != nil {
		return nil, err
	}
	if r.reps[r.at] != 0 {
		return nil, errors.New("list begins in the middle")
	}
	if def := r.defs[r.at]; def <= r.emptyLevel() {
		r.at++
		if def == r.emptyLevel() {
			return []string{}, nil
		}
		return nil, nil
	}
	return r.elements()
}

// elements reads elements up to the next row.
func (r *chunkReader) elements() (list []string, err error) {
	for more := true; more && (len(list) == 0 || r.reps[r.at] != 0); {
		v, at, ok, err := r.next()
		switch {
		case err != nil:
			return nil, err
		case !ok:
			return nil, errors.New("null in a list")
		}
		from, to := v.place(at)
		s := v.text[from:to]
		if !utf8.ValidString(s) {
			return nil, errNotUTF8
		}
		list = append(list, s)
		if more, err = r.more(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// emptyLevel returns the definition level of a list without elements: 1, or 0
// where the list itself cannot be null.
func (r *chunkReader) emptyLevel() byte {
	if r.leaf.around[0].RepetitionType.V == format.Optional {
		return levelEmpty
	}
	return levelEmpty - 1
}
