//go:build it

package siem

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/sink/syslog"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

func mustRead(t *testing.T, path string) string {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func certificates(t *testing.T) *parts.Certificates {
	t.Helper()
	c, err := parts.MakeCertificates(filepath.Join(t.TempDir(), "certs"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What is delivered to rsyslog over TLS is in its file: every message whole, none
// split or joined, in their order, once; by both ways to know that it arrived.
func TestRsyslogHasAllOfIt(t *testing.T) {
	c := certificates(t)
	for _, confirm := range []syslog.Confirm{syslog.Close, syslog.Open} {
		for _, f := range []event.Format{event.JSON, event.OCSF18, event.CEF, event.LEEF} {
			t.Run(fmt.Sprintf("%s %s", confirm, f), func(t *testing.T) {
				r, err := parts.StartRsyslog(filepath.Join(t.TempDir(), "rsyslog"), c)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(r.Kill)
				s, err := syslog.New(syslog.Options{
					Address: r.Addr, CA: mustRead(t, c.CA), Cert: mustRead(t, c.ClientCert), Key: mustRead(t, c.ClientKey), Confirm: confirm,
				})
				if err != nil {
					t.Fatal(err)
				}
				sent := deliverAll(t, s, f, someEvents(2000))
				if confirm == syslog.Open { // what it has not read yet would go with it
					for deadline := time.Now().Add(time.Minute); strings.Count(mustRead(t, r.File), "\n") < len(sent) && time.Now().Before(deadline); {
						time.Sleep(20 * time.Millisecond)
					}
				}
				got, err := r.Messages()
				if err != nil {
					t.Fatal(err)
				}
				if len(got) != len(sent) {
					t.Fatalf("sent %d messages, %d lines are there", len(sent), len(got))
				}
				for i, m := range sent {
					if !strings.HasPrefix(got[i], "<1") || !strings.HasSuffix(got[i], "] "+string(m.body)) || !strings.Contains(got[i], m.ev.ID) {
						t.Fatalf("message %d is %.300q, want %.300q", i, got[i], m.body)
					}
				}
			})
		}
	}
}

// rsyslog splits a message that is longer than it takes, and one that is just as
// long is whole: so much message-bytes may be.
func TestRsyslogTakesMessagesOfItsMaximum(t *testing.T) {
	c := certificates(t)
	for length, lines := range map[int]int{syslog.DefaultMessageBytes: 1, 9000: 2} {
		r, err := parts.StartRsyslog(filepath.Join(t.TempDir(), "rsyslog"), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Kill)
		s, err := syslog.New(syslog.Options{
			Address: r.Addr, CA: mustRead(t, c.CA), Cert: mustRead(t, c.ClientCert), Key: mustRead(t, c.ClientKey), MessageBytes: 1 << 14,
		})
		if err != nil {
			t.Fatal(err)
		}
		m := sink.Message{Event: event.NewCheck(event.Check{})}
		m.Body = bytes.Repeat([]byte("x"), length-s.Length(&m))
		if v := s.Deliver(t.Context(), []sink.Message{m}).Verdicts[0]; v.Outcome != sink.Delivered {
			t.Fatal(v)
		}
		got, err := r.Messages()
		if err != nil || len(got) != lines {
			t.Errorf("%d bytes are %d lines, want %d: %v", length, len(got), lines, err)
		}
	}
}

// rsyslog, which wants a certificate, refuses who has none, and that suspends.
func TestRsyslogRefusesWhoHasNoCertificate(t *testing.T) {
	c := certificates(t)
	r, err := parts.StartRsyslog(filepath.Join(t.TempDir(), "rsyslog"), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	s, err := syslog.New(syslog.Options{Address: r.Addr, CA: mustRead(t, c.CA)})
	if err != nil {
		t.Fatal(err)
	}
	v := s.Deliver(t.Context(), []sink.Message{{Event: event.NewCheck(event.Check{}), Body: []byte("x")}}).Verdicts[0]
	if v.Outcome != sink.Suspend {
		t.Errorf("%v", v)
	}
}

// VictoriaLogs has by syslog what it has by its other protocols.
func TestVictoriaLogsTakesSyslog(t *testing.T) {
	c := certificates(t)
	at, err := parts.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	v, err := parts.StartVictoria(filepath.Join(t.TempDir(), "victoria"), "-syslog.listenAddr.tcp="+at, "-syslog.tls", "-syslog.tlsCertFile="+c.Cert, "-syslog.tlsKeyFile="+c.Key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Kill)
	s, err := syslog.New(syslog.Options{Address: at, CA: mustRead(t, c.CA)})
	if err != nil {
		t.Fatal(err)
	}
	sent := deliverAll(t, s, event.JSON, someEvents(3000))
	found, err := v.Query(t.Context(), 0, "*")
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]map[string]string{}
	for _, f := range found {
		id := f["ledgerlake@32473.rowHash"]
		if id == "" {
			id = f["ledgerlake@32473.id"]
		}
		byID[id] = f
	}
	if len(found) != len(sent) || len(byID) != len(sent) {
		t.Fatalf("sent %d, found %d, of %d ids: such as %v", len(sent), len(found), len(byID), found[0])
	}
	for _, m := range sent {
		f := byID[m.ev.ID]
		if f == nil {
			t.Fatalf("seq %d is not there", m.ev.Seq)
		}
		if got := f["_msg"]; got != string(m.body) {
			t.Fatalf("%.300q, want %.300q: %v", got, m.body, f)
		}
	}
}
