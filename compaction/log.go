package compaction

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A logState is a log behind some row: what its next one builds on.
type logState struct {
	scheme string // "" where nothing is known yet: the log has no rows
	epoch  int32
	head   chain.Hash
	tree   chain.Tree
	newest int64 // archived_at of the newest row that was seen, microseconds
	// unknown says that the epoch is not known: all rows before were cut.
	unknown bool
}

// clone returns a state that moves on apart from s.
func (s *logState) clone() *logState {
	c := *s
	c.tree = s.tree.Clone()
	return &c
}

// equals reports whether an anchor states just this state.
func (s *logState) equals(h *archive.AnchorHead) bool {
	return s.tree.Size == h.Size && s.head == h.Head && slices.Equal(s.tree.Frontier, h.Frontier) && s.epoch == h.Epoch && s.scheme == h.Scheme
}

// A checker checks rows of one log, one after another.
type checker struct {
	log     chain.Log
	state   *logState
	hashers *chain.Hashers
	keyless bool // rows were met that could not be checked but for row_hash
}

// begin tells the scheme of rows that come next. A log has one for ever, but the
// one that it begins with is known only then.
func (c *checker) begin(scheme string) error {
	switch s := c.state; {
	case s.scheme == scheme:
	case s.scheme != "":
		return fmt.Errorf("the log goes on under %s, it was begun under %s", scheme, s.scheme)
	default:
		s.scheme = scheme
		if s.unknown = s.tree.Size > 0; !s.unknown {
			s.head = chain.Genesis(scheme, c.log)
		}
	}
	return nil
}

// follow checks all of the next row of the log. The state does not move yet.
func (c *checker) follow(row *chain.Row) error {
	if err := checkRow(c.hashers, c.state.scheme, c.log, row, &c.keyless); err != nil {
		return err
	}
	return c.follows(row)
}

// advance moves the state behind a row that follows.
func (c *checker) advance(row *chain.Row) {
	c.state.tree.Append(row.RowHash)
	c.state.head, c.state.newest = row.RowHash, row.ArchivedAt.N
}

// follows checks that a row that is right in itself is the next one of its log.
func (c *checker) follows(row *chain.Row) error {
	s := c.state
	reset := row.Kind.S == audit.KindChainReset
	if s.unknown {
		if s.epoch, s.unknown = int32(row.Epoch.N), false; reset {
			s.epoch--
		}
	}
	switch {
	case row.Seq.N != s.tree.Size:
		return fmt.Errorf("seq %d stands where %d belongs", row.Seq.N, s.tree.Size)
	case row.ArchivedAt.N < s.newest:
		return errors.New("archived_at is before that of the row before it")
	case reset:
		return c.reset(row)
	case row.PrevHash != s.head:
		return errors.New("prev_hash is not the row_hash of the row before it")
	case row.Epoch.N != int64(s.epoch):
		return fmt.Errorf("epoch %d stands where %d belongs", row.Epoch.N, s.epoch)
	}
	return nil
}

// reset checks the first row of a new epoch, and begins it.
func (c *checker) reset(row *chain.Row) error {
	s := c.state
	r, err := archive.ParseReset(row.Slots[audit.SlotContext])
	switch {
	case err != nil:
		return fmt.Errorf("chain reset: %w", err)
	case r.PreviousHead != s.head || r.PreviousSize != s.tree.Size || row.Epoch.N != int64(s.epoch)+1:
		return errors.New("chain reset: it begins an epoch behind another row than the last")
	case row.PrevHash != chain.ResetGenesis(s.scheme, c.log, s.epoch+1, r.PreviousHead, r.PreviousSize, r.Reason):
		return errors.New("chain reset: prev_hash is not the genesis of the new epoch")
	}
	s.epoch++
	return nil
}

// checkRow checks what a row itself can show. Of a keyed log whose key is not at
// hand, that is all but row_hash.
func checkRow(hashers *chain.Hashers, scheme string, log chain.Log, row *chain.Row, keyless *bool) error {
	hasher, err := hashers.For(scheme, log)
	without := errors.Is(err, chain.ErrNoKey)
	if without {
		*keyless = true
		hasher, err = hashers.For(chain.SchemeV1, chain.Log{})
	}
	if err != nil {
		return err
	}
	err = hasher.Check(row)
	var f *chain.Fault
	if errors.As(err, &f) && f.Column == "row_hash" && without {
		return nil
	}
	return err
}

// named names a row in an error: never by what it holds.
func named(log chain.Log, seq int64, err error) error {
	return fmt.Errorf("tenant %s, seq %d: %w", strconv.Quote(log.Tenant), seq, err)
}
