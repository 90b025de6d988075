package archive

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ledgerlake/ledgerlake/chain"
)

// RootKey is the key of the document that makes a bucket an archive.
const RootKey = "ledgerlake.json"

// LogPrefix is the prefix of all segments of an archive.
const LogPrefix = "log/"

// SegmentPrefix returns the prefix of a line's segments.
func SegmentPrefix(l Line) string { return linePrefix("log", l) }

// SegmentKey returns the key of a line's segment.
func SegmentKey(l Line, ordinal int64) string {
	return fmt.Sprintf("%s%020d.parquet", SegmentPrefix(l), ordinal)
}

// A SegmentName is what the key of a segment says. The topic stands in it
// escaped, for an escaped name of more than 120 bytes cannot be read back.
type SegmentName struct {
	EscapedTopic string
	TopicID      string
	Partition    int32
	Ordinal      int64
}

// ParseSegmentKey is the inverse of [SegmentKey]. It reports whether key is,
// byte for byte, one that SegmentKey makes.
func ParseSegmentKey(key string) (SegmentName, bool) {
	var n SegmentName
	parts := strings.Split(key, "/")
	if len(parts) != 5 || parts[0] != "log" {
		return n, false
	}
	digits, ok := strings.CutSuffix(parts[4], ".parquet")
	if !ok || !isDigits(digits, 20) || len(parts[3]) < 5 || !isDigits(parts[3], len(parts[3])) {
		return n, false
	}
	ordinal, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return n, false
	}
	partition, err := strconv.ParseInt(parts[3], 10, 32)
	if err != nil || fmt.Sprintf("%05d", partition) != parts[3] {
		return n, false
	}
	n = SegmentName{EscapedTopic: parts[1], TopicID: parts[2], Partition: int32(partition), Ordinal: ordinal}
	return n, parts[1] != "" && parts[2] != ""
}

func linePrefix(folder string, l Line) string {
	return fmt.Sprintf("%s/%s/%s/%05d/", folder, chain.Escape(l.Topic), chain.Escape(l.TopicID), l.Partition)
}

func isDigits(s string, n int) bool {
	if len(s) != n {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
