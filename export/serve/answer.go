package serve

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/export"
)

// defaultSession is how many records of a session come where nobody says.
// Source: the contract of queries, getSession.
const defaultSession = 100

// foreign returns an error if a row is not of the tenant that was asked for. No
// row ever is; but if one were, it must not leave.
func (c *call) foreign(r *export.Row) error {
	if r.TenantID.S == c.tenant {
		return nil
	}
	return fmt.Errorf("%w: a row of another tenant came for %q: %s", export.ErrTampered, c.tenant, r.Key)
}

// records answers with a list of records. next is the cursor of what follows; not
// complete, there may be more that cannot be read. A row that cannot be shown is
// left out, and the answer is then not complete either.
func (s *Server) records(c *call, rows []*export.Row, next string, complete bool) error {
	b := []byte(`{"records":[`)
	some := false
	for _, r := range rows {
		with := b
		if some {
			with = append(with, ',')
		}
		with, err := c.append(with, r)
		whole, err := s.partly(c, err)
		if err != nil {
			return err
		}
		if complete = complete && whole; whole {
			b, some = with, true
		}
		if b, err = c.some(mediaJSON, b); err != nil {
			return err
		}
	}
	b = append(b, `],"next":`...)
	if next == "" {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendQuote(b, next) // a ULID
	}
	b = strconv.AppendBool(append(b, `,"complete":`...), complete)
	return c.body(mediaJSON, append(b, "}\n"...))
}

// some writes what there is of an answer, if it is worth it, and returns what is
// left.
func (c *call) some(media string, b []byte) ([]byte, error) {
	if len(b) < pieceBytes {
		return b, nil
	}
	return b[:0], c.body(media, b)
}

// append appends a record.
func (c *call) append(b []byte, r *export.Row) ([]byte, error) {
	if err := c.foreign(r); err != nil {
		return b, err
	}
	return appendRecord(b, r)
}

func (s *Server) turn(c *call) error {
	rows, err := s.o.Archive.Turn(c.ctx, c.tenant, c.query["session"], c.path["turn"])
	complete, err := s.partly(c, err)
	if err != nil {
		return err
	}
	return s.records(c, rows, "", complete)
}

func (s *Server) session(c *call) error {
	p := export.Page{Limit: defaultSession}
	if text, ok := c.query["limit"]; ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > s.o.Limits.SessionRecords {
			return errRequest.with(fmt.Sprintf("limit: want a number from 1 to %d", s.o.Limits.SessionRecords))
		}
		p.Limit = n
	}
	if text, ok := c.query["before"]; ok {
		id, err := audit.ParseRecordID(text)
		if err != nil {
			return errRequest.with("before: want a record id, which is a ULID")
		}
		p.Before = id
	}
	return s.page(c, p)
}

// firstRows is how many records of a session are read at first; then it is known
// how large they are.
const firstRows = 20

// page answers with some of the records of a session: as many as are asked for, or
// fewer where they are large.
func (s *Server) page(c *call, p export.Page) error {
	complete, next := true, ""
	var rows []*export.Row
	var size int64
	for want := min(firstRows, p.Limit); want > 0; {
		some, err := s.o.Archive.Session(c.ctx, c.tenant, c.path["session"], export.Page{Limit: want, Before: p.Before})
		whole, err := s.partly(c, err)
		if err != nil {
			return err
		}
		complete, rows, size = complete && whole, append(rows, some...), size+contentOf(some)
		if next = ""; len(some) < want {
			break
		}
		next = some[len(some)-1].Cursor()
		p.Before = next
		want = min(p.Limit-len(rows), int((s.o.Limits.SessionBytes-size)/(size/int64(len(rows))+1)))
	}
	return s.records(c, rows, next, complete)
}

// contentOf returns how many bytes rows have in their slots.
func contentOf(rows []*export.Row) (n int64) {
	for _, r := range rows {
		for _, slot := range r.Slots {
			n += int64(len(slot))
		}
	}
	return n
}

// A place says where a row stands.
type place struct {
	topicID   string
	partition int32
	seq       int64
}

// parsePlace reads topicId:partition:seq.
func parsePlace(text string) (p place, ok bool) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 || parts[0] == "" {
		return p, false
	}
	partition, err1 := strconv.ParseUint(parts[1], 10, 31)
	seq, err2 := strconv.ParseUint(parts[2], 10, 63)
	return place{parts[0], int32(partition), int64(seq)}, err1 == nil && err2 == nil
}

func placeOf(r *export.Row) place { return place{r.Line.TopicID, r.Line.Partition, r.Seq.N} }

func (p place) String() string { return fmt.Sprintf("%s:%d:%d", p.topicID, p.partition, p.seq) }

// find finds the rows that the path names: by record id, or the one by place.
// None is a problem.
func (s *Server) find(c *call) ([]*export.Row, error) {
	name := c.path["record"]
	var rows []*export.Row
	var err error
	if p, ok := parsePlace(name); ok {
		rows, err = s.at(c, p)
	} else {
		id, bad := audit.ParseRecordID(name)
		if bad != nil {
			return nil, errNoRecord
		}
		rows, err = s.o.Archive.Record(c.ctx, c.tenant, id)
	}
	if len(rows) == 0 {
		return nil, cmp.Or(err, error(errNoRecord))
	}
	if _, err := s.partly(c, err); err != nil {
		return nil, err
	}
	for _, r := range rows {
		if err := c.foreign(r); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (s *Server) at(c *call, p place) ([]*export.Row, error) {
	return s.o.Archive.At(c.ctx, c.tenant, func(l archive.Line) bool { return l.TopicID == p.topicID && l.Partition == p.partition }, p.seq)
}

// record answers with one record: the first that has the id. A repeat has the
// same content, and says so.
func (s *Server) record(c *call) error {
	rows, err := s.find(c)
	if err != nil {
		return err
	}
	b, err := c.append(nil, rows[0])
	if err != nil {
		return err
	}
	return c.body(mediaJSON, append(b, '\n'))
}

func (s *Server) tenants(c *call) error {
	ids := c.token.Tenants
	if c.token.All {
		logs, err := s.o.Archive.Logs(c.ctx, "")
		if _, err := s.partly(c, err); err != nil {
			return err
		}
		of := map[string]bool{}
		for _, l := range logs {
			of[l.Tenant] = true
		}
		ids = slices.Collect(maps.Keys(of))
	}
	ids = slices.Sorted(slices.Values(ids))
	return c.json(map[string]any{"tenants": append([]string{}, ids...), "token": c.token.Name})
}

// json answers with a document.
func (c *call) json(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.body(mediaJSON, append(b, '\n'))
}

func (s *Server) health(c *call) error { return c.json(map[string]string{"status": "ok"}) }

// stretch streams what was created in a stretch of time.
func (s *Server) stretch(c *call) error {
	from, err := c.time("from")
	if err != nil {
		return err
	}
	to, err := c.time("to")
	if err != nil {
		return err
	}
	if !from.Before(to) {
		return errRequest.with("from: want a time before to")
	}
	c.w.Header().Set("Content-Type", mediaNDJSON)
	if c.r.Method == "HEAD" {
		return nil
	}
	return c.stream(s.o.Archive.Range(c.ctx, export.Range{Tenant: c.tenant, From: from, To: to}))
}

// stream answers with records, one a line. What is wrong with one log does not
// hold up the others: it is said at the end, and the answer then counts as cut off.
func (c *call) stream(rows iter.Seq2[*export.Row, error]) error {
	var b []byte
	var fault error
	for r, err := range rows {
		if err == nil {
			b, err = c.append(b, r)
		}
		if errors.Is(err, export.ErrTampered) {
			fault = cmp.Or(fault, err)
			continue
		}
		if err != nil {
			return c.cutOff(b, err)
		}
		if b, err = c.some(mediaNDJSON, append(b, '\n')); err != nil {
			return err
		}
	}
	if fault != nil {
		return c.cutOff(b, fault)
	}
	_, err := c.w.Write(b)
	return err
}

// cutOff ends a stream that has begun by a line that says so.
func (c *call) cutOff(b []byte, err error) error {
	if c.w.status == 0 && len(b) == 0 {
		return err // all that was sent is the problem
	}
	if _, gone := c.w.Write(append(append(append(b, `{"$problem":`...), problemOf(err).line()...), "}\n"...)); gone != nil {
		return gone
	}
	_ = c.w.flush()
	return err
}

func (c *call) time(name string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, c.query[name])
	if err != nil {
		return t, errRequest.with(name + ": want a time such as 2026-05-28T12:00:00Z")
	}
	return t, nil
}

// recentRows is how many of the newest rows of each log are looked at for what
// is recent, and recentSessions how many sessions are named.
const recentRows, recentSessions = 500, 50

// A recentSession is a session with its newest turns, newest first.
type recentSession struct {
	Session string        `json:"session"`
	Last    string        `json:"last"` // time of its newest record
	Turns   []*recentTurn `json:"turns"`
}

type recentTurn struct {
	Turn    string `json:"turn"`
	Last    string `json:"last"`
	Records int    `json:"records"` // that were looked at
	Parent  string `json:"parent,omitempty"`
	User    string `json:"user,omitempty"`
}

// recent answers with the newest sessions and turns.
func (s *Server) recent(c *call) error {
	logs, err := s.o.Archive.Logs(c.ctx, c.tenant)
	complete, err := s.partly(c, err)
	if err != nil {
		return err
	}
	var rows []*export.Row
	for _, l := range logs {
		newest, err := s.newest(c, &l)
		whole, err := s.partly(c, err)
		if err != nil {
			return err
		}
		rows, complete = append(rows, newest...), complete && whole
	}
	return c.json(map[string]any{"sessions": recentOf(rows), "complete": complete})
}

// newest returns the newest rows of a log that belong to a turn.
func (s *Server) newest(c *call, l *export.Log) (rows []*export.Row, fault error) {
	for r, err := range s.o.Archive.Rows(c.ctx, export.Scan{Line: l.Line, Tenant: c.tenant, From: max(l.First, l.Next-recentRows)}) {
		if err == nil {
			err = c.foreign(r)
		}
		if err != nil {
			fault = cmp.Or(fault, err)
			continue
		}
		if r.TurnID.Valid {
			rows = append(rows, r)
		}
	}
	return rows, fault
}

// recentOf groups rows by session and turn.
func recentOf(rows []*export.Row) []*recentSession {
	slices.SortStableFunc(rows, func(a, b *export.Row) int { return cmp.Compare(b.At().UnixMicro(), a.At().UnixMicro()) })
	all := []*recentSession{}
	sessions, turns := map[string]*recentSession{}, map[[2]string]*recentTurn{}
	for _, r := range rows {
		at := r.At().Format(stamp)
		s := sessions[r.SessionID.S]
		if s == nil {
			if len(all) == recentSessions {
				continue
			}
			s = &recentSession{Session: r.SessionID.S, Last: at}
			sessions[s.Session], all = s, append(all, s)
		}
		key := [2]string{s.Session, r.TurnID.S}
		t := turns[key]
		if t == nil {
			t = &recentTurn{Turn: r.TurnID.S, Last: at, Parent: r.ParentTurnID.S, User: r.UserID.S}
			turns[key], s.Turns = t, append(s.Turns, t)
		}
		t.Records++
	}
	return all
}

// stamp is how times are written.
const stamp = "2006-01-02T15:04:05.000Z07:00"
