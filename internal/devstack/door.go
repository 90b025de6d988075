package devstack

import (
	"io"
	"net"
	"sync"
)

// A door is the listener that S3 clients see. It passes each connection on to
// the server behind it, bytes as they are.
//
// The server alone cannot be stopped quickly: it waits ten seconds for
// connections that a client has opened and never used, and clients open spare
// ones whenever they are busy. When the door closes, all of them end. It also
// takes the public port before the server starts, so that there is no moment
// in which somebody else can.
type door struct {
	listener net.Listener
	behind   string // path of the server's socket
	all      sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

func openDoor(port int, behind string) (*door, error) {
	l, err := listen("tcp", loopback(port))
	if err != nil {
		return nil, err
	}
	return &door{listener: l, behind: behind, conns: map[net.Conn]struct{}{}}, nil
}

func (d *door) port() int { return d.listener.Addr().(*net.TCPAddr).Port }

// serve passes connections on until the door is closed.
func (d *door) serve() {
	d.all.Go(func() {
		for {
			client, err := d.listener.Accept()
			if err != nil {
				return
			}
			d.all.Go(func() { d.pass(client) })
		}
	})
}

// pass connects a client with the server until one of them hangs up.
func (d *door) pass(client net.Conn) {
	defer d.drop(client)
	server, err := net.Dial("unix", d.behind)
	if err != nil {
		return
	}
	defer d.drop(server)
	if !d.keep(client, server) {
		return
	}
	d.all.Go(func() {
		_, _ = io.Copy(server, client) // either way, the client is done
		d.drop(server)
	})
	_, _ = io.Copy(client, server)
}

// keep remembers connections that close has to end, and reports false where it
// is too late.
func (d *door) keep(conns ...net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range conns {
		d.conns[c] = struct{}{}
	}
	return !d.closed
}

func (d *door) drop(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
	c.Close()
}

// close ends all connections and waits until nothing of the door is left.
func (d *door) close() {
	d.listener.Close()
	d.mu.Lock()
	d.closed = true
	for c := range d.conns {
		c.Close()
	}
	d.mu.Unlock()
	d.all.Wait()
}
