package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kotel"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/ledgerlake/ledgerlake/telemetry/telemetrytest"
)

// A producer that traces with kotel sends records of some traces: each comes back
// at a collector as a link of the batch that has it, trace by trace, once; and the
// trace of a batch goes from Kafka to Kafka.
func TestTraces(t *testing.T) {
	t.Parallel()
	s := newStage(t, kfake.SeedTopics(1, "audit.calls"))
	collector := telemetrytest.New(t)
	s.environ = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL}
	provider := sdk.NewTracerProvider()
	hooks := kotel.NewKotel(kotel.WithTracer(kotel.NewTracer(kotel.TracerProvider(provider), kotel.TracerPropagator(propagation.TraceContext{})))).Hooks()
	producer, err := kgo.NewClient(kgo.SeedBrokers(s.cluster.ListenAddrs()...), kgo.WithHooks(hooks...))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	a := s.start("--topics", "audit.calls", "--batch.rows", "7")
	s.until("ready", a.holds(1))
	var want []string
	const turns, perTurn = 20, 5
	for turn := range turns {
		ctx, span := provider.Tracer("agent").Start(context.Background(), "turn")
		want = append(want, span.SpanContext().TraceID().String())
		for seq := range perTurn {
			r := &kgo.Record{Topic: "audit.calls", Key: []byte("acme"), Value: fmt.Appendf(nil,
				`{"recordId":"01KRNR3ZG0%016d","sessionId":"s","turnId":"%d","stageId":"synthesize","seqWithinTurn":%d,"createdAt":"2026-05-15T12:00:00.000Z","tenantId":"acme","principal":{"userId":"jane.doe"}}`,
				turn*perTurn+seq, turn, seq)}
			if err := producer.ProduceSync(ctx, r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		span.End()
	}
	s.until("durable", func() bool { return s.proved() == turns*perTurn && s.committed("audit.calls", 0) == turns*perTurn })
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	rows, linked := int64(0), map[string]bool{}
	batches := collector.Spans("ingest batch")
	for _, b := range batches {
		_, n := telemetrytest.Attribute(b, "ledgerlake.rows")
		rows += n
		traces := telemetrytest.Linked(b)
		for _, trace := range traces {
			linked[trace] = true
		}
		if slices.Sort(traces); len(slices.Compact(traces)) > int(n) || len(b.Links) > int(n) {
			t.Errorf("a batch of %d rows has %d links", n, len(b.Links))
		}
		if topic, _ := telemetrytest.Attribute(b, "messaging.destination.name"); topic != "audit.calls" {
			t.Errorf("a batch of topic %q", topic)
		}
		if below := strings.Join(collector.Children(b), " "); !strings.HasPrefix(below, "encode put") {
			t.Errorf("below a batch there are %s", below)
		}
		for _, trace := range want {
			if trace == hex.EncodeToString(b.TraceId) {
				t.Error("a batch is a trace of its own: it has records of many")
			}
		}
	}
	if rows != turns*perTurn {
		t.Errorf("batches have %d rows, want %d", rows, turns*perTurn)
	}
	for _, trace := range want {
		if !linked[trace] {
			t.Errorf("no batch is linked to trace %s", trace)
		}
	}
	if len(linked) != turns {
		t.Errorf("batches are linked to %d traces, want %d", len(linked), turns)
	}
	if last := batches[len(batches)-1]; !slices.Contains(collector.Children(last), "commit offset") {
		t.Errorf("Kafka was told of the last batch, and it does not say so: %q", collector.Children(last))
	}
	for _, r := range collector.Got() {
		if text := r.String(); strings.Contains(text, "acme") || strings.Contains(text, "jane") {
			t.Errorf("a tenant or a user stands in %s", text)
		}
	}
}

// A collector that is not there holds up neither records nor the stop.
func TestNoCollector(t *testing.T) {
	t.Parallel()
	s := newStage(t, kfake.SeedTopics(1, "audit.calls"))
	s.environ = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"}
	a := s.start("--topics", "audit.calls", "--shutdown-timeout", "10s")
	s.until("ready", a.holds(1))
	s.produce("audit.calls", 0, 5)
	s.until("durable", func() bool { return s.proved() == 5 })
	if err := a.stop(); err != nil {
		t.Errorf("exit %d: %v", exitCode(err), err)
	}
	if !strings.Contains(a.log.String(), "traces are not taken, and are dropped") {
		t.Error("the log does not say so")
	}
}

// A variable that cannot be used ends the start, by its name.
func TestBadTraceSettings(t *testing.T) {
	environ := []string{"LEDGERLAKE_S3_ACCESS_KEY=id", "LEDGERLAKE_S3_SECRET_KEY=secret", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}
	_, stderr, code := call(t, environ, "run", "--topics", "x", "--brokers", "127.0.0.1:1", "--bucket", "s3://bucket?endpoint=http://127.0.0.1:1")
	if code != exitBadUse || !strings.Contains(stderr, "OTEL_EXPORTER_OTLP_PROTOCOL (environment)") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
