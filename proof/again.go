package proof

import (
	"context"
	"fmt"

	"github.com/ledgerlake/ledgerlake/archive"
)

// againTries is how often a line is verified anew because compaction went on.
const againTries = 5

// lines verifies all lines, and returns what was found in their order. What is
// wrong with a line whose catalog has a newer version by now may only be that it
// was read while it was compacted: it is looked at and verified anew. A line that
// no compactor touches is judged at once.
func (v *verifier) lines(ctx context.Context, all []*surveyLine) ([]*lineResult, error) {
	results, err := v.linesOnce(ctx, all)
	for range againTries {
		if err != nil {
			return nil, err
		}
		var at []int
		if at, err = v.overtaken(ctx, all, results); err != nil || len(at) == 0 {
			return results, err
		}
		err = v.verifyAgain(ctx, all, results, at)
	}
	return results, err
}

// overtaken returns the lines of which something looks wrong, and whose catalog
// went on since they were listed.
func (v *verifier) overtaken(ctx context.Context, all []*surveyLine, results []*lineResult) (at []int, err error) {
	for i, l := range all {
		if res := results[i]; res.faults.total == 0 && res.rep.strays.total == 0 && v.survey.homeless[l.withoutTopic()] == nil {
			continue
		}
		version, err := v.newestVersion(ctx, l)
		if err != nil {
			return nil, err
		}
		if version > l.version {
			at = append(at, i)
		}
	}
	return at, nil
}

// newestVersion returns the number of the newest version of a line's catalog, -1
// where it has none.
func (v *verifier) newestVersion(ctx context.Context, l *surveyLine) (int64, error) {
	version, after := int64(-1), ""
	if l.version >= 0 {
		after = fmt.Sprintf("%s%020d.note", l.prefix("catalog"), l.version)
		version = l.version
	}
	for o, err := range v.src.List(ctx, l.prefix("catalog"), after) {
		if err != nil {
			return 0, fmt.Errorf("list the catalog: %w", err)
		}
		_, n, ok := parseNoteKey(o.Key)
		if !ok {
			break // versions sort before parts
		}
		version = max(version, n)
	}
	return version, nil
}

// verifyAgain verifies some lines anew, by a new listing; and before that, as
// they may have been compacted by orders that were archived meanwhile, reads the
// control logs again.
func (v *verifier) verifyAgain(ctx context.Context, all []*surveyLine, results []*lineResult, at []int) error {
	some := make([]*surveyLine, len(at))
	for i, n := range at {
		some[i] = all[n]
	}
	if err := v.lookAgain(ctx, some); err != nil {
		return err
	}
	if v.regovern != nil {
		if err := v.regovern(ctx); err != nil {
			return err
		}
	}
	fresh, err := v.linesOnce(ctx, some)
	if err != nil {
		return err
	}
	for i, n := range at {
		results[n] = fresh[i]
	}
	return nil
}

// lookAgain lists lines anew, and learns the keys that were certified since.
func (v *verifier) lookAgain(ctx context.Context, lines []*surveyLine) error {
	s := &survey{byKey: map[lineKey]*surveyLine{}, saved: v.survey.saved}
	prefixes := []string{}
	for _, folder := range []string{"log", "anchor", "catalog"} {
		for _, l := range lines {
			prefixes = append(prefixes, l.prefix(folder))
		}
	}
	for _, prefix := range append(prefixes, "data/") {
		for o, err := range v.src.List(ctx, prefix, "") {
			if err != nil {
				return fmt.Errorf("list %s: %w", prefix, err)
			}
			s.place(o)
		}
	}
	for _, l := range lines {
		if n := s.byKey[l.lineKey]; n != nil {
			n.lost = l.lost
			*l = *n
		}
	}
	if !v.keys.given {
		return nil
	}
	return archive.LearnKeys(ctx, v.src, v.keys.Ring, v.root.ArchiveID)
}

// governAgain reads the control logs anew.
func (v *verifier) governAgain(ctx context.Context, s *survey) error {
	lines, err := v.controlLines(ctx, s)
	if err != nil {
		return err
	}
	if err := v.lookAgain(ctx, lines); err != nil {
		return err
	}
	return v.govern(ctx, s)
}
