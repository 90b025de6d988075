package archive_test

import (
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// SegmentKey and ParseSegmentKey are inverse, for any topic.
func TestSegmentKeyPair(t *testing.T) {
	for _, l := range []archive.Line{line, {Topic: "a/b", TopicID: "-_aA", Partition: 0}, {Topic: "..", TopicID: "x", Partition: 123456}} {
		for _, ordinal := range []int64{0, 7, 1 << 62} {
			key := archive.SegmentKey(l, ordinal)
			n, ok := archive.ParseSegmentKey(key)
			want := archive.SegmentName{EscapedTopic: chain.Escape(l.Topic), TopicID: l.TopicID, Partition: l.Partition, Ordinal: ordinal}
			if !ok || n != want {
				t.Errorf("%s parses as %+v, %v; want %+v", key, n, ok, want)
			}
		}
	}
	if got, want := archive.SegmentKey(line, 2), "log/audit.calls/kTq2VqYJQ0mFvY8v2b3m0A/00003/00000000000000000002.parquet"; got != want {
		t.Errorf("key %s, want %s", got, want)
	}
}

// A key that SegmentKey never makes is none: it is a stray, and must not be
// read as an ordinal of anything.
func TestParseSegmentKeyRefuses(t *testing.T) {
	for _, key := range []string{
		"", "log/", "log/t/i/00000/0.parquet", "log/t/i/0/00000000000000000000.parquet",
		"log/t/i/00000/00000000000000000000.parquet/x", "log/t/i/000000/00000000000000000000.parquet",
		"log/t/i/00000/00000000000000000000.note", "data/t/i/00000/00000000000000000000.parquet",
		"log/t/i/00000/99999999999999999999.parquet", "log//i/00000/00000000000000000000.parquet",
		"log/t//00000/00000000000000000000.parquet", "log/t/i/-0001/00000000000000000000.parquet",
		"log/t/i/00000/+0000000000000000000.parquet", "log/t/i/99999999999/00000000000000000000.parquet",
	} {
		if n, ok := archive.ParseSegmentKey(key); ok {
			t.Errorf("%q parses as %+v", key, n)
		}
	}
}

// Whatever parses is, byte for byte, what SegmentKey makes of it.
func FuzzParseSegmentKey(f *testing.F) {
	f.Add(archive.SegmentKey(line, 2))
	f.Add("log/a/b/00001/00000000000000000000.parquet")
	f.Fuzz(func(t *testing.T, key string) {
		n, ok := archive.ParseSegmentKey(key)
		if !ok {
			return
		}
		l := archive.Line{Topic: n.EscapedTopic, TopicID: n.TopicID, Partition: n.Partition}
		if chain.Escape(l.Topic) == l.Topic && chain.Escape(l.TopicID) == l.TopicID && archive.SegmentKey(l, n.Ordinal) != key {
			t.Errorf("%q parses as %+v", key, n)
		}
	})
}
