package pipeline

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// errResetBelow: a chain reset declares segments void that were taken in already.
var errResetBelow = errors.New("a chain reset has declared void what this process had built on: start it again")

// vouched is what a voucher vouches for: the segments down from its own, as far as
// each names the hash of the one before it. That ends at a chain reset, for what
// is void may say anything. The nil vouched is nothing.
type vouched struct {
	sums   map[int64]chain.Hash
	voided []archive.Voided // by the oldest of those segments; nil: it is no reset
	other  int64            // the ordinal at which the bucket has another segment than they lead to, -1
}

// vouchesFor reports whether a segment is one of them.
func (k *vouched) vouchesFor(o *archive.SegmentObject) bool {
	return k != nil && k.sums[o.Ordinal] == o.SHA256
}

// voidsFrom reports whether the segments from an ordinal on are void.
func (k *vouched) voidsFrom(ordinal int64) bool {
	return k != nil && len(k.voided) > 0 && k.voided[0].Ordinal == ordinal
}

// vouchedFor reads what a voucher vouches for, from its segment down to that of
// an ordinal, or to a chain reset. It returns nil where there is nothing.
func (c *consumer) vouchedFor(ctx context.Context, l archive.Line, v *voucher, from int64) (*vouched, error) {
	if v == nil || v.Ordinal < from {
		return nil, nil
	}
	k, sum := &vouched{sums: map[int64]chain.Hash{}, other: -1}, v.SHA256
	for n := v.Ordinal; n >= from; n-- {
		body, err := c.Archive.Get(ctx, archive.SegmentKey(l, n))
		switch {
		case errors.Is(err, archive.ErrNotFound), errors.Is(err, archive.ErrDamaged):
			return k, nil
		case err != nil:
			return nil, fmt.Errorf("segment %d: %w", n, err)
		case sha256.Sum256(body) != sum:
			k.other = n
			return k, nil
		}
		k.sums[n] = sum
		seg, err := archive.SegmentMetadata(body)
		if err != nil || len(seg.Voided) > 0 || seg.PreviousSHA256 == nil {
			if err == nil {
				k.voided = seg.Voided
			}
			return k, nil
		}
		sum = *seg.PreviousSHA256
	}
	return k, nil
}

// meetReset looks, where the segment behind st is not to be believed for the reason
// of err, for a chain reset that the group vouches for and that declares it void.
// It returns nil where there is one: the line then goes on behind it. The error
// matches errResetBelow where what is void begins below st, and is err where there
// is none.
func (c *consumer) meetReset(ctx context.Context, st *archive.State, err error) error {
	l := st.Line
	if len(st.Voided) > 0 || !errors.Is(err, archive.ErrBreaks) && !errors.Is(err, archive.ErrDamaged) && !errors.Is(err, ErrForged) {
		return err
	}
	texts, fault := c.vouchers(ctx, []string{l.Topic})
	if fault != nil {
		return fault
	}
	k, fault := c.vouchedFor(ctx, l, parseVoucher(texts[place{l.Topic, l.Partition}], c.Root.ArchiveID, l), st.Ordinal)
	if fault != nil {
		return fault
	}
	if k == nil || len(k.voided) == 0 || k.voided[0].Ordinal > st.Ordinal {
		return err
	}
	c.resets.Store(l, k)
	if k.voided[0].Ordinal < st.Ordinal {
		return errResetBelow
	}
	return nil
}

// followReset is meetReset on the way to the segment of a voucher. Where there is
// a reset, the way begins anew: the error matches errResetBelow.
func (c *consumer) followReset(ctx context.Context, st *archive.State, v *voucher, err error) error {
	if !errors.Is(err, archive.ErrBreaks) && !errors.Is(err, archive.ErrDamaged) {
		return err
	}
	k, fault := c.vouchedFor(ctx, st.Line, v, st.Ordinal)
	if fault != nil {
		return fault
	}
	if k == nil || len(k.voided) == 0 || k.voided[0].Ordinal > st.Ordinal {
		return err
	}
	c.resets.Store(st.Line, k)
	return errResetBelow
}

// resetOf returns the chain reset of a line that was met and that no anchor
// covered then; nil: there is none.
func (c *consumer) resetOf(l archive.Line) *vouched {
	k, _ := c.resets.Load(l)
	reset, _ := k.(*vouched)
	return reset
}

// withWayOut adds to why a partition has stopped what an operator can do.
func withWayOut(at place, err error) error {
	bad := errors.Is(err, archive.ErrBreaks) || errors.Is(err, archive.ErrDamaged) || errors.Is(err, ErrForged)
	if !bad || errors.Is(err, errAnchoredGone) || errors.Is(err, chain.ErrNoKey) || errors.Is(err, archive.ErrKey) {
		return err
	}
	if errors.Is(err, archive.ErrOtherAnchor) {
		return err // a reset declares segments void, and no anchor
	}
	return fmt.Errorf("%w. Restore the object if it was damaged; where that cannot be, ledgerlake-ingest reset-chain --topic %s --partition %d shows what a chain reset would do", err, at.topic, at.number)
}
