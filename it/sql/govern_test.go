//go:build it

package sql

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/it/parts"
	"github.com/ledgerlake/ledgerlake/proof/offline"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// hostile are tenants, users and turns whose names mean something to engines,
// shells, globs, or readers of either.
var hostile = []string{
	`O'Brien & "co"`, `100% ''`, "a=b;-- x", "../../up", "..x", "東京 🙂", `back\slash\'`, "{a,b}*?[c]", "$(x) `y`", "a/b", "tenant=other",
	strings.Repeat("long ", 40) + "end",
}

// A governed archive has rows in every state.
type governed struct {
	*prooftest.Archive
	calls, control *prooftest.Line
	m              *mirror
	key            *sign.Signer
	landed         map[string]bool
}

func newGoverned(t *testing.T) *governed {
	key := prooftest.Signer("anchors.example")
	a := prooftest.New()
	a.Signers = []*sign.Signer{key}
	g := &governed{Archive: a, calls: a.Line("audit.calls", 0), control: a.Line(audit.ControlTopic, 0), key: key, landed: map[string]bool{}}
	g.m = newMirror(t, t.TempDir())
	g.m.now = time.UnixMicro(prooftest.Start).UTC()
	return g
}

// land writes what was built.
func (g *governed) land() {
	g.m.t.Helper()
	g.calls.Anchor()
	g.control.Anchor()
	for key, body := range g.Objects() {
		if g.landed[key] {
			continue
		}
		g.landed[key] = true
		if _, err := g.m.Create(g.m.t.Context(), key, body); err != nil {
			g.m.t.Fatal(err)
		}
	}
}

func (g *governed) later(d time.Duration) {
	g.m.now = g.m.now.Add(d)
	g.Later(d)
}

// row adds a call of a turn and a user, with content. Its record_id is its number.
func row(b *prooftest.Batch, tenant, turn, user string, n, within int) {
	b.Row(tenant, func(r *audit.Record) {
		r.Kind, r.RedactionPolicy = audit.Str(audit.KindCall), audit.Str(audit.PolicyNone)
		r.RecordID = audit.Str(id(n))
		r.SessionID, r.TurnID, r.StageID, r.SeqWithinTurn = audit.Str("s"), audit.Str(turn), audit.Str("tool-loop"), audit.I64(int64(within))
		r.CreatedAt, r.UserID = r.KafkaTimestamp, audit.Str(user)
		r.InputTokens, r.OutputTokens = audit.I64(1), audit.I64(2)
		r.Slots[audit.SlotDecision] = []byte(`{"requestedModel":"m","rungOrdinal":1}`)
		// Half of a surrogate pair is JSON that some parsers refuse.
		r.Slots[audit.SlotTokenCost] = []byte(`{"inputTokens":7,"note":"\ud800"}`)
		r.Derived = audit.Derive(r.Slots[audit.SlotDecision])
	})
}

func id(n int) string { return fmt.Sprintf("01KBCDEFGHJKMNPQRSTX%06d", n) }

// grow has the archive come about: of each tenant a row that was erased (0), rows
// that are to be, whole (1) and in part (2), one that is kept (3), its repeat, and one
// that is younger than the order for its user (4).
func (g *governed) grow() {
	g.calls.Segment(func(b *prooftest.Batch) {
		for i, name := range hostile {
			row(b, name, "gone "+name, "u", 10*i, 0)
			row(b, name, "turn "+name, "user "+name, 10*i+1, 1)
			row(b, name, "part "+name, "v", 10*i+2, 2)
			row(b, name, "kept", "w", 10*i+3, 3)
		}
	})
	g.land()
	g.later(time.Minute)
	g.m.compact(g.m.governor(g.key, time.Hour)) // so that what follows repeats rows of data files
	order := func(n int, tenant string, target map[string]any, slots any) {
		g.control.Segment(func(b *prooftest.Batch) {
			b.Order(tenant, audit.KindRedaction, prooftest.OrderID(n), prooftest.Redaction(target, slots))
		})
	}
	for i, name := range hostile {
		order(10*i, name, map[string]any{"turnId": "gone " + name}, "*")
	}
	g.calls.Segment(func(b *prooftest.Batch) {
		for i, name := range hostile {
			row(b, name, "kept", "w", 10*i+3, 3) // once more
		}
	})
	g.land()
	g.later(2 * time.Hour) // the first orders are due
	g.m.compact(g.m.governor(g.key, time.Hour))
	for i, name := range hostile {
		order(10*i+1, name, map[string]any{"userId": "user " + name}, "*")
		order(10*i+2, name, map[string]any{"turnId": "part " + name}, []string{"decision"})
	}
	g.later(time.Minute)
	g.calls.Segment(func(b *prooftest.Batch) {
		for i, name := range hostile {
			row(b, name, "kept", "user "+name, 10*i+4, 4) // younger than the order
		}
	})
	g.land()
}

// Rows that are to be erased, that were erased, and that repeat another one, are
// left out unless they are asked for: also of tenants, users and turns with names
// that would end a literal; before the rows are compacted and after it.
func TestGovernance(t *testing.T) {
	g := newGoverned(t)
	g.grow()
	g.want("", "2 3 4")
	g.want("--include-gated", "1 2 3 4")
	g.want("--include-erased", "0 2 3 4")
	g.want("--include-repeats", "2 3 3 4")
	g.parts()
	g.requests()
	g.columns()
}

// columns requires that the views have every column of an object.
func (g *governed) columns() {
	t := g.m.t
	t.Helper()
	views := exported(t, "--engine", "duckdb", g.m.folder)
	for _, d := range parts.DuckDBs() {
		var of [2]string
		for i, view := range []string{"ledgerlake_objects", "ledgerlake_rows"} {
			of[i] = fmt.Sprint(query(t, d, views, "SELECT column_name, column_type FROM (DESCRIBE "+view+") ORDER BY 1"))
		}
		if of[0] != of[1] || strings.Count(of[0], "[") < 65 {
			t.Errorf("DuckDB %s: objects have %s, rows %s", d.Version, of[0], of[1])
		}
	}
}

// want requires which rows of each tenant there are.
func (g *governed) want(flag, want string) {
	t := g.m.t
	t.Helper()
	args := []string{"--engine", "duckdb", g.m.folder}
	if flag != "" {
		args = append(args, flag)
	}
	const numbers = "SELECT tenant_id, string_agg(substr(record_id, 26), ' ' ORDER BY record_id) FROM ledgerlake_rows WHERE kind = 'call' GROUP BY ALL"
	all, alone := exported(t, args...), map[string]string{}
	one := hostile[len(flag)%len(hostile)]
	alone[one] = exported(t, append(args, "--tenant", one)...)
	for _, d := range parts.DuckDBs() {
		seen := map[string]any{}
		for _, r := range query(t, d, all, numbers) {
			seen[r[0].(string)] = r[1]
		}
		for _, name := range hostile {
			if seen[name] != want {
				t.Errorf("DuckDB %s: %s %q has %q, want %q", d.Version, flag, name, seen[name], want)
			}
		}
		for name, views := range alone {
			if rows := query(t, d, views, numbers); len(rows) != 1 || rows[0][0] != name || rows[0][1] != want {
				t.Errorf("DuckDB %s: --tenant %q %s: %v", d.Version, name, flag, rows)
			}
		}
	}
}

// parts requires that a slot which is to go is hidden, and with it what could tell
// it, and nothing else; and that a member which DuckDB cannot read ends no query.
func (g *governed) parts() {
	t := g.m.t
	t.Helper()
	const slots = `SELECT count(*), count(decision), count(requested_model), count(row_salt), count(token_cost) FROM ledgerlake_rows WHERE kind = 'call' AND substr(record_id, 26) = '2'`
	n := fmt.Sprint(len(hostile))
	hidden, shown := exported(t, "--engine", "duckdb", g.m.folder), exported(t, "--engine", "duckdb", "--include-gated", g.m.folder)
	for _, d := range parts.DuckDBs() {
		if got := query(t, d, hidden, slots); fmt.Sprint(got) != fmt.Sprint([][]any{{n, "0", "0", "0", n}}) {
			t.Errorf("DuckDB %s: rows with a slot that is to go: %v", d.Version, got)
		}
		if got := query(t, d, shown, slots); fmt.Sprint(got) != fmt.Sprint([][]any{{n, n, n, n, n}}) {
			t.Errorf("DuckDB %s: with --include-gated: %v", d.Version, got)
		}
		if got := query(t, d, hidden, "SELECT count(*) > 0, count(DISTINCT coalesce(input_tokens, 7)) FROM v_token_cost"); fmt.Sprint(got) != "[[True 1]]" {
			t.Errorf("DuckDB %s: v_token_cost: %v", d.Version, got)
		}
	}
}

// requests requires that the orders are told, whoever's they are.
func (g *governed) requests() {
	t := g.m.t
	t.Helper()
	var want []string
	for i, name := range hostile {
		for j := range 3 {
			want = append(want, fmt.Sprint(name, " ", prooftest.OrderID(10*i+j), " open"))
		}
	}
	slices.Sort(want)
	views, requests := exported(t, "--engine", "duckdb", g.m.folder), exported(t, "--engine", "duckdb", "--query", "erasure-requests")
	for _, d := range parts.DuckDBs() {
		var got []string
		for _, r := range query(t, d, views, requests) {
			got = append(got, fmt.Sprint(r[0], " ", r[1], " ", r[10]))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("DuckDB %s: erasure-requests\n%q\nwant\n%q", d.Version, got, want)
		}
	}
}

// Segments that a chain reset has declared void hold no rows of the archive: neither
// what is printed nor rows.sql reads them.
func TestVoidSegments(t *testing.T) {
	g := newGoverned(t)
	for i := range 4 {
		g.calls.Segment(func(b *prooftest.Batch) { row(b, "acme", "t", "u", i, i) })
		if i == 1 {
			g.land()
		}
	}
	voided := g.calls.RollBack(2)
	g.calls.Segment(func(b *prooftest.Batch) { b.Reset("acme", "operator", voided...) })
	g.calls.Segment(func(b *prooftest.Batch) { row(b, "acme", "t", "u", 9, 9) })
	g.land()
	script, err := offline.Programs.ReadFile("rows.sql")
	if err != nil {
		t.Fatal(err)
	}
	views := exported(t, "--engine", "duckdb", g.m.folder)
	for _, d := range parts.DuckDBs() {
		const sql = "SELECT string_agg(coalesce(substr(record_id, 26), kind), ' ' ORDER BY seq) FROM "
		printed, own := query(t, d, views, sql+"ledgerlake_rows"), query(t, d, "SET VARIABLE archive = "+quoted(g.m.folder), string(script), sql+"rows")
		if want := "[[0 1 chain-reset 9]]"; fmt.Sprint(printed) != want || fmt.Sprint(own) != want {
			t.Errorf("DuckDB %s: %v, and by rows.sql %v; want %s", d.Version, printed, own, want)
		}
	}
}

// A file of prices that is none is refused with its line.
func TestPricesAreChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prices.csv")
	if err := os.WriteFile(file, []byte(strings.Replace(prices, ",3.75,", ",cheap,", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := parts.Start("sql", filepath.Join(t.TempDir(), "log"), nil, parts.Binary("ledgerlake-export"), "sql", "--engine", "duckdb", "--prices", file, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	code, err := p.Wait(time.Minute)
	if out := p.Output(); err != nil || code != 2 || !strings.Contains(out, "line 3: cache_write_per_million is \"cheap\"") {
		t.Errorf("%d, %v: %s", code, err, out)
	}
}
