package proof_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A world is a right archive with all that a segment can hold, and its lines at
// hand to be tampered with.
type world struct {
	*prooftest.Archive
	calls, other, control *prooftest.Line
}

// newWorld builds three lines. Without lost offsets it is proved and nothing
// more; each line has segments behind those that tests change.
func newWorld() *world {
	a := prooftest.New()
	w := &world{a, a.Line("audit.calls", 0), a.Line("audit.calls", 1), a.Line(audit.ControlTopic, 0)}
	for _, fill := range []func(*prooftest.Batch){
		func(b *prooftest.Batch) {
			b.Call("acme")
			b.Call("a/b")
			b.Call("東京")
			b.Call("acme")
			b.Call("acme")
		},
		func(b *prooftest.Batch) { b.Call("acme"); b.Duplicate("acme", 0); b.Call("a/b") },
		func(b *prooftest.Batch) {
			b.Reject("acme", audit.ReasonInvalidUnicode, []byte("{\xff"))
			b.Call("東京")
			b.Call("acme")
			b.Reject(audit.TenantUnattributed, audit.ReasonNullValue, nil)
			b.Reject(audit.TenantUnattributed, audit.ReasonEmptyValue, []byte{})
		},
		func(b *prooftest.Batch) {
			b.Skip(1, archive.GapControl)
			b.Call("acme")
			b.Skip(3, archive.GapCompacted)
			b.Call("a/b")
		},
		func(b *prooftest.Batch) { b.Duplicate("東京", 1); b.Duplicate("acme", 4) },
		func(b *prooftest.Batch) { b.Call("acme"); b.Call("acme"); b.Duplicate("acme", 8); b.Call("a/b") },
		func(b *prooftest.Batch) { b.Call("acme") },
	} {
		w.calls.Segment(fill)
	}
	for range 3 {
		w.other.Segment(func(b *prooftest.Batch) { b.Call("globex"); b.Call("acme") })
		w.control.Segment(func(b *prooftest.Batch) { b.Control("acme") })
	}
	return w
}

// verify verifies objects and requires a report.
func verify(t testing.TB, objects map[string][]byte) *proof.Report {
	t.Helper()
	return verifyWith(t, objects, proof.Options{Unsigned: true})
}

func verifyWith(t testing.TB, objects map[string][]byte, o proof.Options) *proof.Report {
	t.Helper()
	r, err := proof.Verify(context.Background(), prooftest.Bucket(objects), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wantExit requires an exit code and prints what the report says otherwise.
func wantExit(t testing.TB, r *proof.Report, exit int) {
	t.Helper()
	if r.ExitCode() != exit {
		t.Fatalf("exit %d, want %d: faults %v, less %q, looks %q", r.ExitCode(), exit, r.Faults, r.Less, r.Looks)
	}
}

// wantFault requires a fault of a kind whose line of text holds all words.
func wantFault(t testing.TB, r *proof.Report, kind proof.FaultKind, words ...string) {
	t.Helper()
	wantExit(t, r, 1)
	found := slices.ContainsFunc(r.Faults, func(f proof.Fault) bool {
		return f.Kind == kind && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(f.String(), w) })
	})
	if !found {
		t.Errorf("no fault %s with %q in:", kind, words)
		for _, f := range r.Faults {
			t.Errorf("  [%s] %s", f.Kind, f)
		}
	}
}
