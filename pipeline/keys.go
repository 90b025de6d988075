package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// errKeyless: a keyed log cannot be read or gone on with.
var errKeyless = errors.New("give its key (chain.master-key or chain.key-dir)")

// keyed reports whether logs of a topic that begin are keyed.
func (s *Settings) keyed(topic string) bool {
	return slices.Contains(s.KeyedTopics, topic) || slices.Contains(s.KeyedTopics, "*")
}

// keys returns the keys of logs: those of their own, and else those that the
// master key gives.
func (s *Settings) keys() chain.Keys {
	if len(s.MasterKey) == 0 {
		return s.LogKeys
	}
	return s.LogKeys.Or(chain.MasterKeys(s.MasterKey))
}

// checkKeys returns an error where logs are to be keyed and there is no key.
func (s *Settings) checkKeys() error {
	switch {
	case len(s.MasterKey) > 0 && len(s.MasterKey) < chain.MinKey:
		return fmt.Errorf("the master key has %d bytes: want %d or more", len(s.MasterKey), chain.MinKey)
	case len(s.KeyedTopics) > 0 && s.keys() == nil:
		return errors.New("logs are to be keyed (chain.keyed-topics), and there is no key: give chain.master-key or chain.key-dir")
	}
	return nil
}

// newState returns the state of a line of which nothing is known.
func (sh *shared) newState(l archive.Line) *archive.State {
	st := archive.NewState(sh.Root.ArchiveID, l)
	st.Keys, st.Scheme = sh.keys, chain.SchemeV1
	if sh.keyed(l.Topic) {
		st.Scheme = chain.SchemeHMACv1
	}
	return st
}

// hasherOf returns the hasher by which a log goes on. The key of one that has
// rows is tried on its newest row first: under another one, what came before
// could never be checked together with what follows.
func (p *partition) hasherOf(tenant string, h archive.Head) (*chain.Hasher, error) {
	l := p.state.Log(tenant)
	hasher, err := p.hashers.For(h.Scheme, l)
	if errors.Is(err, chain.ErrNoKey) {
		return nil, fmt.Errorf("a log of %s/%d: %w: %w; the file in chain.key-dir would be …/%s", l.Topic, l.Partition, err, errKeyless, keyFolder(l))
	}
	if err != nil || h.Scheme != chain.SchemeHMACv1 || h.Tree.Size == 0 || p.proved[tenant] {
		return hasher, err
	}
	if byMaster := p.shared.master.Load() && !p.shared.LogKeys.Has(l); !byMaster {
		if err := p.shared.tryKey(p.put, p.state, tenant); err != nil {
			return nil, err
		}
		p.shared.prove(l)
	}
	p.proved[tenant] = true
	return hasher, nil
}

// keyFolder returns the folder of the files of a line's keys: the names of
// tenants do not stand in what a process says.
func keyFolder(l chain.Log) string {
	l.Tenant = "TENANT"
	return chain.LogKeyFile(l)
}

// prove notes that the key of a log is the right one: if it is made of the master
// key, that is the right one for all.
func (sh *shared) prove(l chain.Log) {
	if len(sh.MasterKey) > 0 && !sh.master.Load() && !sh.LogKeys.Has(l) {
		sh.master.Store(true)
	}
}

// proveAll notes it of the logs of a segment whose rows were checked.
func (sh *shared) proveAll(seg *archive.Segment) {
	for i := range seg.Logs {
		if seg.Logs[i].Scheme == chain.SchemeHMACv1 {
			sh.prove(seg.Log(seg.Logs[i].Tenant))
		}
	}
}

// tryKey reads the newest row of a log that has one, and checks it with the key
// at hand. One that was cut, or erased hard, says nothing of keys.
func (sh *shared) tryKey(ctx context.Context, st *archive.State, tenant string) error {
	return sh.insist(ctx, st.Line, archive.SegmentPrefix(st.Line), func(ctx context.Context, _ string) error {
		return newRowFinder(sh, st).check(ctx, tenant, st.Head(tenant).Tree.Size-1)
	})
}
