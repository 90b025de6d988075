package metricspage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// A section is replaced and nothing beside it; what is not ours is left out.
func TestUpdate(t *testing.T) {
	r := prometheus.NewRegistry()
	rows := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "our_rows_total", Help: "Rows."}, []string{"kind"})
	rows.WithLabelValues("data").Inc()
	r.MustRegister(rows, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "their_gauge", Help: "x"}, func() float64 { return 1 }))
	page := filepath.Join(t.TempDir(), "page.md")
	const around = "# Page\n\n<!-- a, made by its tests with -update; do not edit it. -->\n\n" + Head
	if err := os.WriteFile(page, []byte(around+"| old |\n\n<!-- End of a. -->\n\nrest\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	Check(t, page, "a", r, "our_", true)
	body, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if want := around + "| `our_rows_total` | counter | `kind` | Rows. |\n\n<!-- End of a. -->\n\nrest\n"; string(body) != want {
		t.Errorf("the page is\n%s\nwant\n%s", body, want)
	}
	Check(t, page, "a", r, "our_", false)
}

// A metric without a series is known all the same.
func TestRegistered(t *testing.T) {
	r := prometheus.NewRegistry()
	r.MustRegister(prometheus.NewCounterVec(prometheus.CounterOpts{Name: "our_rows_total", Help: "Rows."}, []string{"kind"}))
	if names := strings.Join(registered(r), " "); names != "our_rows_total" {
		t.Errorf("registered: %q", names)
	}
}
