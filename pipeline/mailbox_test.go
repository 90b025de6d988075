package pipeline

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A mailbox hands out what came, in order, counts its bytes to zero, and does
// not grow although it is never empty.
func TestMailbox(t *testing.T) {
	m := mailbox{ready: make(chan struct{}, 1)}
	next, popped := int64(0), int64(0)
	for range 10_000 {
		for range 3 {
			m.push(mail{record: &kgo.Record{Offset: next}})
			next++
		}
		for m.held() > 5*recordOverhead {
			x, ok := m.pop()
			if !ok || x.record.Offset != popped {
				t.Fatalf("popped %+v, want offset %d", x, popped)
			}
			popped++
		}
	}
	if cap(m.mails) > 64 {
		t.Errorf("room for %d mails", cap(m.mails))
	}
	if n := m.close(); n != (next-popped)*recordOverhead {
		t.Errorf("closed with %d bytes", n)
	}
	if _, ok := m.push(mail{record: &kgo.Record{}}); ok {
		t.Error("took mail after it was closed")
	}
}
