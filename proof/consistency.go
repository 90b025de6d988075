package proof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// ConsistencyFormat is the name of the format of consistency proofs.
const ConsistencyFormat = "ledgerlake consistency v1"

// A TreeHead is a log's tree, as a checkpoint, an anchor or a proof states it.
type TreeHead struct {
	Origin string // of the log's checkpoints
	Tree   BundleTree

	note          *sign.Note
	at            time.Time // zero for a checkpoint
	introductions []string
}

// A Consistency is a proof that one tree of a log continues another. Source:
// docs/proofs.md.
type Consistency struct {
	Format string       `json:"format"`
	Origin string       `json:"origin"`
	From   BundleTree   `json:"from"`
	To     BundleTree   `json:"to"`
	Proof  []chain.Hash `json:"proof"` // RFC 6962, section 2.1.2
}

// ReadTreeHead reads a checkpoint, an anchor, or the proof of a row. tenant says
// whose log of an anchor is meant, and may be "" where that has one.
func ReadTreeHead(text []byte, tenant string) (*TreeHead, error) {
	if len(text) > 0 && text[0] == '{' {
		b, err := DecodeBundle(text)
		if err != nil {
			return nil, err
		}
		return b.treeHead()
	}
	n, err := sign.Parse(text)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(n.Text, string(chain.AnchorNote)+"\n") {
		origin, size, root, err := chain.ParseCheckpointText(n.Text)
		return &TreeHead{Origin: origin, Tree: BundleTree{size, root}, note: n}, err
	}
	a, err := decodeAnchorNote(text)
	if err != nil {
		return nil, err
	}
	return a.treeHead(tenant)
}

func (b *Bundle) treeHead() (h *TreeHead, err error) {
	switch {
	case b.Anchor != nil:
		h, err = ReadTreeHead([]byte(*b.Anchor), b.Log.Tenant)
	case b.Checkpoint != nil:
		h, err = ReadTreeHead([]byte(*b.Checkpoint), "")
	default:
		return nil, errors.New("it has neither a checkpoint nor an anchor")
	}
	if err != nil {
		return nil, err
	}
	h.introductions = b.Introductions
	return h, nil
}

func (a *linkedAnchor) treeHead(tenant string) (*TreeHead, error) {
	if tenant == "" && len(a.Heads) == 1 {
		tenant = a.Heads[0].Tenant
	}
	h := headIn(a.Anchor, tenant)
	if h == nil {
		return nil, fmt.Errorf("anchor %d lists %s, and none of tenant %q: say whose is meant by --tenant", a.Number, Count(int64(len(a.Heads)), "head"), tenant)
	}
	log := chain.Log{ArchiveID: a.ArchiveID, Tenant: tenant, Topic: a.Topic, TopicID: a.TopicID, Partition: a.Partition}
	return &TreeHead{Origin: chain.CheckpointOrigin(log), Tree: BundleTree{h.Size, h.Root}, note: a.note, at: a.Time.Time}, nil
}

// check says who signed the head.
func (h *TreeHead) check(c *Checked, o CheckOptions) error {
	ring := o.Keys.Clone()
	parts := strings.Split(h.Origin, "/")
	if len(parts) == 6 {
		c.ArchiveID = parts[1]
	}
	if err := introduce(ring, h.introductions, c.ArchiveID); err != nil {
		return err
	}
	v := ring.Check(h.note, sign.Anchor, h.at)
	if v.State == sign.Bad {
		return errForged
	}
	if len(v.By) == 0 {
		c.less, c.Unsigned = true, true
		c.not("that anybody vouches for the tree of %d rows: no signature over it is by a key that was given", h.Tree.Size)
	}
	for _, vkey := range v.By {
		if !slices.Contains(c.SignedBy, vkey) {
			c.SignedBy = append(c.SignedBy, vkey)
		}
	}
	return nil
}

// CheckConsistency checks that newer continues older by a proof, and whose both
// are.
func CheckConsistency(older, newer *TreeHead, p *Consistency, o CheckOptions) *Checked {
	c := newChecked("")
	if err := checkConsistency(c, older, newer, p, o); err != nil {
		return Failed(c.ArchiveID, err)
	}
	if !c.less {
		c.Tier = TierT1
	}
	return c.end()
}

func checkConsistency(c *Checked, older, newer *TreeHead, p *Consistency, o CheckOptions) error {
	switch {
	case older.Origin != newer.Origin:
		return fmt.Errorf("they are trees of different logs: %s, and %s", Printable(older.Origin), Printable(newer.Origin))
	case p.Origin != newer.Origin || p.From != older.Tree || p.To != newer.Tree:
		return fmt.Errorf("the consistency proof is of other trees")
	}
	if err := chain.CheckConsistency(p.From.Size, p.To.Size, p.From.Root, p.To.Root, p.Proof); err != nil {
		return err
	}
	c.proved("the tree of %d rows continues that of %d: nothing of those was changed, taken away or put between", p.To.Size, p.From.Size)
	if err := older.check(c, o); err != nil {
		return fmt.Errorf("the older one: %w", err)
	}
	if err := newer.check(c, o); err != nil {
		return fmt.Errorf("the newer one: %w", err)
	}
	return nil
}

// ProveConsistency makes the proof that newer continues older from the archive.
// An error matches [ErrTampered] where the archive does not have both.
func (p *Prover) ProveConsistency(ctx context.Context, older, newer *TreeHead) (*Consistency, error) {
	l, tenant, err := p.logOf(ctx, newer.Origin)
	if err != nil {
		return nil, err
	}
	g := l.log(tenant)
	from, to := older.Tree.Size, newer.Tree.Size
	spans := consistencySpans(min(from, to), to)
	if len(spans) > 0 {
		_, h, err := l.covering(ctx, tenant, to-1)
		if errors.Is(err, ErrNotAnchored) {
			return nil, tampered("the archive's log is shorter than %d rows", to)
		}
		if err != nil {
			return nil, err
		}
		at, err := g.pieceOf(ctx, from)
		if err != nil {
			return nil, err
		}
		if err := g.know(ctx, h, at, spans, from); err != nil {
			return nil, err
		}
	}
	return proveConsistency(g.forest, older, newer)
}

// ProveConsistency is [Prover.ProveConsistency] from tiles alone.
func (t *Tiles) ProveConsistency(older, newer *TreeHead) (*Consistency, error) {
	if t.Origin != newer.Origin {
		return nil, fmt.Errorf("the tiles are of another log: %s", Printable(t.Origin))
	}
	if newer.Tree.Size > t.Tree.Size {
		return nil, tampered("the tiles have %d rows, fewer than %d", t.Tree.Size, newer.Tree.Size)
	}
	f := newForest()
	f.tile = t.node
	return proveConsistency(f, older, newer)
}

func proveConsistency(f *forest, older, newer *TreeHead) (*Consistency, error) {
	c := &Consistency{Format: ConsistencyFormat, Origin: newer.Origin, From: older.Tree, To: newer.Tree, Proof: []chain.Hash{}}
	if older.Tree.Size > newer.Tree.Size {
		return nil, fmt.Errorf("the older tree has %d rows, the newer one %d: give them the other way round", older.Tree.Size, newer.Tree.Size)
	}
	hashes, err := f.roots(consistencySpans(c.From.Size, c.To.Size))
	if err != nil {
		return nil, tampered("%v", err)
	}
	c.Proof = append(c.Proof, hashes...)
	if err := chain.CheckConsistency(c.From.Size, c.To.Size, c.From.Root, c.To.Root, c.Proof); err != nil {
		return nil, tampered("what is stored does not lead from one tree to the other: one of them is not of this log, or one was made anew")
	}
	return c, nil
}

// NewestHead returns the newest tree of the log that has an origin.
func (p *Prover) NewestHead(ctx context.Context, origin string) (*TreeHead, error) {
	l, tenant, err := p.logOf(ctx, origin)
	if err != nil {
		return nil, err
	}
	a, _, err := l.newestHead(ctx, tenant)
	if err != nil {
		return nil, err
	}
	h, err := a.treeHead(tenant)
	if err != nil {
		return nil, err
	}
	h.introductions, _, err = l.introductions(ctx, a.note, a.Time.Time, 0)
	return h, err
}

// logOf returns the log that has an origin.
func (p *Prover) logOf(ctx context.Context, origin string) (*provenLine, string, error) {
	parts := strings.Split(origin, "/")
	if len(parts) != 6 || parts[0] != "ledgerlake" {
		return nil, "", fmt.Errorf("%q is the origin of no log of ours", origin)
	}
	if parts[1] != p.root.ArchiveID {
		return nil, "", tampered("the tree is of archive %s, this one is %s", Printable(parts[1]), p.root.ArchiveID)
	}
	n, err := strconv.ParseInt(parts[5], 10, 32)
	if err != nil {
		return nil, "", fmt.Errorf("%q is the origin of no log of ours", origin)
	}
	partition := int32(n)
	lines, err := p.lines(ctx, Want{TopicID: parts[4], Partition: &partition})
	if err != nil {
		return nil, "", err
	}
	for _, l := range lines {
		if tenant, err := l.tenantOf(ctx, origin); err != nil || tenant != "" {
			return l, tenant, err
		}
	}
	return nil, "", fmt.Errorf("the archive has no such log: %w", ErrNoRow)
}

// tenantOf returns the tenant whose log has an origin, or "".
func (l *provenLine) tenantOf(ctx context.Context, origin string) (string, error) {
	newest, err := l.newest(ctx)
	if err != nil {
		return "", err
	}
	for n := newest; n >= 0; n-- {
		a, err := l.anchor(ctx, n)
		if err != nil {
			return "", err
		}
		for i := range a.Heads {
			if chain.CheckpointOrigin(l.log(a.Heads[i].Tenant).name) == origin {
				return a.Heads[i].Tenant, nil
			}
		}
		if a.Full {
			break
		}
	}
	return "", nil
}

// Encode returns the proof as JSON.
func (p *Consistency) Encode() ([]byte, error) { return encodeJSON(p, "  ") }

// DecodeConsistency parses a consistency proof.
func DecodeConsistency(text []byte) (*Consistency, error) {
	p := &Consistency{Format: ConsistencyFormat}
	return p, readDocument(text,
		field{Name: "format", Read: func(d *document) { d.Constant(ConsistencyFormat) }},
		field{Name: "origin", Read: func(d *document) { p.Origin = d.Str() }},
		field{Name: "from", Read: func(d *document) { p.From = readBundleTree(d) }},
		field{Name: "to", Read: func(d *document) { p.To = readBundleTree(d) }},
		field{Name: "proof", Read: func(d *document) { p.Proof = d.Hashes() }})
}
