package sqlview

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
)

var update = flag.Bool("update", false, "write the golden files anew")

func pointer[T any](v T) *T { return &v }

const erasedUser = "u' OR 1=1 --\n"

// moment is an archive of two tenants, one with a name that would end a literal,
// and an order of each form.
func moment() *Moment {
	line := archive.Line{Topic: "audit.calls", TopicID: "kTq2VqYJQ0mFvY8v2b3m0A"}
	all := control.Erasure{All: true}
	order := func(id, tenant string, t control.Target, e control.Erasure) *control.Order {
		return &control.Order{Row: &control.Row{ID: id, Tenant: tenant, ArchivedAt: 1780000000000000, CreatedAt: 1779999999999999, Redaction: &control.Redaction{Target: t, Erasure: e}}}
	}
	cancelled, done := order("9", "acme", control.Target{Turn: pointer("cancelled")}, all), order("8", "acme", control.Target{Log: &line, Before: pointer[int64](9)}, all)
	cancelled.Cancelled, done.Receipted = true, 1
	return &Moment{
		Archive: "01KBCDEFGHM9S346Q3D2000001", Lines: []string{"audit.calls/0: 1 data files of version 1 of the catalog, 1 segments, 3 to 3\nDROP TABLE x"},
		Objects:   []string{"data/acme/day=2026-05-28/a.parquet", "log/audit.calls/kTq2VqYJQ0mFvY8v2b3m0A/00000/00000000000000000003.parquet"},
		Manifests: []string{"acme", "O'Brien \\ 東京"},
		Orders: []*control.Order{
			cancelled, done,
			order("1", "acme", control.Target{Record: pointer("01kbcdefghjkmnpqrstx000001")}, all),
			order("2", "acme", control.Target{Session: pointer("s"), Turn: pointer("t"), Stage: pointer("g"), Within: pointer[int64](3)}, control.Erasure{All: true, User: true}),
			order("3", "O'Brien \\ 東京", control.Target{User: pointer(erasedUser)}, control.Erasure{All: true, User: true, Hard: true}),
			order("4", "acme", control.Target{Log: &line, Offset: pointer[int64](812)}, control.Erasure{Slots: chain.SlotSetOf(audit.SlotContext)}),
			order("5", "acme", control.Target{Log: &line, Before: pointer[int64](9)}, control.Erasure{Slots: chain.SlotSetOf(audit.SlotDecision), User: true}),
		},
	}
}

// What is printed for each engine is in testdata, to be read.
func TestViews(t *testing.T) {
	prices := []Price{{"anthropic", "claude", "2026-01-01", "3", "15", "0.3", "", "USD"}, {"o'ai", "m", "2026-01-01", "1", "2", "", "", "EUR"}}
	for _, e := range Engines() {
		got := Views(moment(), Options{Engine: e, Location: "s3://bucket/audit/", Prices: prices})
		file := filepath.Join("testdata", e.Name+".sql")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || string(want) != got {
			t.Errorf("%s: not what is in %s (%v): if it should be another text now, run go test ./export/sqlview -update", e.Name, file, err)
		}
		if strings.Contains(got, "OR 1=1") || !strings.Contains(got, fmt.Sprintf("%x", sha256.Sum256([]byte(erasedUser)))) {
			t.Errorf("%s: the user that asked to be erased is named, or is not meant", e.Name)
		}
		for _, s := range strings.Split(got, ";\n") {
			if s = strings.TrimSpace(s); s != "" && strings.HasPrefix(s[strings.LastIndexByte(s, '\n')+1:], "--") {
				t.Errorf("%s: a statement ends in a comment: %.200s", e.Name, s)
			}
		}
	}
}

// The views are of one tenant, of none, and with what is else left out.
func TestOptions(t *testing.T) {
	text := Views(moment(), Options{Engine: DuckDB, Location: "/a/", Tenant: "acme", Gated: true, Erased: true, Repeats: true})
	for _, no := range []string{"O''Brien", "NOT coalesce", `"repeat_of" IS NULL`, `"residual" IS NOT NULL`, "CASE"} {
		if strings.Contains(text, no) {
			t.Errorf("there is %q", no)
		}
	}
	if !strings.Contains(text, `WHERE "tenant_id" = 'acme'`) {
		t.Error("the tenant is not asked for")
	}
	empty := Views(&Moment{Archive: "a"}, Options{Engine: Spark, Location: "/a/"})
	odd := Views(&Moment{Archive: "a"}, Options{Engine: Spark, Location: "/${a}/", Tenant: "${env:HOME}"})
	if strings.Contains(odd, "${") {
		t.Errorf("Spark would put in the value of a variable:\n%.600s", odd)
	}
	if !strings.Contains(empty, "WHERE false;") || strings.Contains(empty, "parquet") {
		t.Errorf("%.600s", empty)
	}
}

// A literal is a literal, whatever is in it.
func TestLiterals(t *testing.T) {
	for _, tt := range []struct {
		e          *Engine
		text, want string
	}{
		{DuckDB, `a'b\`, `'a''b\'`},
		{Trino, `a'b\`, `'a''b\'`},
		{Athena, "東京%", "'東京%'"},
		{Spark, `a'b\`, `'a\'b\\'`},
		{DuckDB, "a\nb", "decode(unhex('610a62'))"},
		{Trino, "a\x00", "from_utf8(from_hex('6100'))"},
		{Spark, "\x7f", "decode(unhex('7f'), 'UTF-8')"},
		{Spark, "${env:HOME}", `'\u0024{env:HOME}'`},
		{Trino, "${env:HOME}", "'${env:HOME}'"},
	} {
		if got := tt.e.literal(tt.text); got != tt.want {
			t.Errorf("%s: %q is %s, want %s", tt.e.Name, tt.text, got, tt.want)
		}
	}
	if got := globQuote(`/a{b}*?[c],\`); got != `/a\{b\}\*\?\[c\]\,\\` {
		t.Errorf("%s", got)
	}
}

// Locations that an engine cannot read by are refused.
func TestCheckLocation(t *testing.T) {
	for _, tt := range []struct {
		e        *Engine
		location string
		good     bool
	}{
		{DuckDB, "/data/a b/", true},
		{DuckDB, "/data/*/", false},
		{Athena, "s3://b/", true},
		{Trino, "/data/", false},
		{Spark, "/data/[1]/", true},
		{Spark, "s3a://bucket/audit/", true},
		{Spark, "/data/a:b/", false},
		{Spark, "s3a://bucket/a:b/", false},
		{DuckDB, "/data/a:b/", true},
	} {
		if err := tt.e.CheckLocation(tt.location); (err == nil) != tt.good {
			t.Errorf("%s: %s: %v", tt.e.Name, tt.location, err)
		}
	}
}

// Each query says what it is, is one statement for every engine, and takes its
// parameters as literals.
func TestQueries(t *testing.T) {
	if len(Queries()) != 10 {
		t.Errorf("%d queries", len(Queries()))
	}
	for _, q := range Queries() {
		if len(q.About) < 20 || strings.Contains(q.About, "--") && !strings.Contains(q.About, "--turn") {
			t.Errorf("%s: %q", q.Name, q.About)
		}
		for _, e := range Engines() {
			text, err := q.Text(e, Parameters{Tenant: "O'Brien", Turn: "t';"})
			if err != nil || strings.Count(text, ";\n") != 1 || !strings.HasSuffix(text, ";\n") || strings.Contains(text, "'O'Brien") {
				t.Errorf("%s for %s: %v\n%s", q.Name, e.Name, err, text)
			}
			if e != DuckDB && strings.Contains(text, "sum(input_tokens") {
				t.Errorf("%s for %s: a sum of 64 bits ends with an error where a producer says what it likes", q.Name, e.Name)
			}
			if q.OfTurn() != strings.Contains(text, e.literal("t';")) {
				t.Errorf("%s for %s: of a turn: %v", q.Name, e.Name, q.OfTurn())
			}
			if !strings.Contains(text, e.literal("O'Brien")) {
				t.Errorf("%s for %s does not narrow to a tenant", q.Name, e.Name)
			}
		}
	}
	for _, err := range []error{func() error { _, err := QueryOf("x"); return err }(), func() error { _, err := EngineOf("x"); return err }()} {
		if !errors.Is(err, ErrUnknown) {
			t.Error(err)
		}
	}
}

// Prices are read strictly: a slip of the pen is no price.
func TestReadPrices(t *testing.T) {
	head := strings.Join(PriceHeader, ",") + "\n"
	good := "anthropic,claude,2026-01-01,3,15,0.3,3.75,USD\n"
	for text, want := range map[string]string{
		head + good: "",
		"\ufeff" + head + "a,\"m,1\",2026-01-01,0,0,,,EUR\n": "",
		"":                                           "header",
		"provider,model\n":                           "line 1: want provider,model,from",
		head + good + good:                           "line 3: there is a price of anthropic claude from 2026-01-01 already",
		head + "a,m,2026-1-1,1,1,,,USD\n":            `from is "2026-1-1"`,
		head + "a,m,2026-02-30,1,1,,,USD\n":          `from is "2026-02-30"`,
		head + "a,m,2026-01-01,,1,,,USD\n":           `input_per_million is ""`,
		head + "a,m,2026-01-01,1,-1,,,USD\n":         `output_per_million is "-1"`,
		head + "a,m,2026-01-01,1,1e3,,,USD\n":        `output_per_million is "1e3"`,
		head + "a,m,2026-01-01,1,1,.5,,USD\n":        `cache_read_per_million is ".5"`,
		head + "a,m,2026-01-01,1,1,,1.2.3,USD\n":     `cache_write_per_million is "1.2.3"`,
		head + "a,m,2026-01-01,1,2000000000,,,USD\n": `output_per_million is "2000000000"`,
		head + "a,m,2026-01-01,1,1,,,\n":             "want a provider, a model and a currency",
		head + "a,m,2026-01-01,1,1,,\n":              "wrong number of fields",
	} {
		all, err := ReadPrices(strings.NewReader(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || err == nil && len(all) != 1 {
			t.Errorf("%q: %v, %v; want %q", text, all, err, want)
		}
	}
}
