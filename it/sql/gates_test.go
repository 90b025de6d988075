//go:build it

package sql

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/it/parts"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// What the views hide is what the product's own readers hide: rows of all kinds and
// orders of all forms, drawn by a seed; some orders are cancelled, some rows are
// younger than theirs.
func TestGatesAgreeWithReaders(t *testing.T) {
	const rows, orders = 400, 60
	rng := rand.New(rand.NewPCG(8, 1))
	pick := func(names ...string) string { return names[rng.IntN(len(names))] }
	g := newGoverned(t)
	type made struct{ tenant, turn, user string }
	all, turns, users := []made{}, []string{}, []string{}
	for i := range 40 {
		turns, users = append(turns, fmt.Sprintf("t'%d", i)), append(users, fmt.Sprintf("u'%d", i))
	}
	grow := func(count int) {
		g.calls.Segment(func(b *prooftest.Batch) {
			for range count {
				m := made{pick("acme", "O'Brien"), pick(turns...), pick(users...)}
				row(b, m.tenant, m.turn, m.user, len(all), len(all))
				all = append(all, m)
			}
		})
		g.later(time.Minute)
	}
	grow(rows / 2)
	ids := map[string][]string{}
	for i := range orders {
		n := rng.IntN(len(all))
		tenant := all[n].tenant
		if rng.IntN(10) == 0 {
			tenant = pick("acme", "O'Brien") // perhaps another one's row
		}
		place := func(name string, v int) map[string]any {
			return map[string]any{"topic": g.calls.Topic, "topicId": g.calls.TopicID, "partition": 0, name: v}
		}
		target := []map[string]any{
			{"recordId": strings.ToLower(id(n))},
			{"turnId": all[n].turn},
			{"userId": all[n].user},
			{"sessionId": pick("s", "s-2")},
			{"sessionId": "s", "turnId": all[n].turn, "stageId": "tool-loop", "seqWithinTurn": n},
			place("offset", n), place("seqBefore", 1+rng.IntN(10)),
		}[rng.IntN(7)]
		slots := []any{"*", []string{"decision"}, []string{"token_cost", "decision"}, []string{"token_cost"}, "*"}[rng.IntN(5)]
		if target["sessionId"] == "s" && target["turnId"] == nil {
			slots = []string{"token_cost"} // or nothing would be left to compare
		}
		members := prooftest.Redaction(target, slots)
		members["user"] = rng.IntN(3) == 0
		order := prooftest.OrderID(1 + i)
		ids[tenant] = append(ids[tenant], order)
		g.control.Segment(func(b *prooftest.Batch) { b.Order(tenant, audit.KindRedaction, order, members) })
		if i == orders/2 {
			grow(rows / 2)
		}
	}
	for tenant, of := range ids {
		g.control.Segment(func(b *prooftest.Batch) {
			for i, order := range of[:len(of)/4] {
				b.Order(tenant, audit.KindRedactionCancelled, prooftest.OrderID(900+len(tenant)*20+i), map[string]any{"redactionId": order, "reason": "r", "by": "dpo"})
			}
		})
	}
	g.land()
	want, hidden := shown(t, g)
	const sql = `SELECT topic, tenant_id, seq, decision IS NULL, token_cost IS NULL, context IS NULL, requested_model IS NULL, user_id FROM ledgerlake_rows`
	views := exported(t, "--engine", "duckdb", "--include-repeats", g.m.folder)
	for _, d := range parts.DuckDBs() {
		var got []string
		for _, r := range query(t, d, views, sql) {
			got = append(got, fmt.Sprint(r...))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("DuckDB %s: %d rows, want %d:\n%s\nwant\n%s", d.Version, len(got), len(want), strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if hidden < 40 || len(want) < 250 {
		t.Errorf("%d rows are hidden, %d are not", hidden, len(want))
	}
}

// shown returns what package export shows of each row, and how many it shows nothing
// of.
func shown(t *testing.T, g *governed) (all []string, hidden int) {
	t.Helper()
	a, err := export.Open(t.Context(), g.m.Memory, export.Options{})
	if err != nil {
		t.Fatal(err)
	}
	is := func(null bool) string {
		if null {
			return "True"
		}
		return "False"
	}
	for r, err := range a.Range(t.Context(), export.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Gated) > 0 && !r.RowSalt.Valid && !r.Residual.Valid {
			hidden++
			continue
		}
		var user any
		if r.UserID.Valid {
			user = r.UserID.S
		}
		all = append(all, fmt.Sprint(r.Topic.S, r.TenantID.S, fmt.Sprint(r.Seq.N), is(r.Slots[audit.SlotDecision] == nil), is(r.Slots[audit.SlotTokenCost] == nil),
			is(r.Slots[audit.SlotContext] == nil), is(!r.RequestedModel.Valid), user))
	}
	slices.Sort(all)
	return all, hidden
}
