//go:build it

package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// A wire is a proxy of TCP before a receiver, which knows nothing of what passes.
// It passes on that one side has ended, and never says so of itself: what it breaks
// is reset.
type wire struct {
	*weather
	addr     string // host:port
	listener net.Listener

	mu     sync.Mutex
	behind string // host:port of the receiver
	rngs   *rand.Rand
	links  map[*link]bool
	done   sync.WaitGroup
}

// newWire starts one, which passes nothing before [wire.pass].
func newWire(rng *rand.Rand) (*wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{weather: newWeather(rng), addr: l.Addr().String(), listener: l, rngs: rand.New(rand.NewPCG(rng.Uint64(), 0)), links: map[*link]bool{}}
	w.done.Go(w.accept)
	return w, nil
}

// pass names the receiver.
func (w *wire) pass(behind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.behind = behind
}

// close ends it, and all that is connected.
func (w *wire) close() {
	w.listener.Close()
	w.mu.Lock()
	for l := range w.links {
		l.cut()
	}
	w.mu.Unlock()
	w.set(calm) // who stalls looks up
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

// A link is a connection and the one to the receiver that goes with it.
type link struct {
	client, server *net.TCPConn
	room           [2]int // bytes that still pass to the server, and pieces to the client, in moods that break off
	mark           sync.Map
}

// cut resets both sides.
func (l *link) cut() {
	for _, c := range []*net.TCPConn{l.client, l.server} {
		c.SetLinger(0)
		c.Close()
	}
}

func (w *wire) serve(c *net.TCPConn) {
	if m, _ := w.now(); m == refuses {
		w.met(m)
		c.SetLinger(0)
		c.Close()
		return
	}
	w.mu.Lock()
	behind := w.behind
	l := &link{client: c, room: [2]int{w.rngs.IntN(128 << 10), w.rngs.IntN(8)}}
	w.mu.Unlock()
	s, err := net.Dial("tcp", behind)
	if err != nil {
		c.SetLinger(0)
		c.Close()
		return
	}
	l.server = s.(*net.TCPConn)
	w.mu.Lock()
	w.links[l] = true
	w.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { w.pump(l, true) })
	both.Go(func() { w.pump(l, false) })
	both.Wait()
	c.Close()
	s.Close()
	w.mu.Lock()
	delete(w.links, l)
	w.mu.Unlock()
}

// rate is what a wire that throttles passes, in bytes a second.
const rate = 128 << 10

// pump passes what comes from one side to the other, until it ends or breaks.
func (w *wire) pump(l *link, up bool) {
	from, to := l.client, l.server
	if !up {
		from, to = to, from
	}
	piece := make([]byte, 16<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 && !w.one(l, to, piece[:n], up) {
			l.cut()
			return
		}
		if errors.Is(err, io.EOF) {
			to.CloseWrite()
			return
		}
		if err != nil {
			l.cut()
			return
		}
	}
}

// one passes one piece as the mood is, and reports whether more may come.
func (w *wire) one(l *link, to *net.TCPConn, piece []byte, up bool) bool {
	m, changed := w.now()
	for ; m == stalls; m, changed = w.now() {
		w.once(l, m)
		<-changed
	}
	whole := true
	switch {
	case m == refuses: // also who is connected
		piece, whole = nil, false
	case m == throttles:
		w.once(l, m)
		time.Sleep(time.Second * time.Duration(len(piece)) / rate)
	case m == halves && up:
		if whole = len(piece) <= l.room[0]; !whole {
			piece = piece[:l.room[0]]
		}
		l.room[0] -= len(piece)
	case m == loses && !up:
		if l.room[1]--; l.room[1] < 0 {
			piece, whole = nil, false
		}
	}
	if !whole {
		w.once(l, m)
	}
	if _, err := to.Write(piece); err != nil {
		return false
	}
	return whole
}

// once notes that a link met a mood, the first time.
func (w *wire) once(l *link, m mood) {
	if _, before := l.mark.LoadOrStore(m, true); !before {
		w.met(m)
	}
}
