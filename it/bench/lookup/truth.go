//go:build it

package lookup

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// A truth is what whole reading finds of one tenant.
type truth struct {
	tenant  string
	objects []object         // of the tenant
	others  int              // data files of other tenants
	asked   [2][]sample      // from data files, and from segments
	places  map[asked]places // of all that is asked for
}

// An object holds rows of the tenant.
type object struct {
	key     string
	size    int64
	line    archive.Line
	segment bool
}

// A sample is a row by which others are asked for.
type sample struct {
	turn, session, record, user string
	seq                         int64
	line                        archive.Line
}

// asked is what is asked for: rows that have a value in a column.
type asked struct{ column, value string }

// places are where rows stand: seqs, by the key of the object.
type places map[string][]int64

// learn reads the tenant's rows twice: to choose what is asked for, and to find all
// that has it.
func (b *Bench) learn(ctx context.Context) (*truth, error) {
	t := &truth{places: map[asked]places{}}
	if err := b.list(ctx, t); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	seen := [2]int{}
	err := b.scan(t, func(o *object, r *chain.Row) {
		if !r.TurnID.Valid || !r.SessionID.Valid || !r.UserID.Valid {
			return
		}
		from := 0
		if o.segment {
			from = 1
		}
		s := sample{turn: r.TurnID.S, session: r.SessionID.S, record: r.RecordID.S, user: r.UserID.S, seq: r.Seq.N, line: o.line}
		if seen[from]++; len(t.asked[from]) < b.Asks {
			t.asked[from] = append(t.asked[from], s)
		} else if i := rng.IntN(seen[from]); i < b.Asks {
			t.asked[from][i] = s
		}
	})
	if err != nil {
		return nil, err
	}
	turns := map[string][]asked{} // and the sessions that they are asked with
	for _, s := range slices.Concat(t.asked[0], t.asked[1]) {
		for _, a := range s.all() {
			t.places[a] = places{}
		}
		if !slices.Contains(turns[s.turn], s.both()) {
			turns[s.turn] = append(turns[s.turn], s.both())
		}
	}
	return t, b.scan(t, func(o *object, r *chain.Row) {
		s := sample{turn: r.TurnID.S, session: r.SessionID.S, record: r.RecordID.S, user: r.UserID.S}
		all := s.all()
		if !r.SessionID.Valid { // it is of any session
			all = append(all, turns[s.turn]...)
		}
		for _, a := range all {
			if p := t.places[a]; p != nil {
				p[o.key] = append(p[o.key], r.Seq.N)
			}
		}
	})
}

func (s *sample) all() []asked {
	return []asked{{"turn_id", s.turn}, s.both(), {"session_id", s.session}, {"record_id", s.record}, {"user_id", s.user}}
}

// both asks for rows of a turn and a session. Records that name no session are of
// any, as some kinds do.
func (s *sample) both() asked { return asked{"turn_id, session_id", s.turn + " " + s.session} }

// list finds the objects of the tenant that has most rows in data files.
func (b *Bench) list(ctx context.Context, t *truth) error {
	lines, err := archive.Lines(ctx, b.bucket)
	if err != nil {
		return err
	}
	rows, files := map[string]int64{}, 0
	var snapshots []*archive.Snapshot
	for _, l := range lines {
		s, err := archive.ReadSnapshot(ctx, b.bucket, l, nil)
		if err != nil {
			return err
		}
		snapshots = append(snapshots, s)
		for i := range s.Files {
			rows[s.Files[i].Tenant] += s.Files[i].Rows
			files++
		}
	}
	for tenant, n := range rows {
		if n > rows[t.tenant] && tenant != audit.TenantUnattributed || n == rows[t.tenant] && tenant < t.tenant {
			t.tenant = tenant
		}
	}
	for i, s := range snapshots {
		for j := range s.Files {
			if f := &s.Files[j]; f.Tenant == t.tenant {
				t.objects = append(t.objects, object{key: f.Key, size: f.Bytes, line: lines[i]})
			}
		}
		for _, o := range s.Segments {
			t.objects = append(t.objects, object{key: o.Key, size: o.Size, line: lines[i], segment: true})
		}
	}
	for _, o := range t.objects {
		if !o.segment {
			files--
		}
	}
	t.others = files
	if t.tenant == "" {
		return errors.New("nothing was compacted: too few rows for an anchor of each line")
	}
	return nil
}

// scan reads all rows of the tenant.
func (b *Bench) scan(t *truth, do func(*object, *chain.Row)) error {
	for i := range t.objects {
		o := &t.objects[i]
		body, ok := b.store.Object(o.key)
		if !ok {
			return fmt.Errorf("%s is missing", o.key)
		}
		f, err := parquet.Open(body)
		if err != nil {
			return err
		}
		for r, err := range f.Select("tenant_id", "seq", "turn_id", "session_id", "record_id", "user_id") {
			if err != nil {
				return fmt.Errorf("%s: %w", o.key, err)
			}
			if r.TenantID.S == t.tenant {
				do(o, r)
			}
		}
	}
	return nil
}
