//go:build it

package sql

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/internal/workload"
)

// A sent is what the answers need of a record that was sent, read from its JSON.
type sent struct {
	tenant, kind string

	SessionID, TurnID, StageID string
	SeqWithinTurn              int64
	CreatedAt                  string
	ModelID, Family            string
	TokenUsage, TokenCost      struct{ InputTokens, OutputTokens *int64 }
	Call                       struct{ Provider, Model string }
	Decision                   struct{ RungOrdinal *int64 }
	Outcome                    json.RawMessage // of a decision it is a text
	FallbackStep               *struct{ LadderRegression bool }
	CacheBreakpoint            *struct{ CacheReadTokens, CacheCreationTokens, InputTokens int64 }
	ToolFallbackStep           *struct {
		OriginalTool, FailureClass, TriggerSite string
		CascadedTo                              *string
		AttemptIndex, TriedToolCount            int64
		CascadeApplied                          bool
	}
	InterruptDecision json.RawMessage

	DecisionID, ConversationID, Verdict string
	Timestamp                           json.RawMessage
	Inputs                              struct{ Intent string }
	Action                              json.RawMessage

	outcome struct {
		Status, FinishReason *string
		LatencyMs            *float64
	}
}

// produced makes the records again that the demo has sent.
func produced(seed uint64, start time.Time, n int) (all []*sent, broken int, err error) {
	g := workload.New(seed, 5)
	g.Broken, g.Repeats, g.Start = 0.02, 0.02, start
	for range n {
		r := g.Next()
		if r.Class == workload.Broken {
			broken++
		}
		if r.Class != workload.Good {
			continue
		}
		s := &sent{tenant: r.Tenant, kind: r.Kind}
		if err := json.Unmarshal(r.Value, s); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", r.Value, err)
		}
		if s.kind == "call" {
			if err := json.Unmarshal(s.Outcome, &s.outcome); err != nil {
				return nil, 0, err
			}
		}
		all = append(all, s)
	}
	return all, broken, nil
}

func (s *sent) provider() string { return orElse(s.Call.Provider, s.Family) }
func (s *sent) model() string    { return orElse(s.Call.Model, s.ModelID) }

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func (s *sent) tokens() (in, out *int64) {
	if in, out = s.TokenUsage.InputTokens, s.TokenUsage.OutputTokens; in == nil {
		in = s.TokenCost.InputTokens
	}
	if out == nil {
		out = s.TokenCost.OutputTokens
	}
	return in, out
}

func (s *sent) day() string { return s.CreatedAt[:10] }

// when is how Python writes a time.
func when(t time.Time) string {
	if t.Nanosecond() == 0 {
		return t.UTC().Format("2006-01-02 15:04:05")
	}
	return t.UTC().Format("2006-01-02 15:04:05.000000")
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err) // of a record that was accepted
	}
	return t
}

// decided is when a decision says that it was taken.
func (s *sent) decided() time.Time {
	if ms, err := strconv.ParseInt(string(s.Timestamp), 10, 64); err == nil {
		return time.UnixMilli(ms)
	}
	var text string
	if err := json.Unmarshal(s.Timestamp, &text); err != nil {
		panic(err)
	}
	return at(text)
}

// A table is rows of cells, as query.py writes them: nil or text.
type table [][]any

// grouped is rows by their first cells.
type grouped[T any] struct {
	keys []string
	by   map[string]*T
	key  map[string][]any
}

func groups[T any]() *grouped[T] { return &grouped[T]{by: map[string]*T{}, key: map[string][]any{}} }

func (g *grouped[T]) of(key ...any) *T {
	name := fmt.Sprint(key...)
	if g.by[name] == nil {
		g.by[name], g.key[name] = new(T), key
		g.keys = append(g.keys, name)
	}
	return g.by[name]
}

func (g *grouped[T]) table(cells func(*T) []any) (all table) {
	for _, name := range g.keys {
		all = append(all, append(slices.Clone(g.key[name]), cells(g.by[name])...))
	}
	return all
}

func number[N int | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

func decimal(f float64) string { return strconv.FormatFloat(math.Round(f*1e6)/1e6, 'f', -1, 64) }

// A sum is null until something was added.
type sum struct {
	n     int64
	known bool
}

func (s *sum) add(v *int64) {
	if v != nil {
		s.n, s.known = s.n+*v, true
	}
}

func (s *sum) cell() any {
	if !s.known {
		return nil
	}
	return number(s.n)
}

// prices are those of the test: of some models alone, one of which gets dearer long
// before the demo and again after it, and cached tokens of one.
const prices = `provider,model,from,input_per_million,output_per_million,cache_read_per_million,cache_write_per_million,currency
anthropic,claude-sonnet-4-5,2020-01-01,1,1,1,1,USD
anthropic,claude-sonnet-4-5,2026-01-01,3,15,0.3,3.75,USD
anthropic,claude-sonnet-4-5,2999-01-01,99,99,99,99,USD
openai,gpt-5.1,2026-01-01,1.25,10,,,EUR
`

func costs(all []*sent) table {
	type used struct {
		calls, silent         int64
		in, out, reads, makes sum
	}
	g := groups[used]()
	for _, s := range all {
		if s.kind != "call" {
			continue
		}
		u := g.of(s.tenant, s.day(), s.provider(), s.model())
		in, out := s.tokens()
		u.calls++
		if in == nil && out == nil {
			u.silent++
		}
		u.in.add(in)
		u.out.add(out)
		if c := s.CacheBreakpoint; c != nil {
			u.reads.add(&c.CacheReadTokens)
			u.makes.add(&c.CacheCreationTokens)
		}
	}
	rows := g.table(func(u *used) []any {
		return []any{number(u.calls), number(u.silent), u.in.cell(), u.out.cell(), u.reads.cell(), u.makes.cell()}
	})
	for i, name := range g.keys {
		u, cells := g.by[name], []any{"unpriced", nil, nil}
		of := func(in, out, reads, makes float64) any {
			if u.calls == u.silent {
				return nil
			}
			return decimal((float64(u.in.n)*in + float64(u.out.n)*out + float64(u.reads.n)*reads + float64(u.makes.n)*makes) / 1e6)
		}
		switch rows[i][3] {
		case "claude-sonnet-4-5":
			cells = []any{"priced", "USD", of(3, 15, 0.3, 3.75)}
		case "gpt-5.1":
			cells = []any{"priced", "EUR", of(1.25, 10, 0, 0)}
		}
		rows[i] = append(rows[i], cells...)
	}
	return rows
}

func fallbacks(all []*sent) table {
	type rungs struct{ calls, fell, steps, back int64 }
	g := groups[rungs]()
	for _, s := range all {
		if s.kind != "call" || s.Decision.RungOrdinal == nil {
			continue
		}
		r := g.of(s.tenant, s.day(), s.provider())
		r.calls++
		if *s.Decision.RungOrdinal > 0 {
			r.fell++
		}
		if s.FallbackStep != nil {
			r.steps++
			if s.FallbackStep.LadderRegression {
				r.back++
			}
		}
	}
	return g.table(func(r *rungs) []any {
		return []any{number(r.calls), number(r.fell), decimal(float64(r.fell) / float64(r.calls)), number(r.steps), number(r.back)}
	})
}

func cascades(all []*sent) (rows table) {
	g := groups[[]*sent]()
	for _, s := range all {
		if s.ToolFallbackStep != nil {
			steps := g.of(s.tenant, s.SessionID, s.TurnID)
			*steps = append(*steps, s)
		}
	}
	for _, name := range g.keys {
		steps := *g.by[name]
		slices.SortFunc(steps, func(a, b *sent) int { return int(a.SeqWithinTurn - b.SeqWithinTurn) })
		for i, s := range steps {
			f := s.ToolFallbackStep
			var next any
			if f.CascadedTo != nil {
				next = *f.CascadedTo
			}
			applied := "False"
			if f.CascadeApplied {
				applied = "True"
			}
			rows = append(rows, append(slices.Clone(g.key[name]), number(i+1), number(s.SeqWithinTurn), f.OriginalTool, next, f.FailureClass,
				number(f.AttemptIndex), number(f.TriedToolCount), applied, f.TriggerSite, *s.outcome.Status))
		}
	}
	return rows
}

func caches(all []*sent) table {
	type tokens struct{ answers, in, reads, makes int64 }
	g := groups[tokens]()
	for _, s := range all {
		if c := s.CacheBreakpoint; c != nil {
			t := g.of(s.tenant, s.provider(), s.model())
			t.answers, t.in, t.reads, t.makes = t.answers+1, t.in+c.InputTokens, t.reads+c.CacheReadTokens, t.makes+c.CacheCreationTokens
		}
	}
	return g.table(func(t *tokens) []any {
		return []any{number(t.answers), number(t.in), number(t.reads), number(t.makes), decimal(float64(t.reads) / float64(t.in))}
	})
}

func latencies(all []*sent) table {
	g := groups[[]float64]()
	for _, s := range all {
		if s.kind == "call" && s.outcome.LatencyMs != nil {
			of := g.of(s.provider())
			*of = append(*of, *s.outcome.LatencyMs)
		}
	}
	return g.table(func(of *[]float64) []any {
		slices.Sort(*of)
		cells := []any{number(len(*of))}
		for _, q := range []float64{0.5, 0.9, 0.95, 0.99, 1} {
			place := q * float64(len(*of)-1)
			low := int(place)
			v := (*of)[low]
			if low+1 < len(*of) {
				v += (place - float64(low)) * ((*of)[low+1] - v)
			}
			cells = append(cells, strconv.FormatFloat(v, 'f', 3, 64))
		}
		return cells
	})
}

func guarded(all []*sent) (rows table) {
	calls := map[[3]string]int64{}
	g := groups[int64]()
	for _, s := range all {
		if s.kind != "call" {
			continue
		}
		calls[[3]string{s.tenant, s.provider(), s.model()}]++
		if *s.outcome.Status == "guard-rejected" {
			*g.of(s.tenant, s.provider(), s.model(), *s.outcome.FinishReason)++
		}
	}
	rows = g.table(func(n *int64) []any { return []any{number(*n)} })
	for i, row := range rows {
		of := calls[[3]string{row[0].(string), row[1].(string), row[2].(string)}]
		rows[i] = append(row, number(of), decimal(float64(*g.by[g.keys[i]])/float64(of)))
	}
	return rows
}

func interrupts(all []*sent) (rows table) {
	for _, s := range all {
		if s.InterruptDecision == nil {
			continue
		}
		var asked struct{ Question, Answer, Channel string }
		if err := json.Unmarshal(s.InterruptDecision, &asked); err != nil {
			panic(err)
		}
		rows = append(rows, []any{
			s.tenant, when(at(s.CreatedAt)), s.SessionID, s.TurnID, number(s.SeqWithinTurn), asked.Question, asked.Answer, asked.Channel, string(s.InterruptDecision),
		})
	}
	return rows
}

func undone(all []*sent) (rows table) {
	for _, s := range all {
		if s.kind != "decision" || s.Action != nil && string(s.Action) != "null" {
			continue
		}
		var outcome string
		if err := json.Unmarshal(s.Outcome, &outcome); err != nil {
			panic(err)
		}
		rows = append(rows, []any{s.tenant, when(s.decided()), s.DecisionID, s.ConversationID, s.Inputs.Intent, s.Verdict, outcome})
	}
	return rows
}

// same reports whether two tables have the same rows, in any order. Numbers may
// differ by what is lost between a double and its text.
func same(got [][]any, want table) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d rows, want %d", len(got), len(want))
	}
	order := func(rows [][]any) [][]any {
		rows = slices.Clone(rows)
		slices.SortFunc(rows, func(a, b []any) int { return slices.Compare(texts(a), texts(b)) })
		return rows
	}
	g, w := order(got), order(want)
	for i := range g {
		for j := range max(len(g[i]), len(w[i])) {
			if len(g[i]) != len(w[i]) || !equal(g[i][j], w[i][j]) {
				return fmt.Sprintf("%v\nwant %v", g[i], w[i])
			}
		}
	}
	return ""
}

func texts(row []any) (all []string) {
	for _, c := range row {
		all = append(all, fmt.Sprint(c))
	}
	return all
}

func equal(a, b any) bool {
	if a == b {
		return true
	}
	s, ok := a.(string)
	t, also := b.(string)
	if !ok || !also {
		return false
	}
	x, err := strconv.ParseFloat(s, 64)
	y, fault := strconv.ParseFloat(t, 64)
	return err == nil && fault == nil && strings.Contains(s+t, ".") && math.Abs(x-y) <= 2e-6*max(1, math.Abs(y))
}

// A difference is seen: in a number, in a text, of a null, and in how many rows
// there are.
func TestSameSeesDifferences(t *testing.T) {
	rows := table{{"a", "1", nil, "0.5"}, {"b", "2", "x", "1000.25"}}
	if fault := same([][]any{rows[1], {"a", "1", nil, "0.5000001"}}, rows); fault != "" {
		t.Error(fault)
	}
	for _, other := range []table{rows[:1], {rows[0], {"b", "3", "x", "1000.25"}}, {rows[0], {"b", "2", nil, "1000.25"}}, {rows[0], {"b", "2", "x", "1000.26"}}, {rows[0], rows[1][:3]}} {
		if same(other, rows) == "" {
			t.Errorf("%v is not seen", other)
		}
	}
}
