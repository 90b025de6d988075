package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/config"
)

// tenantRows returns the tenants' series.
func tenantRows(t *testing.T, m *metrics) map[string]float64 {
	t.Helper()
	rows := map[string]float64{}
	series, _ := scrape(t, m)
	for name, n := range ours(series) {
		if tenant, ok := strings.CutPrefix(name, `tenant_rows_total{tenant="`); ok {
			f, err := strconv.ParseFloat(n, 64)
			if err != nil {
				t.Fatal(err)
			}
			rows[strings.TrimSuffix(tenant, `"}`)] = f
		}
	}
	return rows
}

// Five tenants that have most of the rows are named among ten thousand that
// come and go. No counter ever falls while it is there, and what all of them
// grow by in a round is the rows of that round.
func TestTheLargestTenantsAreNamed(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	m := newMetrics(idle, config.HTTP{TopTenants: 5})
	before := map[string]float64{}
	for round := range 200 {
		var total float64
		for range 50 { // segments
			rows := map[string]int64{}
			for range 20 {
				rows[fmt.Sprintf("small-%d", random.IntN(10_000))]++
				rows[fmt.Sprintf("large-%d", random.IntN(5))]++
				total += 2
			}
			m.tenants.add(rows)
		}
		now := tenantRows(t, m)
		if len(now) != 6 {
			t.Fatalf("%d series, want 5 tenants and the others", len(now))
		}
		var grown float64
		steady := true
		for tenant, n := range now {
			old, ok := before[tenant]
			steady = steady && ok
			if grown += n - old; n < old {
				t.Fatalf("round %d: %q falls from %g to %g", round, tenant, old, n)
			}
		}
		if steady && grown != total {
			t.Fatalf("round %d: the series grow by %g, want %g", round, grown, total)
		}
		before = now
	}
	for i := range 5 {
		if _, ok := before[fmt.Sprintf("large-%d", i)]; !ok {
			t.Errorf("large-%d is not named: %v", i, before)
		}
	}
}

// A tenant with one row in a hundred is found among ten thousand, also where only
// one is to be named.
func TestAHundredthIsFound(t *testing.T) {
	m := newMetrics(idle, config.HTTP{TopTenants: 1})
	for i := range 100_000 {
		m.tenants.add(map[string]int64{fmt.Sprintf("small-%d", i%9973): 1})
		if i%100 == 0 {
			m.tenants.add(map[string]int64{"large": 1})
		}
	}
	tenantRows(t, m)
	m.tenants.add(map[string]int64{"large": 1})
	if rows := tenantRows(t, m); rows["large"] == 0 {
		t.Errorf("named %v", rows)
	}
}

// Tenants that are alike do not take turns, which would make series without
// end over the days.
func TestAlikeTenantsDoNotTakeTurns(t *testing.T) {
	m := newMetrics(idle, config.HTTP{TopTenants: 10})
	seen := map[string]bool{}
	for range 20 {
		for i := range 10_000 {
			m.tenants.add(map[string]int64{fmt.Sprintf("t-%d", i): 1})
			if i%1000 == 0 {
				for tenant := range tenantRows(t, m) {
					seen[tenant] = true
				}
			}
		}
	}
	if len(seen) > 11 {
		t.Errorf("%d tenants were named in the end, want 10 and the others", len(seen))
	}
}

// A tenant's counter begins at 0 when it is named, also when it was named
// before: what it had in between is among the others.
func TestNamedAnew(t *testing.T) {
	m := newMetrics(idle, config.HTTP{TopTenants: 1})
	for _, step := range []struct {
		tenant string
		rows   int64
		want   map[string]float64
	}{
		{"a", 100, map[string]float64{"a": 100, "": 0}},
		{"b", 1000, map[string]float64{"b": 0, "": 1000}},
		{"b", 1, map[string]float64{"b": 1, "": 1000}},
		{"a", 10_000, map[string]float64{"a": 0, "": 11_000}},
		{"a", 5, map[string]float64{"a": 5, "": 11_000}},
	} {
		m.tenants.add(map[string]int64{step.tenant: step.rows})
		if got := tenantRows(t, m); !maps.Equal(got, step.want) {
			t.Fatalf("after %d rows of %s: %v, want %v", step.rows, step.tenant, got, step.want)
		}
	}
}

// Who was large long ago makes room.
func TestWeightsAge(t *testing.T) {
	m := newMetrics(idle, config.HTTP{TopTenants: 1})
	m.tenants.add(map[string]int64{"old": agingRows})
	for range 12 {
		m.tenants.add(map[string]int64{"new": agingRows / 4})
		tenantRows(t, m)
	}
	if rows := tenantRows(t, m); rows["new"] == 0 {
		t.Errorf("named %v", rows)
	}
}

// A newcomer costs little, however many tenants are watched.
func BenchmarkNewTenants(b *testing.B) {
	top := newTopTenants(1000)
	for i := range b.N {
		top.add(map[string]int64{strconv.Itoa(i): 1})
	}
}
