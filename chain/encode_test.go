package chain

import (
	"math"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
)

// Two lists of values with one encoding would be two rows with one hash. Each
// pair below tries to move a byte, or a null, from one value into the next.
func TestEncodingsOfDifferentValuesDiffer(t *testing.T) {
	null, str, num := AppendNull, func(s string) func([]byte) []byte {
		return func(b []byte) []byte { return AppendString(b, s) }
	}, func(n int64) func([]byte) []byte {
		return func(b []byte) []byte { return AppendInt(b, n) }
	}
	seen := map[string]int{}
	for i, values := range [][]func([]byte) []byte{
		{},
		{null},
		{null, null},
		{str("")},
		{str(""), str("")},
		{str("n,")},
		{str("ab"), str("c")},
		{str("a"), str("bc")},
		{str("a,s2:bc")},
		{str("7")},
		{num(7)},
		{num(-7)},
		{num(0)},
		{num(math.MinInt64)},
		{num(math.MaxInt64)},
		{str("i7,")},
		{num(1), num(1)},
		{num(11)},
	} {
		var b []byte
		for _, appendValue := range values {
			b = appendValue(b)
		}
		if j, taken := seen[string(b)]; taken {
			t.Errorf("lists %d and %d are both %q", i, j, b)
		}
		seen[string(b)] = i
	}
}

// All 31 header columns are hashed, in order, each by its own type.
func TestHeaderHasEveryColumnInOrder(t *testing.T) {
	var r audit.Record
	var want []byte
	for i, c := range audit.Header {
		if c.Text != nil {
			*c.Text(&r) = audit.Str(c.Name)
			want = AppendString(want, c.Name)
		} else {
			*c.Int(&r) = audit.I64(int64(i))
			want = AppendInt(want, int64(i))
		}
	}
	if got := appendHeader(nil, &r); string(got) != string(want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := appendHeader(nil, &audit.Record{}); string(got) != strings.Repeat("n,", 31) {
		t.Errorf("a record of nulls is %s", got)
	}
}

// Every part of a log's name, the scheme and each part of a reset changes the
// genesis, and a reset never has the genesis of epoch 0.
func TestGenesisCommitsToEachPart(t *testing.T) {
	log := Log{ArchiveID: "a", Tenant: "b", Topic: "c", TopicID: "d", Partition: 1}
	seen := map[Hash]string{}
	add := func(name string, h Hash) {
		if was, taken := seen[h]; taken {
			t.Errorf("%s and %s have one genesis", name, was)
		}
		seen[h] = name
	}
	add("log", Genesis(SchemeV1, log))
	add("scheme", Genesis(SchemeHMACv1, log))
	add("archive", Genesis(SchemeV1, Log{"x", "b", "c", "d", 1}))
	add("tenant", Genesis(SchemeV1, Log{"a", "x", "c", "d", 1}))
	add("topic", Genesis(SchemeV1, Log{"a", "b", "x", "d", 1}))
	add("topic id", Genesis(SchemeV1, Log{"a", "b", "c", "x", 1}))
	add("partition", Genesis(SchemeV1, Log{"a", "b", "c", "d", 2}))
	add("reset", ResetGenesis(SchemeV1, log, 1, somePrev, 6, audit.Str("r")))
	add("epoch", ResetGenesis(SchemeV1, log, 2, somePrev, 6, audit.Str("r")))
	add("head", ResetGenesis(SchemeV1, log, 1, otherSum, 6, audit.Str("r")))
	add("size", ResetGenesis(SchemeV1, log, 1, somePrev, 7, audit.Str("r")))
	add("reason", ResetGenesis(SchemeV1, log, 1, somePrev, 6, audit.Str("")))
	add("no reason", ResetGenesis(SchemeV1, log, 1, somePrev, 6, audit.Text{}))
	add("epoch 0, size 0", ResetGenesis(SchemeV1, log, 0, Hash{}, 0, audit.Text{}))
}
