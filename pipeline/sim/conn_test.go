package sim_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A conn is a connection of a process to Kafka. What the process writes lies in
// a buffer, as in that of a kernel, until it is sent; each request that is sent
// is an await point. When the process dies the connection is not closed: the
// broker hears nothing more of it.
type conn struct {
	net.Conn
	p    *process
	wake chan struct{} // has a token when there is something to send, or the end

	mu       sync.Mutex
	queue    [][]byte
	cut      bool      // broken for both sides
	closed   bool      // by the process
	deaf     bool      // the next reply is lost, and the connection with it
	deadline time.Time // of reads
	moved    chan struct{}
}

// dial connects a process to a broker.
func (p *process) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if err := p.await(ctx, point{op: "dial", key: address}); err != nil {
		return nil, err
	}
	p.w.mu.Lock()
	away := p.w.kafkaIsAway(p)
	p.w.mu.Unlock()
	if away {
		return nil, errors.New("connection refused")
	}
	inner, err := p.w.net.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, p: p, wake: make(chan struct{}, 1), moved: make(chan struct{})}
	p.mu.Lock()
	p.conns = append(p.conns, c)
	p.mu.Unlock()
	go c.send()
	return c, nil
}

// Write takes one request: the client writes each with one call.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.p.dead.Load() || c.closed:
		return 0, net.ErrClosed
	case c.cut:
		return 0, io.ErrClosedPipe
	}
	c.queue = append(c.queue, append([]byte{}, b...))
	c.poke()
	return len(b), nil
}

func (c *conn) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// send sends what was written, one request after the other.
func (c *conn) send() {
	for range c.wake {
		for {
			b, over := c.first()
			if over {
				return
			}
			if b == nil {
				break
			}
			key := requestKey(b)
			c.p.w.note(c.p.name, kmsg.NameForKey(key), len(b))
			fault, err := c.p.awaitRequest(key)
			if err != nil {
				return // dead
			}
			switch fault {
			case "conn-dropped", "kafka-away":
				c.sever()
				return
			case "reply-lost", "commit-reply-lost":
				c.mu.Lock()
				c.deaf = true
				c.mu.Unlock()
			}
			if _, err := c.Conn.Write(b); err != nil {
				return
			}
		}
	}
}

// first takes the oldest request, and reports whether there will be none.
func (c *conn) first() (b []byte, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut || c.p.dead.Load() || c.closed && len(c.queue) == 0 {
		if c.closed && !c.p.dead.Load() {
			_ = c.Conn.Close()
		}
		return nil, true
	}
	if len(c.queue) > 0 {
		b, c.queue = c.queue[0], c.queue[1:]
	}
	return b, false
}

// Read receives. What has arrived stays where it is while the process is
// frozen.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for err == nil {
		thaw := c.p.frozen()
		if thaw == nil {
			break
		}
		c.mu.Lock()
		left, moved := time.Hour, c.moved
		if !c.deadline.IsZero() {
			left = time.Until(c.deadline)
		}
		c.mu.Unlock()
		if left <= 0 {
			return 0, os.ErrDeadlineExceeded
		}
		t := time.NewTimer(left)
		select {
		case <-thaw:
		case <-moved:
		case <-t.C:
		}
		t.Stop()
	}
	c.mu.Lock()
	deaf, cut := c.deaf, c.cut
	c.mu.Unlock()
	switch {
	case c.p.dead.Load():
		return 0, net.ErrClosed
	case n > 0 && deaf:
		c.sever()
		return 0, io.EOF
	case cut:
		return 0, io.EOF
	}
	return n, err
}

// sever breaks the connection, for both sides.
func (c *conn) sever() {
	c.mu.Lock()
	c.cut = true
	c.mu.Unlock()
	c.poke()
	_ = c.Conn.Close()
}

// Close is what the process does. One that is dead tells nobody.
func (c *conn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	if c.p.dead.Load() {
		return c.forsake()
	}
	c.poke()
	return c.Conn.SetReadDeadline(time.Unix(1, 0)) // closed when all is sent
}

// forsake ends all reads and writes of the process, and leaves the broker's end
// as it is.
func (c *conn) forsake() error {
	c.poke()
	c.note(time.Unix(1, 0))
	return c.Conn.SetDeadline(time.Unix(1, 0))
}

// note notes a deadline for a read that holds what it has received.
func (c *conn) note(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	close(c.moved)
	c.moved = make(chan struct{})
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	over := c.closed || c.p.dead.Load()
	c.mu.Unlock()
	if over {
		return net.ErrClosed
	}
	c.note(t)
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline does nothing: no write waits.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// requestKey returns which kind of request a frame is.
func requestKey(b []byte) int16 {
	if len(b) < 6 {
		return -1
	}
	return int16(binary.BigEndian.Uint16(b[4:]))
}
