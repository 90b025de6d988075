package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
)

// catchAll requires that every variant that is wanted is caught, and prints by which seed and
// by what the oracle said.
func (s *sim) catchAll(ctx context.Context, stdout io.Writer, wanted func(i int, name string) bool, limit uint64) error {
	var missed []string
	for i, v := range variants {
		if !wanted(i, v.name) {
			continue
		}
		start := time.Now()
		caught, err := s.catch(ctx, i, v, limit)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			missed = append(missed, v.name)
			fmt.Fprintf(stdout, "%-55s NOT CAUGHT: %v\n", v.name, err)
			continue
		}
		fmt.Fprintf(stdout, "%-55s seed %4d  %6.1fs  %s\n", v.name, caught.seed, time.Since(start).Seconds(), caught.why)
	}
	if len(missed) > 0 {
		return fmt.Errorf("not caught: %s", strings.Join(missed, "; "))
	}
	return nil
}

// catch returns the failure that a variant leads to. One that breaks the
// process down, or hangs it, was not caught by the oracle.
func (s *sim) catch(ctx context.Context, i int, v variant, limit uint64) (*failure, error) {
	o, err := s.replay.with(filepath.Join(s.folder, fmt.Sprintf("variant-%02d", i+1)), v.patches)
	if err != nil {
		return nil, err
	}
	binary, err := s.build(ctx, o, fmt.Sprintf("variant-%02d.test", i+1))
	if err != nil {
		return nil, err
	}
	_, err = s.runAll(ctx, binary, 1, limit)
	var f *failure
	switch {
	case err == nil:
		return nil, fmt.Errorf("%d seeds pass", limit)
	case !errors.As(err, &f):
		return nil, err
	case f.broken:
		return nil, fmt.Errorf("%w\n%s", f, f.trace)
	}
	return f, nil
}
