package control

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

const (
	firstID = "01KBCDEFGHJKMNPQRSTVWXYZ02"
	otherID = "01KBCDEFGHJKMNPQRSTVWXYZ03"
)

var lineT = archive.Line{Topic: "t", TopicID: "i", Partition: 2}

// A sweep knows of each row what a search through all stretches finds.
func TestSweeps(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		n := &namedRows{}
		for range rng.IntN(20) {
			first := rng.Int64N(100)
			n.list = append(n.list, Named{First: first, Last: first + rng.Int64N(20)})
		}
		n.seal()
		log := archive.Line{Topic: "t"}
		tenant := &Tenant{named: map[archive.Line]*namedRows{log: n}}
		from := rng.Int64N(60)
		s := tenant.Sweep(log, from, from+40)
		for seq := from; seq <= from+40; seq++ {
			want := 0
			for _, x := range n.list {
				if x.First <= seq && seq <= x.Last {
					want++
				}
			}
			if got := len(s.At(seq)); got != want {
				t.Fatalf("seq %d of %v: %d, want %d", seq, n.list, got, want)
			}
		}
	}
}

// A receipt counts once all of its parts are there, in any order, and parts of
// two do not mix. Of those that name their round by their ids, one that was sent
// twice counts once; of others it is another one.
func TestReceiptsAreWhole(t *testing.T) {
	const own = -1 // ids that say no round
	part := func(order string, round int, n, of int64) *Row {
		r := &Row{ID: firstID, Receipt: &Receipt{RedactionID: order, Part: n, Parts: of}}
		if round != own {
			id, err := ReceiptID(order, round, n)
			if err != nil {
				t.Fatal(err)
			}
			r.ID = id
		}
		return r
	}
	a, b := firstID, otherID
	for name, c := range map[string]struct {
		parts []*Row
		want  string
	}{
		"none":                         {nil, "[]"},
		"one":                          {[]*Row{part(a, own, 1, 1)}, "[-1]"},
		"two of one order":             {[]*Row{part(a, own, 1, 1), part(a, own, 1, 1)}, "[-1 -1]"},
		"half":                         {[]*Row{part(a, own, 1, 2)}, "[]"},
		"the same half twice":          {[]*Row{part(a, own, 1, 2), part(a, own, 1, 2)}, "[]"},
		"halves":                       {[]*Row{part(a, own, 2, 2), part(a, own, 1, 2)}, "[-1]"},
		"halves of two orders":         {[]*Row{part(a, own, 1, 2), part(b, own, 2, 2)}, "[]"},
		"halves of two receipts":       {[]*Row{part(a, own, 1, 2), part(a, own, 2, 3)}, "[]"},
		"sent again":                   {[]*Row{part(a, own, 1, 2), part(a, own, 1, 2), part(a, own, 2, 2)}, "[-1]"},
		"a round":                      {[]*Row{part(a, 0, 1, 1)}, "[0]"},
		"a round sent again":           {[]*Row{part(a, 0, 1, 1), part(a, 0, 1, 1)}, "[0]"},
		"two rounds":                   {[]*Row{part(a, 0, 1, 1), part(a, 1, 1, 1)}, "[0 1]"},
		"halves of two rounds":         {[]*Row{part(a, 0, 1, 2), part(a, 1, 2, 2)}, "[]"},
		"rounds that meet":             {[]*Row{part(a, 0, 1, 2), part(a, 1, 1, 2), part(a, 1, 2, 2), part(a, 0, 2, 2)}, "[1 0]"},
		"a round, and somebody else's": {[]*Row{part(a, 0, 1, 1), part(a, own, 1, 1)}, "[0 -1]"},
	} {
		got := []int{}
		for _, r := range rounds(c.parts) {
			got = append(got, r.Number)
			for i, p := range r.Parts {
				if p.Receipt.Part != int64(i+1) || p.Receipt.RedactionID != r.order() {
					t.Errorf("%s: part %d of %s stands at %d", name, p.Receipt.Part, p.Receipt.RedactionID, i)
				}
			}
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// history adds control rows of one tenant to a Governance, the n-th with seq and
// archived_at n.
func history(rows ...*Row) *Governance {
	g := New()
	for i, r := range rows {
		r.Tenant, r.Seq, r.ArchivedAt = "acme", int64(i), int64(i)
		if r.ID == "" {
			r.ID = fmt.Sprint(i)
		}
		g.Add(r)
	}
	g.Seal()
	return g
}

// The newest row that counts of a scope says whether a hold is in force.
func TestHolds(t *testing.T) {
	s, u := "s", "s"
	hold := func(anchored, set bool, scope Scope) *Row {
		return &Row{Kind: audit.KindLegalHold, Anchored: anchored, Hold: &Hold{Scope: scope, Set: set}}
	}
	session, user, all := Scope{Session: &s}, Scope{User: &u}, Scope{Tenant: true}
	for name, c := range map[string]struct {
		rows []*Row
		want string
	}{
		"none":                   {nil, "[]"},
		"set":                    {[]*Row{hold(true, true, session)}, "[0]"},
		"set, not anchored":      {[]*Row{hold(false, true, session)}, "[]"},
		"lifted":                 {[]*Row{hold(true, true, session), hold(true, false, session)}, "[]"},
		"lifted, not anchored":   {[]*Row{hold(true, true, session), hold(false, false, session)}, "[0]"},
		"set again":              {[]*Row{hold(true, true, all), hold(true, false, all), hold(true, true, all)}, "[2]"},
		"another scope":          {[]*Row{hold(true, true, session), hold(true, false, user)}, "[0]"},
		"three":                  {[]*Row{hold(true, true, all), hold(true, true, session), hold(true, true, user)}, "[0 1 2]"},
		"lifted before it was":   {[]*Row{hold(true, false, user), hold(true, true, user)}, "[1]"},
		"of a kind without hold": {[]*Row{{Kind: audit.KindLegalHold, Anchored: true}}, "[]"},
	} {
		got := []int64{}
		for _, r := range history(c.rows...).Tenant("acme").Holds() {
			got = append(got, r.Seq)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// A record that is sent again, word for word and with its signature, does nothing
// that it did not do the first time: the control topic may have been made anew from
// a copy, or somebody may have kept a record that lifts a hold.
func TestARepeatDoesNoMore(t *testing.T) {
	s, u := "s", "u"
	hold := func(id string, set bool) *Row {
		return &Row{ID: id, Kind: audit.KindLegalHold, Anchored: true, Hold: &Hold{Scope: Scope{Session: &s}, Set: set}}
	}
	if holds := history(hold("A", true), hold("B", false), hold("C", true), hold("B", false)).Tenant("acme").Holds(); len(holds) != 1 || holds[0].ID != "C" {
		t.Errorf("a repeat lifts a hold: %v", holds)
	}
	if holds := history(hold("A", true), hold("B", false), hold("A", true)).Tenant("acme").Holds(); len(holds) != 0 {
		t.Errorf("a repeat sets a hold: %v", holds)
	}
	gone := &Row{ID: firstID, Kind: audit.KindRedaction, Anchored: true, Gone: true}
	again := &Row{ID: firstID, Kind: audit.KindRedaction, Anchored: true, Redaction: &Redaction{Target: Target{User: &u}, Erasure: Erasure{All: true}}}
	third := *again
	g := history(hold("A", true), gone, again, &third)
	for at, want := range map[int64]bool{1: true, 2: false} {
		row := &chain.Row{Record: audit.Record{TenantID: audit.Str("acme"), UserID: audit.Str(u), ArchivedAt: audit.Int{N: at, Valid: true}, CreatedAt: audit.Int{N: 1000, Valid: true}, Kind: audit.Str("call")}}
		if _, hides := g.Gate(row); hides != want {
			t.Errorf("row archived at %d: hides %v", at, hides)
		}
	}
}

// An order is taken back by a cancellation that counts, and receipted by a
// receipt that counts; a receipt in parts once all of them do.
func TestOrders(t *testing.T) {
	order := func() *Row {
		return &Row{ID: firstID, Kind: audit.KindRedaction, Anchored: true, Redaction: &Redaction{Target: Target{Record: ptr(otherID)}, Erasure: Erasure{All: true}}}
	}
	cancel := func(anchored bool) *Row {
		return &Row{ID: otherID, Kind: audit.KindRedactionCancelled, Anchored: anchored, Cancel: &Cancel{RedactionID: firstID}}
	}
	done := func(anchored bool, part, parts int64) *Row {
		return &Row{ID: otherID, Kind: audit.KindErasureDone, Anchored: anchored, Receipt: &Receipt{RedactionID: firstID, Part: part, Parts: parts}}
	}
	type want struct {
		cancelled   bool
		receipted   int64
		rounds      int
		outstanding int64
	}
	for name, c := range map[string]struct {
		rows []*Row
		want want
	}{
		"alone":                   {[]*Row{order()}, want{outstanding: 1}},
		"cancelled":               {[]*Row{order(), cancel(true)}, want{cancelled: true}},
		"cancelled, not anchored": {[]*Row{order(), cancel(false)}, want{outstanding: 1}},
		"done":                    {[]*Row{order(), done(true, 1, 1)}, want{receipted: 1, rounds: 1}},
		"done, not anchored":      {[]*Row{order(), done(false, 1, 1)}, want{rounds: 1, outstanding: 1}},
		"half done":               {[]*Row{order(), done(true, 1, 2)}, want{outstanding: 1}},
		"done in two":             {[]*Row{order(), done(true, 1, 2), done(true, 2, 2)}, want{receipted: 2, rounds: 1}},
		"half of it not anchored": {[]*Row{order(), done(true, 1, 2), done(false, 2, 2)}, want{rounds: 1, outstanding: 1}},
	} {
		g := history(c.rows...)
		o := g.Tenant("acme").Order(firstID)
		got := want{o.Cancelled, o.Receipted, len(o.Rounds), g.Outstanding(time.UnixMicro(1000), 10*time.Microsecond)}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// The zero of everything: nothing is ordered, and nothing panics.
func TestNothingGoverns(t *testing.T) {
	var g *Governance
	row := &chain.Row{Record: audit.Record{TenantID: audit.Str("acme")}}
	if e, hides := g.Gate(row); hides || !e.IsZero() || g.Sealed() || len(g.Tenants()) > 0 || len(g.Deleted()) > 0 || g.Outstanding(time.Now(), 0) != 0 {
		t.Error("something is ordered")
	}
	tenant := g.Tenant("acme")
	if tenant.Order(firstID) != nil || tenant.Cut(archive.Line{}, 0) != nil || tenant.LastCut(archive.Line{}) != nil || tenant.Row(firstID, audit.KindRedaction) != nil ||
		len(tenant.Holds()) > 0 || len(tenant.CutLogs()) > 0 || len(tenant.Sweep(archive.Line{}, 0, 9).At(0)) > 0 {
		t.Error("a tenant is governed")
	}
	for range tenant.Orders() {
		t.Error("an order")
	}
	for range tenant.Rows() {
		t.Error("a row")
	}
}

func ptr[T any](v T) *T { return &v }
