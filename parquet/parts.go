package parquet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
)

// A Getter returns n bytes of an object from an offset on: all of them, unless
// the object ends before. It may be called by several goroutines at once.
type Getter func(ctx context.Context, offset, n int64) ([]byte, error)

const (
	// smallGap is how many bytes are read along rather than asked around.
	smallGap = 256 << 10
	// getsParallel is how many parts are asked for at once.
	getsParallel = 8
)

// A getError is an error of a [Getter], which says nothing of the object.
type getError struct{ error }

func (e *getError) Unwrap() error { return e.error }

// A part is a stretch of an object that was read.
type part struct {
	at    int64
	bytes []byte
}

func (p *part) end() int64 { return p.at + int64(len(p.bytes)) }

// parts are what was read of an object.
type parts struct {
	get  Getter
	have []part
	gets int   // so far
	read int64 // bytes so far
}

// of returns a stretch that was read, or nil.
func (p *parts) of(s Span) []byte {
	for i := range p.have {
		if h := &p.have[i]; s.Offset >= h.at && s.Offset <= h.end() && s.Size <= h.end()-s.Offset {
			return h.bytes[s.Offset-h.at:][:s.Size:s.Size]
		}
	}
	return nil
}

// must is of for what was fetched.
func (p *parts) must(s Span) ([]byte, error) {
	b := p.of(s)
	if b == nil && s.Size > 0 {
		return nil, fmt.Errorf("%d bytes at %d were not read", s.Size, s.Offset)
	}
	return b, nil
}

// fetch reads those stretches that were not read yet, in as few parts as plan
// makes of them.
func (p *parts) fetch(ctx context.Context, spans []Span, most int, limit int64) error {
	var missing []Span
	for _, s := range spans {
		if s.Size > 0 && p.of(s) == nil {
			missing = append(missing, s)
		}
	}
	ranges := plan(missing, most, limit)
	got, errs := make([]part, len(ranges)), make([]error, len(ranges))
	free := make(chan struct{}, getsParallel)
	var all sync.WaitGroup
	for i, s := range ranges {
		free <- struct{}{}
		all.Go(func() {
			got[i], errs[i] = p.one(ctx, s)
			<-free
		})
	}
	all.Wait()
	p.gets += len(ranges)
	for i := range ranges {
		if errs[i] != nil {
			return errs[i]
		}
		p.read += ranges[i].Size
	}
	p.have = append(p.have, got...)
	return nil
}

// forget lets go of all parts but the first n.
func (p *parts) forget(n int) {
	clear(p.have[n:])
	p.have = p.have[:n]
}

func (p *parts) one(ctx context.Context, s Span) (part, error) {
	b, err := p.get(ctx, s.Offset, s.Size)
	if err != nil {
		return part{}, &getError{err}
	}
	if int64(len(b)) != s.Size {
		return part{}, fmt.Errorf("%d bytes at %d, where %d are", len(b), s.Offset, s.Size)
	}
	return part{at: s.Offset, bytes: b}, nil
}

// plan makes ranges that hold all spans: no more than most, and of those the
// ones that pass over the largest gaps. Where they would have more than limit
// bytes together, there are more of them.
func plan(spans []Span, most int, limit int64) []Span {
	ranges := joined(spans, smallGap)
	if len(ranges) <= 1 {
		return ranges
	}
	total := ranges[len(ranges)-1].end() - ranges[0].Offset
	gaps := make([]int, len(ranges)-1) // each before the range behind it, the largest first
	for i := range gaps {
		gaps[i] = i + 1
	}
	gap := func(i int) int64 { return ranges[i].Offset - ranges[i-1].end() }
	slices.SortStableFunc(gaps, func(a, b int) int { return cmp.Compare(gap(b), gap(a)) })
	cut := make([]bool, len(ranges))
	for n, i := range gaps {
		if n+1 >= most && total <= limit {
			break
		}
		cut[i] = true
		total -= gap(i)
	}
	all := ranges[:1]
	for i := 1; i < len(ranges); i++ {
		if cut[i] {
			all = append(all, ranges[i])
			continue
		}
		all[len(all)-1].Size = ranges[i].end() - all[len(all)-1].Offset
	}
	return all
}

// joined returns the spans in order, those as one between which lie no more than
// gap bytes.
func joined(spans []Span, gap int64) []Span {
	all := slices.Clone(spans)
	slices.SortFunc(all, func(a, b Span) int { return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size)) })
	n := 0
	for _, s := range all {
		if n > 0 && s.Offset-all[n-1].end() <= gap {
			all[n-1].Size = max(all[n-1].end(), s.end()) - all[n-1].Offset
			continue
		}
		all[n] = s
		n++
	}
	return all[:n]
}

func (s Span) end() int64 { return s.Offset + s.Size }
