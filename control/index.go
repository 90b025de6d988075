package control

import (
	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// An Index finds the redactions of one tenant that reach a row, without asking
// each. The zero Index is empty and ready; once all are added it may be used by
// several goroutines.
type Index struct {
	records, sessions, turns, users map[string][]*Row
	places                          map[archive.Line][]*Row
	everyUser                       []*Row // for rejected rows
}

// Add adds a redaction. One whose context is gone reaches nothing.
func (x *Index) Add(r *Row) {
	if r.Redaction == nil {
		return
	}
	switch t := &r.Redaction.Target; {
	case t.Record != nil:
		put(&x.records, *t.Record, r)
	case t.Turn != nil: // with the coordinates
		put(&x.turns, *t.Turn, r)
	case t.Session != nil:
		put(&x.sessions, *t.Session, r)
	case t.User != nil:
		put(&x.users, *t.User, r)
		x.everyUser = append(x.everyUser, r)
	case t.Log != nil:
		put(&x.places, *t.Log, r)
	}
}

func put[K comparable](m *map[K][]*Row, key K, r *Row) {
	if *m == nil {
		*m = map[K][]*Row{}
	}
	(*m)[key] = append((*m)[key], r)
}

// Reaching appends to all the redactions that reach a row: see [Row.Reaches].
func (x *Index) Reaching(all []*Row, row *chain.Row) []*Row {
	asked := &rejectedRow{row: row}
	for _, c := range [...]struct {
		column audit.Text
		by     map[string][]*Row
	}{{row.RecordID, x.records}, {row.SessionID, x.sessions}, {row.TurnID, x.turns}} {
		if c.column.Valid && len(c.by) > 0 {
			all = reaching(all, c.by[c.column.S], asked)
		}
	}
	if len(x.places) > 0 {
		all = reaching(all, x.places[lineOf(row)], asked)
	}
	if row.Kind.S == audit.KindRejected {
		return reaching(all, x.everyUser, asked)
	}
	if row.UserID.Valid && len(x.users) > 0 {
		all = reaching(all, x.users[row.UserID.S], asked)
	}
	return all
}

func reaching(all, candidates []*Row, asked *rejectedRow) []*Row {
	for _, r := range candidates {
		if r.reaches(asked) {
			all = append(all, r)
		}
	}
	return all
}
