package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ledgerlake/ledgerlake/proof"
)

// namespace begins the name of every metric of ours.
const namespace = "ledgerlake_verify"

// A metricsFile is what --metrics-file names: where a run leaves what Prometheus
// is told of it, in the text format, for the textfile collector of node_exporter.
type metricsFile struct {
	name   string // "" writes nothing
	target string // of the archive, as a label
}

// A ran is one run that has ended.
type ran struct {
	began, ended time.Time
	exit         int
	report       *proof.Report // nil: there is no verdict
}

// good reports whether all that was asked for was proved.
func (r *ran) good() bool { return r.exit == 0 || r.exit == 4 }

// write replaces the file, whole or not at all. The time of the last success is
// taken from the file that is there, where this run was none.
func (f *metricsFile) write(r *ran) error {
	if f.name == "" {
		return nil
	}
	success := r.ended
	if !r.good() {
		var err error
		if success, err = f.lastSuccess(); err != nil {
			return fmt.Errorf("--metrics-file: %w", err)
		}
	}
	if err := prometheus.WriteToTextfile(f.name, f.metrics(r, success)); err != nil {
		return fmt.Errorf("--metrics-file: %w", err)
	}
	return nil
}

// metrics returns what is told of a run; a zero success is that there was none.
func (f *metricsFile) metrics(r *ran, success time.Time) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	gauge := func(name, help string, v float64) {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help, ConstLabels: prometheus.Labels{"target": f.target}})
		g.Set(v)
		registry.MustRegister(g)
	}
	gauge("last_run_timestamp_seconds", "When the last run ended, in seconds since 1970.", seconds(r.ended))
	if !success.IsZero() {
		gauge("last_success_timestamp_seconds", "When a run last proved all that was asked for, in seconds since 1970.", seconds(success))
	}
	gauge("exit_code", "Of the last run: 0 proved, 1 tampered or damaged, 2 no verdict, 3 less than was asked for, 4 proved, with something to look at.", float64(r.exit))
	gauge("duration_seconds", "How long the last run took.", r.ended.Sub(r.began).Seconds())
	if t := r.report; t != nil {
		gauge("faults", "Faults that the last run found. Any is an alarm.", float64(t.FaultCount))
		gauge("looks", "Things to look at that the last run found.", float64(len(t.Looks)))
		gauge("rows", "Rows of what the last run verified.", float64(t.Totals.Rows))
		gauge("segments", "Segments of what the last run verified.", float64(t.Totals.Segments))
		gauge("data_files", "Data files of what the last run verified.", float64(t.Totals.DataFiles))
		gauge("object_bytes", "Bytes of those segments and data files.", float64(t.Totals.Bytes+t.Totals.DataBytes))
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "1; the labels say which version ran, and what built it.",
		ConstLabels: prometheus.Labels{"target": f.target, "version": version, "go_version": runtime.Version()},
	})
	info.Set(1)
	registry.MustRegister(info)
	return registry
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// lastSuccess returns the time of the last success that the file states; zero
// where it states none.
func (f *metricsFile) lastSuccess() (time.Time, error) {
	old, err := os.Open(f.name)
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	defer func() { _ = old.Close() }()
	lines := bufio.NewScanner(old)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), namespace+"_last_success_timestamp_seconds{") {
			continue
		}
		_, value, _ := strings.Cut(lines.Text(), "} ")
		s, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("%s is no file of metrics of %s", f.name, program)
		}
		return time.UnixMilli(int64(s * 1000)), nil
	}
	return time.Time{}, lines.Err()
}

// targetLabel names an archive as it was named, without how to reach it.
func targetLabel(target string) string {
	name, _, _ := strings.Cut(target, "?")
	return name
}
