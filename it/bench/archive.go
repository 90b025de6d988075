//go:build it

// Package bench builds large archives, and tells what a program takes.
package bench

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	mrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/internal/workload"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// A Plan says what an archive is to hold.
type Plan struct {
	Rows    int64 // in all
	Lines   int   // partitions, which share the rows
	Tenants int   // of each line
	Segment int   // the most rows of one
	Least   int   // the fewest, so that sizes between are drawn, small ones more often; 0: all have Segment rows
	Anchor  int   // segments of one anchor
}

// An Archive is what was built.
type Archive struct {
	Key      string // that signs anchors, as a file of --anchor-key has it
	Verifier string // key
	Record   string // id of a row in the middle
	Segments int64
}

// Build makes an archive, as ingest would have made it from records of package
// workload in that order, and gives each object to put, from several goroutines.
func Build(p Plan, put func(key string, body []byte) error) (*Archive, error) {
	skey, vkey, err := sign.Generate(rand.Reader, "bench.example/anchors")
	if err != nil {
		return nil, err
	}
	signer, err := sign.NewSigner(skey)
	if err != nil {
		return nil, err
	}
	root := archive.Root{
		Format: archive.Format, ArchiveID: "01KBCDEFGHJKMNPQRSTVWXYZ01",
		CreatedAt: workload.Epoch.Format(archive.TimeLayout), GraceSeconds: archive.GraceSeconds,
	}
	body, err := json.Marshal(root)
	if err != nil {
		return nil, err
	}
	if err := put(archive.RootKey, body); err != nil {
		return nil, err
	}
	var g errgroup.Group
	writers := make([]*writer, p.Lines)
	for i := range writers {
		l := archive.Line{Topic: "audit.calls", TopicID: "kTq2VqYJQ0mFvY8v2b3m0A", Partition: int32(i)}
		w := &writer{
			Plan: p, put: put, vkey: vkey, signer: signer, rootSum: sha256.Sum256(body), sizes: mrand.New(mrand.NewPCG(uint64(i), 1)),
			state: archive.NewState(root.ArchiveID, l), records: workload.New(uint64(i)+1, p.Tenants),
			encoder: parquet.NewEncoder(), hasher: chain.NewHasher(nil), changed: map[string]bool{},
		}
		writers[i] = w
		g.Go(func() error { return w.line(p.Rows / int64(p.Lines)) })
	}
	a := &Archive{Key: skey, Verifier: vkey}
	err = g.Wait()
	for _, w := range writers {
		a.Segments += w.state.Ordinal
	}
	a.Record = writers[0].middle
	return a, err
}

// Folder puts objects into a folder.
func Folder(folder string) func(key string, body []byte) error {
	return func(key string, body []byte) error {
		path := filepath.Join(folder, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, body, 0o644)
	}
}

// A writer writes one line.
type writer struct {
	Plan
	put     func(key string, body []byte) error
	sizes   *mrand.Rand
	vkey    string
	signer  note.Signer
	rootSum chain.Hash
	state   *archive.State
	records *workload.Generator
	decoder audit.Decoder
	encoder *parquet.Encoder
	hasher  *chain.Hasher

	middle   string // the record id of the newest call in the first half of the rows
	offset   int64
	now      int64 // microseconds
	anchor   archive.Anchor
	changed  map[string]bool
	segments int // since the newest anchor
}

func (w *writer) line(rows int64) error {
	w.anchor = archive.Anchor{
		ArchiveID: w.state.ArchiveID, ArchiveSHA256: w.rootSum, Topic: w.state.Line.Topic, TopicID: w.state.Line.TopicID,
		Partition: w.state.Line.Partition, Keys: archive.AnchorKeys{Anchor: []string{w.vkey}},
	}
	for rows > 0 {
		n := min(rows, w.size())
		if err := w.writeSegment(int(n)); err != nil {
			return err
		}
		rows -= n
		if w.segments == w.Anchor || rows == 0 {
			if err := w.writeAnchor(); err != nil {
				return err
			}
		}
	}
	return nil
}

// size draws how many rows the next segment has: each factor is as likely.
func (w *writer) size() int64 {
	if w.Least == 0 {
		return int64(w.Segment)
	}
	ratio := float64(w.Segment) / float64(w.Least)
	return int64(math.Round(float64(w.Least) * math.Pow(ratio, w.sizes.Float64())))
}

// writeSegment writes the next segment, of n rows.
func (w *writer) writeSegment(n int) error {
	st := w.state
	seg := &archive.Segment{
		Format: archive.Format, ArchiveID: st.ArchiveID, Topic: st.Line.Topic, TopicID: st.Line.TopicID, Partition: st.Line.Partition,
		Ordinal: st.Ordinal, PreviousSHA256: st.PreviousSHA256, FirstOffset: w.offset, NextOffset: w.offset + int64(n), Rows: int64(n),
		Writer: archive.Writer{Version: "bench", Policy: audit.PolicyNone, Settings: strings.Repeat("0", 64)},
	}
	rows, logs, order := make([]chain.Row, n), map[string]*archive.LogInterval{}, []string{}
	for i := range rows {
		if err := w.decode(&rows[i]); err != nil {
			return err
		}
		tenant := rows[i].TenantID.S
		if logs[tenant] == nil {
			h := st.Head(tenant)
			tree := h.Tree.Clone()
			logs[tenant] = &archive.LogInterval{
				Tenant: tenant, Scheme: h.Scheme, Epoch: h.Epoch, FirstSeq: tree.Size, HeadIn: h.Hash, HeadOut: h.Hash, Size: tree.Size, Frontier: tree.Frontier,
			}
			order = append(order, tenant)
		}
		w.stamp(&rows[i], logs[tenant])
	}
	for _, tenant := range order {
		seg.Logs = append(seg.Logs, *logs[tenant])
		w.changed[tenant] = true
	}
	meta, err := archive.EncodeSegment(seg)
	if err != nil {
		return err
	}
	body, err := w.encoder.Encode(rows, meta)
	if err != nil {
		return err
	}
	sum := chain.Hash(sha256.Sum256(body))
	c := archive.CountsOf(seg)
	w.anchor.Segments = append(w.anchor.Segments, archive.AnchorSegment{Ordinal: seg.Ordinal, Bytes: int64(len(body)), SHA256: sum, AnchorCounts: c})
	w.anchor.Totals.Add(c)
	w.segments++
	st.Advance(seg, sum, int64(len(body)), w.now)
	return w.put(archive.SegmentKey(st.Line, seg.Ordinal), body)
}

// decode makes the next record a row that is not stamped yet.
func (w *writer) decode(row *chain.Row) error {
	r := w.records.Next()
	w.now = r.Time.UnixMicro()
	m := &audit.Message{Topic: w.state.Line.Topic, Partition: w.state.Line.Partition, Offset: w.offset, Timestamp: r.Time, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		m.Headers = append(m.Headers, audit.MessageHeader{Name: h.Name, Value: h.Value})
	}
	w.offset++
	if reject := w.decoder.Decode(&row.Record, m); reject != nil {
		return fmt.Errorf("offset %d: %s", m.Offset, reject.Detail)
	}
	if w.offset <= w.Rows/int64(w.Lines)/2 && row.Kind.S == audit.KindCall {
		w.middle = row.RecordID.S
	}
	return nil
}

func (w *writer) stamp(row *chain.Row, l *archive.LogInterval) {
	line := w.state.Line
	row.Topic, row.TopicID, row.Partition = audit.Str(line.Topic), audit.Str(line.TopicID), audit.I64(int64(line.Partition))
	row.Epoch, row.Seq, row.ArchivedAt = audit.I64(int64(l.Epoch)), audit.I64(l.Size), audit.I64(w.now)
	var salt chain.Hash
	_, _ = rand.Read(salt[:]) // it never fails
	w.hasher.Stamp(row, l.HeadOut, salt)
	tree := chain.Tree{Size: l.Size, Frontier: l.Frontier}
	tree.Append(row.RowHash)
	l.Size, l.Frontier, l.HeadOut = tree.Size, tree.Frontier, row.RowHash
	l.Rows++
}

// writeAnchor writes the next anchor, which covers all segments so far.
func (w *writer) writeAnchor() error {
	a := &w.anchor
	a.Ordinal, a.Time, a.Full = w.state.Ordinal-1, archive.Time{Time: time.UnixMicro(w.now)}, a.Number%archive.FullEvery == 0
	a.Heads, a.Checkpoints = nil, nil
	tenants := make([]string, 0, len(w.state.Heads))
	for tenant := range w.state.Heads {
		if a.Full || w.changed[tenant] {
			tenants = append(tenants, tenant)
		}
	}
	slices.Sort(tenants)
	for _, tenant := range tenants {
		h := w.state.Heads[tenant]
		root := h.Tree.Root()
		a.Heads = append(a.Heads, archive.AnchorHead{Tenant: tenant, Scheme: h.Scheme, Epoch: h.Epoch, Size: h.Tree.Size, Head: h.Hash, Root: root, Frontier: h.Tree.Frontier})
		checkpoint, err := sign.Sign(chain.CheckpointText(chain.CheckpointOrigin(w.state.Log(tenant)), h.Tree.Size, root), w.signer)
		if err != nil {
			return err
		}
		a.Checkpoints = append(a.Checkpoints, archive.AnchorCheckpoint{Tenant: tenant, Note: string(checkpoint)})
	}
	text, err := archive.EncodeAnchor(a)
	if err != nil {
		return err
	}
	body, err := sign.Sign(text, w.signer)
	if err != nil {
		return err
	}
	if err := w.put(archive.AnchorKey(w.state.Line, a.Number), body); err != nil {
		return err
	}
	sum := archive.TextHash(text)
	a.Previous, a.Number, a.Segments, w.segments = &sum, a.Number+1, nil, 0
	clear(w.changed)
	return nil
}
