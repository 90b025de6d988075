//go:build it

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/internal/workload"
	"github.com/ledgerlake/ledgerlake/it/oracle"
)

// A fate is what an archive says became of an offset.
type fate byte

// The fates. A gap is an offset that Kafka delivers no record from.
const (
	noFate fate = iota
	aRow
	aReject
	aDuplicate
	aGap
)

func (f fate) String() string {
	return [...]string{"nothing", "a row", "a reject", "a duplicate", "a gap"}[f]
}

// due is the fate that each class of record must have.
var due = map[workload.Class]fate{
	workload.Good: aRow, workload.Repeat: aDuplicate, workload.Broken: aReject, workload.Conflict: aReject,
}

// counts are what a stretch of an archive holds, and what is wrong with it.
type counts struct {
	rows, rejects, duplicates int64
	repeats                   int64 // offsets, or coordinates, that are there twice
	lost                      int64 // records without a fate, or with one that hides them
	other                     int64 // anything else that is wrong: offsets that Kafka never delivered, objects that changed
}

func (c *counts) add(o counts) {
	c.rows += o.rows
	c.rejects += o.rejects
	c.duplicates += o.duplicates
	c.repeats += o.repeats
	c.lost += o.lost
	c.other += o.other
}

func (c counts) records() int64 { return c.rows + c.rejects + c.duplicates }

func (c counts) right() bool { return c.repeats == 0 && c.lost == 0 && c.other == 0 }

// A ledger reads the archive of one topic as it grows, each segment once, by
// other means than ours, and holds it against what Kafka has delivered.
type ledger struct {
	store  *s3.Client
	prefix string // of the archive, with a slash
	dir    string // where copies of segments go, by the number of the reading
	unsure atomic.Bool

	mu      sync.Mutex
	classes []map[int64]workload.Class // by partition: what was acknowledged

	reading  sync.Mutex // of what follows
	pending  counts     // of segments that were read beside the acts
	readings int
	objects  map[string]string // key -> ETag, of all segments that were read
	fates    [][]fate          // by partition and offset
	ordinals []int64           // by partition: of the next segment
	coords   map[string]string // coordinates of rows -> where
	held     []int64           // by partition: offsets that were held against Kafka
	faults   []string          // the first of them, for people
}

func newLedger(store *s3.Client, prefix, dir string, partitions int32) *ledger {
	l := &ledger{
		store: store, prefix: prefix, dir: dir, objects: map[string]string{}, coords: map[string]string{},
		fates: make([][]fate, partitions), ordinals: make([]int64, partitions), held: make([]int64, partitions),
	}
	for range partitions {
		l.classes = append(l.classes, map[int64]workload.Class{})
	}
	return l
}

// expect notes what a producer knows of an offset.
func (l *ledger) expect(partition int32, offset int64, c workload.Class) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.classes[partition][offset] = c
}

// fault notes what is wrong, for people.
func (l *ledger) fault(format string, args ...any) {
	if len(l.faults) < 100 {
		l.faults = append(l.faults, fmt.Sprintf(format, args...))
	}
}

// follow reads what is new every second, until the returned func is called:
// compaction deletes segments when their grace is over. What cannot be read now
// is read the next time.
func (l *ledger) follow(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for pause(ctx, time.Second) == nil {
			l.reading.Lock()
			_ = l.takeNew(ctx, &l.pending)
			l.reading.Unlock()
		}
	}()
	return func() { cancel(); <-done }
}

// read takes in what is new in the archive. It returns up to which offset each
// partition is archived, and what is wrong with the new segments in themselves.
func (l *ledger) read(ctx context.Context) (next []int64, c counts, err error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	err = l.takeNew(ctx, &c)
	c.add(l.pending)
	l.pending = counts{}
	for _, f := range l.fates {
		next = append(next, int64(len(f)))
	}
	return next, c, err
}

// takeNew takes in what is new, all of it or nothing.
func (l *ledger) takeNew(ctx context.Context, c *counts) error {
	fresh, err := l.list(ctx, c)
	if err != nil || len(fresh) == 0 {
		return err
	}
	l.readings++
	a := oracle.Archive{Dir: filepath.Join(l.dir, fmt.Sprintf("%05d", l.readings))}
	for key := range fresh {
		if err := l.fetch(ctx, key, a.Dir); err != nil {
			return err
		}
	}
	if err := l.take(a, c); err != nil {
		return err
	}
	maps.Copy(l.objects, fresh)
	return nil
}

// list returns the keys of new segments, with their ETags. One that was read
// before must be there still, and the same, or below the line's watermark.
func (l *ledger) list(ctx context.Context, c *counts) (fresh map[string]string, err error) {
	fresh, there := map[string]string{}, map[string]bool{}
	pages := s3.NewListObjectsV2Paginator(l.store, &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String(l.prefix + archive.LogPrefix)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Contents {
			tag, known := l.objects[*o.Key]
			there[*o.Key] = true
			if !known {
				fresh[*o.Key] = *o.ETag
			} else if tag != *o.ETag {
				c.other++
				l.fault("%s has changed", *o.Key)
			}
		}
	}
	var gone []string
	for key := range l.objects {
		if !there[key] {
			gone = append(gone, key)
		}
	}
	return fresh, l.mayBeGone(ctx, gone, c)
}

// mayBeGone requires that segments which are there no more have been compacted.
func (l *ledger) mayBeGone(ctx context.Context, gone []string, c *counts) error {
	if len(gone) == 0 {
		return nil
	}
	below, err := l.watermarks(ctx)
	if err != nil {
		return err
	}
	for _, key := range gone {
		name, ok := archive.ParseSegmentKey(strings.TrimPrefix(key, l.prefix))
		if !ok || name.Ordinal >= below[name.Partition] {
			c.other++
			l.fault("%s is gone, and the watermark is %d", key, below[name.Partition])
		}
		delete(l.objects, key)
	}
	return nil
}

// watermarks returns the first ordinal of each partition that is not compacted,
// as the newest catalogs say it.
func (l *ledger) watermarks(ctx context.Context) (map[int32]int64, error) {
	newest := map[string]string{} // by line
	pages := s3.NewListObjectsV2Paginator(l.store, &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String(l.prefix + "catalog/")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Contents {
			if strings.HasSuffix(*o.Key, ".note") {
				newest[path.Dir(*o.Key)] = *o.Key // listed in order
			}
		}
	}
	below := map[int32]int64{}
	for _, key := range newest {
		var doc struct {
			Partition int32
			Watermark int64
		}
		if err := l.catalog(ctx, key, &doc); err != nil {
			return nil, err
		}
		below[doc.Partition] = doc.Watermark
	}
	return below, nil
}

// catalog reads the second line of a note, which is JSON.
func (l *ledger) catalog(ctx context.Context, key string, doc any) error {
	out, err := l.store.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(bucket), Key: &key})
	if err != nil {
		return err
	}
	defer out.Body.Close()
	body, err := io.ReadAll(out.Body)
	if err != nil {
		return err
	}
	lines := strings.SplitN(string(body), "\n", 3)
	if len(lines) < 3 {
		return fmt.Errorf("%s is no note", key)
	}
	return json.Unmarshal([]byte(lines[1]), doc)
}

// fetch copies a segment below dir.
func (l *ledger) fetch(ctx context.Context, key, dir string) error {
	out, err := l.store.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(bucket), Key: &key})
	if err != nil {
		return err
	}
	defer out.Body.Close()
	path := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(key, l.prefix)))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := file.ReadFrom(out.Body); err != nil {
		return err
	}
	return file.Close()
}

// coordinates is SQL for what tells a row from all others, null where nothing
// does (docs/format.md, section 4).
const coordinates = `case when kind = 'rejected' or turn_id is null then null else md5(to_json([tenant_id, kind,
	case when kind = 'call' then session_id end, turn_id, case when kind = 'call' then stage_id end,
	case when kind <> 'decision' then seq_within_turn::varchar end])::varchar) end`

// take takes in the segments of a.
func (l *ledger) take(a oracle.Archive, c *counts) error {
	rows, err := a.Query(`select partition, kafka_offset, kind, ` + coordinates + ` from {rows} where kafka_offset is not null order by 1, 2, 3, 4`)
	if err != nil {
		return err
	}
	segments, err := a.Segments()
	if err != nil {
		return err
	}
	l.takeSegments(segments, c)
	l.takeRows(rows, c)
	return nil
}

// takeRows takes in rows: partition, offset, kind, coordinates or nil.
func (l *ledger) takeRows(rows [][]any, c *counts) {
	for _, row := range rows {
		f := aRow
		if row[2] == "rejected" {
			f = aReject
		}
		p, offset := number(row[0]), number(row[1])
		l.set(p, offset, f, c)
		if coord, ok := row[3].(string); ok {
			l.once(coord, fmt.Sprintf("%d/%d", p, offset), c)
		}
	}
}

// takeSegments takes in what the metadata of segments says: the ranges, and
// what in them is no row.
func (l *ledger) takeSegments(segments []archive.Segment, c *counts) {
	slices.SortFunc(segments, func(a, b archive.Segment) int { return int(a.Ordinal - b.Ordinal) })
	for _, s := range segments {
		p := s.Partition
		if s.Ordinal != l.ordinals[p] || s.FirstOffset != int64(len(l.fates[p])) {
			c.other++
			l.fault("segment %d of partition %d begins at offset %d: want segment %d, offset %d", s.Ordinal, p, s.FirstOffset, l.ordinals[p], len(l.fates[p]))
		}
		l.ordinals[p] = s.Ordinal + 1
		for int64(len(l.fates[p])) < s.NextOffset {
			l.fates[p] = append(l.fates[p], noFate)
		}
		for _, d := range s.Duplicates {
			l.set(int64(p), d.Offset, aDuplicate, c)
		}
		for _, g := range s.Gaps {
			for offset := g.From; offset < g.To; offset++ {
				l.set(int64(p), offset, aGap, c)
			}
		}
	}
}

// set notes the fate of an offset, which may have one only.
func (l *ledger) set(p, offset int64, f fate, c *counts) {
	if offset < 0 || offset >= int64(len(l.fates[p])) {
		c.other++
		l.fault("%d/%d is %v, beyond the segments", p, offset, f)
		return
	}
	if was := l.fates[p][offset]; was != noFate {
		c.repeats++
		l.fault("%d/%d is %v, and %v as well", p, offset, was, f)
		return
	}
	l.fates[p][offset] = f
	switch f {
	case aRow:
		c.rows++
	case aReject:
		c.rejects++
	case aDuplicate:
		c.duplicates++
	}
}

// once notes the coordinates of a row, which no other row may have.
func (l *ledger) once(coord, place string, c *counts) {
	if was, twice := l.coords[coord]; twice {
		c.repeats++
		l.fault("the row of %s has the coordinates of that of %s", place, was)
		return
	}
	l.coords[coord] = place
}

// hold holds what was archived since the last time against what Kafka has
// delivered there.
func (l *ledger) hold(delivered [][]bool) counts {
	l.reading.Lock()
	defer l.reading.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	var c counts
	for p := range l.fates {
		end := int64(min(len(l.fates[p]), len(delivered[p])))
		for offset := l.held[p]; offset < end; offset++ {
			l.judge(p, offset, delivered[p][offset], &c)
		}
		l.held[p] = max(l.held[p], end)
	}
	return c
}

func (l *ledger) judge(p int, offset int64, delivered bool, c *counts) {
	is := l.fates[p][offset]
	class, known := l.classes[p][offset]
	delete(l.classes[p], offset)
	want := due[class]
	switch {
	case !delivered && is != aGap:
		c.other++
		l.fault("%d/%d is %v, and Kafka delivers nothing there", p, offset, is)
	case delivered && (is == noFate || is == aGap):
		c.lost++
		l.fault("%d/%d is %v, and Kafka delivers a record there", p, offset, is)
	case !delivered || !known || is == want:
	case l.unsure.Load() && class != workload.Good && class != workload.Broken:
		// Whether the record that it repeats is in Kafka is not known.
	case is == aDuplicate:
		c.lost++
		l.fault("%d/%d is %v: it was sent as %v, and repeats nothing", p, offset, is, class)
	default:
		c.other++
		l.fault("%d/%d is %v: it was sent as %v", p, offset, is, class)
	}
}

// number reads an integer of DuckDB's.
func number(cell any) int64 {
	n, err := strconv.ParseInt(cell.(string), 10, 64)
	if err != nil {
		panic(err) // a column of integers
	}
	return n
}

// ends returns up to which offset the segments of each partition were read.
func (l *ledger) ends() (next []int64) {
	l.reading.Lock()
	defer l.reading.Unlock()
	for _, f := range l.fates {
		next = append(next, int64(len(f)))
	}
	return next
}

// compare holds what a reader of the archive gets (partition, offset, rows that
// are rejects, rows) against the fates of offsets. What lies behind next may have
// come after it has looked.
func (l *ledger) compare(rows [][]any, next []int64) (c counts) {
	l.reading.Lock()
	defer l.reading.Unlock()
	seen := make([]map[int64]bool, len(l.fates))
	for p := range seen {
		seen[p] = map[int64]bool{}
	}
	for _, row := range rows {
		p, offset, rejects, n := number(row[0]), number(row[1]), number(row[2]), number(row[3])
		if offset >= int64(len(l.fates[p])) {
			continue // newer than what was read
		}
		seen[p][offset] = true
		switch is := l.fates[p][offset]; {
		case n != 1:
			c.repeats++
			l.fault("%d/%d is %d rows for a reader", p, offset, n)
		case is == aRow && rejects == 0, is == aReject && rejects == 1:
		default:
			c.other++
			l.fault("%d/%d is a row for a reader, %d of them a reject, and was %v", p, offset, rejects, is)
		}
	}
	for p, fates := range l.fates {
		for offset, is := range fates[:next[p]] {
			if (is == aRow || is == aReject) && !seen[p][int64(offset)] {
				c.lost++
				l.fault("%d/%d is %v, and no reader finds it", p, offset, is)
			}
		}
	}
	return c
}
