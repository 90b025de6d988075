package stream

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/export"
)

// A Status is how a destination stands, by what exporters left in the bucket.
type Status struct {
	Name      string       `json:"name"`
	Type      string       `json:"type"`
	State     string       `json:"state"`
	Reason    string       `json:"reason"`
	Since     archive.Time `json:"since"`
	By        string       `json:"by"`       // who exports to it; "" is nobody
	LastSign  archive.Time `json:"lastSign"` // of life, by its clock
	Delivered int64        `json:"delivered"`
	Dead      int64        `json:"dead"`    // rows that were refused for good
	Open      int64        `json:"open"`    // of those: not sent again yet
	Dropped   int64        `json:"dropped"` // rows that retention dropped first
	Rows      int64        `json:"rows"`    // that are not delivered yet, or do not get through its filter
	// Oldest is when the oldest segment was archived that is not delivered, by the
	// store; null where there is none, or where it is compacted already.
	Oldest    *archive.Time `json:"oldest"`
	Lines     []LineStatus  `json:"lines"`
	Backfills []JobStatus   `json:"backfills"`
}

// A LineStatus is how a destination stands with a line.
type LineStatus struct {
	Topic     string        `json:"topic"`
	TopicID   string        `json:"topicId"`
	Partition int32         `json:"partition"`
	Rows      int64         `json:"rows"`
	Stored    *archive.Time `json:"stored"` // when its cursors were; null where there are none
	Oldest    *archive.Time `json:"oldest"`
	Fault     string        `json:"fault"` // why nothing is known of it
	// Misfits are the logs whose cursor is none of the archive, or of which the
	// archive lacks rows that an anchor states; by tenant. Rows counts none of theirs.
	Misfits []Misfit `json:"misfits"`
}

// A Misfit is a log that a destination cannot go on with.
type Misfit struct {
	Tenant string `json:"tenant"`
	Fault  string `json:"fault"`
}

// A JobStatus is how far a backfill is.
type JobStatus struct {
	ID        string        `json:"id"`
	Created   archive.Time  `json:"created"`
	Done      *archive.Time `json:"done"`
	Delivered int64         `json:"delivered"`
	Passed    int64         `json:"passed"` // rows that its cursors have passed
}

// ReadStatus reads how a destination stands, and holds its cursors against the
// archive as a start of an exporter does. It costs the parts of all catalogs, the
// metadata of all segments above them, and each object in the middle of which a
// cursor stands.
func ReadStatus(ctx context.Context, src archive.Swapper, root archive.Root, keys *sign.Ring, name string, now func() time.Time) (*Status, error) {
	state, err := ReadState(ctx, src, name)
	if err != nil {
		return nil, err
	}
	if state == nil {
		return nil, ErrNoDestination
	}
	s := &Status{Name: name, Type: state.Type, State: state.State, Reason: state.Reason, Since: state.Since, Lines: []LineStatus{}, Backfills: []JobStatus{}}
	lease, err := ReadLease(ctx, src, name)
	if err != nil {
		return nil, err
	}
	if lease != nil {
		s.By, s.LastSign = lease.By, lease.Time
	}
	e := New(Settings{Archive: src, Root: root, Keys: keys, Now: now, ID: "status"}, []Destination{{Name: name, Format: "json"}})
	lines, err := e.lines(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		if err := s.line(ctx, e, l); err != nil {
			return nil, err
		}
	}
	if err := s.letters(ctx, src); err != nil {
		return nil, err
	}
	return s, s.jobs(ctx, e, lines)
}

func (s *Status) line(ctx context.Context, e *Engine, l archive.Line) error {
	st := LineStatus{Topic: l.Topic, TopicID: l.TopicID, Partition: l.Partition, Misfits: []Misfit{}}
	c, err := ReadCursors(ctx, e.s.Archive, e.s.Root.ArchiveID, s.Name, "", l)
	if errors.Is(err, ErrCursor) || errors.Is(err, ErrDocument) {
		st.Fault, err = err.Error(), nil
	}
	if err != nil {
		return err
	}
	if st.Fault == "" {
		if err := s.steady(ctx, e, l, c, &st); err != nil {
			return err
		}
	}
	if c != nil {
		st.Stored = &c.Time
		for i := range c.Logs {
			s.Delivered, s.Dead, s.Dropped = s.Delivered+c.Logs[i].Delivered, s.Dead+c.Logs[i].Dead, s.Dropped+c.Logs[i].Dropped
		}
	}
	s.Rows += st.Rows
	if st.Oldest != nil && (s.Oldest == nil || st.Oldest.Before(s.Oldest.Time)) {
		s.Oldest = st.Oldest
	}
	s.Lines = append(s.Lines, st)
	return nil
}

// steady holds cursors against a line, and does it again where compaction took what
// was looked at.
func (s *Status) steady(ctx context.Context, e *Engine, l archive.Line, c *Cursors, st *LineStatus) error {
	r := &runner{e: e, d: e.destinations[0], line: l, watch: e.watches.of(l), doc: document{key: cursorKey(s.Name, "", l)}}
	for try := 1; ; try++ {
		err := s.hold(ctx, r, c, st)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, archive.ErrNotFound) && try < missTries:
			r.watch.gone(r.v)
		case errors.Is(err, archive.ErrNotFound), errors.Is(err, export.ErrTampered), errors.Is(err, archive.ErrCatalog), errors.Is(err, archive.ErrBreaks), errors.Is(err, archive.ErrDamaged):
			st.Fault = err.Error()
			return nil
		default:
			return err
		}
	}
}

// hold holds cursors, nil for none, against a line, and counts what is to go.
func (s *Status) hold(ctx context.Context, r *runner, c *Cursors, st *LineStatus) (err error) {
	if r.v, err = r.watch.view(ctx); err != nil {
		return err
	}
	ends, err := r.ends(ctx, r.v)
	if err != nil {
		return err
	}
	faults := map[string]error{}
	if c != nil {
		if faults = r.verify(ctx, c); faults[""] != nil {
			return faults[""]
		}
	}
	if r.v.lacks != nil {
		for tenant := range r.v.lacks.heads {
			if err := r.v.lacks.of(tenant, ends[tenant].next); err != nil && faults[tenant] == nil {
				faults[tenant] = err
			}
		}
	}
	for _, tenant := range slices.Sorted(maps.Keys(faults)) {
		st.Misfits = append(st.Misfits, Misfit{tenant, faults[tenant].Error()})
		delete(ends, tenant)
	}
	for tenant, end := range ends {
		st.Rows += end.next
		if c != nil && c.Of(tenant) != nil {
			st.Rows -= min(c.Of(tenant).Next, end.next)
		}
	}
	if c != nil && c.Ordinal >= r.v.watermark() && c.Ordinal < r.v.next() {
		st.Oldest = &archive.Time{Time: r.v.segment(c.Ordinal).Modified}
	}
	return nil
}

func (s *Status) letters(ctx context.Context, src archive.Source) error {
	for l, err := range DeadLetters(ctx, src, s.Name) {
		if err != nil {
			return err
		}
		if !l.Replayed {
			s.Open += int64(len(l.Letters))
		}
	}
	return nil
}

func (s *Status) jobs(ctx context.Context, e *Engine, lines []archive.Line) error {
	jobs, err := Jobs(ctx, e.s.Archive, s.Name)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		st := JobStatus{ID: j.ID, Created: j.Created, Done: j.Done}
		for _, l := range lines {
			c, err := ReadCursors(ctx, e.s.Archive, e.s.Root.ArchiveID, s.Name, j.ID, l)
			if err != nil {
				return err
			}
			for i := 0; c != nil && i < len(c.Logs); i++ {
				st.Delivered += c.Logs[i].Delivered
				st.Passed += c.Logs[i].Next - c.Logs[i].First
			}
		}
		s.Backfills = append(s.Backfills, st)
	}
	return nil
}
