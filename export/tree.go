package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// A Branch is a turn in a tree of turns: one that was asked for, or one of a
// subagent.
type Branch struct {
	Turn   string
	Parent string // the turn that set it off; "" for the one that was asked for
	Depth  int    // 0 for the one that was asked for
	Rows   []*Row // as those of [Archive.Turn]
}

// maxBranches bounds a tree: ids that a producer repeats could join all turns of
// a tenant to one.
const maxBranches = 10_000

// ErrTree: a tree of turns is too large to be told.
var ErrTree = errors.New("a tree of too many turns")

// Children returns the turns of the subagents that a turn set off: the turn ids of
// the rows whose parentTurnId it is, in the order of their first moments.
//
// No filter has parentTurnId. Of each data file of the tenant the end is read; and
// where some row has one, and the bounds that the end states leave room for it,
// the pages of that column.
func (a *Archive) Children(ctx context.Context, tenant, turn string) ([]string, error) {
	rows, err := a.childRows(ctx, tenant, []string{turn})
	if err != nil && !errors.Is(err, ErrTampered) {
		return nil, err
	}
	var all []string
	for _, r := range rows {
		if id := r.TurnID.S; r.TurnID.Valid && id != turn && !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all, err
}

// childRows returns the rows with one of the parents, in the order of time.
func (a *Archive) childRows(ctx context.Context, tenant string, parents []string) ([]*Row, error) {
	rows, err := a.find(ctx, lookup{
		tenant: tenant, by: []parquet.Match{{parquet.Is("parent_turn_id", parents...)}},
		match: func(row *chain.Row) bool {
			return row.ParentTurnID.Valid && slices.Contains(parents, row.ParentTurnID.S)
		},
	})
	slices.SortFunc(rows, inTime)
	return rows, err
}

// Tree returns a turn with those of its subagents, and theirs: each turn in front
// of those that it set off, which come as they began. A turn that is unknown has a
// branch without rows. It costs two look-ups for each level, one like
// [Archive.Turn], one like [Archive.Children]. Errors are those of [Archive.Turn];
// and [ErrTree].
func (a *Archive) Tree(ctx context.Context, tenant, turn string) ([]Branch, error) {
	t := &tree{a: a, tenant: tenant, known: map[string]*Branch{}}
	if err := t.grow(ctx, turn); err != nil {
		return nil, err
	}
	return t.inOrder(nil, turn), errors.Join(t.faults...)
}

type tree struct {
	a      *Archive
	tenant string
	known  map[string]*Branch
	below  map[string][]string // turns, by their parents
	faults []error
}

// grow adds level after level.
func (t *tree) grow(ctx context.Context, turn string) error {
	t.below = map[string][]string{}
	t.known[turn] = &Branch{Turn: turn}
	for level := []string{turn}; len(level) > 0; {
		if err := t.fill(ctx, level); err != nil {
			return err
		}
		rows, err := t.a.childRows(ctx, t.tenant, level)
		if err = t.fault(err); err != nil {
			return err
		}
		level = nil
		for _, r := range rows {
			if !r.TurnID.Valid || t.known[r.TurnID.S] != nil {
				continue
			}
			id, parent := r.TurnID.S, r.ParentTurnID.S
			t.known[id] = &Branch{Turn: id, Parent: parent, Depth: t.known[parent].Depth + 1}
			t.below[parent] = append(t.below[parent], id)
			level = append(level, id)
		}
		if len(t.known) > maxBranches {
			return fmt.Errorf("%w: turn %.80q has more than %d below it", ErrTree, turn, maxBranches)
		}
	}
	return nil
}

// fill reads the rows of turns.
func (t *tree) fill(ctx context.Context, turns []string) error {
	rows, err := t.a.find(ctx, lookup{
		tenant: t.tenant, by: []parquet.Match{{parquet.Is("turn_id", turns...)}},
		match: func(row *chain.Row) bool { return row.TurnID.Valid && slices.Contains(turns, row.TurnID.S) },
	})
	if err = t.fault(err); err != nil {
		return err
	}
	slices.SortFunc(rows, func(a, b *Row) int { return cmp.Or(cmp.Compare(a.TurnID.S, b.TurnID.S), inTurn(a, b)) })
	for _, r := range rows {
		b := t.known[r.TurnID.S]
		b.Rows = append(b.Rows, r)
	}
	return nil
}

// fault keeps what is wrong with the archive, and returns any other error.
func (t *tree) fault(err error) error {
	if err == nil || !errors.Is(err, ErrTampered) {
		return err
	}
	t.faults = append(t.faults, err)
	return nil
}

func (t *tree) inOrder(all []Branch, turn string) []Branch {
	all = append(all, *t.known[turn])
	for _, child := range t.below[turn] {
		all = t.inOrder(all, child)
	}
	return all
}
