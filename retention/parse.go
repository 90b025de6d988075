package retention

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ledgerlake/ledgerlake/audit"
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
	top, err := document(text)
	if err != nil || top == nil {
		return out, err
	}
	sections, err := members(top, "", "default", "tenants")
	if err != nil {
		return nil, err
	}
	if s, ok := sections["default"]; ok {
		if out.fallback, err = policy(s, "default", Policy{}); err != nil {
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

func (p *Policies) readTenants(s *yaml.Node) error {
	entries, err := members(s, "tenants")
	if err != nil {
		return err
	}
	for _, tenant := range slices.Sorted(maps.Keys(entries)) {
		n, at := entries[tenant], "tenants."+tenant
		if err := audit.ValidTenant(tenant); err != nil && !audit.IsReservedTenant(tenant) {
			return fault(at, n, "%v", err)
		}
		base := p.fallback
		if tenant == audit.TenantPartition {
			base = Policy{}
		}
		if p.tenants[tenant], err = policy(n, at, base); err != nil {
			return err
		}
	}
	return nil
}

// policy reads one entry over what holds where it says nothing.
func policy(n *yaml.Node, at string, p Policy) (Policy, error) {
	got, err := members(n, at, "rows", "payload", "prompts", "rejects", "mode", "user-id", "profile")
	if err != nil {
		return p, err
	}
	for _, m := range []struct {
		name string
		read func(n *yaml.Node, at string) error
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
		if err := m.read(v, at+"."+m.name); err != nil {
			return p, err
		}
	}
	if member, err := p.check(); err != nil {
		if v, ok := got[member]; ok {
			n = v
		}
		return p, fault(at+"."+member, n, "%v", err)
	}
	return p, nil
}

func (p *Period) read(n *yaml.Node, at string) error {
	text, err := scalar(n, at, "days or years like 400d or 6y; leave it out to keep for ever")
	if err != nil {
		return err
	}
	if *p, err = parsePeriod(text); err != nil {
		return fault(at, n, "%v", err)
	}
	return nil
}

// choice reads one of two words.
func choice(no, yes string, to *bool) func(n *yaml.Node, at string) error {
	return func(n *yaml.Node, at string) error {
		want := no + " or " + yes
		text, err := scalar(n, at, want)
		if err != nil {
			return err
		}
		if text != no && text != yes {
			return fault(at, n, "%q is not allowed: want %s", text, want)
		}
		*to = text == yes
		return nil
	}
}

// readProfiles reads one profile, a list of them, or none.
func (p *Policy) readProfiles(n *yaml.Node, at string) error {
	list := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode && n.Anchor == "" {
		list = n.Content
	}
	p.Profiles = nil
	for _, one := range list {
		text, err := scalar(one, at, wantProfile)
		if err != nil {
			return err
		}
		if text == "none" && n.Kind == yaml.ScalarNode {
			return nil
		}
		if _, ok := floors[Profile(text)]; !ok || slices.Contains(p.Profiles, Profile(text)) {
			return fault(at, one, "%q is not allowed: want %s", text, wantProfile)
		}
		p.Profiles = append(p.Profiles, Profile(text))
	}
	if len(p.Profiles) == 0 {
		return fault(at, n, "an empty list: leave it out, or write none")
	}
	return nil
}

const wantProfile = "none, one of " + string(EUAIAct+", "+PCI+", "+HIPAA+", "+SEC17a4) + ", or a list of different ones"

// document returns the top of a file's one document, nil for an empty file.
func document(text []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document: want one")
	}
	top := doc.Content[0]
	if top.Tag == "!!null" {
		return nil, nil
	}
	return top, nil
}

// members returns those of a mapping, which may have the known names, or any
// where none is given.
func members(n *yaml.Node, at string, known ...string) (map[string]*yaml.Node, error) {
	if n.Kind != yaml.MappingNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		return nil, fault(at, n, "want members with values")
	}
	out := map[string]*yaml.Node{}
	for i := 0; i < len(n.Content); i += 2 {
		name := n.Content[i]
		if name.Kind != yaml.ScalarNode || name.Tag != "!!str" || name.Anchor != "" {
			return nil, fault(at, name, "%q is no name: write it in quotes", name.Value)
		}
		here := strings.TrimPrefix(at+"."+name.Value, ".")
		if len(known) > 0 && !slices.Contains(known, name.Value) {
			return nil, fault(here, name, "no such member: want %s", strings.Join(known, ", "))
		}
		if out[name.Value] != nil {
			return nil, fault(here, name, "it is there twice")
		}
		out[name.Value] = n.Content[i+1]
	}
	return out, nil
}

// scalar returns the text of a plain value.
func scalar(n *yaml.Node, at, want string) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 || n.Tag == "!!null" || n.Value == "" {
		return "", fault(at, n, "no value: want %s", want)
	}
	return n.Value, nil
}

func fault(at string, n *yaml.Node, format string, args ...any) error {
	if at == "" {
		at = "the file"
	}
	return fmt.Errorf("%s (line %d): %s", at, n.Line, fmt.Sprintf(format, args...))
}
