package archive_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A scripted bucket fails its next calls as its script says: an entry "create
// before E" fails without effect, "create after E" fails although it happened.
type scripted struct {
	*archive.Memory
	script []step
	calls  []string
}

type step struct {
	op, when string
	err      error
}

func (s *scripted) next(op string) (before, after error) {
	s.calls = append(s.calls, op)
	if len(s.script) == 0 || s.script[0].op != op {
		return nil, nil
	}
	st := s.script[0]
	s.script = s.script[1:]
	if st.when == "before" {
		return st.err, nil
	}
	return nil, st.err
}

func (s *scripted) Create(ctx context.Context, key string, body []byte) (time.Time, error) {
	before, after := s.next("create")
	if before != nil {
		return time.Time{}, before
	}
	at, err := s.Memory.Create(ctx, key, body)
	return at, errors.Join(err, after)
}

func (s *scripted) Get(ctx context.Context, key string) ([]byte, error) {
	before, after := s.next("get")
	if before != nil {
		return nil, before
	}
	body, err := s.Memory.Get(ctx, key)
	return body, errors.Join(err, after)
}

func committer(b archive.Bucket) *archive.Committer {
	return &archive.Committer{Bucket: b, Wait: func(ctx context.Context, _ int) error { return ctx.Err() }}
}

// A request can fail before it takes effect or after. TestCommitSurvivesEveryCut
// tries both for every request of a commit and every answer that a store gives,
// and requires that the batch is durable once, under its ordinal.
func TestCommitSurvivesEveryCut(t *testing.T) {
	for _, answer := range []error{archive.ErrDenied, archive.ErrConflict, archive.ErrNotFound, errors.New("503 SlowDown"), errors.New("connection reset")} {
		for _, when := range []string{"before", "after"} {
			script := []step{{"create", when, answer}, {"create", when, answer}, {"get", when, answer}, {"create", "before", answer}}
			t.Run(when+" "+answer.Error(), func(t *testing.T) {
				st, b := newLine(), &scripted{Memory: archive.NewMemory(), script: script}
				body := segment(t, st, 1, "acme", "globex")
				other, err := committer(b).Commit(t.Context(), st, body)
				if err != nil || other != nil {
					t.Fatalf("commit: %v, %v", other, err)
				}
				if got, err := b.Memory.Get(t.Context(), archive.SegmentKey(line, 0)); err != nil || string(got) != string(body) {
					t.Fatalf("the segment is not there: %v", err)
				}
				if st.Ordinal != 0 {
					t.Error("Commit has moved the state")
				}
			})
		}
	}
}

// Another writer's segment that continues the state is handed out, to be
// adopted; ours is written nowhere.
func TestCommitAdoptsWhatContinues(t *testing.T) {
	st, b := newLine(), &scripted{Memory: archive.NewMemory()}
	theirs := segment(t, st, 2, "acme", "acme")
	if _, err := b.Memory.Create(t.Context(), archive.SegmentKey(line, 0), theirs); err != nil {
		t.Fatal(err)
	}
	other, err := committer(b).Commit(t.Context(), st, segment(t, st, 1, "acme"))
	if err != nil || other == nil || len(other.Rows) != 2 {
		t.Fatalf("commit: %v, %v", other, err)
	}
	if strings.Join(b.calls, " ") != "create get" {
		t.Errorf("calls %v, want a create and a get", b.calls)
	}
}

// Bytes that do not continue the state are never adopted: each row is one way
// not to.
func TestCommitRefusesWhatBreaks(t *testing.T) {
	ahead := newLine()
	first := segment(t, ahead, 1, "acme")
	advance(t, ahead, first)
	fork := newLine()
	advance(t, fork, segment(t, fork, 9, "acme"))
	otherArchive := newLine()
	otherArchive.ArchiveID = "01KBCDEFGHJKMNPQRSTVWXYZ02"
	otherLine := newLine()
	otherLine.Line.Partition++
	gap := ahead.Clone()
	gap.NextOffset += 5
	for name, there := range map[string][]byte{
		"no segment":            []byte("hello"),
		"empty":                 {},
		"cut":                   segment(t, ahead, 2, "acme")[:1000],
		"another ordinal":       first,
		"another previous head": segment(t, fork, 2, "acme"),
		"another archive":       segment(t, otherArchive, 2, "acme"),
		"another line":          segment(t, otherLine, 2, "acme"),
		"a hole in the offsets": segment(t, gap, 2, "acme"),
	} {
		t.Run(name, func(t *testing.T) {
			st, b := ahead.Clone(), archive.NewMemory()
			if _, err := b.Create(t.Context(), archive.SegmentKey(line, 1), there); err != nil {
				t.Fatal(err)
			}
			if other, err := committer(b).Commit(t.Context(), st, segment(t, st, 1, "acme")); !errors.Is(err, archive.ErrBreaks) {
				t.Errorf("commit: %v, %v; want ErrBreaks", other, err)
			}
		})
	}
}

// A flipped bit in another's segment keeps it from being adopted, or changes
// nothing that was read. Every eleventh byte is tried.
func TestAdoptedBytesAreChecked(t *testing.T) {
	st := newLine()
	theirs, ours := segment(t, st, 2, "acme", "globex", "acme"), segment(t, st, 1, "acme")
	want := advance(t, st.Clone(), theirs).Rows[2].RowHash
	for at := 0; at < len(theirs); at += 11 {
		bad := bytes.Clone(theirs)
		bad[at] ^= 1
		b := archive.NewMemory()
		if _, err := b.Create(t.Context(), archive.SegmentKey(line, 0), bad); err != nil {
			t.Fatal(err)
		}
		other, err := committer(b).Commit(t.Context(), st, ours)
		if err != nil && !errors.Is(err, archive.ErrBreaks) {
			t.Fatalf("byte %d: %v", at, err)
		}
		if err == nil && (len(other.Rows) != 3 || other.Rows[2].RowHash != want) {
			t.Fatalf("byte %d: adopted other rows", at)
		}
	}
}

// Commit ends with its context, and says which segment is open.
func TestCommitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	st, b := newLine(), &scripted{Memory: archive.NewMemory(), script: []step{{"create", "before", errors.New("503")}}}
	c := committer(b)
	c.Retrying = func(string, int, error) { cancel() }
	if _, err := c.Commit(ctx, st, segment(t, st, 1, "acme")); !errors.Is(err, context.Canceled) {
		t.Errorf("commit: %v, want Canceled", err)
	}
}

// A reply that cannot be believed is no success: the writer tries again.
func TestCommitAsksWhetherAReplyCanBeBelieved(t *testing.T) {
	st, b, asked := newLine(), &scripted{Memory: archive.NewMemory()}, 0
	c := committer(b)
	c.Believe = func(context.Context, time.Time) error {
		if asked++; asked == 1 {
			return errors.New("slept too long")
		}
		return nil
	}
	if _, err := c.Commit(t.Context(), st, segment(t, st, 1, "acme")); err != nil || asked != 2 {
		t.Errorf("commit: %v after %d questions", err, asked)
	}
}

// What another wrote at the ordinal is believed like one's own write, and no
// verdict on the line is asked for again.
func TestCommitBelievesAnotherNoMore(t *testing.T) {
	st := newLine()
	theirs, ours := segment(t, st, 2, "acme"), segment(t, st, 1, "acme")
	for _, verdict := range []error{archive.ErrBreaks, archive.ErrCatalog} {
		for name, there := range map[string][]byte{"nobody's": nil, "another's": theirs, "its own": ours} {
			b, asked := archive.NewMemory(), 0
			if there != nil {
				if _, err := b.Create(t.Context(), archive.SegmentKey(line, 0), there); err != nil {
					t.Fatal(err)
				}
			}
			c := committer(b)
			c.Believe = func(_ context.Context, storeTime time.Time) error {
				if asked++; storeTime.IsZero() {
					t.Errorf("%s: asked without the store's time", name)
				}
				return verdict
			}
			other, err := c.Commit(t.Context(), st, ours)
			if other != nil || !errors.Is(err, verdict) || asked != 1 {
				t.Errorf("%s: %v, %v after %d questions; want %v", name, other, err, asked, verdict)
			}
		}
	}
}
