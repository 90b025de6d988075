package syslog

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
)

// A receiver is one of syslog: what it has read is what it has.
type receiver struct {
	listener net.Listener
	handle   func(n int, c net.Conn, read func() (string, error)) // of connection n, from 1

	mu  sync.Mutex
	got map[int][]string // whole messages of each connection, in the order they were read
}

func newReceiver(t *testing.T, config *tls.Config, handle func(n int, c net.Conn, read func() (string, error))) *receiver {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{listener: l, handle: handle, got: map[int][]string{}}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if config != nil {
				c = tls.Server(sips{c.(*net.TCPConn)}, config)
			}
			go r.serve(n, c)
		}
	}()
	return r
}

// sips reads little at a time, so that TLS takes no more from the socket than it
// must: what is not read stays there.
type sips struct{ *net.TCPConn }

func (s sips) Read(p []byte) (int, error) { return s.TCPConn.Read(p[:min(len(p), 256)]) }

func (r *receiver) serve(n int, c net.Conn) {
	defer func() { _ = c.Close() }()
	in := bufio.NewReaderSize(c, 16)
	r.handle(n, c, func() (string, error) {
		var length int
		if _, err := fmt.Fscanf(in, "%d ", &length); err != nil {
			return "", err
		}
		text := make([]byte, length)
		if _, err := io.ReadFull(in, text); err != nil {
			return "", err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got[n] = append(r.got[n], string(text))
		return string(text), nil
	})
}

// has returns what was read, connection by connection.
func (r *receiver) has() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(r.got)) {
		all = append(all, r.got[n]...)
	}
	return all
}

// hasIn reports whether one connection brought all of texts, in their order.
func (r *receiver) hasIn(texts []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, got := range r.got {
		if slices.Equal(got, texts) {
			return true
		}
	}
	return false
}

// toEnd reads until the sender ends, and then closes.
func toEnd(_ int, _ net.Conn, read func() (string, error)) {
	for {
		if _, err := read(); err != nil {
			return
		}
	}
}

// An authority signs certificates for 127.0.0.1.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.pem, _ = a.issue(t, true)
	return a
}

func (a *authority) issue(t *testing.T, ca bool) (certPEM, keyPEM string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: ca, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	parent, signer := a.cert, a.key
	if ca {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	if ca {
		a.key = key
		a.cert, _ = x509.ParseCertificate(der)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}

func (a *authority) server(t *testing.T) *tls.Config {
	t.Helper()
	cert, key := a.issue(t, false)
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}}
}

// made is more messages than any test sends.
var made = sync.OnceValue(func() []sink.Message { return messages(event.CEF, 2100, 7680) })

// batches returns small batches of messages, and what each is as it is read.
func batches(t *testing.T, s *Sink, n, size int) (all [][]sink.Message, texts [][]string) {
	t.Helper()
	m := slices.Clone(made())
	for i := range n {
		part := m[i*size : (i+1)*size]
		var read []string
		for j := range part {
			read = append(read, string(s.message(nil, &part[j])))
		}
		all, texts = append(all, part), append(texts, read)
	}
	return all, texts
}

// What is delivered is what the receiver has read: it may close, reset, stand
// still or read half of it at any moment, over TLS and without.
func TestDeliveredIsWhatWasRead(t *testing.T) {
	a := newAuthority(t)
	reset := func(c net.Conn) {
		if s, ok := c.(*tls.Conn); ok {
			c = s.NetConn()
		}
		_ = c.(interface{ SetLinger(sec int) error }).SetLinger(0)
		_ = c.Close()
	}
	some := func(n int, then func(net.Conn)) func(int, net.Conn, func() (string, error)) {
		return func(of int, c net.Conn, read func() (string, error)) {
			if of%2 == 0 {
				toEnd(of, c, read)
				return
			}
			for range n {
				if _, err := read(); err != nil {
					break
				}
			}
			then(c)
		}
	}
	closes := func(c net.Conn) { _ = c.Close() }
	const size = 100
	for name, handle := range map[string]func(int, net.Conn, func() (string, error)){
		"takes all":                     toEnd,
		"closes at once":                some(0, closes),
		"resets at once":                some(0, reset),
		"closes after some":             some(size/2, closes),
		"resets after some":             some(size/2, reset),
		"closes after all, but the end": some(size, closes),
		"resets after all, but the end": some(size, reset),
		"resets behind the end":         some(size+1, reset),
		"stands still":                  some(size/2, func(net.Conn) { <-t.Context().Done() }),
	} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, plain %v", name, plain), func(t *testing.T) {
				config := a.server(t)
				o := Options{CA: a.pem, Timeout: 300 * time.Millisecond}
				if plain {
					config, o = nil, Options{Plaintext: true, Timeout: o.Timeout}
				}
				r := newReceiver(t, config, handle)
				o.Address = r.listener.Addr().String()
				s := newSink(t, o)
				requireRead(t, r, s, size)
			})
		}
	}
}

// requireRead delivers batches until each is delivered, and requires after each
// attempt that what was said to be is there, once more than it failed at most.
func requireRead(t *testing.T, r *receiver, s *Sink, size int) {
	t.Helper()
	all, texts := batches(t, s, 6, size)
	for i, batch := range all {
		for attempt := 1; ; attempt++ {
			result := s.Deliver(t.Context(), batch)
			if !result.Done() {
				if v := result.Verdicts[0]; v.Outcome != sink.Retry || v.Reason == "" || attempt == 5 {
					t.Fatalf("attempt %d: %v", attempt, v)
				}
				continue
			}
			if !r.hasIn(texts[i]) {
				t.Fatalf("batch %d is delivered, and no connection brought it to its end", i)
			}
			break
		}
	}
}

// With a connection that stays, a receiver that dies with what it had not read
// gets the last messages again, in their order, from the next connection on.
func TestOpenSendsTheLastOnesAgain(t *testing.T) {
	a := newAuthority(t)
	const size = 10
	r := newReceiver(t, a.server(t), func(n int, _ net.Conn, read func() (string, error)) {
		for i := 0; n%2 == 0 || i < 3*size; i++ {
			if _, err := read(); err != nil {
				return
			}
		}
	})
	s := newSink(t, Options{Address: r.listener.Addr().String(), CA: a.pem, Confirm: Open, Timeout: time.Second})
	all, texts := batches(t, s, 12, size)
	for _, batch := range all {
		for {
			result := s.Deliver(t.Context(), batch)
			if result.Done() {
				break
			}
		}
	}
	last := texts[len(texts)-1][size-1]
	for has := r.has(); len(has) == 0 || has[len(has)-1] != last; has = r.has() {
		if t.Context().Err() != nil {
			t.Fatal("the last message does not come")
		}
	}
	seen := map[string]bool{}
	var first []string
	for _, text := range r.has() {
		if !seen[text] {
			seen[text] = true
			first = append(first, text)
		}
	}
	var want []string
	for _, text := range slices.Concat(texts...) {
		if !slices.Contains(want, text) {
			want = append(want, text)
		}
	}
	if strings.Join(first, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d messages came, want %d in their order", len(first), len(want))
	}
}

// The window is whole messages, the last ones, of no more bytes than it may have.
func TestWindow(t *testing.T) {
	w := window{most: 10}
	for _, s := range []string{"aaaa", "bbb", "cc", "ddddddd"} {
		w.add([]byte(s), []int{len(s)})
	}
	if got := string(w.bytes); got != "ccddddddd" || len(w.ends) != 2 {
		t.Errorf("%q, %v", got, w.ends)
	}
	if w.add(bytes.Repeat([]byte("x"), 11), []int{11}); len(w.bytes) != 0 {
		t.Errorf("%q", w.bytes)
	}
}

// What only a person can mend suspends: the wrong authority, the wrong name, and a
// receiver that wants a certificate of us. With the right one it goes on.
func TestCertificatesThatAreWrongSuspend(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	strict := a.server(t)
	strict.ClientAuth, strict.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	strict.ClientCAs.AddCert(a.cert)
	r := newReceiver(t, strict, toEnd)
	at := r.listener.Addr().String()
	cert, key := a.issue(t, false)
	otherCert, otherKey := other.issue(t, false)
	for name, c := range map[string]struct {
		o    Options
		want sink.Outcome
	}{
		"all right":           {Options{CA: a.pem, Cert: cert, Key: key}, sink.Delivered},
		"another authority":   {Options{CA: other.pem, Cert: cert, Key: key}, sink.Suspend},
		"another name":        {Options{CA: a.pem, Cert: cert, Key: key, ServerName: "elsewhere"}, sink.Suspend},
		"no certificate":      {Options{CA: a.pem}, sink.Suspend},
		"another certificate": {Options{CA: a.pem, Cert: otherCert, Key: otherKey}, sink.Suspend},
	} {
		c.o.Address = at
		s := newSink(t, c.o)
		all, _ := batches(t, s, 1, 3)
		if v := s.Deliver(t.Context(), all[0]).Verdicts[0]; v.Outcome != c.want || strings.Contains(v.Reason, "PRIVATE") {
			t.Errorf("%s: %v", name, v)
		}
	}
}

// A message that no receiver has room for is split from the others, which go.
func TestTooLargeIsSplit(t *testing.T) {
	a := newAuthority(t)
	r := newReceiver(t, a.server(t), toEnd)
	s := newSink(t, Options{Address: r.listener.Addr().String(), CA: a.pem})
	all, _ := batches(t, s, 1, 3)
	all[0][1].Body = bytes.Repeat([]byte("x"), DefaultMessageBytes)
	v := s.Deliver(t.Context(), all[0]).Verdicts
	if v[0].Outcome != sink.Delivered || v[1].Outcome != sink.Split || v[2].Outcome != sink.Delivered || len(r.has()) != 2 {
		t.Errorf("%v", v)
	}
}

// Nobody there is a reason to try again, and so is a context that ends.
func TestNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for name, address := range map[string]string{"silent": l.Addr().String(), "gone": "127.0.0.1:1"} {
		s := newSink(t, Options{Address: address, Timeout: time.Hour})
		all, _ := batches(t, s, 1, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if v := s.Deliver(ctx, all[0]).Verdicts[0]; v.Outcome != sink.Retry {
			t.Errorf("%s: %v", name, v)
		}
		cancel()
	}
	_ = l.Close()
}
