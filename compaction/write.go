package compaction

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// batchRows is how many rows are handed to the encoder at once.
const batchRows = 64

// An output is one data file on its way: consecutive rows of one log, one day and
// one epoch.
type output struct {
	p    *pass
	meta archive.DataFile
	file archive.CatalogFile
	tree chain.Tree
	rows []*chain.Row // not handed over yet
}

// begin begins a data file behind a state of its log, with the epoch and the day
// of its first row.
func (p *pass) begin(log chain.Log, before *logState, scheme string, first *chain.Row) *output {
	o := &output{p: p, tree: before.tree.Clone()}
	o.meta = archive.DataFile{
		Format: archive.Format, ArchiveID: log.ArchiveID, Topic: log.Topic, TopicID: log.TopicID, Partition: log.Partition, Tenant: log.Tenant,
		Scheme: scheme, Epoch: int32(first.Epoch.N), FirstSeq: before.tree.Size, HeadIn: before.head, FrontierIn: slices.Clone(before.tree.Frontier),
	}
	o.file = archive.CatalogFile{Tenant: log.Tenant, Day: dayOf(first), FirstSeq: before.tree.Size, HeadIn: before.head}
	return o
}

// takes reports whether a row goes into the file that is open.
func (o *output) takes(row *chain.Row) bool {
	return dayOf(row) == o.file.Day && row.Epoch.N == int64(o.meta.Epoch) && row.Kind.S != audit.KindChainReset && o.p.writer.Size() < o.p.e.TargetBytes
}

func dayOf(row *chain.Row) string {
	return time.UnixMicro(row.ArchivedAt.N).UTC().Format(archive.DayLayout)
}

// add adds the next row, which must not change until it is written.
func (o *output) add(row *chain.Row) error {
	o.tree.Append(row.RowHash)
	o.meta.Rows, o.meta.HeadOut = o.meta.Rows+1, row.RowHash
	tell(&o.file, row)
	if o.rows = append(o.rows, row); len(o.rows) < batchRows {
		return nil
	}
	return o.flush()
}

func (o *output) flush() error {
	err := o.p.writer.Rows(o.rows)
	o.rows = o.rows[:0]
	return err
}

// tell takes a row, as it is stored, into what the catalog says of its file.
func tell(f *archive.CatalogFile, row *chain.Row) {
	if n := row.KafkaOffset; n.Valid {
		if f.FirstOffset == nil {
			f.FirstOffset = &n.N
		}
		f.LastOffset = &n.N
	}
	if at := (archive.Time{Time: time.UnixMicro(row.CreatedAt.N).UTC()}); row.CreatedAt.Valid {
		tellCreated(f, &at, &at)
	}
}

func tellCreated(f *archive.CatalogFile, low, high *archive.Time) {
	if low != nil && (f.MinCreatedAt == nil || low.Before(f.MinCreatedAt.Time)) {
		f.MinCreatedAt = low
	}
	if high != nil && (f.MaxCreatedAt == nil || high.After(f.MaxCreatedAt.Time)) {
		f.MaxCreatedAt = high
	}
}

// close writes the file. A crash from here on leaves an object that no version of
// the catalog names.
func (o *output) close(full bool) error {
	if err := o.flush(); err != nil {
		return err
	}
	o.meta.FrontierOut = slices.Clone(o.tree.Frontier)
	meta, err := archive.EncodeDataFile(&o.meta)
	if err != nil {
		return err
	}
	object, err := o.p.writer.Close(meta)
	if err != nil {
		return err
	}
	if err := readBack(object, &o.meta, o.p.hashers, full); err != nil {
		return fmt.Errorf("rows %d to %d of tenant %q were written wrongly, and are thrown away: %w", o.meta.FirstSeq, o.tree.Size-1, o.meta.Tenant, err)
	}
	return o.p.put(o.file, &o.meta, object)
}

// put names a data file, and sends it off.
func (p *pass) put(f archive.CatalogFile, m *archive.DataFile, object []byte) error {
	id, err := p.e.id()
	if err != nil {
		return err
	}
	f.LastSeq, f.Rows, f.HeadOut = m.FirstSeq+m.Rows-1, m.Rows, m.HeadOut
	f.Bytes, f.SHA256 = int64(len(object)), sha256.Sum256(object)
	f.Key = archive.DataKey(p.l, f.Tenant, f.Day, f.FirstSeq, f.LastSeq, id)
	p.added = append(p.added, f)
	p.res.Files, p.res.FileBytes = p.res.Files+1, p.res.FileBytes+f.Bytes
	p.touched[f.Day] = true
	p.e.blooms.remember(f.Key, object)
	return p.puts.create(p.ctx, f.Key, object)
}

// readBack checks a data file from the bytes that are to be stored: that its rows
// are those of its metadata, follow each other, and lead to the head and the tree
// that the log had behind them before. full is whether all that a row can show is
// checked again, and not only its hashes.
func readBack(object []byte, want *archive.DataFile, hashers *chain.Hashers, full bool) error {
	if err := parquet.CheckLayout(object); err != nil {
		return err
	}
	f, err := parquet.Open(object)
	if err != nil {
		return err
	}
	text, _ := f.Metadata()
	m, err := archive.DecodeDataFile(text)
	if err != nil {
		return err
	}
	if m.FirstSeq != want.FirstSeq || m.Rows != want.Rows || f.NumRows() != want.Rows || m.HeadIn != want.HeadIn {
		return errors.New("it has other rows than its metadata")
	}
	rows := f.Rows()
	if !full {
		rows = f.Select("seq", "prev_hash", "row_hash", "kind")
	}
	head, tree := want.HeadIn, chain.Tree{Size: want.FirstSeq, Frontier: slices.Clone(want.FrontierIn)}
	keyless := false
	for row, err := range rows {
		switch {
		case err != nil:
			return err
		case row.Seq.N != tree.Size:
			return fmt.Errorf("seq %d stands where %d belongs", row.Seq.N, tree.Size)
		case row.PrevHash != head && !(tree.Size == want.FirstSeq && row.Kind.S == audit.KindChainReset):
			return fmt.Errorf("seq %d: prev_hash is not the row_hash of the row before it", row.Seq.N)
		}
		if full {
			if err := checkRow(hashers, want.Scheme, logOf(m), row, &keyless); err != nil {
				return fmt.Errorf("seq %d: %w", row.Seq.N, err)
			}
		}
		tree.Append(row.RowHash)
		head = row.RowHash
	}
	if head != want.HeadOut || !slices.Equal(tree.Frontier, want.FrontierOut) {
		return errors.New("its rows lead to another head or another tree")
	}
	return nil
}

func logOf(m *archive.DataFile) chain.Log {
	return chain.Log{ArchiveID: m.ArchiveID, Tenant: m.Tenant, Topic: m.Topic, TopicID: m.TopicID, Partition: m.Partition}
}

// putsParallel is how many objects are on their way to the store at once.
const putsParallel = 8

// A putter writes objects, several at once, as far as their bytes allow.
type putter struct {
	e     *Engine
	bytes *semaphore.Weighted
	most  int64
	errs  chan error // of those that ended
	under int
	first error
}

func newPutter(e *Engine) *putter {
	most := max(e.Memory/8, 1)
	return &putter{e: e, bytes: semaphore.NewWeighted(most), most: most, errs: make(chan error, putsParallel)}
}

// create begins to write an object under a key that was never used, and returns
// the first error of those that ended before.
func (w *putter) create(ctx context.Context, key string, body []byte) error {
	w.collect(false)
	if w.first != nil {
		return w.first
	}
	size := min(int64(len(body)), w.most)
	if err := w.acquire(ctx, size); err != nil {
		return err
	}
	w.under++
	go func() {
		err := w.e.create(ctx, key, body)
		w.bytes.Release(size)
		w.errs <- err
	}()
	return nil
}

func (w *putter) acquire(ctx context.Context, size int64) error {
	for w.under >= putsParallel {
		w.take(<-w.errs)
	}
	return w.bytes.Acquire(ctx, size)
}

func (w *putter) take(err error) {
	w.under--
	if w.first == nil {
		w.first = err
	}
}

// collect takes what came of those that ended; of all, if it is to wait.
func (w *putter) collect(wait bool) {
	for w.under > 0 {
		if wait {
			w.take(<-w.errs)
			continue
		}
		select {
		case err := <-w.errs:
			w.take(err)
		default:
			return
		}
	}
}

// wait waits for all, and returns the first error.
func (w *putter) wait() error {
	w.collect(true)
	return w.first
}

// create writes an object. Where the key is taken, its bytes must be these: the
// reply to a write that went through was lost.
func (e *Engine) create(ctx context.Context, key string, body []byte) error {
	_, err := e.Archive.Create(ctx, key, body)
	if !errors.Is(err, archive.ErrExists) {
		return err
	}
	there, err := e.Archive.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	if !bytes.Equal(there, body) {
		return fmt.Errorf("%s: %w, with other bytes", key, archive.ErrExists)
	}
	return nil
}
