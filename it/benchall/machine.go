//go:build it

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/it/bench"
)

// A machine is where and with what was measured.
type machine struct {
	cpu, kernel, load string
	duckdb            string
	commit            string
	modules           []string
}

// named are the modules whose versions matter to the numbers.
var named = []string{
	"github.com/twmb/franz-go", "github.com/parquet-go/parquet-go", "github.com/klauspost/compress", "github.com/aws/aws-sdk-go-v2",
	"github.com/aws/aws-sdk-go-v2/service/s3",
}

func readMachine(ctx context.Context, python, commit string) (m machine, err error) {
	m.cpu, m.kernel, m.load, m.commit = "unknown CPU", "unknown kernel", "unknown", commit
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, rest, _ := strings.Cut(string(b), "model name")
		name, _, _ := strings.Cut(rest, "\n")
		m.cpu = strings.TrimSpace(strings.TrimLeft(name, "\t :"))
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.kernel = string(bytes.TrimSpace(b))
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.load, _, _ = strings.Cut(string(b), " ")
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if slices.Contains(named, d.Path) {
				m.modules = append(m.modules, d.Path+" "+d.Version)
			}
		}
	}
	s, err := bench.Spend(ctx, nil, nil, python, "-c", "import duckdb; print(duckdb.__version__)")
	if err != nil {
		return m, fmt.Errorf("-python: %w", err)
	}
	m.duckdb = strings.TrimSpace(string(s.Out))
	return m, nil
}

// lines are what stands below the table.
func (m *machine) lines() []string {
	return []string{
		fmt.Sprintf("%s, %d cores, %s/%s, Linux %s; load average %s at the beginning.", m.cpu, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, m.kernel, m.load),
		fmt.Sprintf("ledgerlake at %s; %s; %s; DuckDB %s.", m.commit, runtime.Version(), strings.Join(m.modules, ", "), m.duckdb),
	}
}
