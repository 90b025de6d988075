package proof

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync/atomic"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
)

// The errors of those who look for something in an archive.
var (
	// ErrNoRow: no row that was looked at is the one that is asked for.
	ErrNoRow = errors.New("no such row")
	// ErrNotAnchored: the row is there, and no anchor covers it yet. Try again
	// when the next one is written.
	ErrNotAnchored = errors.New("no anchor covers it yet")
	// ErrTampered: what is stored does not fit together.
	ErrTampered = errors.New("tampered with or damaged")
)

func tampered(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrTampered, fmt.Sprintf(format, a...))
}

// A Want says which log or row is asked for. What is left out is not asked for.
type Want struct {
	RecordID  string
	Tenant    string
	Topic     string
	TopicID   string
	Partition *int32
	Seq       *int64 // with Tenant
	Offset    *int64
}

// A Cost is what reading took.
type Cost struct {
	Gets  int64 // objects, or ends of objects, that were asked for
	Lists int64
	Bytes int64 // that came
}

// A meter is a source that counts.
type meter struct {
	archive.Source
	gets, lists, bytes atomic.Int64
}

func (m *meter) cost() Cost { return Cost{m.gets.Load(), m.lists.Load(), m.bytes.Load()} }

func (m *meter) Get(ctx context.Context, key string) ([]byte, error) {
	m.gets.Add(1)
	b, err := m.Source.Get(ctx, key)
	m.bytes.Add(int64(len(b)))
	return b, err
}

func (m *meter) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	m.gets.Add(1)
	b, size, err := m.Source.GetTail(ctx, key, n)
	m.bytes.Add(int64(len(b)))
	return b, size, err
}

func (m *meter) List(ctx context.Context, prefix, after string) iter.Seq2[archive.Object, error] {
	m.lists.Add(1)
	return m.Source.List(ctx, prefix, after)
}

// A Prover finds rows in an archive and proves where they stand. It reads as
// little as it can, and checks that what it reads leads to the root that an
// anchor states; so a proof that it makes holds for whoever knows the anchor's
// key, whatever else is wrong with the archive. What it has read of anchors it does
// not read again, so it does not see those that are written later. It is for one
// goroutine.
type Prover struct {
	src  *meter
	root archive.Root
	o    ProveOptions
	keys *sign.Ring // of ProveOptions alone

	certified []foundKeyNote         // nil: not read yet
	known     map[string]*provenLine // by the folder of their anchors
	governs   *control.Governance    // nil: not read yet
	hasher    *chain.Hasher
}

// ProveOptions say how a Prover works.
type ProveOptions struct {
	// Keys are good for all roles; nil where no key is known. A proof is made
	// all the same, and holds for those who know the key.
	Keys *sign.Ring
	// WithAnchor puts the whole anchor into each proof. It names the other
	// tenants of its partition. Without it that is so only where it has to be.
	WithAnchor bool
	// Newest proves in the newest tree, not in the first one that has the row.
	// It reads the hashes of all rows between, or tiles.
	Newest bool
	// Tiles is a folder of tiles of the log; "" where there is none.
	Tiles *Tiles
	// ControlTopic is the topic of which the rows order erasures; "" is
	// [audit.ControlTopic]. What they are to take from a row is not shown, whether
	// or not it is gone already.
	ControlTopic string
	// Progress hears what is being looked at in a search, now and then.
	Progress func(text string)
}

// NewProver opens an archive. The error is [ErrNoArchive], or one of the store.
func NewProver(ctx context.Context, src archive.Source, o ProveOptions) (*Prover, error) {
	p := &Prover{src: &meter{Source: src}, o: o, keys: &sign.Ring{}, known: map[string]*provenLine{}, hasher: chain.NewHasher(nil)}
	if o.Keys != nil {
		p.keys = o.Keys.Clone()
	}
	body, err := p.src.Get(ctx, archive.RootKey)
	switch {
	case errors.Is(err, archive.ErrNotFound):
		return nil, ErrNoArchive
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", archive.RootKey, err)
	}
	if p.root, err = readRoot(body); err != nil {
		return nil, tampered("%s: %v", archive.RootKey, err)
	}
	p.root.SHA256 = sha256.Sum256(body)
	return p, nil
}

// Cost returns what was read so far.
func (p *Prover) Cost() Cost { return p.src.cost() }

// ArchiveID returns the archive's id.
func (p *Prover) ArchiveID() string { return p.root.ArchiveID }

func (p *Prover) progress(format string, a ...any) {
	if p.o.Progress != nil {
		p.o.Progress(fmt.Sprintf(format, a...))
	}
}

// A Found is a row that was found, and the proof that it is in the log's tree.
type Found struct {
	Log   chain.Log
	Row   chain.Row // without what Gated take
	Tree  TreeProof
	Gated []string // ids of redactions that are not carried out, and take something from the row
}

// A TreeProof says that one row stands in a log's tree, and who signed that.
type TreeProof struct {
	Scheme string
	Size   int64 // of the tree
	Root   chain.Hash
	Path   []chain.Hash // RFC 6962, lowest first
	Signed Signed
}

// Signed is a statement of a tree's size and root, and what signs it: a
// checkpoint, an anchor that has the log's head, or both.
type Signed struct {
	Checkpoint string // a note; "" if there is none
	Anchor     string // a note; "" if it is left out
	// Introductions are key notes and anchors by which one key vouches for
	// another, down to the one that signed.
	Introductions []string

	number int64 // of the anchor that it comes from
	time   time.Time
}

// Find finds a row and proves it. Errors match [ErrNoRow], [ErrNotAnchored] or
// [ErrTampered], or come from the store.
func (p *Prover) Find(ctx context.Context, w Want) (*Found, error) {
	return steady(ctx, p, func() (*Found, error) { return p.findOnce(ctx, w) })
}

func (p *Prover) findOnce(ctx context.Context, w Want) (*Found, error) {
	lines, err := p.lines(ctx, w)
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("no anchored partition is of that name: %w", ErrNoRow)
	}
	for _, l := range lines {
		f, err := l.find(ctx, w)
		if !errors.Is(err, ErrNoRow) {
			return f, err
		}
	}
	return nil, ErrNoRow
}

// find finds a row in one line.
func (l *provenLine) find(ctx context.Context, w Want) (*Found, error) {
	at, err := l.locate(ctx, w)
	if err != nil {
		return nil, err
	}
	return l.prove(ctx, at)
}

// prove proves a row that was found.
func (l *provenLine) prove(ctx context.Context, at *located) (*Found, error) {
	tenant, seq := at.row.TenantID.S, at.row.Seq.N
	a, h, err := l.covering(ctx, tenant, seq)
	if err != nil {
		return nil, err
	}
	if l.p.o.Newest {
		if a, h, err = l.newestHead(ctx, tenant); err != nil {
			return nil, err
		}
	}
	g := l.log(tenant)
	spans := pathSpans(h.Size, seq)
	if err := g.know(ctx, h, at.piece, spans, 0); err != nil {
		return nil, err
	}
	path, err := g.forest.roots(spans)
	if err != nil {
		return nil, err
	}
	if err := chain.CheckInclusion(h.Root, h.Size, seq, at.row.RowHash, path); err != nil {
		return nil, tampered("the stored hashes do not lead from seq %d to the root that anchor %d states", seq, a.Number)
	}
	signed, err := l.signed(ctx, a, tenant)
	if err != nil {
		return nil, err
	}
	gated, err := l.p.gate(ctx, &at.row)
	if err != nil {
		return nil, err
	}
	return &Found{Log: g.name, Row: at.row, Gated: gated, Tree: TreeProof{Scheme: h.Scheme, Size: h.Size, Root: h.Root, Path: path, Signed: *signed}}, nil
}

// retry asks once more where an object ended early: it may just be written.
func retry[T any](get func() (T, error)) (T, error) {
	v, err := get()
	if errors.Is(err, io.ErrUnexpectedEOF) {
		v, err = get()
	}
	return v, err
}
