package proof

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// An offsetSet finds every offset that comes twice, and counts what lies in a
// range, as a plain set does.
func TestOffsetSets(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var s offsetSet
		plain := map[int64]bool{}
		span := int64(1) << (4 + rng.IntN(14))
		for range 300 {
			n := rng.Int64N(span)
			if s.add(n) == plain[n] {
				t.Fatalf("%d is new: %v", n, !plain[n])
			}
			plain[n] = true
		}
		for len(plain) > 0 {
			least, ok := s.least()
			want := slices.Min(keys(plain))
			if !ok || least != want {
				t.Fatalf("least is %d, want %d", least, want)
			}
			first := least - rng.Int64N(3)
			next := first + rng.Int64N(span)
			count := int64(0)
			for n := range plain {
				if first <= n && n < next {
					count++
					delete(plain, n)
				}
			}
			if got := s.take(first, next); got != count {
				t.Fatalf("%d to %d: %d, want %d", first, next, got, count)
			}
		}
		if _, ok := s.least(); ok || len(s.chunks) != 0 {
			t.Fatal("something is left")
		}
	}
}

func keys(m map[int64]bool) (all []int64) {
	for k := range m {
		all = append(all, k)
	}
	return all
}

// A sweep knows of each row what a search through all stretches finds.
func TestSweeps(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		n := &namedRows{}
		for range rng.IntN(20) {
			first := rng.Int64N(100)
			n.list = append(n.list, named{first: first, last: first + rng.Int64N(20)})
		}
		n.seal()
		log := archive.Line{Topic: "t"}
		g := &governance{tenants: map[string]*governed{"a": {named: map[archive.Line]*namedRows{log: n}}}}
		from := rng.Int64N(60)
		s := g.sweepOf("a", log, from, from+40)
		for seq := from; seq <= from+40; seq++ {
			want := 0
			for _, x := range n.list {
				if x.first <= seq && seq <= x.last {
					want++
				}
			}
			if got := len(s.at(seq)); got != want {
				t.Fatalf("seq %d of %v: %d, want %d", seq, n.list, got, want)
			}
		}
	}
}

// A receipt counts once all of its parts are there, in any order; one that was
// sent twice counts all the same, and parts of two do not mix.
func TestReceiptsAreWhole(t *testing.T) {
	part := func(order string, n, of int64) *receipt { return &receipt{order: order, part: n, parts: of} }
	for name, c := range map[string]struct {
		parts []*receipt
		want  int
	}{
		"none":                   {nil, 0},
		"one":                    {[]*receipt{part("a", 1, 1)}, 1},
		"two of one order":       {[]*receipt{part("a", 1, 1), part("a", 1, 1)}, 2},
		"half":                   {[]*receipt{part("a", 1, 2)}, 0},
		"the same half twice":    {[]*receipt{part("a", 1, 2), part("a", 1, 2)}, 0},
		"halves":                 {[]*receipt{part("a", 2, 2), part("a", 1, 2)}, 1},
		"halves of two orders":   {[]*receipt{part("a", 1, 2), part("b", 2, 2)}, 0},
		"halves of two receipts": {[]*receipt{part("a", 1, 2), part("a", 2, 3)}, 0},
		"sent again":             {[]*receipt{part("a", 1, 2), part("a", 1, 2), part("a", 2, 2)}, 1},
	} {
		if got := len(series(c.parts)); got != c.want {
			t.Errorf("%s: %d receipts, want %d", name, got, c.want)
		}
	}
}

// A target means the rows that it names, and no others, as far as the columns
// that are left can tell.
func TestTargets(t *testing.T) {
	row := &chain.Row{Record: audit.Record{
		Topic: audit.Str("t"), TopicID: audit.Str("i"), Partition: audit.I64(2), Seq: audit.I64(7), KafkaOffset: audit.I64(9), Kind: audit.Str(audit.KindCall),
		RecordID: audit.Str("01KBCDEFGHJKMNPQRSTVWXYZ02"), SessionID: audit.Str("s"), TurnID: audit.Str("u"), StageID: audit.Str("g"), SeqWithinTurn: audit.I64(3), UserID: audit.Str("p"),
	}}
	gone := *row
	gone.UserID, gone.UserCommit = audit.Text{}, chain.NullHash{Valid: true}
	for text, want := range map[string][3]bool{ // the row, without user_id, erased hard
		`{"recordId":"01kbcdefghjkmnpqrstvwxyz02"}`:                      {true, true, true},
		`{"recordId":"01KBCDEFGHJKMNPQRSTVWXYZ03"}`:                      {false, false, true},
		`{"sessionId":"s","turnId":"u","stageId":"g","seqWithinTurn":3}`: {true, true, true},
		`{"sessionId":"s","turnId":"u","stageId":"g","seqWithinTurn":4}`: {false, false, true},
		`{"turnId":"u"}`:    {true, true, true},
		`{"turnId":"x"}`:    {false, false, true},
		`{"sessionId":"s"}`: {true, true, true},
		`{"sessionId":"x"}`: {false, false, true},
		`{"userId":"p"}`:    {true, true, true},
		`{"userId":"x"}`:    {false, true, true},
		`{"topic":"t","topicId":"i","partition":2,"offset":9}`:     {true, true, true},
		`{"topic":"t","topicId":"i","partition":2,"offset":8}`:     {false, false, false},
		`{"topic":"t","topicId":"i","partition":3,"offset":9}`:     {false, false, false},
		`{"topic":"t","topicId":"i","partition":2,"seqBefore":8}`:  {true, true, true},
		`{"topic":"t","topicId":"i","partition":2,"seqBefore":7}`:  {false, false, false},
		`{"topic":"x","topicId":"i","partition":2,"seqBefore":99}`: {false, false, false},
	} {
		o, err := readOrder([]byte(`{"target":` + text + `,"slots":"*","user":false,"hard":false}`))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := [3]bool{o.target.fits(row, false), o.target.fits(&gone, false), o.target.fits(&gone, true)}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	for _, bad := range []string{`{}`, `{"turnId":"u","userId":"p"}`, `{"topic":"t","partition":2,"offset":9}`, `{"topic":"t","topicId":"i","partition":2}`, `{"stageId":"g"}`, `{"turnId":1}`, `{"recordId":"x"}`} {
		if o, err := readOrder([]byte(`{"target":` + bad + `,"slots":"*","user":false,"hard":false}`)); err == nil {
			t.Errorf("%s is %+v", bad, o.target)
		}
	}
}

// No context of a control row, and no headers of one, make a reader panic.
func FuzzControlRows(f *testing.F) {
	f.Add([]byte(`{"target":{"turnId":"u"},"slots":["context"],"user":true,"hard":false}`), []byte(`{"$headers":[["ledgerlake-signature","x"]]}`))
	f.Add([]byte(`{"redactionId":"01KBCDEFGHJKMNPQRSTVWXYZ02","slots":"*","user":false,"hard":false,"part":1,"parts":2,"erased":[{"topic":"t","topicId":"i","partition":0,"ranges":[[0,4]]}],"deleted":[{"key":"log/x","versions":[]}]}`), []byte(`{}`))
	v := newVerifier(nil, Options{})
	f.Fuzz(func(t *testing.T, context, ext []byte) {
		_, _ = signatureIn(ext)
		g := newGovernance()
		for i, kind := range []string{audit.KindRedaction, audit.KindErasureDone, audit.KindRetentionCut, audit.KindRedactionCancelled} {
			row := &chain.Row{Record: audit.Record{TenantID: audit.Str("a"), Kind: audit.Str(kind), RecordID: audit.Str("01KBCDEFGHJKMNPQRSTVWXYZ02"), Seq: audit.I64(int64(i))}}
			row.Slots[audit.SlotContext], row.Slots[audit.SlotExt] = context, ext
			g.add(v.readControl(row))
		}
		g.seal()
	})
}
