package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/compaction"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/control"
)

// An expiryJSON is what expires of one log.
type expiryJSON struct {
	lineJSON
	Tenant   string        `json:"tenant"`
	Cut      *cutJSON      `json:"cut,omitempty"`
	Payloads []payloadJSON `json:"payloads"`
	Kept     []string      `json:"kept"`
}

type cutJSON struct {
	ID     string `json:"id"`
	Size   int64  `json:"size"` // rows below go
	Policy string `json:"policy"`
	extentJSON
}

type payloadJSON struct {
	ID     string `json:"id"`
	Target string `json:"target"`
	What   string `json:"what"`
	Reason string `json:"reason"`
	extentJSON
}

func expiriesOf(all []*compaction.Expiry) []expiryJSON {
	list := []expiryJSON{}
	for _, x := range all {
		j := expiryJSON{lineJSON: lineJSON(x.Line), Tenant: x.Tenant, Payloads: payloadsOf(x.Payloads), Kept: orNone(x.Kept)}
		if x.Cut != nil {
			j.Cut = &cutJSON{x.CutID, x.Cut.Size, x.Cut.Policy, extentOf(x.Cutting)}
		}
		list = append(list, j)
	}
	return list
}

func payloadsOf(all []compaction.Payload) []payloadJSON {
	list := []payloadJSON{}
	for _, p := range all {
		r := p.Redaction
		list = append(list, payloadJSON{p.ID, targetWords(&r.Target), erasureWords(r.Erasure), r.Reason, extentOf(p.Of)})
	}
	return list
}

// erasureWords says what goes from a row.
func erasureWords(e control.Erasure) string {
	switch s := e.Sentinel(""); {
	case e.Hard:
		return "all content and the header"
	case s.All && s.User:
		return "all content, and user_id"
	case s.All:
		return "all content"
	case s.User:
		return "slots " + slotNames(e.Slots) + ", and user_id"
	}
	return "slots " + slotNames(e.Slots)
}

func slotNames(set chain.SlotSet) string {
	var names []string
	for s := range audit.NumSlots {
		if set.Has(s) {
			names = append(names, s.String())
		}
	}
	return strings.Join(names, ", ")
}

// writeExpiries prints what expires.
func writeExpiries(w io.Writer, all []*compaction.Expiry) error {
	for _, x := range all {
		if _, err := fmt.Fprintf(w, "%s, tenant %q\n", lineName(x.Line), x.Tenant); err != nil {
			return err
		}
		if x.Cut != nil {
			_, _ = fmt.Fprintf(w, "  cut at %d (%s): %s\n", x.Cut.Size, x.Cut.Policy, extentWords(x.Cutting))
		}
		for _, p := range x.Payloads {
			_, _ = fmt.Fprintf(w, "  erase %s, %s (%s): ordered for %s\n", erasureWords(p.Redaction.Erasure), targetWords(&p.Redaction.Target), p.Redaction.Reason, extentWords(p.Of))
		}
		for _, k := range x.Kept {
			_, _ = fmt.Fprintf(w, "  kept: %s\n", k)
		}
	}
	return nil
}

// retain is the command that orders what is due by policy.
func retain(ctx context.Context, in invocation) error {
	var c config.Compact
	var dry, json bool
	own := config.Dry(&dry, &json)
	origins, done, err := load(in, &c, own, ordering, retentionHelp)
	if done || err != nil {
		return err
	}
	if c.RetentionFile == "" {
		return &config.Error{Name: "retention-file", Fault: "not set: without it all is kept for ever"}
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
	g := t.looker()
	if err := t.maySign(ctx, g); err != nil && !dry {
		return err
	}
	all, err := g.Expiries(ctx, "")
	if err != nil {
		return err
	}
	if json {
		err = writeJSON(in.stdout, map[string]any{"expiries": expiriesOf(all), "ordered": !dry})
	} else if err = writeExpiries(in.stdout, all); err == nil && len(all) == 0 {
		_, err = fmt.Fprintln(in.stdout, "nothing is due")
	}
	if err != nil || dry {
		return err
	}
	return t.order(ctx, g, &compaction.Offboarding{Expiries: all})
}

// order sends what is to go.
func (t *tool) order(ctx context.Context, g *compaction.Governor, o *compaction.Offboarding) error {
	records, err := g.Records(ctx, o)
	if err != nil {
		return err
	}
	return t.send(ctx, records)
}

// offboard is the command that orders that all of a tenant goes.
func offboard(ctx context.Context, in invocation) error {
	var o config.Order
	return order(ctx, in, &o, o.Offboard(), offboardHelp, nil, func(ctx context.Context, p *placing) error {
		p.governor.By = o.By
		all, err := p.governor.Offboard(ctx, o.Tenant)
		if err != nil {
			return err
		}
		all.Reason(o.Reason)
		do := o.Yes && !o.DryRun
		if err := writeOffboarding(p.out, all, o.JSON, do); err != nil {
			return err
		}
		if len(all.Expiries)+len(all.Contexts)+len(all.Waiting) == 0 {
			return fmt.Errorf("%w: tenant %q has no log with rows, and nothing to erase in its control log", errNothing, o.Tenant)
		}
		if !do {
			return nil
		}
		return p.tool.order(ctx, p.governor, all)
	})
}

func writeOffboarding(w io.Writer, o *compaction.Offboarding, json, do bool) error {
	if json {
		return writeJSON(w, map[string]any{"tenant": o.Tenant, "expiries": expiriesOf(o.Expiries), "contexts": payloadsOf(o.Contexts), "waiting": orNone(o.Waiting), "ordered": do})
	}
	if err := writeExpiries(w, o.Expiries); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(w, "contexts of orders and holds to be erased: %d\n", len(o.Contexts))
	if n := len(o.Waiting); n > 0 {
		_, _ = fmt.Fprintf(w, "orders under way, which erase their own contexts when they are closed: %d\n", n)
	}
	text := "nothing was ordered: --yes does it"
	if do {
		text = "ordered"
	}
	_, err := fmt.Fprintln(w, text)
	return err
}
