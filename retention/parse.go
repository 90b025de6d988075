package retention

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/internal/strictyaml"
)

// Policies are those of all tenants. The zero value and nil keep everything for
// ever.
type Policies struct {
	fallback Policy
	tenants  map[string]Policy
}

// Parse reads a file of policies, strictly: what it does not know, and every
// period that it could misread, is an error that names the member and its line.
//
//	default:                 # of each tenant that says nothing else
//	  rows: 400d             # days, or years like 6y; left out: kept for ever
//	  payload: 90d           # at most rows
//	  prompts: 30d           # at most payload and rows
//	  rejects: 30d           # the bytes of rejected records; likewise
//	  mode: soft             # or hard: payload goes with most of its row's header
//	  user-id: keep          # or erase: it goes with the payload
//	  profile: [pci, hipaa]  # floors; or one of them, or none
//	tenants:
//	  acme:
//	    rows: 6y             # the other members are the default's
//	    prompts: forever     # takes the default back
//
// The default does not hold for the log of the reserved tenant _partition, whose
// rows say which offsets Kafka lost; that of _unattributed, of records whose
// tenant cannot be known, is a tenant like others.
func Parse(text []byte) (*Policies, error) {
	out := &Policies{tenants: map[string]Policy{}}
	top, any, err := strictyaml.Document(text)
	if err != nil || !any {
		return out, err
	}
	sections, err := members(top, "default", "tenants")
	if err != nil {
		return nil, err
	}
	if s, ok := sections["default"]; ok {
		if out.fallback, err = policy(s, Policy{}); err != nil {
			return nil, err
		}
	}
	if s, ok := sections["tenants"]; ok {
		err = out.readTenants(s)
	}
	return out, err
}

// For returns the policy of a tenant.
func (p *Policies) For(tenant string) Policy {
	if p == nil {
		return Policy{}
	}
	if own, ok := p.tenants[tenant]; ok {
		return own
	}
	if tenant == audit.TenantPartition {
		return Policy{}
	}
	return p.fallback
}

// Tenants returns the tenants that have an entry of their own, in order. One
// that the archive does not know is worth a word: an entry is no pattern.
func (p *Policies) Tenants() []string {
	if p == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(p.tenants))
}

// Notes say which periods have no effect, and why.
func (p *Policies) Notes() (out []string) {
	if p == nil {
		return nil
	}
	for _, n := range p.fallback.notes() {
		out = append(out, "default: "+n)
	}
	for _, t := range p.Tenants() {
		own := p.tenants[t]
		for _, n := range own.notes() {
			out = append(out, fmt.Sprintf("tenants.%s: %s", t, n))
		}
	}
	return out
}

func (p *Policies) readTenants(s strictyaml.Node) error {
	entries, err := s.Members()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := audit.ValidTenant(e.Name); err != nil && !audit.IsReservedTenant(e.Name) {
			return e.Value.Fault("%v", err)
		}
		base := p.fallback
		if e.Name == audit.TenantPartition {
			base = Policy{}
		}
		if p.tenants[e.Name], err = policy(e.Value, base); err != nil {
			return err
		}
	}
	return nil
}

// policy reads one entry over what holds where it says nothing.
func policy(n strictyaml.Node, p Policy) (Policy, error) {
	got, err := members(n, "rows", "payload", "prompts", "rejects", "mode", "user-id", "profile")
	if err != nil {
		return p, err
	}
	for _, m := range []struct {
		name string
		read func(n strictyaml.Node) error
	}{
		{"rows", p.Rows.read},
		{"payload", p.Payload.read},
		{"prompts", p.Prompts.read},
		{"rejects", p.Rejects.read},
		{"mode", choice("soft", "hard", &p.Hard)},
		{"user-id", choice("keep", "erase", &p.User)},
		{"profile", p.readProfiles},
	} {
		v, ok := got[m.name]
		if !ok {
			continue
		}
		if err := m.read(v); err != nil {
			return p, err
		}
	}
	if member, err := p.check(); err != nil {
		at, here := got[member]
		if !here {
			at = strictyaml.Node{Node: n.Node, Path: n.Path + "." + member}
		}
		return p, at.Fault("%v", err)
	}
	return p, nil
}

func members(n strictyaml.Node, known ...string) (map[string]strictyaml.Node, error) {
	list, err := n.Members(known...)
	out := map[string]strictyaml.Node{}
	for _, m := range list {
		out[m.Name] = m.Value
	}
	return out, err
}

func (p *Period) read(n strictyaml.Node) error {
	text, err := n.Text("days or years like 400d or 6y; leave it out to keep for ever")
	if err != nil {
		return err
	}
	if *p, err = parsePeriod(text); err != nil {
		return n.Fault("%v", err)
	}
	return nil
}

// choice reads one of two words.
func choice(no, yes string, to *bool) func(n strictyaml.Node) error {
	return func(n strictyaml.Node) error {
		want := no + " or " + yes
		text, err := n.Text(want)
		if err != nil {
			return err
		}
		if text != no && text != yes {
			return n.Fault("%q is not allowed: want %s", text, want)
		}
		*to = text == yes
		return nil
	}
}

// readProfiles reads one profile, a list of them, or none.
func (p *Policy) readProfiles(n strictyaml.Node) error {
	list := []strictyaml.Node{n}
	if n.IsList() {
		list, _ = n.List(wantProfile)
	}
	p.Profiles = nil
	for _, one := range list {
		text, err := one.Text(wantProfile)
		if err != nil {
			return err
		}
		if text == "none" && !n.IsList() {
			return nil
		}
		if _, ok := floors[Profile(text)]; !ok || slices.Contains(p.Profiles, Profile(text)) {
			return one.Fault("%q is not allowed: want %s", text, wantProfile)
		}
		p.Profiles = append(p.Profiles, Profile(text))
	}
	if len(p.Profiles) == 0 {
		return n.Fault("an empty list: leave it out, or write none")
	}
	return nil
}

const wantProfile = "none, one of " + string(EUAIAct+", "+PCI+", "+HIPAA+", "+SEC17a4) + ", or a list of different ones"
