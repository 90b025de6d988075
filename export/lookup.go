package export

import (
	"context"
	"slices"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// Turn returns the rows of a turn, of all logs of the tenant: seqWithinTurn
// ascending, then by time. A turn that is unknown has none. With a session, rows of
// another one are left out; those that name none, as entries of interaction logs
// do, are not. session "" means any.
//
// What is wrong with an object is an error that matches [ErrTampered]; the rows
// that were found in others come all the same.
func (a *Archive) Turn(ctx context.Context, tenant, session, turn string) ([]*Row, error) {
	matches := by("turn_id", turn)
	if session != "" {
		matches = []parquet.Match{
			{parquet.Is("turn_id", turn), parquet.Is("session_id", session)},
			{parquet.Is("turn_id", turn), parquet.Null("session_id")},
		}
	}
	rows, err := a.find(ctx, lookup{tenant: tenant, by: matches, match: func(row *chain.Row) bool {
		return has(row.TurnID, turn) && (session == "" || !row.SessionID.Valid || row.SessionID.S == session)
	}})
	slices.SortFunc(rows, inTurn)
	return rows, err
}

// by is a match of one column.
func by(column, value string) []parquet.Match { return []parquet.Match{{parquet.Is(column, value)}} }

func has(t audit.Text, value string) bool { return t.Valid && t.S == value }

// Record returns the rows of a record id, in the order of their places; none where
// there is no such id. tenant "" means any.
func (a *Archive) Record(ctx context.Context, tenant, recordID string) ([]*Row, error) {
	id, err := audit.ParseRecordID(recordID)
	if err != nil {
		return nil, nil
	}
	rows, err := a.find(ctx, lookup{tenant: tenant, by: by("record_id", id), match: func(row *chain.Row) bool { return has(row.RecordID, id) }})
	slices.SortFunc(rows, (*Row).Place)
	return rows, err
}

// At returns the row of a seq in each log of a tenant that has one, on the lines
// that lines names; nil means all.
func (a *Archive) At(ctx context.Context, tenant string, lines func(archive.Line) bool, seq int64) ([]*Row, error) {
	rows, err := a.find(ctx, lookup{
		tenant: tenant, lines: lines, by: []parquet.Match{{parquet.OneOf("seq", seq)}},
		match: func(row *chain.Row) bool { return row.Seq.N == seq },
		skips: func(first, end int64) bool { return seq < first || seq >= end },
	})
	slices.SortFunc(rows, (*Row).Place)
	return rows, err
}
