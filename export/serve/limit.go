package serve

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits bound what a server does at once. What is 0 is as Default says.
type Limits struct {
	Requests       int           // at once, of all tokens together; 256
	TokenRequests  int           // at once, of one token, tails included; 16
	TokenBytes     int64         // a second, of one token's answers before compression; 64 MiB. A longer answer is slowed, not refused
	SessionRecords int           // in one answer; 1,000
	SessionBytes   int64         // of content in one answer, about; 32 MiB. What follows is on the next page
	Heartbeat      time.Duration // between two signs of life of a tail; 15 s
	Write          time.Duration // that one write of an answer may take, after which who asked counts as gone; 30 s
	Look           time.Duration // that one look at the archive may take; 60 s
}

func (l Limits) withDefaults() Limits {
	or := func(n *int, d int) {
		if *n <= 0 {
			*n = d
		}
	}
	orTime := func(n *time.Duration, d time.Duration) {
		if *n <= 0 {
			*n = d
		}
	}
	or(&l.Requests, 256)
	or(&l.TokenRequests, 16)
	or(&l.SessionRecords, 1000)
	if l.TokenBytes <= 0 {
		l.TokenBytes = 64 << 20
	}
	if l.SessionBytes <= 0 {
		l.SessionBytes = 32 << 20
	}
	orTime(&l.Heartbeat, 15*time.Second)
	orTime(&l.Write, 30*time.Second)
	orTime(&l.Look, time.Minute)
	return l
}

// pieceBytes is how much of an answer is written at once.
const pieceBytes = 64 << 10

// A limiter counts what is under way.
type limiter struct {
	l     Limits
	mu    sync.Mutex
	count int
	of    map[string]*usage // by name of token; those that have something under way
}

// A usage is what one token has under way, and how fast its answers may go.
type usage struct {
	count int
	bytes *rate.Limiter
}

func newLimiter(l Limits) *limiter { return &limiter{l: l, of: map[string]*usage{}} }

// enter counts a request of a token in; the error is a problem. leave must be
// called once, when it is over.
func (l *limiter) enter(token string) (u *usage, leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u = l.of[token]
	if u == nil {
		u = &usage{bytes: rate.NewLimiter(rate.Limit(l.l.TokenBytes), int(max(l.l.TokenBytes, pieceBytes)))}
	}
	switch {
	case u.count >= l.l.TokenRequests:
		return nil, nil, errBusy.retry(1)
	case l.count >= l.l.Requests:
		return nil, nil, errFull.retry(1)
	}
	l.of[token] = u
	u.count++
	l.count++
	return u, func() { l.leave(u) }, nil
}

// leave counts a request out. The rate of a token is kept: it may not begin anew
// with each request. There are no more of them than there are tokens.
func (l *limiter) leave(u *usage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u.count--
	l.count--
}

// wait waits until so many bytes may go.
func (u *usage) wait(ctx context.Context, n int) error {
	return u.bytes.WaitN(ctx, n)
}
