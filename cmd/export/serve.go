package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/export/serve"
	"github.com/ledgerlake/ledgerlake/telemetry"
)

const serveHelp = program + ` serve answers over HTTP, and has a page for people. It only reads.

  ` + program + ` serve --tokens FILE [flags] TARGET

  ` + program + ` token new --name acme-app --tenant acme      makes a token, and prints its entry of FILE
  ` + program + ` serve --tokens tokens.yaml ./data/audit
  curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8420/v1/tenants/acme/turns/t-1

The page is at / of the same address. docs/serve.md describes all of it; /v1/openapi.json does for programs.

Flags:
  --tokens FILE
        Who may see what. It is read again when it changes; a file that is wrong changes nothing, and is told of.
  --listen HOST:PORT
        Where to answer. Default: 127.0.0.1:8420.
  --tls-cert FILE, --tls-key FILE
        Certificate and key, PEM. They are read again when they change.
  --plain-http
        Answer without TLS at an address that is not of this machine alone: behind a proxy that does TLS.
  --age DURATION
        How old an answer may be; also how often a tail looks. Default: 2s.
  --requests N, --token-requests N
        At once: of all together, and of each token, tails included. Default: 256, 16.
  --token-bytes SIZE
        A second, of the answers to one token, before compression: more is slowed down. Default: 64MiB.
  --metrics HOST:PORT
        Where /metrics, /healthz and /readyz are served for operators. Default: nowhere.
  --log-level debug|info|warn|error, --log-format json|console, --log-tenants
        What is logged: each request at debug, what goes wrong at error. Never a token, and no tenant unless told to.
` + readHelp

// stopWithin is how long answers may take to end when the process is to.
const stopWithin = 10 * time.Second

// A server is what serve is told.
type server struct {
	*reading
	tokens, listen, cert, certKey, metrics string
	plain                                  bool
	age                                    time.Duration
	limits                                 serve.Limits
	logging                                config.Log
	log                                    *zap.Logger
	traces                                 *telemetry.Tracer // nil: nobody takes any
}

func newServer() *server {
	s := &server{reading: newReading("serve"), logging: config.Log{Level: "info", Format: "json"}}
	s.StringVar(&s.tokens, "tokens", "", "")
	s.StringVar(&s.listen, "listen", "127.0.0.1:8420", "")
	s.StringVar(&s.cert, "tls-cert", "", "")
	s.StringVar(&s.certKey, "tls-key", "", "")
	s.BoolVar(&s.plain, "plain-http", false, "")
	s.DurationVar(&s.age, "age", serve.DefaultAge, "")
	s.IntVar(&s.limits.Requests, "requests", 256, "")
	s.IntVar(&s.limits.TokenRequests, "token-requests", 16, "")
	s.Func("token-bytes", "", s.setTokenBytes)
	s.StringVar(&s.metrics, "metrics", "", "")
	s.Func("log-level", "", oneOf(&s.logging.Level, "debug", "info", "warn", "error"))
	s.Func("log-format", "", oneOf(&s.logging.Format, "json", "console"))
	s.BoolVar(&s.logging.Tenants, "log-tenants", false, "")
	return s
}

func (s *server) setTokenBytes(text string) error {
	n, ok := config.ParseBytes(text)
	if !ok || n < 64<<10 {
		return errors.New("want a size of 64KiB or more, such as 64MiB")
	}
	s.limits.TokenBytes = n
	return nil
}

// oneOf returns a flag that takes one of some words.
func oneOf(into *string, words ...string) func(string) error {
	return func(text string) error {
		for _, w := range words {
			if w == text {
				*into = text
				return nil
			}
		}
		return fmt.Errorf("want one of %q", words)
	}
}

// check refuses flags that do not go together.
func (s *server) check() error {
	switch {
	case s.tokens == "":
		return fmt.Errorf("%w: --tokens: want a file of tokens; `%s token new` prints an entry", errUsage, program)
	case (s.cert == "") != (s.certKey == ""):
		return fmt.Errorf("%w: --tls-cert and --tls-key go together", errUsage)
	case s.age <= 0 || s.limits.Requests < 1 || s.limits.TokenRequests < 1:
		return fmt.Errorf("%w: --age, --requests and --token-requests: want more than 0", errUsage)
	case s.cert == "" && !s.plain && !isLoopback(s.listen):
		return fmt.Errorf("%w: --listen %s is not of this machine alone, and tokens would cross the network as they are: "+
			"give --tls-cert and --tls-key, or --plain-http behind a proxy that does TLS", errUsage, s.listen)
	}
	return nil
}

// isLoopback reports whether an address can be reached from this machine alone.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func serveArchive(ctx context.Context, c call) (int, error) {
	s := newServer()
	rest, err := s.Parse(c.args)
	if err != nil {
		return showHelp(c, serveHelp, err)
	}
	if err := s.check(); err != nil {
		return exitCannotRun, err
	}
	s.log = daemon.NewLogger(c.stderr, s.logging)
	if s.traces, err = daemon.Traces(ctx, s.log, c.environ, program, version); err != nil {
		return exitCannotRun, err
	}
	defer s.traces.Close(stopWithin / 10)
	if err := s.open(ctx, c, rest); err != nil {
		return outcome(c, err)
	}
	defer s.close()
	return outcome(c, s.run(ctx))
}

// run answers until ctx is done.
func (s *server) run(ctx context.Context) error {
	good, err := newTokenFile(s.tokens)
	if err != nil {
		return err
	}
	logKeys, err := s.logKeys.Keys()
	if err != nil {
		return err
	}
	report := newServeReport(s.log, s.logging.Tenants)
	answers, err := serve.New(serve.Options{
		Archive: s.archive, Source: s.source, Keys: &s.keys, LogKeys: logKeys, ControlTopic: s.control, Age: s.age, Limits: s.limits, Now: time.Now, Events: tracedServe(s.traces, report.events()),
	})
	if err != nil {
		return err
	}
	answers.SetTokens(good.tokens)
	l, certificates, err := s.openPort()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go watch(ctx, s.log, good.watcher(answers), certificates)
	stopMetrics, err := s.serveMetrics(report)
	if err != nil {
		return err
	}
	defer stopMetrics()
	return s.answer(ctx, l, answers)
}

// openPort opens the port.
func (s *server) openPort() (net.Listener, *watched, error) {
	l, err := net.Listen("tcp", s.listen)
	if err != nil || s.cert == "" {
		return l, nil, err
	}
	pair, err := newPair(s.cert, s.certKey)
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	return tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.certificate, NextProtos: []string{"h2", "http/1.1"}}), pair.watcher(), nil
}

// answer answers until ctx is done, and then until what is under way has ended.
func (s *server) answer(ctx context.Context, l net.Listener, answers *serve.Server) error {
	h := answers.HTTP()
	h.ErrorLog = zap.NewStdLog(daemon.Sampled(s.log).WithOptions(zap.IncreaseLevel(zap.WarnLevel)))
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(l) }()
	s.log.Info("answering", zap.Stringer("address", l.Addr()), zap.Bool("tls", s.cert != ""))
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	answers.Stop()
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if err := h.Shutdown(within); err != nil {
		_ = h.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// serveMetrics serves what operators ask, where that is wanted.
func (s *server) serveMetrics(r *serveReport) (stop func(), err error) {
	if s.metrics == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", s.metrics)
	if err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	s.log.Info("serving /healthz, /readyz and /metrics", zap.Stringer("address", l.Addr()))
	return daemon.Serve(l, r, r.metrics.Registry), nil
}
