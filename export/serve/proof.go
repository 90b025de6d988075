package serve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/proof"
)

// checkAge is how long a prover is used for checks. What it knows of anchors
// stays true; what was archived since it does not know, and is then looked for by
// a new one.
const checkAge = 2 * time.Minute

// maxProvers is how many proofs are made at once.
const maxProvers = 4

// provers are provers, each for one goroutine at a time.
type provers struct {
	o    *Options
	once sync.Once
	free chan struct{} // a place for each that may work
	mu   sync.Mutex
	idle []*agedProver
}

type agedProver struct {
	*proof.Prover
	born time.Time
}

// get returns a prover that knows what was archived up to age ago.
func (p *provers) get(ctx context.Context, age time.Duration) (*agedProver, error) {
	p.once.Do(func() { p.free = make(chan struct{}, maxProvers) })
	select {
	case p.free <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	now := p.o.Now()
	if a := p.take(now, age); a != nil {
		return a, nil
	}
	made, err := proof.NewProver(ctx, p.o.Source, proof.ProveOptions{Keys: p.o.Keys, ControlTopic: p.o.ControlTopic})
	if err != nil {
		<-p.free
		return nil, err
	}
	return &agedProver{made, now}, nil
}

// take takes the youngest idle prover, and lets go of those that are too old for
// anything.
func (p *provers) take(now time.Time, age time.Duration) *agedProver {
	p.mu.Lock()
	defer p.mu.Unlock()
	best := -1
	kept := p.idle[:0]
	for _, a := range p.idle {
		if now.Sub(a.born) > checkAge {
			continue
		}
		kept = append(kept, a)
		if now.Sub(a.born) <= age && (best < 0 || a.born.After(kept[best].born)) {
			best = len(kept) - 1
		}
	}
	clear(p.idle[len(kept):])
	p.idle = kept
	if best < 0 {
		return nil
	}
	a := p.idle[best]
	p.idle = append(p.idle[:best], p.idle[best+1:]...)
	return a
}

func (p *provers) put(a *agedProver) {
	p.mu.Lock()
	p.idle = append(p.idle, a)
	p.mu.Unlock()
	<-p.free
}

// bundle proves a row. Where a prover that is not new knows no anchor that covers
// the row, a new one looks.
func (p *provers) bundle(ctx context.Context, r *export.Row, age time.Duration) (*proof.Bundle, *proof.Found, error) {
	for ; ; age = 0 {
		a, err := p.get(ctx, age)
		if err != nil {
			return nil, nil, err
		}
		young := a.born.Equal(p.o.Now()) || age == 0
		found, err := a.Find(ctx, wanted(r))
		if err == nil || errors.Is(err, proof.ErrNotAnchored) {
			p.put(a)
		} else {
			<-p.free // what it knows may be what is wrong
		}
		if err != nil && !young && !errors.Is(err, context.Canceled) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		b, err := found.Bundle(proof.Disclosure{})
		return b, found, err
	}
}

// wanted names a row by its place, which is found without a search.
func wanted(r *export.Row) proof.Want {
	partition, seq := r.Line.Partition, r.Seq.N
	return proof.Want{Tenant: r.TenantID.S, Topic: r.Line.Topic, TopicID: r.Line.TopicID, Partition: &partition, Seq: &seq}
}

// proof answers with the bundle of a record. It is made by a prover that knows
// what was ordered up to now, as its content is shown.
func (s *Server) proof(c *call) error {
	rows, err := s.find(c)
	if err != nil {
		return err
	}
	b, _, err := s.prover.bundle(c.ctx, rows[0], s.o.Age)
	if err != nil {
		return missing(err)
	}
	if b.Log.Tenant != c.tenant {
		return fmt.Errorf("%w: the proof of another tenant came", export.ErrTampered)
	}
	if !c.token.All && namesOthers(b, c.token) {
		return errOthers.with("whoever runs the server can make it: ledgerlake-verify prove")
	}
	text, err := b.Encode()
	if err != nil {
		return err
	}
	return c.body(mediaJSON, text)
}

// missing says of a row that was just read, and that the prover does not find,
// that no anchor covers it.
func missing(err error) error {
	if errors.Is(err, proof.ErrNoRow) {
		return errAnchor
	}
	return err
}

// namesOthers reports whether a bundle has an anchor that names tenants that the
// token is not good for. A note that is neither an anchor nor the certificate of a
// key counts as one.
func namesOthers(b *proof.Bundle, t *Token) bool {
	notes := b.Introductions
	if b.Anchor != nil {
		notes = append([]string{*b.Anchor}, notes...)
	}
	for _, text := range notes {
		n, err := sign.Parse([]byte(text))
		if err != nil {
			return true
		}
		a, err := archive.DecodeAnchor(n.Text)
		if err != nil {
			if strings.Contains(text, `"heads"`) {
				return true
			}
			continue // the certificate of a key names nobody
		}
		for _, h := range a.Heads {
			if !t.May(h.Tenant) {
				return true
			}
		}
	}
	return false
}

// The states of a check.
const (
	checkProved   = "proved"   // it checks, and a key that was given to the server vouches for the tree
	checkUnsigned = "unsigned" // it checks, and nobody who is known vouches
	checkPartly   = "partly"   // it checks as far as it can: something of it was left out
	checkWaiting  = "waiting"  // no anchor covers the row yet
	checkFailed   = "failed"   // it does not check
)

// A checked is the answer of a check.
type checked struct {
	State     string   `json:"state"`
	Text      string   `json:"text"` // for people, one sentence
	Anchor    string   `json:"anchor"`
	Key       string   `json:"key"`
	TreeSize  int64    `json:"treeSize,omitempty"`
	Root      string   `json:"root,omitempty"`
	Exit      int      `json:"exit"` // as ledgerlake-verify row would end
	Tier      string   `json:"tier"`
	SignedBy  []string `json:"signedBy"`
	Proved    []string `json:"proved"`
	NotProved []string `json:"notProved"`
	Gated     []string `json:"gated"` // orders that are not carried out yet and hide something of it
}

// check answers with what the proof of a record is worth.
func (s *Server) check(c *call) error {
	rows, err := s.find(c)
	if err != nil {
		return err
	}
	r, err := s.checked(c.ctx, rows[0])
	if err != nil {
		return err
	}
	return c.json(r)
}

func (s *Server) checked(ctx context.Context, r *export.Row) (*checked, error) {
	b, found, err := s.prover.bundle(ctx, r, checkAge)
	switch {
	case errors.Is(err, proof.ErrNotAnchored), errors.Is(err, proof.ErrNoRow):
		return &checked{
			State: checkWaiting, Exit: 3, Tier: proof.TierNone, Text: "No anchor covers it yet: its hash fits its content, and the next anchor will vouch for its place.",
			Anchor: "none yet", Key: s.keyState(nil), SignedBy: []string{}, Proved: []string{}, NotProved: []string{}, Gated: []string{},
		}, nil
	case errors.Is(err, proof.ErrTampered):
		return &checked{
			State: checkFailed, Exit: 1, Tier: proof.TierNone, Text: "It does not check: what is stored does not lead to what an anchor states. Have the archive verified.",
			Anchor: "stated something else", Key: s.keyState(nil), SignedBy: []string{}, Proved: []string{}, NotProved: []string{}, Gated: []string{},
		}, nil
	case err != nil:
		return nil, err
	}
	v := b.Check(proof.CheckOptions{Keys: s.o.Keys, LogKeys: s.o.LogKeys})
	return s.worth(b, found, v), nil
}

func (s *Server) worth(b *proof.Bundle, found *proof.Found, v *proof.Checked) *checked {
	r := &checked{
		Exit: v.Exit, Tier: v.Tier, SignedBy: v.SignedBy, Proved: v.Proved, NotProved: v.NotProved, Gated: append([]string{}, found.Gated...),
		TreeSize: b.Tree.Size, Root: b.Tree.Root.String(), Key: s.keyState(v),
		Anchor: fmt.Sprintf("covers it, in a tree of %s", proof.Count(b.Tree.Size, "row")),
	}
	switch {
	case v.Fault != "":
		r.State, r.Text, r.Anchor = checkFailed, "It does not check. Have the archive verified.", "does not fit the row"
	case v.Unsigned:
		r.State, r.Text = checkUnsigned, "It checks against the newest anchors, and no key that this server knows vouches for them."
	case v.Exit == 0:
		r.State, r.Text = checkProved, "It checks, and its tree is "+r.Key+"."
	default:
		r.State, r.Text = checkPartly, "Its place checks. What it said cannot all be checked: it was erased, or its log is keyed."
	}
	return r
}

// keyState says whose signature counts.
func (s *Server) keyState(v *proof.Checked) string {
	switch {
	case v != nil && len(v.SignedBy) > 0:
		var names []string
		for _, vkey := range v.SignedBy {
			name, _, _ := strings.Cut(vkey, "+")
			names = append(names, proof.Printable(name))
		}
		return "signed by " + strings.Join(names, ", ")
	case s.o.Keys == nil || s.o.Keys.Empty():
		return "no key was given to this server"
	case v == nil:
		return "a key is known, and nothing to check with it"
	}
	return "not signed by a key that this server knows"
}
