package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/compaction"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/retention"
)

// erase is the command that orders an erasure.
func erase(ctx context.Context, in invocation) error {
	var o config.Order
	return order(ctx, in, &o, o.Erase(), eraseHelp, o.CheckErase, func(ctx context.Context, p *placing) error {
		r := redactionOf(&o)
		found, err := p.governor.Find(ctx, p.asRow(r))
		if err != nil {
			return err
		}
		p.found(found)
		policy := p.policies.For(o.Tenant)
		if why := policy.Refuse(retention.Order{Hard: o.Hard}, p.at); why != "" && !o.Force {
			return fmt.Errorf("refused by policy: %s: nothing was ordered; --force orders it for when the policy allows it", why)
		}
		if len(found) == 0 && !o.Force {
			return fmt.Errorf("%w: no row is known that is meant: nothing was ordered; --force orders it all the same, for rows that come late", errNothing)
		}
		return p.place(ctx, r)
	})
}

// redactionOf makes the document of an order.
func redactionOf(o *config.Order) *control.Redaction {
	r := &control.Redaction{Reason: o.Reason, RequestRef: &o.RequestRef, By: o.By}
	r.Hard = o.Hard
	r.User = o.UserID || o.User != "" || o.Hard
	if r.All = slices.Contains(o.Slots, "*"); !r.All {
		for _, name := range o.Slots {
			slot, _ := audit.ParseSlot(name)
			r.Slots |= chain.SlotSetOf(slot)
		}
	}
	some := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	r.Target = control.Target{Record: some(o.Record), Session: some(o.Session), Turn: some(o.Turn), Stage: some(o.Stage), User: some(o.User), Within: o.Within}
	if o.Place != nil {
		r.Target.Log, r.Target.Offset = &o.Place.Line, &o.Place.Offset
	}
	return r
}

// cancel is the command that takes an order back.
func cancel(ctx context.Context, in invocation) error {
	var o config.Order
	in.args = namedID(in.args)
	return order(ctx, in, &o, o.Cancel(), cancelHelp, nil, func(ctx context.Context, p *placing) error {
		all, err := p.governor.Standing(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(s compaction.Standing) bool { return s.Order.Tenant == o.Tenant && s.Order.ID == o.ID })
		switch {
		case i < 0 && !o.Force:
			return fmt.Errorf("%w: tenant %q has no order %s in the archive: nothing was ordered; --force takes it back all the same", errNothing, o.Tenant, o.ID)
		case i >= 0 && !slices.Contains([]string{compaction.StateOrdered, "gated", compaction.StateHeld, compaction.StateRefused}, all[i].State):
			return fmt.Errorf("order %s is %s: it cannot be taken back", o.ID, all[i].State)
		case i >= 0 && !time.Now().Before(all[i].DueAt):
			return fmt.Errorf("order %s was due at %s: it cannot be taken back any more; a legal hold keeps what it means, as long as it is gated", o.ID, all[i].DueAt.Format(time.RFC3339))
		}
		return p.place(ctx, &control.Cancel{RedactionID: o.ID, Reason: o.Reason, By: o.By})
	})
}

// namedID puts --id in front of a record id that stands alone.
func namedID(args []string) []string {
	for i, a := range args {
		if _, err := audit.ParseRecordID(a); err == nil && (i == 0 || !strings.HasPrefix(args[i-1], "--") || strings.Contains(args[i-1], "=")) {
			return slices.Insert(slices.Clone(args), i, "--id")
		}
	}
	if n := len(args); n > 0 { // --json ULID
		if _, err := audit.ParseRecordID(args[n-1]); err == nil && slices.Contains([]string{"--json", "--force", "--dry-run"}, args[max(n-2, 0)]) {
			return slices.Insert(slices.Clone(args), n-1, "--id")
		}
	}
	return args
}

// hold is the command that sets a hold.
func hold(ctx context.Context, in invocation) error { return holding(ctx, in, true, holdHelp) }

// release is the command that lifts one.
func release(ctx context.Context, in invocation) error { return holding(ctx, in, false, releaseHelp) }

func holding(ctx context.Context, in invocation, set bool, help string) error {
	var o config.Order
	return order(ctx, in, &o, o.Hold(), help, o.CheckHold, func(ctx context.Context, p *placing) error {
		h := &control.Hold{Set: set, Reason: o.Reason, By: o.By}
		h.Scope.Tenant = o.All
		if o.Session != "" {
			h.Scope.Session = &o.Session
		}
		if o.User != "" {
			h.Scope.User = &o.User
		}
		known, err := p.governor.Holds(ctx, o.Tenant)
		if err != nil {
			return err
		}
		there := slices.ContainsFunc(known, func(r *control.Row) bool { return r.Hold.Scope.Same(&h.Scope) })
		switch {
		case !set && !there && !o.Force:
			return fmt.Errorf("%w: tenant %q has no such hold in force: nothing was ordered; --force lifts it all the same", errNothing, o.Tenant)
		case set && there && !o.Force:
			return fmt.Errorf("the hold is in force already: nothing was ordered; --force orders it again")
		}
		return p.place(ctx, h)
	})
}

// A placing is one order on its way to the control topic.
type placing struct {
	*tool
	governor *compaction.Governor
	order    *config.Order
	out      io.Writer
	id       string
	at       time.Time
	told     placed
}

// A placed is what --json prints.
type placed struct {
	ID       string          `json:"id"`
	Kind     string          `json:"kind"`
	Tenant   string          `json:"tenant"`
	Found    []foundJSON     `json:"found,omitempty"`
	Ordered  bool            `json:"ordered"`
	Archived bool            `json:"archived"`
	Value    json.RawMessage `json:"value"`
}

// order runs a command that orders something.
func order(ctx context.Context, in invocation, o *config.Order, own config.Section, help string, check func(config.Origins) error, do func(context.Context, *placing) error) error {
	var c config.Compact
	origins, done, err := load(in, &c, own, ordering, help)
	if done || err != nil {
		return err
	}
	if check != nil {
		if err := check(origins); err != nil {
			return err
		}
	}
	if err := hasControl(&c, origins); err != nil {
		return err
	}
	t, err := newTool(ctx, in, &c, origins, nil)
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.open(ctx); err != nil {
		return err
	}
	if o.By == "" {
		o.By = userOf(in.environ)
	}
	p, err := t.placing(in.stdout, o)
	if err != nil {
		return err
	}
	if err := p.checkTenant(ctx); err != nil {
		return err
	}
	return do(ctx, p)
}

// hasControl requires a control topic.
func hasControl(c *config.Compact, origins config.Origins) error {
	if c.ControlTopic == "" {
		return &config.Error{Name: "control-topic", Source: origins["control-topic"], Fault: "is none: nothing can be ordered"}
	}
	return nil
}

func (t *tool) placing(out io.Writer, o *config.Order) (*placing, error) {
	at := time.Now().UTC().Truncate(time.Millisecond)
	id, err := ulid.New(ulid.Timestamp(at), rand.Reader)
	return &placing{tool: t, governor: t.looker(), order: o, out: out, id: id.String(), at: at, told: placed{ID: id.String(), Tenant: o.Tenant}}, err
}

// userOf returns who runs the program.
func userOf(environ []string) string {
	for _, v := range environ {
		if name, ok := strings.CutPrefix(v, "USER="); ok && name != "" {
			return name
		}
	}
	return "operator"
}

// checkTenant refuses what can be no tenant, and an order that ingest would
// reject.
func (p *placing) checkTenant(ctx context.Context) error {
	if err := audit.ValidTenant(p.order.Tenant); err != nil && !audit.IsReservedTenant(p.order.Tenant) {
		return &config.Error{Name: "tenant", Fault: err.Error()}
	}
	if p.order.DryRun {
		return nil
	}
	return p.maySign(ctx, p.governor)
}

// maySign refuses to send what ingest would reject.
func (t *tool) maySign(ctx context.Context, g *compaction.Governor) error {
	if t.control != nil {
		return nil
	}
	inForce, err := g.ControlKeys(ctx)
	if err != nil || !inForce {
		return err
	}
	return &config.Error{Name: "control-key", Fault: "not set: the archive's anchors name control keys, so ledgerlake-ingest rejects what none of them signed"}
}

// asRow returns the order as it would stand in the archive.
func (p *placing) asRow(r *control.Redaction) *control.Row {
	return &control.Row{Tenant: p.order.Tenant, ID: p.id, Kind: r.Kind(), ArchivedAt: p.at.UnixMicro(), CreatedAt: p.at.UnixMicro(), Redaction: r}
}

// place sends an order, unless it is only to be shown, and waits until it is in
// the archive, where that is asked for.
func (p *placing) place(ctx context.Context, d control.Document) error {
	value, err := d.Value(p.order.Tenant, p.id, p.at)
	if err != nil {
		return err
	}
	p.told.Kind, p.told.Value = d.Kind(), value
	if p.order.DryRun {
		return p.report("nothing was ordered (--dry-run)", nil)
	}
	m, err := control.Record(p.root.ArchiveID, p.order.Tenant, d.Kind(), p.id, value, p.signer())
	if err != nil {
		return err
	}
	if err := p.send(ctx, []audit.Message{m}); err != nil {
		return err
	}
	p.told.Ordered = true
	return p.report(p.await(ctx, d.Kind()))
}

// awaitEvery is how often the archive is looked at for an order.
const awaitEvery = 500 * time.Millisecond

// await waits for the order to stand in the archive.
func (p *placing) await(ctx context.Context, kind string) (said string, err error) {
	if p.order.Wait == 0 {
		return "ordered; it is in force once ledgerlake-ingest has archived it and an anchor covers it", nil
	}
	deadline := time.Now().Add(p.order.Wait)
	for {
		row, err := p.governor.Row(ctx, p.order.Tenant, p.id, kind)
		switch {
		case err != nil && !errors.Is(err, context.Canceled) && time.Now().Before(deadline):
		case err != nil:
			return "ordered", err
		case row != nil && row.Refused:
			return "ordered, and of no effect", fmt.Errorf("%s %s is archived, and does not count: %s", kind, p.id, row.Unsigned)
		case row != nil:
			p.told.Archived = true
			return "archived", nil
		}
		if time.Now().After(deadline) {
			return "ordered", fmt.Errorf("%w: %s is not archived after %v: does ledgerlake-ingest run, and read topic %s?", errOverdue, p.id, p.order.Wait, p.settings.ControlTopic)
		}
		select {
		case <-ctx.Done():
			return "ordered", ctx.Err()
		case <-time.After(awaitEvery):
		}
	}
}

// report prints what was ordered.
func (p *placing) report(said string, failed error) error {
	var err error
	if p.order.JSON {
		err = writeJSON(p.out, p.told)
	} else {
		_, err = fmt.Fprintf(p.out, "%s %s of tenant %q: %s\n", p.told.Kind, p.id, p.order.Tenant, said)
	}
	return errors.Join(failed, err)
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
