package pipeline

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A mail is one delivery to a partition: a record, or the news that Kafka no
// longer has anything below an offset.
type mail struct {
	record *kgo.Record
	lostTo int64 // where record is nil
}

// A mailbox holds what was fetched and not yet taken into a batch. Its bytes
// are bounded by pausing the partition, not here: a fetch that is on its way
// is always taken.
type mailbox struct {
	ready chan struct{} // has a token while there may be mail

	mu     sync.Mutex
	mails  []mail
	head   int
	bytes  int64
	closed bool
}

// push adds deliveries, and reports the bytes held, or false if nobody will
// read them any more.
func (m *mailbox) push(mails ...mail) (held int64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return 0, false
	}
	for _, x := range mails {
		if x.record != nil {
			m.bytes += cost(x.record)
		}
	}
	if m.head > len(m.mails)/2 { // a mailbox that is never empty must not grow for ever
		n := copy(m.mails, m.mails[m.head:])
		clear(m.mails[n:])
		m.mails, m.head = m.mails[:n], 0
	}
	m.mails = append(m.mails, mails...)
	select {
	case m.ready <- struct{}{}:
	default:
	}
	return m.bytes, true
}

// pop takes the oldest delivery.
func (m *mailbox) pop() (mail, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.head == len(m.mails) {
		m.mails, m.head = m.mails[:0], 0
		return mail{}, false
	}
	x := m.mails[m.head]
	m.mails[m.head] = mail{}
	m.head++
	if x.record != nil {
		m.bytes -= cost(x.record)
	}
	return x, true
}

// held returns the bytes that wait.
func (m *mailbox) held() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}

// close refuses further mail and returns the bytes that were waiting.
func (m *mailbox) close() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.bytes
	m.mails, m.head, m.bytes, m.closed = nil, 0, 0, true
	return n
}

// The share of the memory that one partition's unread records may take before
// it is paused, and below which it goes on.
const (
	pauseShare  = 8
	resumeShare = 16
)

// A gate stops and starts the fetching of one partition.
type gate struct {
	open, close func()

	mu     sync.Mutex
	closed bool
}

func (g *gate) pause() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.closed = true
		g.close()
	}
}

// reopen lets a partition that was stopped past the gate be fetched again,
// unless the gate is closed.
func (g *gate) reopen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.open()
	}
}

func (g *gate) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		g.closed = false
		g.open()
	}
}
