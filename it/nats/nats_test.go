// Package nats holds export/sink/natssink against a nats-server in the process.
package nats

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/sink/natssink"
)

// start runs a server with its streams in dir. change may be nil.
func start(t *testing.T, dir string, change func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true}
	if change != nil {
		change(o)
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("the server does not start")
	}
	return s
}

func streams(t *testing.T, url string, opts ...nats.Option) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func open(t *testing.T, o natssink.Options) *natssink.Sink {
	t.Helper()
	s, err := natssink.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(t.Context()) })
	return s
}

func messages(t *testing.T, n int) (all []sink.Message) {
	t.Helper()
	e, err := event.NewEncoder(event.JSON, event.EncoderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, ev := range eventtest.Events(3, 2*n) {
		body, err := e.Append(nil, ev)
		if err != nil {
			t.Fatal(err)
		}
		if !seen[ev.ID] && len(body) < 100_000 && len(all) < n {
			seen[ev.ID] = true
			all = append(all, sink.Message{Event: ev, Body: body})
		}
	}
	return all
}

// held returns all that a stream has, in its order.
func held(t *testing.T, js jetstream.JetStream, name string) (all []*jetstream.RawStreamMsg) {
	t.Helper()
	s, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	info := s.CachedInfo().State
	for seq := info.FirstSeq; seq <= info.LastSeq && info.Msgs > 0; seq++ {
		m, err := s.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// However a server stops in the middle of batches, what it acknowledged is in the
// stream, and, once all is delivered, all of it in its order and once.
func TestOrderAndNothingTwiceOverRestarts(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, nil)
	port := s.Addr().(*net.TCPAddr).Port
	create := jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"audit.>"}, Storage: jetstream.FileStorage, Duplicates: time.Hour}
	if _, err := streams(t, s.ClientURL()).CreateStream(t.Context(), create); err != nil {
		t.Fatal(err)
	}
	to := open(t, natssink.Options{URLs: []string{s.ClientURL()}, Plaintext: true, Timeout: 5 * time.Second})
	all := messages(t, 3000)
	left := all
	for round := 0; len(left) > 0; round++ {
		if round%2 == 1 { // away in the middle of a batch
			down := make(chan struct{})
			go func(s *server.Server) { s.Shutdown(); s.WaitForShutdown(); close(down) }(s)
			left = delivered(t, to, left, 500)
			<-down
			s = start(t, dir, func(o *server.Options) { o.Port = port })
			continue
		}
		left = delivered(t, to, left, 200)
	}
	got := held(t, streams(t, s.ClientURL()), "AUDIT")
	if len(got) != len(all) {
		t.Fatalf("delivered %d, the stream has %d", len(all), len(got))
	}
	for i, m := range got {
		if !bytes.Equal(m.Data, all[i].Body) || m.Subject != natssink.Subject("audit", all[i].Event) {
			t.Fatalf("message %d is %s: %.200s", i, m.Subject, m.Data)
		}
	}
}

// delivered delivers the first n of left, and returns what is left then: an engine
// sends again from the first that was not taken.
func delivered(t *testing.T, to *natssink.Sink, left []sink.Message, n int) []sink.Message {
	t.Helper()
	n = min(n, len(left))
	for i, v := range to.Deliver(t.Context(), left[:n]).Verdicts {
		if v.Outcome == sink.Delivered {
			continue
		}
		if v.Outcome != sink.Retry || v.Reason == "" {
			t.Fatalf("%v", v)
		}
		return left[i:]
	}
	return left[n:]
}

// No tenant's name is another's subject, or more than one token.
func TestTenantsKeepTheirSubjects(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	js := streams(t, s.ClientURL())
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"audit.>"}}); err != nil {
		t.Fatal(err)
	}
	to := open(t, natssink.Options{URLs: []string{s.ClientURL()}, Plaintext: true})
	m := messages(t, 1)[0]
	want := map[string]bool{}
	for i, tenant := range append(eventtest.Hostile, "acme.call", "*", ">", "acme.>", "%", "a b", "\r\nPUB audit.other.call 0") {
		ev := *m.Event
		ev.Tenant, ev.ID = tenant, fmt.Sprint(i)
		subject := natssink.Subject("audit", &ev)
		if strings.Count(subject, ".") != 2 || want[subject] {
			t.Errorf("tenant %.50q has subject %.100q", tenant, subject)
		}
		if len(subject) > 4000 { // a server's control line has a limit
			continue
		}
		want[subject] = true
		if v := to.Deliver(t.Context(), []sink.Message{{Event: &ev, Body: m.Body}}).Verdicts[0]; v.Outcome != sink.Delivered {
			t.Fatalf("tenant %.50q: %v", tenant, v)
		}
	}
	for _, got := range held(t, js, "AUDIT") {
		if !want[got.Subject] {
			t.Errorf("subject %.100q is none of ours", got.Subject)
		}
		delete(want, got.Subject)
	}
	if len(want) > 0 {
		t.Errorf("%d subjects are not there", len(want))
	}
}

// What is refused suspends where a person must act, and is tried again where not.
func TestRefusals(t *testing.T) {
	seed, public := user(t)
	other, _ := user(t)
	s := start(t, t.TempDir(), func(o *server.Options) {
		o.Nkeys = []*server.NkeyUser{{Nkey: public, Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"forbidden.>"}}}}}
		o.MaxPayload = 10_000
	})
	identity, err := nkeyOption(seed)
	if err != nil {
		t.Fatal(err)
	}
	js := streams(t, s.ClientURL(), identity)
	for _, c := range []jetstream.StreamConfig{
		{Name: "AUDIT", Subjects: []string{"audit.>"}},
		{Name: "SMALL", Subjects: []string{"small.>"}, MaxMsgSize: 2000},
		{Name: "FULL", Subjects: []string{"full.>"}, MaxMsgs: 1, Discard: jetstream.DiscardNew},
		{Name: "FORBIDDEN", Subjects: []string{"forbidden.>"}},
	} {
		if _, err := js.CreateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	some := messages(t, 20)
	for i, c := range []struct {
		o      natssink.Options
		size   int
		want   sink.Outcome
		reason string
	}{
		{natssink.Options{NKey: seed}, 10, sink.Delivered, ""},
		{natssink.Options{NKey: seed, Stream: "AUDIT"}, 10, sink.Delivered, ""},
		{natssink.Options{NKey: seed, Stream: "OTHER"}, 10, sink.Suspend, "expected stream"},
		{natssink.Options{NKey: other}, 10, sink.Suspend, "uthorization"},
		{natssink.Options{}, 10, sink.Suspend, "uthorization"},
		{natssink.Options{Token: "x"}, 10, sink.Suspend, "uthorization"},
		{natssink.Options{NKey: seed, Prefix: "small"}, 3000, sink.Split, "exceeds"},
		{natssink.Options{NKey: seed}, 20_000, sink.Split, "payload"},
		{natssink.Options{NKey: seed, Prefix: "full"}, 10, sink.Delivered, ""},
		{natssink.Options{NKey: seed, Prefix: "full"}, 10, sink.Retry, "maximum messages"},
		{natssink.Options{NKey: seed, Prefix: "forbidden", Timeout: time.Second}, 10, sink.Suspend, "ermissions"},
		{natssink.Options{NKey: seed, Prefix: "none"}, 10, sink.Suspend, "no stream takes"},
		{natssink.Options{NKey: seed, URLs: []string{"nats://127.0.0.1:1"}}, 10, sink.Retry, ""},
	} {
		c.o.Plaintext = true
		if c.o.URLs == nil {
			c.o.URLs = []string{s.ClientURL()}
		}
		v := open(t, c.o).Deliver(t.Context(), []sink.Message{{Event: some[i].Event, Body: make([]byte, c.size)}}).Verdicts[0]
		if v.Outcome != c.want || !strings.Contains(v.Reason, c.reason) || strings.Contains(v.Reason, seed) {
			t.Errorf("%d: %v, want %v %q", i, v, c.want, c.reason)
		}
	}
}

// Many lines deliver at once over one connection, and none is held up by another.
func TestLinesAtOnce(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	js := streams(t, s.ClientURL())
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"audit.>"}, Storage: jetstream.MemoryStorage}); err != nil {
		t.Fatal(err)
	}
	to := open(t, natssink.Options{URLs: []string{s.ClientURL()}, Plaintext: true})
	const lines, events = 8, 1000
	ev := messages(t, 1)[0].Event
	var wg sync.WaitGroup
	for line := range lines {
		wg.Go(func() {
			var batch []sink.Message
			for i := range events {
				one := *ev
				one.ID = fmt.Sprintf("%d-%d", line, i)
				batch = append(batch, sink.Message{Event: &one, Body: []byte(one.ID)})
			}
			for range 2 { // the second time it is all there already
				if r := to.Deliver(t.Context(), batch); !r.Done() {
					t.Errorf("line %d: %+v", line, r.Verdicts[events-1])
				}
			}
		})
	}
	wg.Wait()
	stream, err := js.Stream(t.Context(), "AUDIT")
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.Msgs; n != lines*events {
		t.Errorf("%d messages, want %d", n, lines*events)
	}
}

// The limit of a server is ours once it is reached.
func TestLimitOfTheServer(t *testing.T) {
	s := start(t, t.TempDir(), func(o *server.Options) { o.MaxPayload = 10_000 })
	to := open(t, natssink.Options{URLs: []string{s.ClientURL()}, Plaintext: true})
	before := to.Limits().EventBytes
	_ = to.Deliver(t.Context(), messages(t, 1))
	if after := to.Limits().EventBytes; before < 1<<19 || after >= 10_000 || after < 8000 {
		t.Errorf("%d, then %d bytes", before, after)
	}
}

// A message that the stream refuses does not hold up those beside it.
func TestOneOfABatchIsRefused(t *testing.T) {
	s := start(t, t.TempDir(), nil)
	js := streams(t, s.ClientURL())
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"audit.>"}, MaxMsgSize: 200_000}); err != nil {
		t.Fatal(err)
	}
	to := open(t, natssink.Options{URLs: []string{s.ClientURL()}, Plaintext: true})
	batch := messages(t, 5)
	batch[1].Body, batch[3].Body = make([]byte, 300_000), make([]byte, 2<<20)
	want := []sink.Outcome{sink.Delivered, sink.Split, sink.Delivered, sink.Split, sink.Delivered}
	for i, v := range to.Deliver(t.Context(), batch).Verdicts {
		if v.Outcome != want[i] {
			t.Errorf("message %d: %v, want %v", i, v, want[i])
		}
	}
}

// With TLS both sides show certificates, and who shows a wrong one suspends; a
// server without it does too.
func TestTLSAndCredentials(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.issue(t)
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	operator, account := decentralised(t)
	s := start(t, t.TempDir(), func(o *server.Options) {
		o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
		o.TLSTimeout = 10
		operator(o)
	})
	creds := account(t)
	url := fmt.Sprintf("tls://127.0.0.1:%d", s.Addr().(*net.TCPAddr).Port)
	right := natssink.Options{URLs: []string{url}, CA: ca.pem, Cert: cert, Key: key, Creds: creds, Timeout: 5 * time.Second}
	js := streams(t, url, nats.Secure(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}), nats.UserCredentialBytes([]byte(creds)))
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"audit.>"}}); err != nil {
		t.Fatal(err)
	}
	m := messages(t, 1)
	if v := open(t, right).Deliver(t.Context(), m).Verdicts[0]; v.Outcome != sink.Delivered {
		t.Errorf("all right: %v", v)
	}
	for name, change := range map[string]func(*natssink.Options){
		"another authority": func(o *natssink.Options) { o.CA = newAuthority(t).pem },
		"no certificate":    func(o *natssink.Options) { o.Cert, o.Key = "", "" },
		"no credentials":    func(o *natssink.Options) { o.Creds = "" },
	} {
		o := right
		change(&o)
		// Who closes before it is read what it says is only gone.
		v := open(t, o).Deliver(t.Context(), m).Verdicts[0]
		gone := name == "no certificate" && v.Outcome == sink.Retry
		if v.Outcome != sink.Suspend && !gone || strings.Contains(v.Reason, "SEED") {
			t.Errorf("%s: %v", name, v)
		}
	}
	plain := start(t, t.TempDir(), nil)
	right.URLs = []string{plain.ClientURL()}
	if v := open(t, right).Deliver(t.Context(), m).Verdicts[0]; v.Outcome != sink.Suspend {
		t.Errorf("a server without TLS: %v", v)
	}
}

func user(t *testing.T) (seed, public string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	secret, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = pair.PublicKey(); err != nil {
		t.Fatal(err)
	}
	return string(secret), public
}

func nkeyOption(seed string) (nats.Option, error) {
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return nil, err
	}
	public, err := pair.PublicKey()
	return nats.Nkey(public, pair.Sign), err
}

// decentralised returns how a server trusts an operator with one account, and how
// one gets credentials of a user of it.
func decentralised(t *testing.T) (operator func(*server.Options), creds func(*testing.T) string) {
	t.Helper()
	must := func(pair nkeys.KeyPair, err error) (nkeys.KeyPair, string) {
		if err != nil {
			t.Fatal(err)
		}
		public, err := pair.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return pair, public
	}
	op, opPublic := must(nkeys.CreateOperator())
	acc, accPublic := must(nkeys.CreateAccount())
	sys, sysPublic := must(nkeys.CreateAccount())
	_ = sys
	claim := jwt.NewAccountClaims(accPublic)
	claim.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	accJWT, err := claim.Encode(op)
	if err != nil {
		t.Fatal(err)
	}
	sysJWT, err := jwt.NewAccountClaims(sysPublic).Encode(op)
	if err != nil {
		t.Fatal(err)
	}
	operator = func(o *server.Options) {
		o.TrustedKeys, o.SystemAccount = []string{opPublic}, sysPublic
		resolver := &server.MemAccResolver{}
		_ = resolver.Store(accPublic, accJWT)
		_ = resolver.Store(sysPublic, sysJWT)
		o.AccountResolver = resolver
	}
	return operator, func(t *testing.T) string {
		t.Helper()
		seed, public := user(t)
		token, err := jwt.NewUserClaims(public).Encode(acc)
		if err != nil {
			t.Fatal(err)
		}
		text, err := jwt.FormatUserConfig(token, []byte(seed))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
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
	a.pem, _ = a.issue(t)
	return a
}

// issue signs a certificate: the first is the authority's own.
func (a *authority) issue(t *testing.T) (certPEM, keyPEM string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	own := a.cert == nil
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: own, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	parent, signer := a.cert, a.key
	if own {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	if own {
		a.key = key
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}

// A context that ends ends an attempt.
func TestContextEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	to := open(t, natssink.Options{URLs: []string{"nats://" + l.Addr().String()}, Plaintext: true, Timeout: 2 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if v := to.Deliver(ctx, messages(t, 1)).Verdicts[0]; v.Outcome != sink.Retry {
		t.Errorf("%v", v)
	}
}
