package pipeline_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/pipeline"
)

// Of a batch whose first two PUTs fail it is told when it opened, closed, was
// encoded and durable, in that order, by how many attempts, and for which traces;
// and then that Kafka was told of it.
func TestBatchTimes(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		failures := 0
		w.bucket.set(func(op, key string) error {
			if op == "create" && strings.HasPrefix(key, "log/") && failures < 2 {
				failures++
				return errors.New("no answer")
			}
			return nil
		}, nil)
		var mu sync.Mutex
		var commits []pipeline.Commit
		var offsets []pipeline.OffsetCommit
		ev := pipeline.Events{
			Committed: func(c pipeline.Commit) { mu.Lock(); defer mu.Unlock(); commits = append(commits, c) },
			Offsets:   func(o pipeline.OffsetCommit) { mu.Lock(); defer mu.Unlock(); offsets = append(offsets, o) },
		}
		s := pipeline.Settings{Archive: w.bucket, Client: w.options(), Topics: []string{topic}, Version: "test", Rand: newSeeded(1), TraceContexts: 2}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- pipeline.Run(ctx, s, ev) }()
		const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		r := &kgo.Record{Partition: 0, Key: []byte("acme"), Value: []byte(call("s", 1, "")), Headers: []kgo.RecordHeader{{Key: "traceparent", Value: []byte(parent)}}}
		if err := w.client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "Kafka was told", func() bool { mu.Lock(); defer mu.Unlock(); return len(offsets) > 0 })
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour) // what was on its way has ended
		mu.Lock()
		defer mu.Unlock()
		if len(commits) != 1 {
			t.Fatalf("%d commits", len(commits))
		}
		c := commits[0]
		if c.Closed.Before(c.Opened) || c.Encoded.Before(c.Closed) || !c.Durable.After(c.Encoded) || c.Durable.Sub(c.Closed) != c.Took || c.Opened.IsZero() {
			t.Errorf("opened %v, closed %v, encoded %v, durable %v, took %v", c.Opened, c.Closed, c.Encoded, c.Durable, c.Took)
		}
		if c.Attempts != 3 || len(c.Contexts) != 1 || c.Contexts[0].Parent != parent {
			t.Errorf("%d attempts, traces %v", c.Attempts, c.Contexts)
		}
		o := offsets[0]
		if o.Err != nil || len(o.Lines) != 1 || o.Lines[0] != c.Line || o.Began.Before(c.Durable) || o.Ended.Before(o.Began) {
			t.Errorf("offsets: %+v", o)
		}
	})
}
