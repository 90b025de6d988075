// Package ledgertest is what every form of a ledger must do: one suite for all,
// which is told what a form promises, and holds it to that.
package ledgertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/ledger"
)

// A Form is one form of the contracts, empty at first. What it does not have is
// nil.
type Form struct {
	Ledger     ledger.Ledger
	Query      ledger.Query
	SoftDelete ledger.SoftDelete
	Redactor   ledger.Redactor
	Evidence   ledger.TamperEvidence
	// Log returns a tenant's records as they are linked, and the hash before them.
	Log func(ctx context.Context, tenant string) ([]*ledger.Record, chain.Hash, error)
	// Settle makes what was recorded and ordered visible, where that takes
	// something. nil: it is at once.
	Settle func()

	// What the form promises.
	Keeps     bool   // calls come back
	Checks    bool   // a call that an archive would reject is an error
	Fills     bool   // what a call does not say is filled in: the time
	Conflicts bool   // another call at known coordinates is [ledger.ErrConflict]
	Deletes   bool   // SoftDelete does it
	Refuses   error  // all that is asked for is this error
	Secret    string // a text that Redactor takes out; "" takes nothing out
}

func (f *Form) settle() {
	if f.Settle != nil {
		f.Settle()
	}
}

// Tenant is whose calls the suite records; Other must never see them.
const (
	Tenant = "acme"
	Other  = "acme2"
)

// Run holds the forms that open makes to their promises. Each test has a new one.
func Run(t *testing.T, open func(t *testing.T) Form) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *Form)
	}{
		{"a form that refuses does so clearly", testRefuses},
		{"calls come back", testKeeps},
		{"a call that is recorded again is one", testRepeats},
		{"another call at the same coordinates changes nothing", testConflicts},
		{"what an archive would reject is an error", testChecks},
		{"the caller's call is its own", testOwnership},
		{"a turn is in order", testTurn},
		{"a session comes in pages, the newest first", testSession},
		{"a range comes in chunks, each call once", testRange},
		{"what is unknown is empty", testUnknown},
		{"many at once", testConcurrent},
		{"a deletion leaves place and shape", testSoftDelete},
		{"evidence shows a change, a swap and a hole", testEvidence},
		{"redaction is pure", testRedactor},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := open(t)
			test.run(t, &f)
		})
	}
}

// Call returns a call of a turn with all slots; n tells it from others.
func Call(turn string, n int) *ledger.Call {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second)
	return &ledger.Call{
		AuditRecordVersion: 19, RecordID: fmt.Sprintf("01KBCDEFGHJKMNPQRSTW%06d", n), SessionID: "s-1", TurnID: turn, StageID: "tool-loop",
		SeqWithinTurn: int64(n), CreatedAt: at, ToolName: "search",
		Principal: ledger.Principal{TenantID: Tenant, UserID: "user-4711", ActorKind: "user", SessionAuthMethod: "clerk"},
		Ran:       ledger.Ran{CallClass: "worker", Provider: "anthropic", Model: "m-1", Transport: "native"},
		Decision:  &ledger.Decision{RequestedModel: "m-0", SelectedReason: "matrix-pick", RungOrdinal: new(int64(0)), FallbackChain: []string{}},
		Outcome:   ledger.Outcome{Status: "ok", LatencyMS: new(12.5), FinishReason: "stop", HTTPStatus: new(int64(200)), Why: json.RawMessage(`{"gatewayAttempt":1}`)},

		FamilyLock:      &ledger.FamilyLock{ResolverPath: "session>matrix", ByokActive: new(false)},
		TokenCost:       &ledger.TokenCost{InputTokens: new(int64(812)), OutputTokens: new(int64(40))},
		ToolSelection:   json.RawMessage(fmt.Sprintf(`{"chosen":"search","n":%d}`, n)),
		CacheBreakpoint: &ledger.CacheBreakpoint{HitPct: new(99.5)},
		Extra:           ledger.Members{{Name: "later", Value: json.RawMessage(`{"x":1.10}`)}},
	}
}

// record records calls that must be taken.
func (f *Form) record(t *testing.T, calls ...*ledger.Call) {
	t.Helper()
	for _, c := range calls {
		if err := f.Ledger.RecordCall(t.Context(), c); err != nil {
			t.Fatalf("call %s: %v", c.RecordID, err)
		}
	}
	f.settle()
}

// keeps skips a test of forms that keep nothing, or have no query.
func (f *Form) keeps(t *testing.T) {
	t.Helper()
	if !f.Keeps || f.Ledger == nil || f.Query == nil {
		t.Skip("the form does not promise it")
	}
}

func testRefuses(t *testing.T, f *Form) {
	if f.Refuses == nil {
		t.Skip("the form refuses nothing")
	}
	ctx := t.Context()
	errs := map[string]error{}
	if f.Ledger != nil {
		errs["RecordCall"] = f.Ledger.RecordCall(ctx, Call("t-1", 1))
	}
	if f.Query != nil {
		_, errs["Turn"] = f.Query.Turn(ctx, Tenant, "s-1", "t-1")
		_, errs["Session"] = f.Query.Session(ctx, Tenant, "s-1", ledger.Page{})
		for _, err := range f.Query.Range(ctx, Tenant, ledger.Range{}) {
			errs["Range"] = err
		}
	}
	if f.SoftDelete != nil {
		_, errs["SoftDelete"] = f.SoftDelete.SoftDelete(ctx, Tenant, Call("t-1", 1).RecordID, ledger.Request{Reason: "gdpr"})
	}
	for name, err := range errs {
		if !errors.Is(err, f.Refuses) {
			t.Errorf("%s: %v, want %v", name, err, f.Refuses)
		}
	}
}

func testKeeps(t *testing.T, f *Form) {
	f.keeps(t)
	c := Call("t-1", 1)
	f.record(t, c)
	got, err := f.Query.Turn(t.Context(), Tenant, "s-1", "t-1")
	if err != nil || len(got) != 1 {
		t.Fatalf("%d records, %v", len(got), err)
	}
	equal(t, &got[0].Call, c)
	if _, erased := got[0].Redaction(); erased || got[0].Row == nil {
		t.Errorf("a record without a row, or erased: %+v", got[0].Row)
	}
}

// equal requires that two calls say the same.
func equal(t *testing.T, got, want *ledger.Call) {
	t.Helper()
	var a, b map[string]any
	if err := errors.Join(json.Unmarshal(got.AppendJSON(nil), &a), json.Unmarshal(want.AppendJSON(nil), &b)); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("got  %v\nwant %v", a, b)
	}
}

func testRepeats(t *testing.T, f *Form) {
	if f.Ledger == nil || f.Refuses != nil {
		t.Skip("the form takes no calls")
	}
	again := Call("t-1", 1)
	again.RecordID, again.CreatedAt = "01KBCDEFGHJKMNPQRSTW999999", again.CreatedAt.Add(time.Second) // ids and time may be made anew
	f.record(t, Call("t-1", 1), Call("t-1", 1), again)
	if !f.Keeps {
		return
	}
	got, err := f.Query.Turn(t.Context(), Tenant, "s-1", "t-1")
	if err != nil || len(got) != 1 {
		t.Fatalf("%d records, %v", len(got), err)
	}
	equal(t, &got[0].Call, Call("t-1", 1))
}

func testConflicts(t *testing.T, f *Form) {
	f.keeps(t)
	f.record(t, Call("t-1", 1))
	other := Call("t-1", 1)
	other.RecordID, other.Ran.Model = "01KBCDEFGHJKMNPQRSTW999999", "m-2"
	if err := f.Ledger.RecordCall(t.Context(), other); f.Conflicts != errors.Is(err, ledger.ErrConflict) || err != nil && !f.Conflicts {
		t.Errorf("another call: %v", err)
	}
	f.settle()
	got, err := f.Query.Turn(t.Context(), Tenant, "s-1", "t-1")
	if err != nil || len(got) != 1 {
		t.Fatalf("%d records, %v", len(got), err)
	}
	equal(t, &got[0].Call, Call("t-1", 1))
}

func testChecks(t *testing.T, f *Form) {
	if !f.Checks {
		t.Skip("the form does not promise it")
	}
	for name, change := range map[string]func(*ledger.Call){
		"no tenant":    func(c *ledger.Call) { c.Principal.TenantID = "" },
		"a bad tenant": func(c *ledger.Call) { c.Principal.TenantID = "_partition" },
		"no session":   func(c *ledger.Call) { c.SessionID = "" },
		"no record id": func(c *ledger.Call) { c.RecordID = "x" },
		"no time":      func(c *ledger.Call) { c.CreatedAt = time.Time{} },
		"before zero":  func(c *ledger.Call) { c.SeqWithinTurn = -1 },
		"a bad slot":   func(c *ledger.Call) { c.ToolSelection = json.RawMessage(`[]`) },
	} {
		c := Call("t-1", 1)
		change(c)
		err := f.Ledger.RecordCall(t.Context(), c)
		if f.Fills && c.CreatedAt.IsZero() {
			continue
		}
		if !errors.Is(err, ledger.ErrNoRecord) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func testOwnership(t *testing.T, f *Form) {
	f.keeps(t)
	c := Call("t-1", 1)
	f.record(t, c)
	equal(t, c, Call("t-1", 1))
	c.FamilyLock.ResolverPath, c.ToolSelection[2] = "changed", 'X'
	*c.TokenCost.InputTokens = 0
	got, err := f.Query.Turn(t.Context(), Tenant, "s-1", "t-1")
	if err != nil || len(got) != 1 {
		t.Fatalf("%d records, %v", len(got), err)
	}
	equal(t, &got[0].Call, Call("t-1", 1))
	got[0].FamilyLock.ResolverPath = "changed" // what was asked for is the asker's
	again, err := f.Query.Turn(t.Context(), Tenant, "s-1", "t-1")
	if err != nil || len(again) != 1 {
		t.Fatalf("%d records, %v", len(again), err)
	}
	equal(t, &again[0].Call, Call("t-1", 1))
}

// seqs returns the numbers of records.
func seqs(records []*ledger.Record) (all []int64) {
	for _, r := range records {
		all = append(all, r.SeqWithinTurn)
	}
	return all
}

func testTurn(t *testing.T, f *Form) {
	f.keeps(t)
	for _, n := range []int{3, 1, 2} {
		f.record(t, Call("t-1", n), Call("t-2", n+10))
	}
	elsewhere := Call("t-1", 5) // a turn of that name in another session, and of another tenant
	elsewhere.SessionID = "s-2"
	theirs := Call("t-1", 6)
	theirs.Principal.TenantID = Other
	f.record(t, elsewhere, theirs)
	got, err := f.Query.Turn(t.Context(), Tenant, "s-1", "t-1")
	if want := []int64{1, 2, 3}; err != nil || !slices.Equal(seqs(got), want) {
		t.Errorf("got %v, %v, want %v", seqs(got), err, want)
	}
}

func testSession(t *testing.T, f *Form) {
	f.keeps(t)
	for _, n := range []int{2, 5, 1, 4, 3} {
		f.record(t, Call(fmt.Sprint("t-", n), n))
	}
	ask := func(p ledger.Page) (records []*ledger.Record) {
		records, err := f.Query.Session(t.Context(), Tenant, "s-1", p)
		if err != nil {
			t.Fatal(err)
		}
		return records
	}
	if got := seqs(ask(ledger.Page{})); !slices.Equal(got, []int64{5, 4, 3, 2, 1}) {
		t.Errorf("all: %v", got)
	}
	var all []int64
	page := ledger.Page{Limit: 2}
	for range 3 {
		records := ask(page)
		all = append(all, seqs(records)...)
		page.Before = records[len(records)-1].RecordID
	}
	if !slices.Equal(all, []int64{5, 4, 3, 2, 1}) || len(ask(page)) != 0 {
		t.Errorf("in pages: %v", all)
	}
	if _, err := f.Query.Session(t.Context(), Tenant, "s-1", ledger.Page{Before: "no ULID"}); err == nil {
		t.Error("a page before what is no id")
	}
}

func testRange(t *testing.T, f *Form) {
	f.keeps(t)
	for n := range 10 {
		f.record(t, Call("t-1", n))
	}
	theirs := Call("t-1", 50)
	theirs.Principal.TenantID = Other
	f.record(t, theirs)
	from, to := Call("t-1", 2).CreatedAt, Call("t-1", 9).CreatedAt
	var got []int64
	for chunk, err := range f.Query.Range(t.Context(), Tenant, ledger.Range{From: from, To: to, ChunkSize: 3}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(chunk) == 0 || len(chunk) > 3 {
			t.Errorf("a chunk of %d", len(chunk))
		}
		got = append(got, seqs(chunk)...)
	}
	slices.Sort(got)
	if !slices.Equal(got, []int64{2, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("got %v", got)
	}
	for range f.Query.Range(t.Context(), Tenant, ledger.Range{ChunkSize: 1}) {
		break // who has enough may stop
	}
}

func testUnknown(t *testing.T, f *Form) {
	if f.Query == nil || f.Refuses != nil {
		t.Skip("the form has no query")
	}
	if f.Keeps {
		f.record(t, Call("t-1", 1))
	}
	ctx := t.Context()
	turn, err := f.Query.Turn(ctx, Tenant, "s-1", "no such turn")
	other, err2 := f.Query.Turn(ctx, Other, "s-1", "t-1")
	session, err3 := f.Query.Session(ctx, Tenant, "no such session", ledger.Page{})
	if err := errors.Join(err, err2, err3); err != nil || len(turn)+len(other)+len(session) != 0 {
		t.Errorf("%d, %d, %d records, %v", len(turn), len(other), len(session), err)
	}
	for chunk, err := range f.Query.Range(ctx, Other, ledger.Range{}) {
		t.Errorf("another tenant has %d records, %v", len(chunk), err)
	}
}

func testConcurrent(t *testing.T, f *Form) {
	if f.Ledger == nil || f.Refuses != nil {
		t.Skip("the form takes no calls")
	}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for n := range 20 {
				_ = f.Ledger.RecordCall(context.Background(), Call("t-1", 20*g+n))
				_ = f.Ledger.RecordCall(context.Background(), Call("t-1", n)) // of another's
				if f.Query != nil && n%10 == 0 {
					_, _ = f.Query.Turn(context.Background(), Tenant, "s-1", "t-1")
				}
			}
		})
	}
	all.Wait()
	f.settle()
	if !f.Keeps {
		return
	}
	got, err := f.Query.Turn(t.Context(), Tenant, "s-1", "t-1")
	if err != nil || len(got) != 160 || !slices.IsSorted(seqs(got)) {
		t.Errorf("%d records, %v", len(got), err)
	}
	f.unbroken(t)
}

// unbroken requires that what is kept is linked.
func (f *Form) unbroken(t *testing.T) {
	t.Helper()
	if f.Log == nil || f.Evidence == nil {
		return
	}
	records, initial, err := f.Log(t.Context(), Tenant)
	if err != nil {
		t.Fatal(err)
	}
	if broken := f.Evidence.VerifySequence(records, initial); broken != nil {
		t.Errorf("broken: %+v", broken)
	}
}

func testSoftDelete(t *testing.T, f *Form) {
	if f.SoftDelete == nil {
		t.Skip("the form has none")
	}
	ctx, id := t.Context(), Call("t-1", 2).RecordID
	if !f.Deletes {
		if _, err := f.SoftDelete.SoftDelete(ctx, Tenant, id, ledger.Request{Reason: "gdpr"}); err == nil {
			t.Error("a deletion that is none, and no error")
		}
		return
	}
	f.record(t, Call("t-1", 1), Call("t-1", 2), Call("t-1", 3))
	for tenant, id := range map[string]string{Tenant: Call("t-1", 9).RecordID, Other: id} {
		if _, err := f.SoftDelete.SoftDelete(ctx, tenant, id, ledger.Request{Reason: "gdpr"}); !errors.Is(err, ledger.ErrUnknownRecord) {
			t.Errorf("an unknown record of %s: %v", tenant, err)
		}
	}
	if _, err := f.SoftDelete.SoftDelete(ctx, Tenant, "no ULID", ledger.Request{}); !errors.Is(err, ledger.ErrUnknownRecord) {
		t.Errorf("what is no id: %v", err)
	}
	first, err := f.SoftDelete.SoftDelete(ctx, Tenant, id, ledger.Request{Reason: "gdpr", RequestRef: "R-1"})
	if err != nil || !first.Valid() {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := f.SoftDelete.SoftDelete(ctx, Tenant, id, ledger.Request{Reason: "again"})
	f.settle()
	third, err3 := f.SoftDelete.SoftDelete(ctx, Tenant, id, ledger.Request{Reason: "and again", RequestRef: "R-2"})
	if errors.Join(err, err3) != nil || second != first || third != first {
		t.Errorf("first %v, second %v (%v), third %v (%v)", first, second, err, third, err3)
	}
	f.settle()
	deleted(t, f, first)
}

// deleted requires that the second of three calls is deleted, and the others not.
func deleted(t *testing.T, f *Form, s chain.Sentinel) {
	t.Helper()
	got, err := f.Query.Turn(t.Context(), Tenant, "s-1", "t-1")
	if err != nil || !slices.Equal(seqs(got), []int64{1, 2, 3}) {
		t.Fatalf("%v, %v", seqs(got), err)
	}
	equal(t, &got[0].Call, Call("t-1", 1))
	equal(t, &got[2].Call, Call("t-1", 3))
	r, want := got[1], Call("t-1", 2)
	if there, ok := r.Redaction(); !ok || there != s {
		t.Errorf("sentinel %v, want %v", there, s)
	}
	if r.RecordID != want.RecordID || r.SessionID != want.SessionID || r.StageID != want.StageID || !r.CreatedAt.Equal(want.CreatedAt) ||
		r.Ran.Model != want.Ran.Model || r.ToolName != want.ToolName || r.Outcome.Status != want.Outcome.Status {
		t.Errorf("identity or shape went: %+v", r.Call)
	}
	if r.Decision != nil || r.FamilyLock != nil || r.ToolSelection != nil || r.Outcome.Why != nil || r.Extra.Get("later") != nil {
		t.Errorf("content stayed: %s", r.AppendJSON(nil))
	}
	if err := f.Ledger.RecordCall(t.Context(), want); err != nil {
		t.Errorf("the call once more: %v", err) // a no-op: what was deleted does not come back
	}
	f.settle()
	if got, err = f.Query.Turn(t.Context(), Tenant, "s-1", "t-1"); err != nil || len(got) != 3 || got[1].FamilyLock != nil {
		t.Errorf("it came back: %v, %v", seqs(got), err)
	}
	f.unbroken(t)
}

func testEvidence(t *testing.T, f *Form) {
	if f.Evidence == nil {
		t.Skip("the form has none")
	}
	switch scheme := f.Evidence.Scheme(); scheme {
	case ledger.SchemeNone:
		if b := f.Evidence.VerifySequence(nil, chain.Hash{}); b != nil {
			t.Errorf("nothing is broken: %+v", b)
		}
		return
	case chain.SchemeV1, chain.SchemeHMACv1:
	default:
		t.Errorf("scheme %q", scheme)
	}
	for n := range 4 {
		f.record(t, Call("t-1", n))
	}
	records, initial, err := f.Log(t.Context(), Tenant)
	if err != nil || len(records) != 4 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	linked(t, f.Evidence, records, initial)
	broken(t, f.Evidence, records, initial)
}

// linked requires that each anchor is the link to the one before.
func linked(t *testing.T, e ledger.TamperEvidence, records []*ledger.Record, previous chain.Hash) {
	t.Helper()
	if b := e.VerifySequence(records, previous); b != nil {
		t.Fatalf("broken: %+v", b)
	}
	for i, r := range records {
		one, err := e.Link(r, previous)
		two, err2 := e.Link(r, previous)
		if errors.Join(err, err2) != nil || one != two || one != r.Row.RowHash {
			t.Errorf("record %d: %v and %v, want %v; %v, %v", i, one, two, r.Row.RowHash, err, err2)
		}
		if other, err := e.Link(r, chain.Hash{1}); err != nil || other == one {
			t.Errorf("record %d: the same link behind another one; %v", i, err)
		}
		previous = one
	}
}

// broken requires that damage is seen where it begins.
func broken(t *testing.T, e ledger.TamperEvidence, records []*ledger.Record, initial chain.Hash) {
	t.Helper()
	changed := func(i int, change func(*chain.Row)) []*ledger.Record {
		all, row := slices.Clone(records), *records[i].Row
		change(&row)
		all[i] = &ledger.Record{Call: records[i].Call, Row: &row}
		return all
	}
	swapped := slices.Clone(records)
	swapped[1], swapped[2] = swapped[2], swapped[1]
	for name, c := range map[string]struct {
		records []*ledger.Record
		at      int
	}{
		"a column":  {changed(2, func(r *chain.Row) { r.ModelID = audit.Str("m-9") }), 2},
		"a slot":    {changed(1, func(r *chain.Row) { r.Slots[audit.SlotTokenCost] = []byte(`{}`) }), 1},
		"the user":  {changed(3, func(r *chain.Row) { r.UserID = audit.Str("nobody") }), 3},
		"a hash":    {changed(1, func(r *chain.Row) { r.RowHash[0] ^= 1 }), 1},
		"a swap":    {swapped, 1},
		"a hole":    {slices.Delete(slices.Clone(records), 1, 2), 1},
		"a new one": {slices.Insert(slices.Clone(records), 2, records[1]), 2},
		"no head":   {records[1:], 0},
		"no row":    {[]*ledger.Record{{}}, 0},
	} {
		b := e.VerifySequence(c.records, initial)
		if b == nil || b.Index != c.at || b.Problem == "" || c.records[c.at].Row != nil && b.RecordID != c.records[c.at].Row.RecordID.S {
			t.Errorf("%s: %+v, want a break at %d", name, b, c.at)
		}
	}
}

func testRedactor(t *testing.T, f *Form) {
	if f.Redactor == nil {
		t.Skip("the form has none")
	}
	if id := f.Redactor.PolicyID(); (id == audit.PolicyNone) != (f.Secret == "") || id == "" {
		t.Errorf("policy %q", id)
	}
	c := Call("t-1", 1)
	c.ToolSelection = fmt.Appendf(nil, `{"chosen":%q}`, "it is "+f.Secret+".")
	before := string(c.AppendJSON(nil))
	once, err := f.Redactor.Redact(c)
	if err != nil {
		t.Fatal(err)
	}
	if string(c.AppendJSON(nil)) != before {
		t.Error("the call was changed")
	}
	twice, err := f.Redactor.Redact(once)
	again, err2 := f.Redactor.Redact(c)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	equal(t, twice, once)
	equal(t, again, once)
	if f.Secret == "" {
		equal(t, once, c)
	} else if text := string(once.ToolSelection); text == string(c.ToolSelection) || len(text) == 0 {
		t.Errorf("nothing went: %s", text)
	}
}
