package retention

import (
	"fmt"
	"slices"
	"time"
)

// A Policy is how long what of one tenant is kept. The zero Policy keeps all of
// it for ever.
type Policy struct {
	Rows    Period // whole rows; then a prefix of the log is cut
	Payload Period // all slots
	Prompts Period // the slot prompts
	Rejects Period // the slot raw, which rejected rows alone have
	User    bool   // user_id goes with the payload
	Hard    bool   // payload expires with header columns 10 to 31 and user_id

	Profiles []Profile // whose floors hold
}

// A Profile is a statutory floor that rows are kept for.
type Profile string

// The profiles.
const (
	EUAIAct Profile = "eu-ai-act" // 184 days: six months, whichever they are
	PCI     Profile = "pci"       // 365 days
	HIPAA   Profile = "hipaa"     // 6 years
	// SEC17a4 has no period of its own: until a row expires nothing of its
	// payload is erased, not by an order either.
	SEC17a4 Profile = "sec17a4"
)

var floors = map[Profile]Period{EUAIAct: {Days: 184}, PCI: {Days: 365}, HIPAA: {Years: 6}, SEC17a4: {}}

// floor returns the profile with the longest floor of rows.
func (p *Policy) floor() (of Profile, floor Period, any bool) {
	for _, f := range p.Profiles {
		if own := floors[f]; !own.Forever() && (!any || own.longer(floor)) {
			of, floor, any = f, own, true
		}
	}
	return of, floor, any
}

// worm reports whether payload stays as long as its row.
func (p *Policy) worm() bool { return slices.Contains(p.Profiles, SEC17a4) }

// An Order is what a policy has to know of an order of erasure.
type Order struct {
	Hard   bool      // header columns go too
	Newest time.Time // archived_at of the newest row that it means; zero: not known
}

// Refuse returns why an order may not be done now, by the store's clock, "" where
// it may. One that is refused may be allowed later, when all that it means is
// old enough. Legal holds are not looked at: they keep single rows.
func (p *Policy) Refuse(o Order, now time.Time) string {
	old := func(than Period) bool {
		return !than.Forever() && !o.Newest.IsZero() && o.Newest.Before(than.before(now))
	}
	if p.worm() && !old(p.Rows) {
		return fmt.Sprintf("%s: no payload is erased before its row expires (rows: %v)", SEC17a4, p.Rows)
	}
	of, floor, any := p.floor()
	if o.Hard && any && !old(floor) {
		return fmt.Sprintf("%s keeps rows for %v, and a hard erasure takes most of a row: order it without hard", of, floor)
	}
	return ""
}

// check returns what is wrong with the policy as a whole: the member, and why.
func (p *Policy) check() (member string, err error) {
	for _, m := range []struct {
		name       string
		short      Period
		longerName string
		long       Period
	}{
		{"payload", p.Payload, "rows", p.Rows},
		{"prompts", p.Prompts, "payload", p.Payload},
		{"prompts", p.Prompts, "rows", p.Rows},
		{"rejects", p.Rejects, "payload", p.Payload},
		{"rejects", p.Rejects, "rows", p.Rows},
	} {
		if !m.short.Forever() && m.short.longer(m.long) {
			return m.name, fmt.Errorf("%v is longer than %s, which is %v: it would never come to that", m.short, m.longerName, m.long)
		}
	}
	return "", nil
}

// notes say which periods a floor overrules.
func (p *Policy) notes() (out []string) {
	of, floor, any := p.floor()
	if any && !p.Rows.Forever() && floor.longer(p.Rows) {
		out = append(out, fmt.Sprintf("rows: %v has no effect: %s keeps them for %v", p.Rows, of, floor))
	}
	if any && p.Hard && !p.Payload.Forever() && floor.longer(p.Payload) {
		out = append(out, fmt.Sprintf("mode: hard takes effect after %v, the floor of %s; until then payload expires soft", floor, of))
	}
	if p.worm() && !(p.Payload.Forever() && p.Prompts.Forever() && p.Rejects.Forever()) {
		out = append(out, fmt.Sprintf("payload, prompts and rejects have no effect: %s keeps them as long as their rows", SEC17a4))
	}
	return out
}
