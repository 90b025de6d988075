package archive_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
)

// grow writes so many segments to a bucket and returns the state behind them.
func grow(t *testing.T, b *archive.Memory, segments int) *archive.State {
	t.Helper()
	st := newLine()
	for i := range segments {
		tenants := []string{"acme", fmt.Sprintf("t-%d", i%7)}
		if i == 3 {
			tenants = []string{"once"}
		}
		body := segment(t, st, 1, tenants...)
		if _, err := b.Create(t.Context(), archive.SegmentKey(line, st.Ordinal), body); err != nil {
			t.Fatal(err)
		}
		advance(t, st, body)
	}
	return st
}

// resume counts the segments of the line and resumes behind all of them, as the
// start of a line without anchors does.
func resume(t *testing.T, b *archive.Memory, rows int64) (*archive.Resumed, error) {
	n, err := archive.CountSegments(t.Context(), b, line)
	if err != nil {
		return nil, err
	}
	return archive.Resume(t.Context(), b, archive.NewState(archiveID, line), n, rows)
}

// Resume gives the state that writing gave, whatever the number of segments;
// also the head of a log that was last written long ago.
func TestResumeFindsTheState(t *testing.T) {
	for _, n := range []int{1, 2, 5, 63, 64, 65, 200} {
		b := archive.NewMemory()
		want := grow(t, b, n)
		r, err := resume(t, b, 10)
		if err != nil {
			t.Fatalf("%d segments: %v", n, err)
		}
		if !reflect.DeepEqual(r.State, want) {
			t.Errorf("%d segments:\n got %+v\nwant %+v", n, r.State, want)
		}
	}
}

// Recent are the newest segments, oldest first, as many as hold the rows.
func TestResumeNamesTheNewestSegments(t *testing.T) {
	b := archive.NewMemory()
	grow(t, b, 20)
	for rows, want := range map[int64]int{0: 0, 1: 1, 2: 1, 3: 2, 10: 5, 1000: 20} {
		r, err := resume(t, b, rows)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Recent) != want {
			t.Errorf("%d rows: %d segments, want %d", rows, len(r.Recent), want)
		}
		for i, s := range r.Recent {
			if s.Ordinal != int64(20-want+i) {
				t.Errorf("%d rows: segment %d at place %d", rows, s.Ordinal, i)
			}
		}
	}
}

// An empty line resumes at nothing, and a line never resumes over a hole, a
// foreign object in place of its newest segment.
func TestResumeRefuses(t *testing.T) {
	r, err := resume(t, archive.NewMemory(), 10)
	if err != nil || r.State.Ordinal != 0 || r.State.NextOffset != -1 {
		t.Errorf("an empty line: %+v, %v", r, err)
	}
	st := newLine()
	advance(t, st, segment(t, st, 1, "acme"))
	second := segment(t, st, 1, "acme")
	for name, c := range map[string]struct {
		key  string
		body []byte
		want error
	}{
		"a hole":             {archive.SegmentKey(line, 6), second, archive.ErrBreaks},
		"no segment":         {archive.SegmentKey(line, 5), []byte("hello"), archive.ErrBreaks},
		"of another ordinal": {archive.SegmentKey(line, 5), second, archive.ErrBreaks},
	} {
		b := archive.NewMemory()
		grow(t, b, 5)
		if _, err := b.Create(t.Context(), c.key, c.body); err != nil {
			t.Fatal(err)
		}
		if _, err := resume(t, b, 10); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// Behind fewer segments than there are, Resume gives the state that was then.
func TestResumeBehindTheFirstSegments(t *testing.T) {
	b := archive.NewMemory()
	grow(t, b, 9)
	for n := int64(1); n <= 9; n++ {
		want := grow(t, archive.NewMemory(), int(n))
		r, err := archive.Resume(t.Context(), b, archive.NewState(archiveID, line), n, 10)
		if err != nil {
			t.Fatal(err)
		}
		if r.State.Ordinal != n || r.State.NextOffset != want.NextOffset || len(r.State.Heads) != len(want.Heads) {
			t.Errorf("behind %d segments: %+v", n, r.State)
		}
	}
}

// A segment's metadata is read without its rows, and one that is gone is a
// break, not a place where the line ends.
func TestGetMetadata(t *testing.T) {
	b := archive.NewMemory()
	grow(t, b, 4)
	seg, err := archive.GetMetadata(t.Context(), b, line, 3)
	if err != nil || seg.Ordinal != 3 || len(seg.Logs) != 1 || seg.Logs[0].Tenant != "once" {
		t.Errorf("segment 3: %+v, %v", seg, err)
	}
	if _, err := archive.GetMetadata(t.Context(), b, line, 4); !errors.Is(err, archive.ErrBreaks) {
		t.Errorf("segment 4: %v", err)
	}
}
