// Package prooftest builds small archives for tests of what reads them: right
// ones, and, since all that is built stays open to change, tampered ones.
//
//	a := prooftest.New()
//	line := a.Line("audit.calls", 0)
//	line.Segment(func(b *prooftest.Batch) {
//		b.Call("acme")
//		b.Duplicate("acme", 0)
//	})
//	src := prooftest.Bucket(a.Objects())
//
// An archive is deterministic: the same calls give the same bytes. It is built
// of the rooms that ingest is built of (chain, parquet, archive), so that it
// shows what those agree on; archives of an independent writer stand in
// proof/testdata/golden.
package prooftest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// ID is the id of the archives that are built here.
const ID = "01KBCDEFGHJKMNPQRSTVWXYZ01"

// Start is when the first row was archived, in microseconds.
const Start = 1_780_000_000_000_000

// An Archive is an archive that is being built.
type Archive struct {
	ID    string
	Root  []byte // of the object ledgerlake.json
	lines []*Line
	now   int64  // microseconds
	salt  uint64 // of the next row
	enc   *parquet.Encoder

	Signers  []*sign.Signer     // of the next anchors; none leaves them unsigned
	Keys     archive.AnchorKeys // what the next anchors say of keys
	KeyNotes map[string][]byte  // by their keys in the bucket
	Others   map[string][]byte  // what compaction made, by keys
	Gone     map[string]bool    // keys of segments that compaction took
}

// New returns an archive without lines.
func New() *Archive { return NewWithID(ID) }

// NewWithID returns an archive without lines that has an id of its own.
func NewWithID(id string) *Archive {
	root, err := json.Marshal(archive.Root{Format: archive.Format, ArchiveID: id, CreatedAt: "2026-05-28T20:26:40.000000Z", GraceSeconds: archive.GraceSeconds})
	must(err)
	return &Archive{
		ID: id, Root: root, now: Start, enc: parquet.NewEncoder(), KeyNotes: map[string][]byte{}, Others: map[string][]byte{}, Gone: map[string]bool{},
		Keys: archive.AnchorKeys{Anchor: []string{}, Catalog: []string{}, Control: []string{}},
	}
}

// A Line is a line that is being built.
type Line struct {
	archive.Line
	Segments []*Segment
	Anchors  []*Anchor
	Logs     map[string]*Log
	a        *Archive
	offset   int64 // the next one
	sums     archive.AnchorCounts
	changed  map[string]bool // since the newest anchor
	first    int             // the first segment that no anchor covers
	void     map[int64]bool  // ordinals that a chain reset declared void
}

// A Log is the state of a log behind the newest segment.
type Log struct {
	Scheme string
	Epoch  int32
	Head   chain.Hash
	Tree   chain.Tree
}

// A Segment is one segment. A test changes Rows or Meta and encodes it again,
// or changes Body alone.
type Segment struct {
	Meta archive.Segment
	Rows []chain.Row
	Body []byte // of the object
	l    *Line

	logs   map[string]Log // as they were before the segment
	offset int64
	sums   archive.AnchorCounts
}

// Line returns a new line. Topic ids are made from the topic's name.
func (a *Archive) Line(topic string, partition int32) *Line {
	l := &Line{Line: archive.Line{Topic: topic, TopicID: topicID(topic), Partition: partition}, a: a, Logs: map[string]*Log{}, changed: map[string]bool{}, void: map[int64]bool{}}
	a.lines = append(a.lines, l)
	return l
}

// topicID returns 22 characters of base64url that stand for a topic.
func topicID(topic string) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	sum := sha256.Sum256([]byte(topic))
	id := make([]byte, 22)
	for i := range id {
		id[i] = digits[sum[i]%64]
	}
	id[21] = 'A'
	return string(id)
}

// Objects returns the objects of the archive by their keys.
func (a *Archive) Objects() map[string][]byte {
	objects := map[string][]byte{archive.RootKey: a.Root}
	maps.Copy(objects, a.KeyNotes)
	maps.Copy(objects, a.Others)
	for _, l := range a.lines {
		for i, s := range l.Segments {
			objects[archive.SegmentKey(l.Line, int64(i))] = s.Body
		}
		for i, an := range l.Anchors {
			objects[l.AnchorKey(i)] = an.Body
		}
	}
	maps.DeleteFunc(objects, func(key string, _ []byte) bool { return a.Gone[key] })
	return objects
}

// Bucket returns objects as an archive in memory.
func Bucket(objects map[string][]byte) *archive.Memory {
	m := archive.NewMemory()
	for key, body := range objects {
		if _, err := m.Create(context.Background(), key, body); err != nil {
			panic(err)
		}
	}
	return m
}

// Advance lets time pass.
func (a *Archive) Advance(d time.Duration) { a.now += d.Microseconds() }

// StartAt makes the line begin at an offset that Kafka's log starts with. It has
// no segment yet.
func (l *Line) StartAt(offset int64) { l.offset = offset }

// Key returns the key of the line's segment i.
func (l *Line) Key(i int) string { return archive.SegmentKey(l.Line, int64(i)) }

// Segment adds the next segment, with what fill puts into it.
func (l *Line) Segment(fill func(*Batch)) *Segment {
	s := &Segment{l: l, logs: l.snapshot(), offset: l.offset, sums: l.sums, Meta: archive.Segment{
		Format: archive.Format, ArchiveID: l.a.ID, Topic: l.Topic, TopicID: l.TopicID, Partition: l.Partition,
		Ordinal: int64(len(l.Segments)), FirstOffset: l.offset, LeaderEpoch: -1,
		Writer: archive.Writer{Version: "test", Policy: audit.PolicyNone, Settings: chain.Hash{}.String()},
	}}
	l.Segments = append(l.Segments, s)
	b := &Batch{l: l, s: s, in: map[string]Log{}}
	fill(b)
	b.close()
	s.Link()
	s.Encode()
	return s
}

// snapshot returns a copy of the logs that does not change.
func (l *Line) snapshot() map[string]Log {
	logs := map[string]Log{}
	for tenant, log := range l.Logs {
		c := *log
		c.Tree = log.Tree.Clone()
		logs[tenant] = c
	}
	return logs
}

// RollBack takes the line back to where it stood before its segment i, and
// returns what a chain reset says of the segments from there on: they stay, and
// are void.
func (l *Line) RollBack(i int) (voided []archive.Voided) {
	s := l.Segments[i]
	l.offset, l.sums = s.offset, s.sums
	l.Logs = map[string]*Log{}
	for tenant, log := range s.logs {
		c := log
		c.Tree = log.Tree.Clone()
		l.Logs[tenant] = &c
	}
	for _, s := range l.Segments[i:] {
		voided = append(voided, archive.Voided{Ordinal: s.Meta.Ordinal, SHA256: sha256.Sum256(s.Body)})
		l.void[s.Meta.Ordinal] = true
	}
	return voided
}

// CutBack takes the line back to where it stood behind its first n segments. The
// others go, and the anchors that cover them.
func (l *Line) CutBack(n int) {
	if n < len(l.Segments) {
		l.RollBack(n)
		for _, s := range l.Segments[n:] {
			delete(l.void, s.Meta.Ordinal)
		}
		l.Segments = l.Segments[:n]
	}
	l.Reanchor()
}

// Link sets previousSha256 to the hash of the segment before.
func (s *Segment) Link() {
	s.Meta.PreviousSHA256 = nil
	if n := s.Meta.Ordinal; n > 0 {
		sum := chain.Hash(sha256.Sum256(s.l.Segments[n-1].Body))
		s.Meta.PreviousSHA256 = &sum
	}
}

// Encode makes Body anew from Rows and Meta.
func (s *Segment) Encode() {
	meta, err := archive.EncodeSegment(&s.Meta)
	must(err)
	s.EncodeWith(meta)
}

// EncodeWith makes Body anew from Rows and other metadata.
func (s *Segment) EncodeWith(meta []byte) {
	body, err := s.l.a.enc.Encode(s.Rows, meta)
	must(err)
	s.Body = body
}

// Relink makes the segments from i on anew, so that each states the hash of the
// one before: what an attacker does who covers a change of segment i−1.
func (l *Line) Relink(i int) {
	for _, s := range l.Segments[i:] {
		s.Link()
		s.Encode()
	}
}

// Restamp makes all hashes of the line anew from what its rows hold, as whoever
// owns the bucket can.
func (l *Line) Restamp() {
	l.Logs = map[string]*Log{}
	for _, s := range l.Segments {
		s.restamp()
		s.Link()
		s.Encode()
	}
}

func (s *Segment) restamp() {
	for i := range s.Meta.Logs {
		iv := &s.Meta.Logs[i]
		log, h := s.l.logOf(iv.Tenant, iv.Scheme), hasher(iv.Scheme)
		iv.FirstSeq, iv.HeadIn, iv.Rows = log.Tree.Size, log.Head, 0
		for j := range s.Rows {
			row := &s.Rows[j]
			if row.TenantID.S != iv.Tenant {
				continue
			}
			row.Seq = audit.I64(log.Tree.Size)
			h.Stamp(row, log.Head, row.RowSalt.Hash)
			log.Head = row.RowHash
			log.Tree.Append(row.RowHash)
			iv.Rows++
		}
		iv.HeadOut, iv.Size, iv.Frontier = log.Head, log.Tree.Size, slices.Clone(log.Tree.Frontier)
	}
}

// log returns a tenant's log, which is empty where it has no rows.
func (l *Line) log(tenant string) *Log { return l.logOf(tenant, chain.SchemeV1) }

// logOf returns the same; a scheme is that of a log without rows.
func (l *Line) logOf(tenant, scheme string) *Log {
	log := l.Logs[tenant]
	if log == nil {
		log = &Log{Scheme: scheme, Head: chain.Genesis(scheme, l.chainLog(tenant))}
		l.Logs[tenant] = log
	}
	return log
}

// LogKey is the key of every keyed log that is built here.
var LogKey = []byte("key of a test")

func hasher(scheme string) *chain.Hasher {
	if scheme == chain.SchemeHMACv1 {
		return chain.NewHasher(LogKey)
	}
	return chain.NewHasher(nil)
}

func (l *Line) chainLog(tenant string) chain.Log {
	return chain.Log{ArchiveID: l.a.ID, Tenant: tenant, Topic: l.Topic, TopicID: l.TopicID, Partition: l.Partition}
}

// nextSalt returns a row's salt. A real one is random.
func (a *Archive) nextSalt() chain.Hash {
	a.salt++
	return sha256.Sum256(binary.BigEndian.AppendUint64([]byte("salt"), a.salt))
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("prooftest: %v", err))
	}
}
