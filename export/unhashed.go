package export

import (
	"fmt"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// Unhashed is what an object says of a log in it, as far as it binds the columns
// epoch and repeat_of, which no hash has.
type Unhashed struct {
	Epoch  int32 // of all rows in a data file, of the last one in a segment
	file   bool
	resets bool // a segment that declares others void: an epoch begins in it
}

// UnhashedIn is what a data file says.
func UnhashedIn(m *archive.DataFile) Unhashed { return Unhashed{Epoch: m.Epoch, file: true} }

// UnhashedOf is what a segment says of one of its logs; voided is what it declares
// void.
func UnhashedOf(l *archive.LogInterval, voided []archive.Voided) Unhashed {
	return Unhashed{Epoch: l.Epoch, resets: len(voided) > 0}
}

// Check holds a row of the log against it. The error names the column.
func (u *Unhashed) Check(row *chain.Row) error {
	switch epoch := row.Epoch.N; {
	case epoch == int64(u.Epoch):
	case u.file:
		return fmt.Errorf("column epoch: %d in a file of epoch %d", epoch, u.Epoch)
	case !u.resets || epoch < 0 || epoch != int64(u.Epoch)-1 || row.Kind.S == audit.KindChainReset:
		return fmt.Errorf("column epoch: %d in a segment of epoch %d", epoch, u.Epoch)
	}
	switch of := row.RepeatOf; {
	case !of.Valid:
	case !u.file:
		return fmt.Errorf("column repeat_of: %d in a segment, and compaction alone sets it", of.N)
	case of.N < 0 || of.N >= row.Seq.N:
		return fmt.Errorf("column repeat_of: %d is no row before this one", of.N)
	}
	return nil
}
