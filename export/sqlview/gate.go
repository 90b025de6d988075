package sqlview

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
)

// A gate is what is hidden of rows: by order of erasure that is not carried out
// yet. An order of all content hides the row; one of some slots hides those, and
// what could tell them.
//
// Users are compared by a hash of their id: the text stays in files and catalogs, and
// is not to say in so many words who has asked to be erased.
//
// It hides what [control.Row.Reaches] says, and one thing more: which user the bytes
// of a rejected record mention is not asked, so that all rejected rows of a tenant
// are hidden that are as old as an order of one of its users.
type gate struct {
	d     *Engine
	rows  map[string][]string            // conditions by tenant: the row is hidden
	parts map[string]map[string][]string // conditions by column, then by tenant
}

func newGate(w *writer) *gate {
	g := &gate{d: w.d, rows: map[string][]string{}, parts: map[string]map[string][]string{}}
	if w.o.Gated {
		return g
	}
	orders := slices.Clone(w.m.Orders)
	slices.SortFunc(orders, func(a, b *control.Order) int { return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID)) })
	for _, o := range orders {
		if o.Hides() && (w.o.Tenant == "" || o.Tenant == w.o.Tenant) {
			g.add(o)
		}
	}
	return g
}

func (g *gate) add(o *control.Order) {
	condition, e := g.reaches(o.Row), o.Redaction.Erasure
	if e.All || e.Hard {
		g.rows[o.Tenant] = append(g.rows[o.Tenant], "("+condition+" AND "+g.left(e)+")")
		return
	}
	hidden := []string{}
	for s := range audit.NumSlots {
		if e.Slots.Has(s) {
			hidden = append(hidden, s.String())
		}
	}
	if e.Slots.Has(audit.SlotDecision) {
		hidden = append(hidden, "requested_model", "selected_reason", "rung_ordinal", "fallback_chain")
	}
	if e.User {
		hidden = append(hidden, "user_id", "user_salt")
	}
	// By salts a guess at what is hidden could be tested.
	for _, name := range append(hidden, "row_salt", "residual") {
		if g.parts[name] == nil {
			g.parts[name] = map[string][]string{}
		}
		g.parts[name][o.Tenant] = append(g.parts[name][o.Tenant], condition)
	}
}

// left returns the condition of rows that have something yet of what an erasure of
// all content takes: others are erased rows, and no longer rows that are to be.
func (g *gate) left(e control.Erasure) string {
	all := fmt.Sprintf("%s IS NULL OR %s IS NOT NULL", g.d.ident("redaction"), g.d.ident("residual"))
	if e.User || e.Hard {
		all += fmt.Sprintf(" OR %s IS NOT NULL", g.d.ident("user_id"))
	}
	if e.Hard {
		all += fmt.Sprintf(" OR %s NOT LIKE '%%\"hard\":true}'", g.d.ident("redaction"))
	}
	return "(" + all + ")"
}

// column returns the expression of a column.
func (g *gate) column(name string) string {
	if by := g.parts[name]; by != nil {
		return fmt.Sprintf("CASE WHEN %s THEN NULL ELSE %s END AS %s", g.any(by), g.d.ident(name), g.d.ident(name))
	}
	return g.d.ident(name)
}

// whole returns the condition of rows that are hidden; "" where none is.
func (g *gate) whole() string {
	if len(g.rows) == 0 {
		return ""
	}
	return g.any(g.rows)
}

// any returns a condition that one of those of the row's tenant holds.
func (g *gate) any(by map[string][]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "CASE %s", g.d.ident("tenant_id"))
	tenants := make([]string, 0, len(by))
	for t := range by {
		tenants = append(tenants, t)
	}
	slices.Sort(tenants)
	for _, t := range tenants {
		fmt.Fprintf(&b, "\n    WHEN %s THEN %s", g.d.literal(t), strings.Join(by[t], "\n      OR "))
	}
	b.WriteString("\n    ELSE false END")
	return b.String()
}

// reaches returns the condition of rows that a redaction reaches.
func (g *gate) reaches(r *control.Row) string {
	t := &r.Redaction.Target
	all := []string{g.kinds(r), g.means(t)}
	if archived, made, always := r.Bounds(); !always {
		all = append(all, fmt.Sprintf("(%s <= %d OR %s <= %d)", g.micros("archived_at"), archived,
			g.d.micros(fmt.Sprintf("coalesce(%s, %s, %s)", g.d.ident("created_at"), g.d.ident("kafka_timestamp"), g.d.ident("archived_at"))), made))
	}
	return "(" + strings.Join(all, " AND ") + ")"
}

func (g *gate) micros(column string) string { return g.d.micros(g.d.ident(column)) }

// kinds returns the condition of kinds that a redaction can reach: of control rows
// only a redaction or a hold, by its place, and only its context.
func (g *gate) kinds(r *control.Row) string {
	never := []string{audit.KindGap, audit.KindChainReset, audit.KindErasureDone, audit.KindRetentionCut, audit.KindRedactionCancelled}
	t := &r.Redaction.Target
	context := r.Redaction.Erasure == control.Erasure{Slots: chain.SlotSetOf(audit.SlotContext)}
	if !context || t.Record == nil && t.Log == nil {
		never = append(never, audit.KindRedaction, audit.KindLegalHold)
	}
	for i := range never {
		never[i] = g.d.literal(never[i])
	}
	return g.d.ident("kind") + " NOT IN (" + strings.Join(never, ", ") + ")"
}

// means returns the condition of rows that a target means.
func (g *gate) means(t *control.Target) string {
	var all []string
	equal := func(name string, want *string) {
		if want != nil {
			all = append(all, g.d.ident(name)+" = "+g.d.literal(*want))
		}
	}
	if t.Log != nil {
		equal("topic", &t.Log.Topic)
		equal("topic_id", &t.Log.TopicID)
		all = append(all, fmt.Sprintf("%s = %d", g.d.ident("partition"), t.Log.Partition))
	}
	switch {
	case t.Before != nil:
		all = append(all, fmt.Sprintf("%s < %d", g.d.ident("seq"), *t.Before))
	case t.Offset != nil:
		all = append(all, fmt.Sprintf("%s = %d", g.d.ident("kafka_offset"), *t.Offset))
	case t.Record != nil:
		all = append(all, fmt.Sprintf("upper(%s) = %s", g.d.ident("record_id"), g.d.literal(strings.ToUpper(*t.Record))))
	case t.User != nil:
		all = append(all, fmt.Sprintf("(%s = '%x' OR %s = %s)", g.d.sha256(g.d.ident("user_id")), sha256.Sum256([]byte(*t.User)), g.d.ident("kind"), g.d.literal(audit.KindRejected)))
	}
	equal("session_id", t.Session)
	equal("turn_id", t.Turn)
	equal("stage_id", t.Stage)
	if t.Within != nil {
		all = append(all, fmt.Sprintf("%s = %d", g.d.ident("seq_within_turn"), *t.Within))
	}
	return strings.Join(all, " AND ")
}
