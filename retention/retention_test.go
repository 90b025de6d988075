package retention_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/retention"
)

// now is the store's time: 1000 days after the first day of the log, and some
// hours.
var now = time.Date(2026, 9, 27, 17, 30, 0, 0, time.UTC)

// day returns a day that ended n days before the last midnight.
func day(n int) time.Time {
	return now.Truncate(24*time.Hour).AddDate(0, 0, -n-1)
}

// log has ten rows on each of these days: 3000, 800, 300, 100, 40 and 10 days
// ago, and today.
func log() []retention.Day {
	var out []retention.Day
	for i, ago := range []int{3000, 800, 300, 100, 40, 10, -1} {
		out = append(out, retention.Day{Day: day(ago), End: int64(10 * (i + 1))})
	}
	return out
}

func policyOf(t *testing.T, members string) retention.Policy {
	t.Helper()
	p, err := retention.Parse([]byte("tenants: {acme: {" + members + "}}"))
	if err != nil {
		t.Fatal(err)
	}
	return p.For("acme")
}

// words writes a decision as the table below has it.
func words(d retention.Decision) string {
	var out []string
	if d.Policy != "" {
		out = append(out, fmt.Sprintf("cut %d by %s", d.Cut, d.Policy))
	}
	for _, e := range d.Expiries {
		what := "*"
		if !e.All {
			for s := range audit.Slot(audit.NumSlots) {
				if e.Slots.Has(s) {
					what = s.String()
				}
			}
		}
		if e.Hard {
			what += " hard"
		} else if e.User {
			what += " user"
		}
		out = append(out, fmt.Sprintf("%s below %d by %s", what, e.SeqBefore, e.Policy))
	}
	for _, k := range d.Kept {
		out = append(out, "("+k+")")
	}
	return strings.Join(out, "; ")
}

// Legal hold > statutory floor of rows > erasure of payload > tenant's maximum >
// default: each line of the table is one meeting of them.
func TestPrecedence(t *testing.T) {
	for _, c := range []struct {
		name, policy string
		held         int64 // -1: none
		begin        int64
		offboard     bool
		ordered      []retention.Expiry
		want         string
	}{
		{name: "nothing is said: all is kept for ever", held: -1},
		{name: "a profile alone lets nothing go", policy: "profile: hipaa", held: -1},
		{name: "a mode alone lets nothing go", policy: "mode: hard, user-id: erase", held: -1},

		{name: "rows", policy: "rows: 400d", held: -1, want: "cut 20 by rows 400d"},
		{name: "years", policy: "rows: 2y", held: -1, want: "cut 20 by rows 2y"},
		{name: "rows, cut before", policy: "rows: 400d", begin: 20, held: -1},
		{name: "rows, cut further", policy: "rows: 200d", begin: 20, held: -1, want: "cut 30 by rows 200d"},
		{name: "no row is old enough", policy: "rows: 9y", held: -1},
		{name: "a day ends before it is due", policy: "rows: 300d", held: -1, want: "cut 30 by rows 300d"},
		{name: "and is not due a day before", policy: "rows: 301d", held: -1, want: "cut 20 by rows 301d"},

		{name: "payload", policy: "payload: 90d", held: -1, want: "* below 40 by payload 90d"},
		{name: "payload behind a cut", policy: "rows: 400d, payload: 90d", held: -1, want: "cut 20 by rows 400d; * below 40 by payload 90d"},
		{name: "payload that goes with its rows", policy: "rows: 90d, payload: 90d", held: -1, want: "cut 40 by rows 90d"},
		{name: "user ids", policy: "payload: 90d, user-id: erase", held: -1, want: "* user below 40 by payload 90d"},
		{name: "hard", policy: "payload: 90d, mode: hard", held: -1, want: "* hard below 40 by payload 90d"},
		{
			name: "prompts and rejects go first", policy: "payload: 90d, prompts: 30d, rejects: 5d", held: -1,
			want: "* below 40 by payload 90d; prompts below 50 by prompts 30d; raw below 60 by rejects 5d",
		},
		{name: "prompts as long as payload", policy: "payload: 90d, prompts: 90d", held: -1, want: "* below 40 by payload 90d"},

		{name: "ordered before", policy: "payload: 90d", held: -1, ordered: []retention.Expiry{{All: true, SeqBefore: 40}}},
		{name: "ordered before, less", policy: "payload: 90d", held: -1, ordered: []retention.Expiry{{All: true, SeqBefore: 30}}, want: "* below 40 by payload 90d"},
		{name: "ordered before, soft", policy: "payload: 90d, mode: hard", held: -1, ordered: []retention.Expiry{{All: true, SeqBefore: 40}}, want: "* hard below 40 by payload 90d"},
		{name: "ordered before, without user ids", policy: "payload: 90d, user-id: erase", held: -1, ordered: []retention.Expiry{{All: true, SeqBefore: 40}}, want: "* user below 40 by payload 90d"},
		{name: "prompts, all ordered before", policy: "prompts: 30d", held: -1, ordered: []retention.Expiry{{All: true, SeqBefore: 50}}},
		{name: "prompts, another slot ordered before", policy: "prompts: 30d", held: -1, ordered: []retention.Expiry{{Slots: chain.SlotSetOf(audit.SlotRaw), SeqBefore: 50}}, want: "prompts below 50 by prompts 30d"},

		{
			name: "floor over maximum", policy: "rows: 30d, profile: eu-ai-act", held: -1,
			want: "cut 30 by rows 30d; * below 50 by rows 30d, which stay; (eu-ai-act keeps rows for 184d)",
		},
		{
			name: "the longest floor counts", policy: "rows: 30d, profile: [pci, hipaa, eu-ai-act]", held: -1,
			want: "cut 10 by rows 30d; * below 50 by rows 30d, which stay; (hipaa keeps rows for 6y)",
		},
		{name: "a floor that is over", policy: "rows: 400d, profile: eu-ai-act", held: -1, want: "cut 20 by rows 400d"},
		{name: "payload below the floor of rows", policy: "payload: 30d, profile: hipaa", held: -1, want: "* below 50 by payload 30d"},
		{
			name: "hard takes rows: not below the floor", policy: "payload: 30d, mode: hard, profile: eu-ai-act", held: -1,
			want: "* hard below 30 by payload 30d; * below 50 by payload 30d",
		},
		{name: "sec17a4 keeps payload", policy: "payload: 30d, prompts: 10d, rejects: 10d, profile: sec17a4", held: -1},
		{name: "sec17a4 keeps payload until rows expire", policy: "rows: 400d, payload: 30d, profile: sec17a4", held: -1, want: "cut 20 by rows 400d"},
		{
			name: "sec17a4 and a hold: expired rows are erased", policy: "rows: 400d, payload: 30d, profile: sec17a4", held: 5,
			want: "cut 5 by rows 400d; * below 20 by rows 400d, which stay; (a legal hold keeps row 5)",
		},

		{name: "hold over maximum", policy: "rows: 400d", held: 13, want: "cut 13 by rows 400d; * below 20 by rows 400d, which stay; (a legal hold keeps row 13)"},
		{name: "hold of the first row", policy: "rows: 400d", held: 0, want: "* below 20 by rows 400d, which stay; (a legal hold keeps row 0)"},
		{name: "hold of the first row that is left", policy: "rows: 200d", begin: 20, held: 20, want: "* below 30 by rows 200d, which stay; (a legal hold keeps row 20)"},
		{name: "hold behind what is due", policy: "rows: 400d", held: 20, want: "cut 20 by rows 400d"},
		{
			name: "hold over floor over maximum", policy: "rows: 30d, profile: pci", held: 3,
			want: "cut 3 by rows 30d; * below 50 by rows 30d, which stay; (pci keeps rows for 365d); (a legal hold keeps row 3)",
		},

		{name: "offboarding", offboard: true, held: -1, want: "cut 70 by offboarding"},
		{name: "offboarding of what is cut", offboard: true, begin: 70, held: -1},
		{name: "offboarding and a hold", offboard: true, held: 25, want: "cut 25 by offboarding; * user below 70 by offboarding, rows stay; (a legal hold keeps row 25)"},
		{name: "offboarding and a floor", offboard: true, policy: "profile: pci", held: -1, want: "cut 20 by offboarding; * user below 70 by offboarding, rows stay; (pci keeps rows for 365d)"},
		{name: "offboarding and sec17a4", offboard: true, policy: "rows: 400d, profile: sec17a4", held: -1, want: "cut 20 by offboarding; (sec17a4 keeps rows until they expire (rows: 400d))"},
		{name: "offboarding and sec17a4 without a period", offboard: true, policy: "profile: sec17a4", held: -1, want: "(sec17a4 keeps rows until they expire (rows: forever))"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := retention.Decide(retention.Input{
				Now: now, Policy: policyOf(t, c.policy), Begin: c.begin, Days: log()[c.begin/10:], FirstHeld: c.held, Ordered: c.ordered, Offboard: c.offboard,
			})
			if words(got) != c.want {
				t.Errorf("got  %s\nwant %s", words(got), c.want)
			}
			if got.Policy == "" && got.Cut != c.begin {
				t.Errorf("no cut, and size %d", got.Cut)
			}
		})
	}
}

// An order is refused by sec17a4 until its rows expire, and by a floor where it
// is hard.
func TestRefuse(t *testing.T) {
	ago := func(days int) time.Time { return now.AddDate(0, 0, -days) }
	for _, c := range []struct {
		policy string
		order  retention.Order
		want   string // begins with; "": allowed
	}{
		{"", retention.Order{}, ""},
		{"", retention.Order{Hard: true}, ""},
		{"rows: 400d, payload: 90d", retention.Order{Hard: true}, ""},
		{"profile: pci", retention.Order{}, ""},
		{"profile: pci", retention.Order{Hard: true}, "pci keeps rows for 365d"},
		{"profile: pci", retention.Order{Hard: true, Newest: ago(364)}, "pci keeps rows for 365d"},
		{"profile: pci", retention.Order{Hard: true, Newest: ago(366)}, ""},
		{"profile: [eu-ai-act, hipaa]", retention.Order{Hard: true, Newest: ago(366)}, "hipaa keeps rows for 6y"},
		{"profile: sec17a4", retention.Order{}, "sec17a4: no payload is erased before its row expires (rows: forever)"},
		{"profile: sec17a4", retention.Order{Newest: ago(9000)}, "sec17a4"},
		{"profile: sec17a4, rows: 6y", retention.Order{}, "sec17a4: no payload is erased before its row expires (rows: 6y)"},
		{"profile: sec17a4, rows: 6y", retention.Order{Newest: ago(6 * 365)}, "sec17a4"},
		{"profile: sec17a4, rows: 6y", retention.Order{Newest: ago(6*365 + 3)}, ""},
		{"profile: [sec17a4, hipaa], rows: 400d", retention.Order{Newest: ago(401), Hard: true}, "hipaa"},
		{"profile: [sec17a4, hipaa], rows: 400d", retention.Order{Newest: ago(401)}, ""},
	} {
		p := policyOf(t, c.policy)
		got := p.Refuse(c.order, now)
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, %+v: %q, want %q", c.policy, c.order, got, c.want)
		}
	}
}

// Whatever is asked: a held row and what a floor keeps are not cut, nothing goes
// that no period is named for, and what was decided is not decided again.
func TestDecideKeeps(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 6))
	period := func() retention.Period {
		if r.IntN(3) == 0 {
			return retention.Period{}
		}
		return retention.Period{Days: 1 + r.IntN(1200)}
	}
	all := []retention.Profile{retention.EUAIAct, retention.PCI, retention.HIPAA, retention.SEC17a4}
	floors := map[retention.Profile]int{retention.EUAIAct: 184, retention.PCI: 365, retention.HIPAA: 2190}
	cuts, expiries := 0, 0
	for range 20_000 {
		in := retention.Input{Now: now, FirstHeld: int64(r.IntN(90)) - 1, Offboard: r.IntN(10) == 0, Days: log(), Policy: retention.Policy{
			Rows: period(), Payload: period(), Prompts: period(), Rejects: period(), Hard: r.IntN(2) == 0, User: r.IntN(2) == 0,
		}}
		if r.IntN(2) == 0 {
			in.Policy.Profiles = []retention.Profile{all[r.IntN(4)]}
		}
		in.Begin = int64(10 * r.IntN(3))
		in.Days = in.Days[in.Begin/10:]
		if in.FirstHeld >= 0 {
			in.FirstHeld = max(in.FirstHeld, in.Begin)
		}
		d := retention.Decide(in)
		if d.Cut > in.Begin {
			cuts++
		}
		expiries += len(d.Expiries)
		young := func(seq int64, days int) bool { // some row below seq is not older
			for _, dy := range in.Days {
				if dy.End-10 < seq && dy.Day.AddDate(0, 0, 1).After(now.AddDate(0, 0, -days)) {
					return true
				}
			}
			return false
		}
		if d.Cut < in.Begin || d.Cut > 70 || in.FirstHeld != retention.NoHold && d.Cut > in.FirstHeld {
			t.Fatalf("%+v: cut %d", in, d.Cut)
		}
		if !in.Offboard && d.Cut > in.Begin && (in.Policy.Rows.Forever() || young(d.Cut, in.Policy.Rows.Days)) {
			t.Fatalf("%+v: cut %d", in, d.Cut)
		}
		for _, p := range in.Policy.Profiles {
			if d.Cut > in.Begin && floors[p] > 0 && young(d.Cut, floors[p]) {
				t.Fatalf("%+v: cut %d", in, d.Cut)
			}
			for _, e := range d.Expiries {
				if e.Hard && floors[p] > 0 && young(e.SeqBefore, floors[p]) {
					t.Fatalf("%+v: %+v", in, e)
				}
				if p == retention.SEC17a4 && (in.Policy.Rows.Forever() || young(e.SeqBefore, in.Policy.Rows.Days)) {
					t.Fatalf("%+v: %+v", in, e)
				}
			}
		}
		in.Ordered = append(in.Ordered, d.Expiries...)
		if again := retention.Decide(in); len(again.Expiries) > 0 || again.Cut != d.Cut {
			t.Fatalf("%+v: again %+v", in, again)
		}
	}
	if cuts < 1000 || expiries < 1000 {
		t.Errorf("%d cuts, %d expiries: this tests nothing", cuts, expiries)
	}
}

// A rule for one tenant never touches another, and what a file does not say is
// kept for ever.
func TestFor(t *testing.T) {
	p, err := retention.Parse([]byte(`
default:
  payload: 90d
  prompts: 30d
  profile: [pci, eu-ai-act]
tenants:
  acme:
    rows: 6y
    prompts: forever
    mode: hard
  quiet: {payload: forever, prompts: forever, profile: none}
  "42": {rows: 1y}
  _unattributed: {rejects: 7d}
  _partition: {rows: 3y}
`))
	if err != nil {
		t.Fatal(err)
	}
	both := []retention.Profile{retention.PCI, retention.EUAIAct}
	days := func(n int) retention.Period { return retention.Period{Days: n} }
	for tenant, want := range map[string]retention.Policy{
		"acme":          {Rows: retention.Period{Years: 6}, Payload: days(90), Hard: true, Profiles: both},
		"quiet":         {},
		"42":            {Rows: retention.Period{Years: 1}, Payload: days(90), Prompts: days(30), Profiles: both},
		"somebody":      {Payload: days(90), Prompts: days(30), Profiles: both},
		"acme2":         {Payload: days(90), Prompts: days(30), Profiles: both},
		"ACME":          {Payload: days(90), Prompts: days(30), Profiles: both},
		"_unattributed": {Payload: days(90), Prompts: days(30), Rejects: days(7), Profiles: both},
		"_partition":    {Rows: retention.Period{Years: 3}},
	} {
		if got := p.For(tenant); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", tenant, got, want)
		}
	}
	if got := p.Tenants(); !reflect.DeepEqual(got, []string{"42", "_partition", "_unattributed", "acme", "quiet"}) {
		t.Errorf("tenants %q", got)
	}
	for _, text := range []string{"", "# nothing\n", "default: {}", "tenants: {}", "tenants: {acme: {rows: 1d}}"} {
		p, err := retention.Parse([]byte(text))
		if err != nil || !reflect.DeepEqual(p.For("somebody"), retention.Policy{}) || !reflect.DeepEqual(p.For("_partition"), retention.Policy{}) {
			t.Errorf("%q: %+v, %v", text, p.For("somebody"), err)
		}
	}
	var none *retention.Policies
	if !reflect.DeepEqual(none.For("acme"), retention.Policy{}) || none.Tenants() != nil || none.Notes() != nil {
		t.Error("no policies say something")
	}
	for _, of := range []string{"_partition", "_unattributed"} {
		p, err := retention.Parse([]byte("default: {rows: 9d}"))
		if err != nil || p.For(of).Rows.Forever() != (of == "_partition") {
			t.Errorf("%s: the default says %v, %v", of, p.For(of).Rows, err)
		}
	}
}

// What could be misread is refused, with the member's name and line.
func TestParseRefuses(t *testing.T) {
	const want = "want days or years like 400d or 6y, from 1 on, or forever"
	for text, wrong := range map[string]string{
		"default:\n  rows: 0":                                   `default.rows (line 2): "0" is not allowed: ` + want,
		"default:\n  rows: 0d":                                  `default.rows (line 2): "0d" is not allowed: ` + want,
		"default:\n  rows: 0s":                                  `default.rows (line 2): "0s" is not allowed: ` + want,
		"default:\n  rows: 30":                                  `default.rows (line 2): "30" is not allowed: ` + want,
		"default:\n  rows: \"30\"":                              `default.rows (line 2): "30" is not allowed: ` + want,
		"default:\n  rows: -1d":                                 `default.rows (line 2): "-1d" is not allowed: ` + want,
		"default:\n  rows: +1d":                                 `default.rows (line 2): "+1d" is not allowed: ` + want,
		"default:\n  rows: 030d":                                `default.rows (line 2): "030d" is not allowed: ` + want,
		"default:\n  rows: 1.5y":                                `default.rows (line 2): "1.5y" is not allowed: ` + want,
		"default:\n  rows: 5dy":                                 `default.rows (line 2): "5dy" is not allowed: ` + want,
		"default:\n  rows: d":                                   `default.rows (line 2): "d" is not allowed: ` + want,
		"default:\n  rows: 30 d":                                `default.rows (line 2): "30 d" is not allowed: ` + want,
		"default:\n  rows: 720h":                                `default.rows (line 2): "720h" is not allowed: ` + want,
		"default:\n  rows: 999999999999999999999d":              `default.rows (line 2): "999999999999999999999d" is not allowed: ` + want,
		"default:\n  rows: 200000d":                             `default.rows (line 2): "200000d" is not allowed: ` + want,
		"default:\n  rows:":                                     `default.rows (line 2): no value`,
		"default:\n  rows: ~":                                   `default.rows (line 2): no value`,
		"default:\n  rows: \"\"":                                `default.rows (line 2): no value`,
		"default:\n  rows: [1d]":                                `default.rows (line 2): no value`,
		"default:\n  rows: !!str 1d":                            `default.rows (line 2): no value`,
		"default:\n  rows: &a 1d":                               `default.rows (line 2): no value`,
		"default:\n  row: 1d":                                   `default.row (line 2): no such member: want rows, payload`,
		"default:\n  rows: 1d\n  rows: 2d":                      `default.rows (line 3): it is there twice`,
		"default:\n  mode: soft-ish":                            `default.mode (line 2): "soft-ish" is not allowed: want soft or hard`,
		"default:\n  user-id: true":                             `default.user-id (line 2): "true" is not allowed: want keep or erase`,
		"default:\n  profile: gdpr":                             `default.profile (line 2): "gdpr" is not allowed: want none, one of eu-ai-act, pci, hipaa, sec17a4`,
		"default:\n  profile: [pci, pci]":                       `default.profile.2 (line 2): "pci" is not allowed`,
		"default:\n  profile: [pci, none]":                      `default.profile.2 (line 2): "none" is not allowed`,
		"default:\n  profile: []":                               `default.profile (line 2): an empty list`,
		"default:\n  rows: 10d\n  payload: 11d":                 `default.payload (line 3): 11d is longer than rows, which is 10d`,
		"default:\n  rows: 1y\n  payload: 366d":                 `default.payload (line 3): 366d is longer than rows, which is 1y`,
		"default:\n  payload: 10d\n  prompts: 11d":              `default.prompts (line 3): 11d is longer than payload`,
		"default:\n  rows: 10d\n  rejects: 11d":                 `default.rejects (line 3): 11d is longer than rows`,
		"default: {payload: 10d}\ntenants:\n  a:\n    rows: 5d": `tenants.a.payload (line 4): 10d is longer than rows, which is 5d`,
		"default: 400d":                                         `default (line 1): want members with values`,
		"default:":                                              `default (line 1): want members with values`,
		"tenants:\n  acme: 400d":                                `tenants.acme (line 2): want members with values`,
		"tenants:\n  42: {rows: 1d}":                            `tenants (line 2): "42" is no name: write it in quotes`,
		"tenants:\n  _other: {rows: 1d}":                        `tenants._other (line 2): bad tenant id: ids that begin with _ are reserved`,
		"tenants:\n  a: {rows: 1d}\n  a: {rows: 2d}":            `tenants.a (line 3): it is there twice`,
		"tenants:\n  a: &x {rows: 1d}\n  b: *x":                 `tenants.a (line 2): want members with values`,
		"tenants:\n  a: {<<: {rows: 1d}}":                       `no name`,
		"tenants:\n  - acme":                                    `tenants (line 2): want members with values`,
		"tenant: {}":                                            `tenant (line 1): no such member: want default, tenants`,
		"[]":                                                    `the file (line 1): want members with values`,
		"default: {}\n---\ndefault: {rows: 1d}":                 `more than one document`,
		"default: {":                                            `not YAML`,
	} {
		p, err := retention.Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: %+v, %v\nwant %s", text, p, err, wrong)
		}
	}
}

// Periods that a floor overrules are said, as they are no mistake.
func TestNotes(t *testing.T) {
	p, err := retention.Parse([]byte(`
default: {rows: 30d, profile: hipaa}
tenants:
  a: {payload: 20d, mode: hard}
  b: {profile: sec17a4, rejects: 5d}
  c: {rows: 7y}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"default: rows: 30d has no effect: hipaa keeps them for 6y",
		"tenants.a: rows: 30d has no effect: hipaa keeps them for 6y",
		"tenants.a: mode: hard takes effect after 6y, the floor of hipaa; until then payload expires soft",
		"tenants.b: payload, prompts and rejects have no effect: sec17a4 keeps them as long as their rows",
	}
	if got := p.Notes(); !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

// No text makes the parser panic, and a policy that it gives is one that it
// would print.
func FuzzParse(f *testing.F) {
	f.Add([]byte("default: {rows: 400d, payload: 90d, prompts: 30d, rejects: 30d, mode: hard, user-id: erase, profile: [pci]}\ntenants: {a: {rows: 6y}}"))
	f.Add([]byte("default:\n  rows: ~\n"))
	f.Add([]byte("? [a]\n: b"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := retention.Parse(text)
		if err != nil {
			return
		}
		for _, tenant := range append(p.Tenants(), "somebody") {
			own := p.For(tenant)
			for _, m := range []retention.Period{own.Rows, own.Payload, own.Prompts, own.Rejects} {
				again, err := retention.Parse([]byte("default: {rows: " + m.String() + "}"))
				if err != nil || again.For("somebody").Rows != m {
					t.Fatalf("%v: %v", m, err)
				}
			}
		}
	})
}
