package export

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A Log is the rows of one tenant in one line, as an archive was seen last.
type Log struct {
	chain.Log
	Line   archive.Line
	Scheme string     // "" where all of its rows are compacted: their objects say it
	First  int64      // the lowest seq that is still there; Next where all rows were cut
	Next   int64      // its size: the seq that comes next
	Head   chain.Hash // row_hash of the last row; genesis where there is none
	Lacks  error      // where it ends in front of rows that an anchor states: an [ErrTampered]; else nil
}

// Logs returns the logs of a tenant, the control log too, by line; "" means of all
// tenants. It reads what segments say of themselves, where it is not known yet.
// Logs of lines that cannot be read are missing: the error matches [ErrTampered]
// then, and where a log lacks rows, and comes with the others.
func (a *Archive) Logs(ctx context.Context, tenant string) ([]Log, error) {
	v := a.view.Load()
	var all []Log
	faults := []error{v.fault}
	for _, l := range v.lines {
		logs, err := a.logsOf(ctx, l, tenant)
		if err != nil && !errors.Is(err, ErrTampered) {
			return nil, err
		}
		all, faults = append(all, logs...), append(faults, err)
	}
	return all, errors.Join(faults...)
}

// Tenants returns the tenants that have a log, in the order of their ids. Errors
// are those of [Archive.Logs].
func (a *Archive) Tenants(ctx context.Context) ([]string, error) {
	logs, err := a.Logs(ctx, "")
	var all []string
	for i := range logs {
		all = append(all, logs[i].Tenant)
	}
	slices.Sort(all)
	return slices.Compact(all), err
}

func (a *Archive) logsOf(ctx context.Context, l *lineView, tenant string) (logs []Log, err error) {
	var faults []error
	err = l.steady(ctx, tenant, func(s *archive.Snapshot) error {
		segments, err := l.segments(ctx, s)
		if err == nil {
			logs = a.logsIn(l.line, tenant, s, segments)
		}
		return err
	}, func(fault error) error { faults = append(faults, fault); return nil })
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range logs {
		logs[i].Lacks = l.lacks[logs[i].Tenant]
	}
	return logs, errors.Join(faults...)
}

func (a *Archive) logsIn(line archive.Line, tenant string, s *archive.Snapshot, segments []*segment) []Log {
	w := &walker{a: a, l: &lineView{line: line}, ask: ask{tenant: tenant}, logs: map[string]*logAt{}}
	w.begin(s, segments)
	logs := make(map[string]*Log, len(w.logs))
	for t, at := range w.logs {
		logs[t] = &Log{Log: w.log(t), Line: line, First: at.next, Next: at.next, Head: at.head}
	}
	for i := range s.Files {
		if l := logs[s.Files[i].Tenant]; l != nil {
			l.Next, l.Head = s.Files[i].LastSeq+1, s.Files[i].HeadOut
		}
	}
	for _, seg := range segments {
		for i := range seg.logs {
			if l := logs[seg.logs[i].Tenant]; l != nil {
				l.Next, l.Head, l.Scheme = seg.logs[i].FirstSeq+seg.logs[i].Rows, seg.logs[i].HeadOut, seg.logs[i].Scheme
			}
		}
	}
	all := make([]Log, 0, len(logs))
	for _, l := range logs {
		all = append(all, *l)
	}
	slices.SortFunc(all, func(a, b Log) int { return cmp.Compare(a.Tenant, b.Tenant) })
	return all
}
