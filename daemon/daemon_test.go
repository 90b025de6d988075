package daemon

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/config"
)

// The default port is no reason not to start where it is taken; nor is there a
// listener where none is wanted.
func TestListen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	var text bytes.Buffer
	log := NewLogger(&text, config.Log{Level: "info", Format: "json"})
	if l, err := Listen(log, config.HTTP{Listen: taken.Addr().String()}, nil); l != nil || err != nil || !strings.Contains(text.String(), "set http.listen") {
		t.Errorf("the default port is taken: %v, error %v, log %s", l, err, &text)
	}
	if l, err := Listen(log, config.HTTP{}, nil); l != nil || err != nil {
		t.Errorf("none: %v, error %v", l, err)
	}
	Serve(nil, nil, nil)()
}

// A stop takes as long as it takes within the timeout, and not longer; before
// the stop there is no timeout.
func TestStopWithin(t *testing.T) {
	for _, tt := range []struct {
		takes time.Duration // after the stop
		want  error
	}{{0, nil}, {19 * time.Second, nil}, {21 * time.Second, ErrNotStopped}, {time.Hour, ErrNotStopped}} {
		synctest.Test(t, func(t *testing.T) {
			const life, timeout = time.Hour, 20 * time.Second
			ctx, cancel := context.WithTimeout(t.Context(), life)
			defer cancel()
			began := time.Now()
			err := Within(ctx, timeout, func() error { <-ctx.Done(); time.Sleep(tt.takes); return nil })
			if took := time.Since(began) - life; !errors.Is(err, tt.want) || took != min(tt.takes, timeout) {
				t.Errorf("a stop of %v: %v after %v", tt.takes, err, took)
			}
			time.Sleep(tt.takes) // let it end before the bubble does
		})
	}
}

// The Kafka client's warnings are shown at the usual level; its information is
// shown at debug alone.
func TestClientLog(t *testing.T) {
	for level, want := range map[string]int{"info": 2, "debug": 3, "error": 1} {
		var log bytes.Buffer
		c := ClientLog{NewLogger(&log, config.Log{Level: level, Format: "console"}).Sugar()}
		c.Log(kgo.LogLevelError, "cannot dial", "addr", "127.0.0.1:9092")
		c.Log(kgo.LogLevelWarn, "cannot join")
		c.Log(kgo.LogLevelInfo, "joined")
		if n := strings.Count(log.String(), "\n"); n != want {
			t.Errorf("%d lines at %s, want %d:\n%s", n, level, want, log.String())
		}
		if wantInfo := level == "debug"; (c.Level() >= kgo.LogLevelInfo) != wantInfo {
			t.Errorf("at %s the client is asked for %v", level, c.Level())
		}
	}
}
