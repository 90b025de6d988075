package pipeline

import (
	"fmt"
	"io"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/redact"
)

// A built is a segment that is ready to be encoded, and what the line will
// remember once it is durable.
type built struct {
	segment    *archive.Segment
	rows       []*chain.Row
	archivedAt int64
	commit     Commit
	remember   []remembered
}

type remembered struct {
	coord audit.Fingerprint
	entry entry
}

// tenants returns how many rows each log has in the segment.
func (b *built) tenants() map[string]int64 {
	rows := make(map[string]int64, len(b.segment.Logs))
	for i := range b.segment.Logs {
		rows[b.segment.Logs[i].Tenant] = b.segment.Logs[i].Rows
	}
	return rows
}

// A builder turns a batch into the next segment of a state. It decides, in
// offset order, which records repeat a row and which conflict with one, and
// stamps the others. Building again from another state is allowed, and is what
// happens when somebody else was faster.
type builder struct {
	state  *archive.State
	window *window
	writer archive.Writer
	reader *reader
	rand   io.Reader
	// hasherOf returns the hasher of a tenant's log, until the next call.
	hasherOf func(tenant string, h archive.Head) (*chain.Hasher, error)
	// stored returns what a row says that the window does not know well enough.
	stored func(e entry) (storedRow, error)
	// ask lets the window learn whether a row was erased, or is gone, of
	// which it knows what it said.
	ask func(e entry) error

	out   *built
	batch *batch
	made  map[audit.Fingerprint]entry // coordinates of this segment's rows
	logs  map[string]*archive.LogInterval
	salts []byte
	now   int64
}

// build makes the segment that continues the state with the batch, stamped at
// now (microseconds). An error means that the store could not be read or that
// there is no randomness; nothing has changed.
func (b *builder) build(bt *batch, now int64) (*built, error) {
	st := b.state
	b.out = &built{segment: &archive.Segment{
		Format: archive.Format, ArchiveID: st.ArchiveID,
		Topic: st.Line.Topic, TopicID: st.Line.TopicID, Partition: st.Line.Partition,
		Ordinal: st.Ordinal, PreviousSHA256: st.PreviousSHA256,
		FirstOffset: bt.items[0].from, NextOffset: bt.end(), LeaderEpoch: -1,
		Writer: b.writer,
	}}
	b.batch, b.now = bt, max(now, st.ArchivedAt)
	b.made = make(map[audit.Fingerprint]entry, len(bt.items))
	b.logs = map[string]*archive.LogInterval{}
	b.salts = make([]byte, 32*len(bt.items))
	if _, err := io.ReadFull(b.rand, b.salts); err != nil {
		return nil, fmt.Errorf("salts: %w", err)
	}
	b.out.rows = make([]*chain.Row, 0, len(bt.rows))
	for i := range bt.items {
		if err := b.item(&bt.items[i]); err != nil {
			return nil, err
		}
	}
	b.finish()
	return b.out, nil
}

// item gives one stretch of offsets its fate.
func (b *builder) item(it *item) error {
	seg := b.out.segment
	if it.gap != "" {
		seg.Gaps = append(seg.Gaps, archive.Gap{From: it.from, To: it.to, Cause: it.gap})
		if it.gap == archive.GapLost {
			audit.Gap(&b.batch.rows[it.row].Record, it.from, it.to, it.gap)
			seg.Made++
			return b.stamp(it)
		}
		return nil
	}
	seg.LeaderEpoch = it.record.LeaderEpoch
	if it.conflict {
		b.decodeAgain(it)
	}
	if !it.hasCoord {
		return b.stamp(it)
	}
	first, repeat, err := b.repeats(it)
	switch {
	case err != nil:
		return err
	case repeat == notRepeated:
		return b.stamp(it)
	case repeat == sameContent:
		seg.Duplicates = append(seg.Duplicates, archive.Duplicate{Offset: it.from, Tenant: first.tenant, Seq: first.seq})
	default:
		b.conflict(it, first)
		return b.stamp(it)
	}
	return nil
}

type repeat int

const (
	notRepeated repeat = iota
	sameContent
	otherContent
)

// repeats says whether an archived row, or one of this segment, has the item's
// coordinates. Where nothing is left of a row that could say so, and the window
// does not know that it said the same, nobody could check that it was repeated:
// the item is a row, as it is after a restart.
func (b *builder) repeats(it *item) (entry, repeat, error) {
	e, ok := b.made[it.coord]
	if !ok {
		if e, ok = b.window.lookup(it.coord); !ok {
			return e, notRepeated, nil
		}
	}
	var row storedRow
	if e.content == (audit.Fingerprint{}) {
		var err error
		if row, err = b.stored(e); err != nil {
			return e, notRepeated, fmt.Errorf("read the row that offset %d repeats: %w", it.from, err)
		}
		if row.erased {
			return e, b.repeatsErased(it, row), nil
		}
		e.content, e.foreign = row.content, row.foreign
	}
	switch {
	case e.content == it.content:
		return e, sameContent, nil
	case e.gone:
		return e, notRepeated, nil
	case e.content == erasedContent:
		return e, sameContent, nil
	}
	if e.foreign {
		r, err := b.sameButScrubbed(it, e, row)
		if err != nil {
			return e, notRepeated, fmt.Errorf("read the row that offset %d repeats: %w", it.from, err)
		}
		if r != otherContent {
			return e, r, nil
		}
	}
	if e.ordinal == b.state.Ordinal {
		return e, otherContent, nil // of this segment
	}
	if err := b.ask(e); err != nil {
		return e, notRepeated, fmt.Errorf("look whether the row is erased that offset %d conflicts with: %w", it.from, err)
	}
	switch e, _ = b.window.lookup(it.coord); {
	case e.gone:
		return e, notRepeated, nil
	case e.content == erasedContent:
		return e, sameContent, nil
	}
	return e, otherContent, nil
}

// repeatsErased says whether an item repeats an erased row of its coordinates, of
// which nobody knows what it said.
func (b *builder) repeatsErased(it *item, row storedRow) repeat {
	if row.gone {
		b.window.forget(it.coord)
		return notRepeated
	}
	return sameContent
}

// sameButScrubbed says whether a row that another policy scrubbed says what the
// item does. The window learns it, for repeats come in runs.
func (b *builder) sameButScrubbed(it *item, e entry, row storedRow) (r repeat, err error) {
	if row.record == nil {
		if row, err = b.stored(e); err != nil || row.erased {
			return b.repeatsErased(it, row), err
		}
	}
	if row.record == nil || !redact.Same(row.record, b.reader.plain(message(it.record, nil))) {
		return otherContent, nil
	}
	b.window.learn(it.coord, it.content, true, e.seq)
	return sameContent, nil
}

// conflictDetail goes before the seq of the row that came first. A comparison
// reads it again.
const conflictDetail = "other content under the coordinates of seq "

// conflict turns the item's row into a reject: its coordinates are taken by a
// row of other content.
func (b *builder) conflict(it *item, first entry) {
	it.conflict = true
	it.reject = b.reader.refuse(&b.batch.rows[it.row].Record, message(it.record, nil), audit.ReasonConflict,
		fmt.Sprint(conflictDetail, first.seq))
}

// decodeAgain restores the row that conflict replaced.
func (b *builder) decodeAgain(it *item) {
	it.conflict = false
	it.reject = b.reader.Decode(&b.batch.rows[it.row].Record, message(it.record, nil))
}

// stamp links the item's row into its log. An error says why its key is not to
// be had, or is not the one of the log.
func (b *builder) stamp(it *item) error {
	row := b.batch.rows[it.row]
	l := b.log(row.TenantID.S)
	hasher, err := b.hasherOf(l.Tenant, archive.Head{Scheme: l.Scheme, Epoch: l.Epoch, Hash: l.HeadIn, Tree: chain.Tree{Size: l.FirstSeq}})
	if err != nil {
		return err
	}
	row.TopicID = audit.Str(b.state.Line.TopicID)
	row.Topic = audit.Str(b.state.Line.Topic)
	row.Partition = audit.I64(int64(b.state.Line.Partition))
	row.Epoch = audit.I64(int64(l.Epoch))
	row.Seq = audit.I64(l.Size)
	row.ArchivedAt = audit.I64(b.now)
	n := len(b.out.rows)
	hasher.Stamp(row, l.HeadOut, chain.Hash(b.salts[32*n:]))
	tree := chain.Tree{Size: l.Size, Frontier: l.Frontier}
	tree.Append(row.RowHash)
	l.Size, l.Frontier, l.HeadOut = tree.Size, tree.Frontier, row.RowHash
	l.Rows++
	b.out.rows = append(b.out.rows, row)
	if it.reject != nil {
		b.countReject(it.reject.Reason)
		return nil
	}
	if it.hasCoord {
		e := entry{seq: row.Seq.N, ordinal: b.state.Ordinal, tenant: l.Tenant, content: it.content}
		b.made[it.coord] = e
		b.out.remember = append(b.out.remember, remembered{it.coord, e})
	}
	return nil
}

// log returns the interval of a tenant's log in this segment.
func (b *builder) log(tenant string) *archive.LogInterval {
	if l, ok := b.logs[tenant]; ok {
		return l
	}
	// The state and the window keep the name for long. The row's own is a part of
	// the record, and would keep all of the fetch that brought it.
	tenant = strings.Clone(tenant)
	h := b.state.Head(tenant)
	tree := h.Tree.Clone()
	l := &archive.LogInterval{
		Tenant: tenant, Scheme: h.Scheme, Epoch: h.Epoch, FirstSeq: tree.Size,
		HeadIn: h.Hash, HeadOut: h.Hash, Size: tree.Size, Frontier: tree.Frontier,
	}
	b.logs[tenant] = l
	b.out.segment.Logs = append(b.out.segment.Logs, archive.LogInterval{Tenant: tenant}) // its place; filled by finish
	return l
}

func (b *builder) countReject(r audit.Reason) {
	if b.out.commit.Rejects == nil {
		b.out.commit.Rejects = map[audit.Reason]int64{}
	}
	b.out.commit.Rejects[r]++
}

func (b *builder) finish() {
	seg := b.out.segment
	for i := range seg.Logs {
		seg.Logs[i] = *b.logs[seg.Logs[i].Tenant]
	}
	seg.Rows = int64(len(b.out.rows))
	if seg.LeaderEpoch < 0 {
		seg.LeaderEpoch = b.state.LeaderEpoch
	}
	if seg.Rows > 0 {
		b.out.archivedAt = b.now
	}
	c := &b.out.commit
	c.Line, c.Ordinal, c.NextOffset = b.state.Line, seg.Ordinal, seg.NextOffset
	c.Rows, c.Made, c.Duplicates = seg.Rows, seg.Made, int64(len(seg.Duplicates))
}
