package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/export/serve"
)

// watchEvery is how often files are looked at.
const watchEvery = time.Second

// A watched is files that are read again when one of them changes.
type watched struct {
	names []string
	seen  []string // what each looked like
	read  func() error
}

func newWatched(read func() error, names ...string) *watched {
	w := &watched{names: names, read: read}
	w.seen = w.look()
	return w
}

// look returns what the files look like. One that is replaced by another of the
// same size and time, to the nanosecond, is not seen to have changed.
func (w *watched) look() (all []string) {
	for _, name := range w.names {
		info, err := os.Stat(name)
		if err != nil {
			all = append(all, "none")
			continue
		}
		all = append(all, fmt.Sprint(info.Size(), info.ModTime().UnixNano()))
	}
	return all
}

// again reads the files if they have changed. A file that is wrong is told of
// once, and what it said before stays.
func (w *watched) again(log *zap.Logger) {
	now := w.look()
	changed := false
	for i := range now {
		changed = changed || now[i] != w.seen[i]
	}
	if !changed {
		return
	}
	w.seen = now
	if err := w.read(); err != nil {
		log.Error("a file has changed and is wrong: what it said before stays", zap.Strings("files", w.names), zap.Error(err))
		return
	}
	log.Info("read again", zap.Strings("files", w.names))
}

// watch looks at files until ctx is done.
func watch(ctx context.Context, log *zap.Logger, all ...*watched) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, w := range all {
			if w != nil {
				w.again(log)
			}
		}
	}
}

// A tokenFile is a file of tokens.
type tokenFile struct {
	name   string
	tokens *serve.Tokens
}

func newTokenFile(name string) (*tokenFile, error) {
	f := &tokenFile{name: name}
	return f, f.read()
}

func (f *tokenFile) read() error {
	text, err := os.ReadFile(f.name)
	if err != nil {
		return fmt.Errorf("--tokens: %w", err)
	}
	tokens, err := serve.ParseTokens(text)
	if err != nil {
		return fmt.Errorf("--tokens: %s: %w", f.name, err)
	}
	f.tokens = tokens
	return nil
}

// watcher has a server go by the file as it is.
func (f *tokenFile) watcher(s *serve.Server) *watched {
	return newWatched(func() error {
		if err := f.read(); err != nil {
			return err
		}
		s.SetTokens(f.tokens)
		return nil
	}, f.name)
}

// A pair is a certificate and its key.
type pair struct {
	cert, key string
	now       atomic.Pointer[tls.Certificate]
}

func newPair(cert, key string) (*pair, error) {
	p := &pair{cert: cert, key: key}
	if err := p.read(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *pair) read() error {
	c, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		return fmt.Errorf("--tls-cert, --tls-key: %w", err)
	}
	p.now.Store(&c)
	return nil
}

func (p *pair) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := p.now.Load(); c != nil {
		return c, nil
	}
	return nil, errors.Join(fs.ErrNotExist, errors.New("no certificate"))
}

func (p *pair) watcher() *watched { return newWatched(p.read, p.cert, p.key) }
