//go:build it

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/it/bench"
	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/it/oracle"
	"github.com/ledgerlake/ledgerlake/it/parts"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// topic is the one that a devstack has.
const topic = "audit.calls"

// What the delay is measured with.
const (
	storeTakes   = 25 * time.Millisecond // for each request
	delayRate    = 500                   // records a second, of 4 partitions
	delayTenants = 64
)

// A stack is an embedded pair with a folder of its own.
type stack struct {
	*parts.Devstack
	r      *runner
	folder string
}

func (r *runner) startStack() (*stack, error) {
	folder, err := os.MkdirTemp("", "ledgerlake-bench")
	if err != nil {
		return nil, err
	}
	d, err := parts.StartDevstack(folder)
	if err != nil {
		os.RemoveAll(folder)
		return nil, err
	}
	return &stack{d, r, folder}, nil
}

func (s *stack) close() {
	s.Kill()
	os.RemoveAll(s.folder)
}

// produce sends records, so many a second, or as fast as it goes.
func (s *stack) produce(ctx context.Context, rows, rate int) error {
	_, err := bench.Spend(ctx, nil, nil, filepath.Join(s.r.bin, "ledgerlake-devstack"), "produce", "--brokers", s.Brokers, "--topic", topic,
		"--rows", strconv.Itoa(rows), "--rate", strconv.Itoa(rate), "--tenants", strconv.Itoa(delayTenants), "--seed", strconv.FormatUint(s.r.seed, 10), "--broken", "0", "--repeats", "0")
	return err
}

// delay measures how long a record waits until it is durable, by the time at
// which the store has answered the PUT of its segment.
func (r *runner) delay(ctx context.Context) error {
	s, err := r.startStack()
	if err != nil {
		return err
	}
	defer s.close()
	at, err := url.Parse(s.Bucket)
	if err != nil {
		return err
	}
	query := at.Query()
	store := faults3.Start(faults3.Options{Behind: query.Get("endpoint")})
	defer store.Close()
	store.Add(faults3.Rule{Times: faults3.Always, Fault: faults3.Slow(storeTakes)})
	query.Set("endpoint", store.URL)
	at.RawQuery = query.Encode()

	rows := min(max(1000, r.rows/20), 20*delayRate) // 20 s
	if err := s.archive(ctx, at.String(), rows); err != nil {
		return err
	}
	delays, err := measureDelays(ctx, s.BucketDir, store.Requests())
	if err != nil {
		return err
	}
	if len(delays) != rows {
		return fmt.Errorf("%d rows in the archive, of %d records", len(delays), rows)
	}
	slices.Sort(delays)
	for _, p := range []float64{50, 95, 99, 100} {
		name := fmt.Sprintf("p%.0f", p)
		if p == 100 {
			name = "the longest"
		}
		d := delays[min(len(delays)-1, int(p/100*float64(len(delays))))]
		r.table.add(fmt.Sprintf("from append to durable, %d records a second in 4 partitions, default batches: %s", delayRate, name), fmt.Sprintf("%d ms", d.Milliseconds()),
			fmt.Sprintf("%d ms", storeTakes.Milliseconds()), "", "the time that the store takes for each request; the batch waits up to 50 ms")
	}
	return nil
}

// archive has ingest archive records as they are produced.
func (s *stack) archive(ctx context.Context, bucket string, rows int) error {
	address, err := parts.FreeAddress()
	if err != nil {
		return err
	}
	p, err := parts.Start("ingest", filepath.Join(s.folder, "ingest.log"), s.Env, filepath.Join(s.r.bin, "ledgerlake-ingest"), "run",
		"--brokers", s.Brokers, "--topics", topic, "--group", "bench", "--bucket", bucket, "--http.listen", address, "--log-level", "warn")
	if err != nil {
		return err
	}
	defer p.Kill()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers))
	if err != nil {
		return err
	}
	defer client.Close()
	group := oracle.Group{Client: client, Name: "bench"}
	alive := func() error {
		if !p.Running() {
			return errors.New("ingest ended: " + p.Output())
		}
		return nil
	}
	// What a start takes is no delay of a record.
	if err := waitUntilReady(ctx, "http://"+address+"/readyz", alive); err != nil {
		return err
	}
	if err := s.produce(ctx, rows, delayRate); err != nil {
		return err
	}
	return group.WaitDrained(ctx, alive, topic)
}

// waitUntilReady waits until ingest has its partitions.
func waitUntilReady(ctx context.Context, address string, alive func() error) error {
	for tick := time.Tick(50 * time.Millisecond); ; {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		if err := alive(); err != nil {
			return err
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// measureDelays returns, of each row, the time from its Kafka timestamp to the
// answer of the store.
func measureDelays(ctx context.Context, folder string, requests []faults3.Request) (all []time.Duration, err error) {
	dir, err := archive.OpenDir(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	for _, r := range requests {
		_, key, _ := strings.Cut(r.Key, archive.LogPrefix)
		if r.Op != faults3.Put || key == "" || r.Status != http.StatusOK {
			continue
		}
		body, err := dir.Get(ctx, archive.LogPrefix+key)
		if err != nil {
			return nil, err
		}
		f, err := parquet.Open(body)
		if err != nil {
			return nil, err
		}
		for row, err := range f.Select("kafka_timestamp") {
			if err != nil {
				return nil, err
			}
			all = append(all, r.Time.Sub(time.UnixMicro(row.KafkaTimestamp.N)))
		}
	}
	return all, nil
}
