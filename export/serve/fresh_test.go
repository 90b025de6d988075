package serve_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/export/serve"
)

// A flaky is an archive of which the store may be away.
type flaky struct {
	serve.Archive
	looks atomic.Int64
	away  atomic.Bool
}

func (f *flaky) Refresh(ctx context.Context) error {
	f.looks.Add(1)
	if f.away.Load() {
		return errors.New("get log/secret-key: connection refused")
	}
	return f.Archive.Refresh(ctx)
}

// A store that is away is asked once in a while, whoever asks us how often; what
// is wrong with it is for the operator; and when it is back all goes on.
func TestAStoreThatIsAway(t *testing.T) {
	f := &flaky{}
	w := newWorldWith(t, calls("acme"), serve.Options{}, func(a serve.Archive) serve.Archive { f.Archive = a; return f }, "a=acme")
	path := "/v1/tenants/acme/turns/turn-3"
	for range 5 {
		if r := w.ask("a", path); r.status != 200 {
			t.Fatal(r.status)
		}
	}
	if n := f.looks.Load(); n != 1 {
		t.Errorf("%d looks for 5 requests at one moment", n)
	}
	f.away.Store(true)
	w.later(time.Minute)
	for range 5 {
		r := w.ask("a", path)
		if r.status != 502 || r.header.Get("Retry-After") == "" || strings.Contains(r.body, "secret-key") {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	if n := f.looks.Load(); n != 2 {
		t.Errorf("%d looks, want 2", n)
	}
	f.away.Store(false)
	w.later(time.Minute)
	if r := w.ask("a", path); r.status != 200 {
		t.Errorf("when it is back: %d", r.status)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.faults) != 5 || !strings.Contains(w.faults[0].Error(), "secret-key") {
		t.Errorf("the operator hears %v", w.faults)
	}
}
