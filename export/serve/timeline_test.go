package serve_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/export/serve"
	"github.com/ledgerlake/ledgerlake/export/serve/servetest"
)

// The story of a turn, step by step, as people are to see it. What is not told
// here is not claimed.
const told = `
0 call anchor-plan  | provider-error 529 failed | claude-opus-4-5>claude-opus-4-5
1 call anchor-plan  | timeout failed | claude-opus-4-5>claude-sonnet-4-5 | fallback claude-opus-4-5>claude-sonnet-4-5
2 call anchor-plan  | ok | claude-opus-4-5>claude-haiku-3-5 | fallback claude-opus-4-5>claude-haiku-3-5 REGRESSION | 8412/611 34401 µ$
3 call tool-loop crm.lookup | ok | claude-opus-4-5>claude-opus-4-5 | 3104/96 10752 µ$
4 call tool-loop web.search | provider-error 503 failed | claude-opus-4-5>claude-opus-4-5 | cascade web.search>sql.query
5 call tool-loop sql.query | ok | claude-opus-4-5>claude-opus-4-5 | 3377/142 12261 µ$
6 call tool-loop files.read | ok | >claude-opus-4-5 | 2980/88 | ERASED all by 01KBCDEFGHJKMNPQRSTW000001
7 call tool-loop mail.draft | ok | claude-opus-4-5>claude-opus-4-5 | 4120/390 18210 µ$ | NOT ACTED human "Send this mail to 340 customers now?" reject
8 policy-decision  mail.send | ok | NOT ACTED policy "mail.send"
9 call synthesize  | guard-rejected 200 | claude-opus-4-5>claude-opus-4-5 | 9840/702 40050 µ$ | NOT ACTED guard "content_filter"
10 call synthesize  | ok | claude-opus-4-5>gpt-5.1 | provider anthropic>openai | 9911/846 42423 µ$
11 call post-turn  | ok | claude-opus-4-5>unresolved
records 12 tokens 41744/2875 158097 µ$, failed 3 fallbacks 2 regressions 1 cascades 2 erased 1 not acted 3
  t-205 depth 1 records 3
    t-206 depth 2 records 2
`

type line struct {
	Seq                       *int64 `json:"seqWithinTurn"`
	Kind, Stage, Tool, Status string
	HTTP                      *int64 `json:"httpStatus"`
	Failed                    bool
	In                        *int64 `json:"inputTokens"`
	Out                       *int64 `json:"outputTokens"`
	MicroUSD                  *int64
	Model                     *struct{ Requested, Resolved string }
	Fallback                  *struct {
		From, To   string
		Regression bool
	}
	ProviderCascade, ToolCascade *struct{ From, To string }
	NotActed                     *struct{ Why, Text, Answer string }
	Erased                       *struct {
		By  string
		All bool
	}
}

func (s *line) String() string {
	parts := []string{fmt.Sprintf("%d %s %s %s ", *s.Seq, s.Kind, s.Stage, s.Tool)}
	status := s.Status
	if s.HTTP != nil && s.Status != "ok" {
		status += fmt.Sprint(" ", *s.HTTP)
	}
	if s.Failed {
		status += " failed"
	}
	parts[0] = strings.TrimSuffix(parts[0], " ")
	parts = append(parts, " "+status)
	if s.Model != nil {
		parts = append(parts, fmt.Sprintf(" %s>%s", s.Model.Requested, s.Model.Resolved))
	}
	if f := s.Fallback; f != nil {
		parts = append(parts, fmt.Sprintf(" fallback %s>%s", f.From, f.To)+map[bool]string{true: " REGRESSION"}[f.Regression])
	}
	if c := s.ProviderCascade; c != nil {
		parts = append(parts, fmt.Sprintf(" provider %s>%s", c.From, c.To))
	}
	if c := s.ToolCascade; c != nil {
		parts = append(parts, fmt.Sprintf(" cascade %s>%s", c.From, c.To))
	}
	if s.In != nil {
		spent := fmt.Sprintf(" %d/%d", *s.In, *s.Out)
		if s.MicroUSD != nil {
			spent += fmt.Sprintf(" %d µ$", *s.MicroUSD)
		}
		parts = append(parts, spent)
	}
	if n := s.NotActed; n != nil {
		parts = append(parts, strings.TrimSuffix(fmt.Sprintf(" NOT ACTED %s %q %s", n.Why, n.Text, n.Answer), " "))
	}
	if e := s.Erased; e != nil {
		parts = append(parts, fmt.Sprintf(" ERASED %s by %s", map[bool]string{true: "all", false: "a part"}[e.All], e.By))
	}
	return strings.Join(parts, " |")
}

type below struct {
	Turn      string
	Depth     int
	Sums      struct{ Records int }
	Subagents []below
}

func (b *below) write(to *strings.Builder, indent string) {
	fmt.Fprintf(to, "%s%s depth %d records %d\n", indent, b.Turn, b.Depth, b.Sums.Records)
	for i := range b.Subagents {
		b.Subagents[i].write(to, indent+"  ")
	}
}

func TestTheStoryOfATurn(t *testing.T) {
	w := newWorld(t, servetest.Archive(), serve.Options{}, "a="+servetest.Tenant)
	got := decode[struct {
		Turn     string
		Complete bool
		Steps    []*line
		Sums     struct {
			Records, InputTokens, OutputTokens, MicroUSD, Failed, Fallbacks, Regressions, Cascades, Erased, NotActed int64
		}
		Subagents []below
	}](t, w.ask("a", "/v1/tenants/acme/turns/"+servetest.Turn+"/timeline"))
	var b strings.Builder
	b.WriteByte('\n')
	for _, s := range got.Steps {
		fmt.Fprintln(&b, s)
	}
	n := got.Sums
	fmt.Fprintf(&b, "records %d tokens %d/%d %d µ$, failed %d fallbacks %d regressions %d cascades %d erased %d not acted %d\n",
		n.Records, n.InputTokens, n.OutputTokens, n.MicroUSD, n.Failed, n.Fallbacks, n.Regressions, n.Cascades, n.Erased, n.NotActed)
	for i := range got.Subagents {
		got.Subagents[i].write(&b, "  ")
	}
	if b.String() != told {
		t.Errorf("got%s\nwant%s", b.String(), told)
	}
	if got.Turn != servetest.Turn || !got.Complete {
		t.Errorf("%+v", got)
	}
}

// What was erased is nowhere: neither in the record nor in what is made of it.
func TestErasedIsNowhere(t *testing.T) {
	var sent struct {
		ToolSelection struct{ Rationale string }
	}
	for _, text := range servetest.Story() {
		if strings.Contains(text, `"seqWithinTurn":6,`) {
			if err := json.Unmarshal([]byte(text), &sent); err != nil {
				t.Fatal(err)
			}
		}
	}
	secret := sent.ToolSelection.Rationale
	if secret == "" {
		t.Fatal("the story lost the text that is erased")
	}
	w := newWorld(t, servetest.Archive(), serve.Options{}, "a="+servetest.Tenant)
	for _, path := range []string{"turns/t-204", "turns/t-204/timeline", "sessions/s-4711?limit=1000", "range?from=2020-01-01T00:00:00Z&to=2030-01-01T00:00:00Z"} {
		if r := w.ask("a", "/v1/tenants/acme/"+path); r.status != 200 || strings.Contains(r.body, secret) {
			t.Errorf("%s: %d, erased text is there: %t", path, r.status, strings.Contains(r.body, secret))
		}
	}
}

// Records that are anything but what is expected are shown as far as they go.
func TestAHostileTurnIsShown(t *testing.T) {
	w := newWorld(t, servetest.HostileArchive(), serve.Options{}, "a="+servetest.Tenant)
	r := w.ask("a", "/v1/tenants/acme/turns/"+servetest.Hostile+"/timeline")
	got := decode[struct{ Steps []*line }](t, r)
	if len(got.Steps) != len(servetest.Attacks()) {
		t.Errorf("%d steps of %d", len(got.Steps), len(servetest.Attacks()))
	}
	if strings.Contains(r.body, "<script") {
		t.Error("markup stands in an answer as it is; JSON can say it by escapes")
	}
}
