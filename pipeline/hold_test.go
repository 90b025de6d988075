package pipeline_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/pipeline"
)

// An anchor that no key may sign waits, and rows do not: an unsigned one would
// stay in the line for good. It is written when there is a key again, by this
// process or, where that ends before, by the next one.
func TestAnchorsWaitForAKey(t *testing.T) {
	for _, ends := range []bool{false, true} {
		inWorld(t, 1, func(w *world) {
			key := newControlKey(t)
			var away atomic.Bool
			signs := func(s *pipeline.Settings) {
				signedBy(t, key)(s)
				s.AnchorTopic = ""
				s.Signers = func(time.Time) []note.Signer {
					if away.Load() {
						return nil
					}
					return []note.Signer{key}
				}
			}
			r := w.ingest(signs)
			w.produce(0, calls("s", 0, 3)...)
			w.waitCommitted(0, 3)
			time.Sleep(2 * time.Minute)
			before := len(w.anchorsOf(0))
			away.Store(true)
			w.produce(0, calls("s", 3, 3)...)
			w.waitCommitted(0, 6)
			time.Sleep(5 * time.Minute)
			if got := len(w.anchorsOf(0)); got != before || len(r.stopped) > 0 {
				t.Errorf("%d anchors after %d, %v", got, before, r.stopped)
			}
			if !slices.ContainsFunc(r.warned, func(s string) bool { return strings.Contains(s, "anchor audit.calls/0: it waits") }) {
				t.Errorf("it says %q", r.warned)
			}
			if ends {
				began := time.Now()
				r.wantCleanStop()
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("the stop waits for a key, for %v", took)
				}
				away.Store(false)
				r = w.ingest(signs)
				w.waitCommitted(0, 6)
			}
			away.Store(false)
			time.Sleep(2 * time.Minute)
			r.wantCleanStop()
			w.wantProved(key)
		})
	}
}
