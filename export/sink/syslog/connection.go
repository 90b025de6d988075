package syslog

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/ledgerlake/ledgerlake/export/sink"
)

// chunk is how much is written between two looks at the deadline, so that a slow
// receiver is not one that stands still.
const chunk = 64 << 10

// A connection is one to a receiver, with somebody who reads it: a receiver of
// syslog says nothing, so what can be read is its end.
type connection struct {
	conn    net.Conn
	raw     syscall.Conn // of the socket; nil where it is none
	timeout time.Duration
	once    sync.Once

	ended chan struct{} // closed once nothing more can be read
	err   error         // why, once ended is; io.EOF: the receiver closed in order
}

// connect reaches the receiver, TLS included.
func (s *Sink) connect(ctx context.Context) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	conn, err := s.o.Dial(ctx, "tcp", s.o.Address)
	if err != nil {
		return nil, err
	}
	c := &connection{conn: conn, timeout: s.o.Timeout, ended: make(chan struct{})}
	c.raw, _ = conn.(syscall.Conn)
	if s.tls != nil {
		t := tls.Client(conn, s.tls)
		if err := t.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("TLS with %s: %w", s.o.Address, err)
		}
		c.conn = t
	}
	go c.read()
	return c, nil
}

// read waits for the end. What a receiver says is thrown away. Behind the end of
// TLS that of TCP is read: a system whose program ends without having read all
// resets.
func (c *connection) read() {
	_, err := io.Copy(io.Discard, c.conn)
	if t, ok := c.conn.(*tls.Conn); ok && err == nil {
		_, err = io.Copy(io.Discard, t.NetConn())
	}
	if err == nil {
		err = io.EOF
	}
	c.err = err
	close(c.ended)
}

// Close ends the connection without another word.
func (c *connection) Close() { c.once.Do(func() { _ = c.conn.Close() }) }

func (c *connection) isClosed() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

var errClosed = errors.New("the receiver closed the connection before it had all")

// why returns why a connection ended that should not have.
func (c *connection) why() error {
	if errors.Is(c.err, io.EOF) {
		return errClosed
	}
	return fmt.Errorf("%w: %w", errClosed, c.err)
}

// write writes all of b, and fails where 64 KiB take longer than the timeout.
func (c *connection) write(b []byte) error {
	for len(b) > 0 {
		if c.isClosed() {
			return c.why()
		}
		n := min(len(b), chunk)
		if err := c.conn.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
			return err
		}
		if _, err := c.conn.Write(b[:n]); err != nil {
			return c.reason(err)
		}
		b = b[n:]
	}
	return nil
}

// reason returns what the receiver said, an alert of TLS, where a write failed
// because it closed; else err.
func (c *connection) reason(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	timer := time.NewTimer(c.timeout)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		return err
	}
	if sink.IsRefusal(c.err) {
		return c.err
	}
	return err
}

// finish ends our side and waits for the receiver to end the other one.
func (c *connection) finish(ctx context.Context) error {
	if c.isClosed() {
		return c.why()
	}
	if err := c.closeWrite(); err != nil {
		return c.reason(err)
	}
	timer := time.NewTimer(c.timeout)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		return fmt.Errorf("the receiver did not close within %v what we ended: it may not have read to the end; where it never does, set confirm: open", c.timeout)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !errors.Is(c.err, io.EOF) {
		return fmt.Errorf("the receiver did not close in order: %w", c.err)
	}
	return c.flushed(ctx)
}

// closeWrite says that nothing more comes: TLS's close_notify, and TCP's FIN.
func (c *connection) closeWrite() error {
	if t, ok := c.conn.(*tls.Conn); ok {
		if err := t.CloseWrite(); err != nil {
			return err
		}
		if tcp, ok := t.NetConn().(interface{ CloseWrite() error }); ok {
			return tcp.CloseWrite()
		}
		return nil
	}
	if tcp, ok := c.conn.(interface{ CloseWrite() error }); ok {
		return tcp.CloseWrite()
	}
	return errors.New("this connection cannot be ended on one side: set confirm: open")
}

// flushed waits until the receiver's system has acknowledged all bytes, as far as
// ours says so, and finds out whether the connection broke on the way.
func (c *connection) flushed(ctx context.Context) error {
	timer := time.NewTimer(c.timeout)
	defer timer.Stop()
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		left, err := unacknowledged(c.raw)
		if err != nil {
			return fmt.Errorf("%w: %w", errClosed, err)
		}
		if left == 0 {
			return nil
		}
		select {
		case <-time.After(wait):
		case <-timer.C:
			return fmt.Errorf("the receiver did not acknowledge %d bytes within %v", left, c.timeout)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
