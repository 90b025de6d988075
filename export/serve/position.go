package serve

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
)

// A position says how far a tail has come in each log of a tenant: its next seq,
// and the hash of the row before that, so that a position of another archive, or
// of one that was changed, is seen. Logs that are not in it begin at 0.
type position map[logName]point

// A logName tells the logs of one tenant apart.
type logName struct {
	topicID   string
	partition int32
}

// A point is a place between two rows of a log.
type point struct {
	next int64
	hash chain.NullHash // row_hash of the row before; null where it is not known
	told bool           // by who asks, and not by what was read
}

func nameOf(l *export.Log) logName { return logName{l.Line.TopicID, l.Line.Partition} }

// nothing is the position in front of everything.
const nothing = "-"

// maxPosition is how long a position's text may be, in bytes: it has to fit into
// a header.
const maxPosition = 24 << 10

// String returns the text of a position: for each log topicId:partition:next, and
// :hash where it is known, joined by commas. It has no character that an event's
// id or a header could not hold.
func (p position) String() string {
	if len(p) == 0 {
		return nothing
	}
	names := make([]logName, 0, len(p))
	for n := range p {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b logName) int {
		return cmp.Or(cmp.Compare(a.topicID, b.topicID), cmp.Compare(a.partition, b.partition))
	})
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(n.topicID)
		b.WriteByte(':')
		b.WriteString(strconv.FormatInt(int64(n.partition), 10))
		b.WriteByte(':')
		b.WriteString(strconv.FormatInt(p[n].next, 10))
		if h := p[n].hash; h.Valid {
			b.WriteByte(':')
			b.WriteString(base64.RawURLEncoding.EncodeToString(h.Hash[:]))
		}
	}
	return b.String()
}

// parsePosition reads the text of a position.
func parsePosition(text string) (position, bool) {
	p := position{}
	switch {
	case text == nothing:
		return p, true
	case len(text) > maxPosition:
		return nil, false
	}
	for part := range strings.SplitSeq(text, ",") {
		place, hash, hashed := cutHash(part)
		at, ok := parsePlace(place)
		if !ok {
			return nil, false
		}
		name := logName{at.topicID, at.partition}
		if _, twice := p[name]; twice {
			return nil, false
		}
		n := point{next: at.seq, told: true}
		if hashed {
			b, err := base64.RawURLEncoding.DecodeString(hash)
			if err != nil || len(b) != len(chain.Hash{}) {
				return nil, false
			}
			n.hash = chain.NullHash{Hash: chain.Hash(b), Valid: true}
		}
		p[name] = n
	}
	return p, true
}

// cutHash cuts the hash from topicId:partition:next:hash.
func cutHash(part string) (place, hash string, ok bool) {
	if strings.Count(part, ":") != 3 {
		return part, "", false
	}
	i := strings.LastIndexByte(part, ':')
	return part[:i], part[i+1:], true
}
