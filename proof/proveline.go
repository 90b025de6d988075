package proof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A provenLine is one line as a Prover looks at it: by its anchors.
type provenLine struct {
	p       *Prover
	line    archive.Line
	anchors map[int64]*linkedAnchor // that were read
	count   int64                   // of anchors; -1 where it is not known yet
	logs    map[string]*provenLog
	pieces  map[int64]*piece // segments that were read, by ordinal
	catalog *compaction      // nil: not read yet
}

// A linkedAnchor is an anchor, and the note that it came as.
type linkedAnchor struct {
	*archive.Anchor
	note *sign.Note
	body []byte
}

// lines returns the lines that w asks for, by the first anchor of each. It skips
// from line to line, one listing each.
func (p *Prover) lines(ctx context.Context, w Want) ([]*provenLine, error) {
	var all []*provenLine
	after := ""
	for {
		key, err := p.firstKey(ctx, "anchor/", after)
		if err != nil || key == "" {
			return all, err
		}
		folder := key[:strings.LastIndexByte(key, '/')+1]
		after = folder + "~" // sorts behind all digits
		name, ok := parseLineFolder(folder)
		if !ok || !w.fitsFolder(name) {
			continue
		}
		if l := p.known[folder]; l != nil {
			if w.Topic == "" || w.Topic == l.line.Topic {
				all = append(all, l)
			}
			continue
		}
		l := &provenLine{p: p, count: -1, anchors: map[int64]*linkedAnchor{}, logs: map[string]*provenLog{}, pieces: map[int64]*piece{}}
		a, err := l.readAnchor(ctx, folder, 0)
		if err != nil {
			return nil, err
		}
		if l.line = a.Line(); archive.AnchorPrefix(l.line) != folder {
			return nil, tampered("%s: the anchor is of another line", key)
		}
		p.known[folder] = l
		if w.Topic == "" || w.Topic == l.line.Topic {
			all = append(all, l)
		}
	}
}

func (w *Want) fitsFolder(k lineKey) bool {
	return (w.Topic == "" || chain.Escape(w.Topic) == k.topic) && (w.TopicID == "" || chain.Escape(w.TopicID) == k.topicID) && (w.Partition == nil || *w.Partition == k.partition)
}

func (p *Prover) firstKey(ctx context.Context, prefix, after string) (string, error) {
	for o, err := range p.src.List(ctx, prefix, after) {
		if err != nil {
			return "", fmt.Errorf("list %s: %w", prefix, err)
		}
		return o.Key, nil
	}
	return "", nil
}

// anchor returns an anchor of the line. An error matches [archive.ErrNotFound]
// if there is none of that number.
func (l *provenLine) anchor(ctx context.Context, n int64) (*linkedAnchor, error) {
	a, err := l.readAnchor(ctx, archive.AnchorPrefix(l.line), n)
	if err == nil && a.Line() != l.line {
		return nil, tampered("anchor %d is of another line", n)
	}
	return a, err
}

func (l *provenLine) readAnchor(ctx context.Context, folder string, n int64) (*linkedAnchor, error) {
	if a, ok := l.anchors[n]; ok {
		return a, nil
	}
	key := fmt.Sprintf("%s%020d.note", folder, n)
	body, err := retry(func() ([]byte, error) { return l.p.src.Get(ctx, key) })
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	a, err := decodeAnchorNote(body)
	switch {
	case err != nil:
		return nil, tampered("%s: %v", key, err)
	case a.Number != n:
		return nil, tampered("%s says that it is number %d", key, a.Number)
	case a.ArchiveID != l.p.root.ArchiveID:
		return nil, tampered("%s is of archive %.40q", key, a.ArchiveID)
	}
	l.anchors[n] = a
	return a, nil
}

func decodeAnchorNote(body []byte) (*linkedAnchor, error) {
	n, err := sign.Parse(body)
	if err != nil {
		return nil, err
	}
	a, err := archive.DecodeAnchor(n.Text)
	return &linkedAnchor{a, n, body}, err
}

// newest returns the number of the line's newest anchor. Numbers have no holes:
// it doubles, and halves.
func (l *provenLine) newest(ctx context.Context) (int64, error) {
	if l.count > 0 {
		return l.count - 1, nil
	}
	there := func(n int64) (bool, error) {
		_, err := l.anchor(ctx, n)
		if errors.Is(err, archive.ErrNotFound) {
			return false, nil
		}
		return err == nil, err
	}
	low, high := int64(0), int64(1)
	for {
		ok, err := there(high)
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		low, high = high, 2*high
	}
	for high-low > 1 {
		mid := low + (high-low)/2
		ok, err := there(mid)
		if err != nil {
			return 0, err
		}
		if ok {
			low = mid
		} else {
			high = mid
		}
	}
	l.count = high
	return low, nil
}

// An answer of something that is in order: not yet, from here on, or it does
// not say, which means that it is as at the one before.
type answer int

const (
	silent answer = iota
	before
	reached
)

// search returns the smallest number below count that a question has reached, or
// count. Where numbers are silent, those below them are asked.
func search(count int64, ask func(n int64) (answer, error)) (int64, error) {
	low, high := int64(-1), count // low: before, high: reached
	for high-low > 1 {
		mid := low + (high-low)/2
		n, said := mid, silent
		for ; n > low; n-- {
			var err error
			if said, err = ask(n); err != nil {
				return 0, err
			}
			if said != silent {
				break
			}
		}
		if said == reached {
			high = n
		} else {
			low = mid
		}
	}
	return high, nil
}

// firstAnchor returns the first anchor that a question has reached. An error
// matches [ErrNotAnchored] if none has.
func (l *provenLine) firstAnchor(ctx context.Context, ask func(*linkedAnchor) answer) (*linkedAnchor, error) {
	newest, err := l.newest(ctx)
	if err != nil {
		return nil, err
	}
	n, err := search(newest+1, func(n int64) (answer, error) {
		a, err := l.anchor(ctx, n)
		if err != nil {
			return silent, err
		}
		return ask(a), nil
	})
	switch {
	case err != nil:
		return nil, err
	case n > newest:
		return nil, ErrNotAnchored
	}
	return l.anchor(ctx, n)
}

func headIn(a *archive.Anchor, tenant string) *archive.AnchorHead {
	i, ok := slices.BinarySearchFunc(a.Heads, tenant, func(h archive.AnchorHead, t string) int { return strings.Compare(h.Tenant, t) })
	if !ok {
		return nil
	}
	return &a.Heads[i]
}

// covering returns the first anchor whose tree of the log has the row seq, and
// the head in it.
func (l *provenLine) covering(ctx context.Context, tenant string, seq int64) (*linkedAnchor, *archive.AnchorHead, error) {
	a, err := l.firstAnchor(ctx, func(a *linkedAnchor) answer {
		h := headIn(a.Anchor, tenant)
		switch {
		case h == nil && !a.Full:
			return silent
		case h == nil || h.Size <= seq:
			return before
		}
		return reached
	})
	if err != nil {
		return nil, nil, err
	}
	return a, headIn(a.Anchor, tenant), nil
}

// newestHead returns the newest anchor that lists a log, and the head in it. An
// error matches [ErrNoRow] if the log is in none.
func (l *provenLine) newestHead(ctx context.Context, tenant string) (*linkedAnchor, *archive.AnchorHead, error) {
	n, err := l.newest(ctx)
	if err != nil {
		return nil, nil, err
	}
	return l.headBefore(ctx, tenant, n+1)
}

// headBefore returns the newest anchor below number that lists a log. Each full
// one lists all.
func (l *provenLine) headBefore(ctx context.Context, tenant string, number int64) (*linkedAnchor, *archive.AnchorHead, error) {
	for n := number - 1; n >= 0; n-- {
		a, err := l.anchor(ctx, n)
		if err != nil {
			return nil, nil, err
		}
		if h := headIn(a.Anchor, tenant); h != nil {
			return a, h, nil
		}
		if a.Full {
			break
		}
	}
	return nil, nil, fmt.Errorf("tenant %s has no anchored log there: %w", Printable(tenant), ErrNoRow)
}

// atTime returns the first anchor that was made at t or later.
func (l *provenLine) atTime(ctx context.Context, t time.Time) (*linkedAnchor, error) {
	return l.firstAnchor(ctx, func(a *linkedAnchor) answer {
		if a.Time.Before(t) {
			return before
		}
		return reached
	})
}
