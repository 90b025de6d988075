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
	revision          string
	modules           []string
}

// named are the modules whose versions matter to the numbers.
var named = []string{
	"github.com/twmb/franz-go", "github.com/parquet-go/parquet-go", "github.com/klauspost/compress", "github.com/aws/aws-sdk-go-v2",
	"github.com/aws/aws-sdk-go-v2/service/s3",
}

func readMachine(ctx context.Context, python string) (m machine, err error) {
	m.cpu, m.kernel, m.load = "unknown CPU", "unknown kernel", "unknown"
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
	m.revision = "unknown commit"
	if info, ok := debug.ReadBuildInfo(); ok {
		m.read(info)
	}
	s, err := bench.Spend(ctx, nil, nil, python, "-c", "import duckdb; print(duckdb.__version__)")
	if err != nil {
		return m, fmt.Errorf("-python: %w", err)
	}
	m.duckdb = strings.TrimSpace(string(s.Out))
	return m, nil
}

func (m *machine) read(info *debug.BuildInfo) {
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			m.revision = "commit " + s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			m.revision += " with changes"
		}
	}
	for _, d := range info.Deps {
		if slices.Contains(named, d.Path) {
			m.modules = append(m.modules, d.Path+" "+d.Version)
		}
	}
}

// lines are what stands below the table.
func (m *machine) lines() []string {
	return []string{
		fmt.Sprintf("%s, %d cores, %s/%s, Linux %s; load average %s at the beginning.", m.cpu, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, m.kernel, m.load),
		fmt.Sprintf("ledgerlake at %s; %s; %s; DuckDB %s.", m.revision, runtime.Version(), strings.Join(m.modules, ", "), m.duckdb),
	}
}
