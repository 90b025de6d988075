//go:build it

package it

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/internal/workload"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// How many records a test sends, of how many tenants.
const (
	shortRecords = 40_000
	longRecords  = 200_000
	tenants      = 50
)

func records() int {
	if os.Getenv("IT_LONG") != "" {
		return longRecords
	}
	return shortRecords
}

// A truth is what was sent, and so what an archive of it must say.
type truth struct {
	sent, rows, rejects, repeats int64
	reasons                      map[string]int64
	tenants                      map[string]sums // of rows
}

// sums are what a query adds up per tenant.
type sums struct{ rows, input, output int64 }

func newTruth() *truth { return &truth{reasons: map[string]int64{}, tenants: map[string]sums{}} }

// add counts one record.
func (tr *truth) add(r workload.Record) {
	tr.sent++
	switch r.Class {
	case workload.Repeat:
		tr.repeats++
	case workload.Broken, workload.Conflict:
		tr.rejects++
		tr.reasons[r.Reason]++
	default:
		tr.rows++
		tr.tenants[r.Tenant] = tr.tenants[r.Tenant].plus(tokens(r.Kind, r.Value))
	}
}

// join adds another truth.
func (tr *truth) join(other *truth) {
	tr.sent, tr.rows, tr.rejects, tr.repeats = tr.sent+other.sent, tr.rows+other.rows, tr.rejects+other.rejects, tr.repeats+other.repeats
	for reason, n := range other.reasons {
		tr.reasons[reason] += n
	}
	for tenant, s := range other.tenants {
		tr.tenants[tenant] = tr.tenants[tenant].plus(s)
	}
}

func (s sums) plus(o sums) sums { return sums{s.rows + o.rows, s.input + o.input, s.output + o.output} }

// usage is an object that counts tokens.
type usage struct{ InputTokens, OutputTokens *int64 }

// tokens reads the tokens of a good record as docs/format.md, section 3.2,
// says, with another decoder than the product's.
func tokens(kind string, value []byte) sums {
	var r struct {
		usage
		TokenUsage, TokenCost usage
		Calls                 []usage // of a decision
	}
	if err := json.Unmarshal(value, &r); err != nil {
		panic(fmt.Sprintf("a good record is no JSON: %v", err))
	}
	switch kind {
	case "call":
		return total(usage{
			cmp.Or(r.InputTokens, r.TokenUsage.InputTokens, r.TokenCost.InputTokens),
			cmp.Or(r.OutputTokens, r.TokenUsage.OutputTokens, r.TokenCost.OutputTokens),
		})
	case "decision":
		return total(r.Calls...)
	}
	return sums{rows: 1}
}

// total adds up tokens. A sum is null, here 0, if any of it is absent.
func total(all ...usage) sums {
	s := sums{rows: 1}
	for _, u := range all {
		if u.InputTokens == nil {
			s.input = math.MinInt64
		} else {
			s.input += *u.InputTokens
		}
		if u.OutputTokens == nil {
			s.output = math.MinInt64
		} else {
			s.output += *u.OutputTokens
		}
	}
	s.input, s.output = max(s.input, 0), max(s.output, 0)
	return s
}

// send sends n records to the topic at the given rate per second (0 is as fast
// as it goes): eight in ten by franz-go, one by kcat and one by kafka-python.
// All records of a tenant go to one partition, whoever sends them. The func
// that it returns waits for the end, and says what was sent.
func (s *stream) send(t *testing.T, n, rate int) (wait func() *truth) {
	t.Helper()
	senders := []func(ctx context.Context, n, rate int) (*truth, error){s.sendWithFranz, s.sendWithKcat, s.sendWithPython}
	shares := []int{n - 2*(n/10), n / 10, n / 10}
	truths, errs := make([]*truth, len(senders)), make([]error, len(senders))
	var wg sync.WaitGroup
	for i, send := range senders {
		wg.Go(func() { truths[i], errs[i] = send(t.Context(), shares[i], rate*shares[i]/n) })
	}
	t.Cleanup(wg.Wait)
	return func() *truth {
		t.Helper()
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		all := newTruth()
		for _, part := range truths {
			all.join(part)
		}
		if all.sent != int64(n) {
			t.Fatalf("sent %d, want %d", all.sent, n)
		}
		return all
	}
}

// generator returns a generator of plausible records, one in a hundred broken.
// Each sender has its own, so that no two of them share coordinates.
func generator(seed uint64) *workload.Generator {
	g := workload.New(seed, tenants)
	g.Broken, g.Repeats, g.Conflicts, g.Start = 0.01, 0.02, 0.001, time.Now().Add(-time.Hour)
	return g
}

// pace waits so that sent records of rate per second are not too early.
func pace(begin time.Time, sent, rate int) {
	if rate > 0 {
		time.Sleep(time.Until(begin.Add(time.Second * time.Duration(sent) / time.Duration(rate))))
	}
}

func (s *stream) sendWithFranz(ctx context.Context, n, rate int) (*truth, error) {
	g, tr, begin := generator(1), newTruth(), time.Now()
	var first error
	for i := range n {
		r := g.Next()
		tr.add(r)
		out := &kgo.Record{Topic: s.topic, Key: r.Key, Value: r.Value, Timestamp: r.Time}
		for _, h := range r.Headers {
			out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
		}
		s.client.Produce(ctx, out, func(_ *kgo.Record, err error) {
			if err != nil {
				first = err // promises run one after the other
			}
		})
		if i%100 == 0 {
			pace(begin, i, rate)
		}
	}
	if err := s.client.Flush(ctx); err != nil {
		return nil, err
	}
	return tr, first
}

// sendWithKcat sends good calls alone: kcat has one list of headers for all,
// and no way to write a record without a value. Their tenant stands in the
// value.
func (s *stream) sendWithKcat(ctx context.Context, n, rate int) (*truth, error) {
	g, tr, begin := generator(2), newTruth(), time.Now()
	g.Broken, g.Repeats, g.Conflicts = 0, 0, 0
	cmd := exec.CommandContext(ctx, "kcat", "-P", "-q", "-E", "-b", s.brokers, "-t", s.topic, "-K", "\t",
		"-X", "topic.partitioner=murmur2_random", "-X", "enable.idempotence=true")
	err := feed(cmd, func(in *bytes.Buffer) bool {
		for range 100 {
			r := g.Next()
			for r.Kind != "call" {
				r = g.Next()
			}
			tr.add(r)
			fmt.Fprintf(in, "%s\t%s\n", r.Key, r.Value)
			if tr.sent == int64(n) {
				return false
			}
		}
		pace(begin, int(tr.sent), rate)
		return true
	})
	return tr, err
}

func (s *stream) sendWithPython(ctx context.Context, n, rate int) (*truth, error) {
	type line struct {
		Key     []byte   `json:"key"`
		Value   []byte   `json:"value"`
		Headers [][2]any `json:"headers"`
		Time    int64    `json:"time"`
	}
	g, tr, begin := generator(3), newTruth(), time.Now()
	cmd := exec.CommandContext(ctx, parts.Python("LEDGERLAKE_IT_PYTHON15", "py15"),
		filepath.Join(parts.Root(), "it", "python", "produce.py"), s.brokers, s.topic)
	err := feed(cmd, func(in *bytes.Buffer) bool {
		for range 100 {
			r := g.Next()
			tr.add(r)
			l := line{Key: r.Key, Value: r.Value, Headers: [][2]any{}, Time: r.Time.UnixMilli()}
			for _, h := range r.Headers {
				l.Headers = append(l.Headers, [2]any{h.Name, h.Value})
			}
			if err := json.NewEncoder(in).Encode(l); err != nil {
				panic(err) // bytes and strings always encode
			}
			if tr.sent == int64(n) {
				return false
			}
		}
		pace(begin, int(tr.sent), rate)
		return true
	})
	return tr, err
}

// feed runs cmd and writes to its stdin what next gives, until it says false.
func feed(cmd *exec.Cmd, next func(*bytes.Buffer) bool) error {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for more := true; more && err == nil; {
		var chunk bytes.Buffer
		more = next(&chunk)
		_, err = in.Write(chunk.Bytes())
	}
	in.Close()
	if ended := cmd.Wait(); ended != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), ended, stderr.String())
	}
	return err
}
