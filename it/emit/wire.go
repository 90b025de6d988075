//go:build it

package main

import (
	"io"
	"net"
	"sync"
)

// A wire is a proxy of TCP that can be cut: all connections are reset, and new ones
// are as soon as they come.
type wire struct {
	addr     string
	listener net.Listener
	done     sync.WaitGroup

	mu     sync.Mutex
	behind string // "" while it is cut
	conns  map[*net.TCPConn]bool
}

func newWire() (*wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{addr: l.Addr().String(), listener: l, conns: map[*net.TCPConn]bool{}}
	w.done.Go(w.accept)
	return w, nil
}

// pass lets connections through to an address.
func (w *wire) pass(behind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.behind = behind
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.behind = ""
	for c := range w.conns {
		reset(c)
	}
}

func reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}

func (w *wire) close() {
	w.listener.Close()
	w.cut()
	w.done.Wait()
}

func (w *wire) accept() {
	for {
		c, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.done.Go(func() { w.serve(c.(*net.TCPConn)) })
	}
}

func (w *wire) serve(client *net.TCPConn) {
	w.mu.Lock()
	behind := w.behind
	w.mu.Unlock()
	if behind == "" {
		reset(client)
		return
	}
	c, err := net.Dial("tcp", behind)
	if err != nil {
		reset(client)
		return
	}
	server := c.(*net.TCPConn)
	if !w.keep(client, server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { io.Copy(server, client); server.CloseWrite() })
	both.Go(func() { io.Copy(client, server); client.CloseWrite() })
	both.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range []*net.TCPConn{client, server} {
		delete(w.conns, c)
		c.Close()
	}
}

// keep remembers connections; if it is cut by now, it resets them.
func (w *wire) keep(conns ...*net.TCPConn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		if w.behind == "" {
			reset(c)
		} else {
			w.conns[c] = true
		}
	}
	return w.behind != ""
}
