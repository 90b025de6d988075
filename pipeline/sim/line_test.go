package sim_test

import (
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A line is what the oracle knows of one partition of one topic: what Kafka was
// given, and what the archive has made of it so far.
type line struct {
	archive.Line
	records []*record // by offset
	start   int64     // Kafka's log start
	control bool      // it is that of the control topic
	thins   bool      // the topic has cleanup.policy=compact
	doubted bool      // it stays stopped at what nobody can tell from a lie
	epoch   int32     // of its leader
	gone    bool      // the topic was deleted

	state  *archive.State
	trees  map[string]*chain.Tree // of each log, from the rows alone
	logs   map[string][]*placed   // rows of each log, by seq
	coords map[audit.Fingerprint][]*placed
	rows   int
	sums   []chain.Hash   // of the segments that were judged, by ordinal
	writer archive.Writer // of the newest of them
	counts map[string]int
	forged int64 // ordinal of a forged segment, -1

	compacted

	moments      []moment // by ordinal
	anchors      []seen   // by number
	forgedAnchor int64    // number of a forged anchor, -1
}

// A placed row is one that is archived.
type placed struct {
	record  *record // nil for a made row
	index   int     // among all rows of the line
	seq     int64
	reject  bool
	ordinal int64          // of its segment
	row     *chain.Row     // as it was stamped
	erased  chain.Sentinel // what the newest catalog's data files lack of it; none where it has no id
}

// What became of an offset in Kafka.
type fate int

const (
	delivered fate = iota // a record that consumers get
	open                  // of a transaction that goes on
	aborted
	control
)

// A record is what one offset was given.
type record struct {
	offset     int64
	epoch      int32 // of the leader that took it
	fate       fate
	superseded bool // compaction may have taken it
	message    audit.Message

	decoded  bool
	row      audit.Record
	reject   *audit.Reject
	coord    audit.Fingerprint
	content  audit.Fingerprint
	hasCoord bool
}

// decode fills in what the record is as a row.
func (r *record) decode() {
	if r.decoded {
		return
	}
	r.decoded = true
	d := decoder
	if r.message.Topic == audit.ControlTopic {
		d = controlDecoder
	}
	r.reject = d.Decode(&r.row, &r.message)
	if r.reject == nil {
		if r.coord, r.hasCoord = r.row.Coordinates(); r.hasCoord {
			r.content = r.row.ContentHash()
		}
	}
}

var (
	decoder        = &audit.Decoder{PromptPaths: audit.DefaultPromptPaths}
	controlDecoder = &audit.Decoder{PromptPaths: audit.DefaultPromptPaths, Control: true}
)

func (w *world) addLine(l archive.Line) *line {
	n := &line{
		Line: l, state: archive.NewState(w.root.ArchiveID, l), trees: map[string]*chain.Tree{},
		logs: map[string][]*placed{}, coords: map[audit.Fingerprint][]*placed{}, forged: -1, forgedAnchor: -1, counts: w.counts,
		control: l.Topic == audit.ControlTopic, thins: l.Topic != audit.ControlTopic && w.plan.compacted, compacted: newCompacted(),
	}
	w.lines = append(w.lines, n)
	return n
}

func (l *line) end() int64 { return int64(len(l.records)) }

// add enters what the next offset is given.
func (l *line) add(f fate, key, value []byte, at time.Time) *record {
	r := &record{offset: l.end(), epoch: l.epoch, fate: f, message: audit.Message{
		Topic: l.Topic, Partition: l.Partition, Offset: l.end(), Timestamp: at, Key: key, Value: value,
	}}
	l.records = append(l.records, r)
	return r
}
