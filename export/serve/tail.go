package serve

import (
	"errors"
	"fmt"
	"time"

	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
)

// maxIDLogs is in how many logs a tenant may be for each event to carry the whole
// position. With more of them the position comes by itself, behind the records of
// each log, and who comes back gets some records of one log again.
const maxIDLogs = 8

// A tailing is one tail.
type tailing struct {
	s    *Server
	c    *call
	at   position
	ids  bool             // each event carries the position
	bad  map[logName]bool // logs of which something does not fit: said once, and left alone
	buf  []byte
	sent time.Time // of the last byte
}

// tail sends records as they are archived. It pages by position in the chains,
// never by time: what comes late is there like everything else.
func (s *Server) tail(c *call) error {
	t := &tailing{s: s, c: c, bad: map[logName]bool{}}
	if err := t.begin(); err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("Content-Type", mediaEvents)
	h.Set("X-Accel-Buffering", "no") // nginx would wait for more
	if c.r.Method == "HEAD" {
		return nil
	}
	err := t.run()
	if err != nil && c.w.status != 0 && c.ctx.Err() == nil {
		_ = t.event("problem", "", problemOf(err).line())
		_ = t.send()
	}
	return err
}

// begin finds where the tail begins.
func (t *tailing) begin() error {
	logs, complete, err := t.logs()
	if err != nil {
		return err
	}
	if text := t.c.r.Header.Get("Last-Event-ID"); text != "" {
		var ok bool
		if t.at, ok = parsePosition(text); !ok {
			return errRequest.with("Last-Event-ID: want the id of an event of this tail")
		}
		if !complete {
			return nil // a log that cannot be read now may be one that is named
		}
		return t.known(logs)
	}
	t.at = position{}
	switch t.c.query["from"] {
	case "start":
		return nil
	case "", "now":
		for i := range logs {
			t.at[nameOf(&logs[i])] = point{next: logs[i].Next}
		}
		return nil
	}
	return errRequest.with("from: want now or start")
}

// known holds a position against the logs there are.
func (t *tailing) known(logs []export.Log) error {
	size := map[logName]int64{}
	for i := range logs {
		size[nameOf(&logs[i])] = logs[i].Next
	}
	for name, p := range t.at {
		if n, ok := size[name]; !ok || p.next > n {
			return errPosition.with("it names a log, or a row, that is not there")
		}
	}
	return nil
}

// run sends what is there, waits, and looks again.
func (t *tailing) run() error {
	tick := time.NewTicker(t.s.o.Age)
	defer tick.Stop()
	if err := t.event("position", t.at.String(), nil); err != nil {
		return err
	}
	for first := true; ; first = false {
		if err := t.sweep(first); err != nil {
			return err
		}
		if err := t.alive(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-t.c.ctx.Done():
			return errGone
		case <-t.s.stopping:
			return nil
		}
		if err := t.allowed(); err != nil {
			return err
		}
		if err := t.s.fresh(t.c.ctx); err != nil {
			return err
		}
	}
}

// allowed says whether the token is still good, and for the tenant.
func (t *tailing) allowed() error {
	switch token := t.s.tokens.find(t.c.secret, t.s.o.Now()); {
	case token == nil:
		return errToken
	case !token.May(t.c.tenant):
		return errNowhere
	}
	return nil
}

// sweep sends what every log has beyond the position. Behind what was there at
// the beginning stands a comment.
func (t *tailing) sweep(first bool) error {
	logs, _, err := t.logs()
	if err != nil {
		return err
	}
	t.ids = len(logs) <= maxIDLogs
	for i := range logs {
		if t.bad[nameOf(&logs[i])] {
			continue
		}
		if err := t.log(&logs[i]); err != nil {
			return err
		}
	}
	if first {
		t.buf = append(t.buf, ": quiet\n\n"...)
	}
	return t.send()
}

// logs returns the logs of the tenant that can be read; complete: that is all.
func (t *tailing) logs() (logs []export.Log, complete bool, err error) {
	logs, err = t.s.o.Archive.Logs(t.c.ctx, t.c.tenant)
	if errors.Is(err, export.ErrTampered) {
		return logs, false, nil // it is told of where it is read
	}
	return logs, err == nil, err
}

// log sends what one log has beyond the position.
func (t *tailing) log(l *export.Log) error {
	name := nameOf(l)
	p := t.at[name]
	if p.next >= l.Next && l.Lacks != nil {
		return t.stop(name, l.Lacks)
	}
	if p.next >= l.Next {
		return nil
	}
	scan := t.skip(l, p)
	for r, err := range t.s.o.Archive.Rows(t.c.ctx, scan) {
		if err == nil {
			err = t.record(name, r)
		}
		switch {
		case errors.Is(err, export.ErrTampered):
			return t.stop(name, err)
		case err != nil:
			return err
		}
	}
	if t.ids {
		return nil
	}
	return t.event("position", t.at.String(), nil)
}

// stop has a log left alone of which something does not fit. Other logs go on. That a
// position which somebody sent does not is no fault of the archive.
func (t *tailing) stop(name logName, err error) error {
	t.bad[name] = true
	p := *errPosition
	if !t.at[name].told || !errors.Is(err, export.ErrPosition) {
		t.s.tell(t.c, err)
		p = *errStored
	}
	p.Detail = fmt.Sprintf("log %s:%d stops at seq %d; others go on", name.topicID, name.partition, t.at[name].next)
	return t.event("problem", "", p.line())
}

// skip returns what is to be read behind a point. What a retention-cut dropped is
// passed over; a row that was received is held against the chain.
func (t *tailing) skip(l *export.Log, p point) export.Scan {
	scan := export.Scan{Line: l.Line, Tenant: t.c.tenant, From: p.next}
	switch {
	case p.next < l.First:
		scan.From = l.First
	case p.hash.Valid:
		scan.Prev = &p.hash.Hash
	}
	return scan
}

// record sends a row, and moves behind it.
func (t *tailing) record(name logName, r *export.Row) error {
	b, err := t.c.append(nil, r)
	if err != nil {
		return err
	}
	if r.Seq.N < t.at[name].next {
		return fmt.Errorf("%w: seq %d comes again behind %d", export.ErrTampered, r.Seq.N, t.at[name].next-1)
	}
	t.at[name] = point{next: r.Seq.N + 1, hash: chain.NullHash{Hash: r.RowHash, Valid: true}}
	id := ""
	if t.ids {
		id = t.at.String()
	}
	return t.event("record", id, b)
}

// event writes an event. Its data is on one line: JSON has no line feed but in
// escapes. Source: HTML, section 9.2, server-sent events.
func (t *tailing) event(name, id string, data []byte) error {
	t.buf = append(append(append(t.buf, "event: "...), name...), '\n')
	if id != "" {
		t.buf = append(append(append(t.buf, "id: "...), id...), '\n')
	}
	t.buf = append(append(append(t.buf, "data: "...), data...), "\n\n"...)
	if len(t.buf) < pieceBytes {
		return nil
	}
	return t.send()
}

// send sends what was written.
func (t *tailing) send() error {
	if len(t.buf) == 0 {
		return nil
	}
	_, err := t.c.w.Write(t.buf)
	t.buf = t.buf[:0]
	if err != nil {
		return err
	}
	t.sent = t.s.o.Now()
	return t.c.w.flush()
}

// alive sends a sign of life where nothing else was sent for long.
func (t *tailing) alive() error {
	if t.s.o.Now().Sub(t.sent) < t.s.o.Limits.Heartbeat {
		return nil
	}
	t.buf = append(t.buf, ": alive\n\n"...)
	return t.send()
}
