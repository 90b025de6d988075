package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A Job is a backfill: rows that are delivered once more, in lanes of their own
// beside what is live.
type Job struct {
	V           int           `json:"v"`
	ID          string        `json:"id"` // a ULID
	Destination string        `json:"destination"`
	Created     archive.Time  `json:"created"`
	Tenants     []string      `json:"tenants"` // empty: all
	FromSeq     *int64        `json:"fromSeq"` // of each log
	From        *archive.Time `json:"from"`    // created_at in [from, to); of rows without one archived_at
	To          *archive.Time `json:"to"`
	Dead        []string      `json:"dead"` // keys of dead letters that are sent again; empty: rows of the above
	Done        *archive.Time `json:"done"`
}

// Backfill registers a job. A running exporter begins with it within
// Settings.LinesEvery.
func Backfill(ctx context.Context, dst archive.Bucket, j Job) error {
	j.V = docVersion
	body, err := json.Marshal(&j)
	if err != nil {
		return err
	}
	_, err = dst.Create(ctx, jobKey(j.Destination, j.ID), body)
	return err
}

// Jobs returns the backfills of a destination, oldest first, those that are done
// too. The error names those that cannot be read; the others are returned with it.
func Jobs(ctx context.Context, src archive.Source, destination string) ([]Job, error) {
	ids, err := listJobs(ctx, src, destination)
	if err != nil {
		return nil, err
	}
	var jobs []Job
	var faults []error
	for _, id := range ids {
		j, err := readJob(ctx, src, destination, id)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		jobs = append(jobs, *j)
	}
	return jobs, errors.Join(faults...)
}

func readJob(ctx context.Context, src archive.Source, destination, id string) (*Job, error) {
	key := jobKey(destination, id)
	var body []byte
	err := whole(key, func() (err error) { body, err = src.Get(ctx, key); return err })
	if err != nil {
		return nil, err
	}
	j := &Job{}
	if err := json.Unmarshal(body, j); err != nil {
		return nil, fmt.Errorf("%s: it is no backfill: %w: remove it", key, err)
	}
	if j.V != docVersion || j.ID != id || j.Destination != destination {
		return nil, fmt.Errorf("%s: it says that it is backfill %q of destination %q, of version %d: remove it", key, j.ID, j.Destination, j.V)
	}
	return j, nil
}

// listJobs returns the ids of all backfills of a destination.
func listJobs(ctx context.Context, src archive.Source, destination string) (ids []string, err error) {
	prefix := destinationPrefix(destination) + "backfill/"
	for o, err := range src.List(ctx, prefix, "") {
		if err != nil {
			return nil, err
		}
		if id, ok := parseJobKey(destination, o.Key); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// A job is a Job that is carried out. A nil one is what is live.
type job struct {
	Job
	rows map[archive.Line]map[string][]int64 // of dead letters, in order
	line archive.Line
}

// newJob reads what a job needs.
func newJob(ctx context.Context, src archive.Source, j Job) (*job, error) {
	b := &job{Job: j}
	for _, key := range j.Dead {
		letters, err := readLetters(ctx, src, key)
		if err != nil {
			return nil, err
		}
		if b.rows == nil {
			b.rows = map[archive.Line]map[string][]int64{}
		}
		logs := b.rows[letters.Line()]
		if logs == nil {
			logs = map[string][]int64{}
			b.rows[letters.Line()] = logs
		}
		for _, l := range letters.Letters {
			if l.Seq >= 0 {
				logs[l.Tenant] = append(logs[l.Tenant], l.Seq)
			}
		}
	}
	for _, logs := range b.rows {
		for _, seqs := range logs {
			slices.Sort(seqs)
		}
	}
	return b, nil
}

// of returns the job in one line.
func (j *job) of(l archive.Line) *job {
	c := *j
	c.line = l
	return &c
}

func (j *job) id() string {
	if j == nil {
		return ""
	}
	return j.ID
}

// seqs returns the rows of dead letters of a tenant's log.
func (j *job) seqs(tenant string) []int64 { return j.rows[j.line][tenant] }

// hasTenant reports whether the job is about a tenant.
func (j *job) hasTenant(tenant string) bool {
	switch {
	case j == nil:
		return true
	case len(j.Dead) > 0:
		return len(j.seqs(tenant)) > 0
	}
	return oneOf(j.Tenants, tenant, true)
}

// place puts a lane that begins where the job begins.
func (j *job) place(g *lane) {
	if j == nil {
		return
	}
	first := int64(0)
	if j.FromSeq != nil {
		first = max(*j.FromSeq, 0)
	}
	if seqs := j.seqs(g.Tenant); len(seqs) > 0 {
		first = seqs[0]
	}
	g.First, g.Next, g.read = first, first, position{next: first}
}

// skips reports whether a lane that stands in front of a whole file needs nothing
// of it.
func (j *job) skips(f *archive.CatalogFile, g *lane) bool {
	if j == nil || g.read.next != f.FirstSeq {
		return false
	}
	if len(j.Dead) > 0 {
		seqs := j.seqs(g.Tenant)
		i, _ := slices.BinarySearch(seqs, f.FirstSeq)
		return i == len(seqs) || seqs[i] > f.LastSeq
	}
	day, err := time.Parse(archive.DayLayout, f.Day)
	if err != nil || j.From == nil && j.To == nil {
		return false
	}
	low, high := day, day.AddDate(0, 0, 1) // of rows without a created_at
	if f.MinCreatedAt != nil && f.MinCreatedAt.Before(low) {
		low = f.MinCreatedAt.Time
	}
	if f.MaxCreatedAt != nil && f.MaxCreatedAt.After(high) {
		high = f.MaxCreatedAt.Time
	}
	return j.From != nil && high.Before(j.From.Time) || j.To != nil && !low.Before(j.To.Time)
}

// ended reports whether a lane is through.
func (j *job) ended(g *lane) bool {
	if j == nil || len(j.Dead) == 0 {
		return false
	}
	seqs := j.seqs(g.Tenant)
	return len(seqs) == 0 || g.read.next > seqs[len(seqs)-1]
}

// has reports whether a row is one that the job delivers.
func (j *job) has(row *chain.Row) bool {
	if j == nil {
		return true
	}
	if len(j.Dead) > 0 {
		_, ok := slices.BinarySearch(j.seqs(row.TenantID.S), row.Seq.N)
		return ok
	}
	at := row.ArchivedAt.N
	if row.CreatedAt.Valid {
		at = row.CreatedAt.N
	}
	return (j.From == nil || at >= j.From.UnixMicro()) && (j.To == nil || at < j.To.UnixMicro())
}

// notices reports whether the job tells once more what a receipt says.
func (j *job) notices(row *chain.Row) bool { return j == nil || len(j.Dead) > 0 && j.has(row) }

// finish notes that a job is done.
func (j *job) finish(ctx context.Context, e *Engine) error {
	for _, key := range j.Dead {
		_, err := e.s.Archive.Create(ctx, replayedKey(j.Destination, key), []byte("{}\n"))
		if err != nil && !errors.Is(err, archive.ErrExists) {
			return err
		}
	}
	doc := document{e: e, key: jobKey(j.Destination, j.ID)}
	if _, err := doc.read(ctx); err != nil {
		return err
	}
	done := j.Job
	done.Done = &archive.Time{Time: e.s.Now()}
	body, err := json.Marshal(&done)
	if err != nil {
		return err
	}
	return doc.write(ctx, body)
}
