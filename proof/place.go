package proof

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// newestOfPlace is how many of a line's newest anchors are read, newest first
// not being known to be good.
const newestOfPlace = 20

// NotesIn returns the Notes of a [Place] that is a bucket: of each line the
// newest anchors that lie there. So is a second bucket that ingest copies
// anchors to, or a copy of the archive.
func NotesIn(src archive.Source) func(context.Context) iter.Seq2[[]byte, error] {
	return func(ctx context.Context) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			var at lineKey
			var newest []string
			flush := func() bool {
				for _, key := range newest {
					body, err := src.Get(ctx, key)
					if err != nil {
						err = fmt.Errorf("read %s: %w", key, err)
					}
					if !yield(body, err) || err != nil {
						return false
					}
				}
				newest = newest[:0]
				return true
			}
			for o, err := range src.List(ctx, "anchor/", "") {
				if err != nil {
					yield(nil, err)
					return
				}
				line, _, ok := parseNoteKey(o.Key)
				if !ok {
					continue
				}
				if line != at && !flush() {
					return
				}
				at = line
				if newest = append(newest, o.Key); len(newest) > newestOfPlace {
					newest = newest[1:]
				}
			}
			flush()
		}
	}
}

// ErrHeads: a text is neither a report nor a saved state.
var ErrHeads = errors.New("neither a report of a verification as JSON, nor a saved state")

// ExpectedOf returns the heads that an earlier verification found, from its
// report as JSON or from its saved state: those of logs that were proved. Whoever
// kept that text where nobody else can write has heads from an independent place.
// An error matches [ErrHeads] or [ErrSaved].
func ExpectedOf(text []byte, source string) ([]Expected, error) {
	if bytes.Contains(text, []byte(savedFormat)) {
		s, err := DecodeSaved(text)
		if err != nil {
			return nil, err
		}
		return s.expected(source), nil
	}
	r := &Report{}
	if err := json.Unmarshal(text, r); err != nil || r.Lines == nil {
		return nil, ErrHeads
	}
	if r.Exit == 1 {
		return nil, fmt.Errorf("%w without faults: its heads count for nothing", ErrHeads)
	}
	var all []Expected
	for _, l := range r.Lines {
		for i := 0; l != nil && i < len(l.Logs); i++ {
			if log := &l.Logs[i]; log.Proved {
				all = append(all, expectedLog(r.ArchiveID, source, l.Line, log))
			}
		}
	}
	return all, nil
}

func (s *Saved) expected(source string) (all []Expected) {
	for _, l := range s.Lines {
		for i := 0; l != nil && i < len(l.Logs); i++ {
			log := &l.Logs[i].LogReport
			tree := chain.Tree{Size: log.Size, Frontier: l.Logs[i].Frontier}
			log.Root = tree.Root()
			all = append(all, expectedLog(s.ArchiveID, source, l.Line, log))
		}
	}
	return all
}

func expectedLog(archiveID, source string, at Line, log *LogReport) Expected {
	head, root := log.Head, log.Root
	return Expected{
		Source: source, ArchiveID: archiveID, Topic: at.Topic, TopicID: at.TopicID, Partition: at.Partition,
		Tenant: log.Tenant, Size: log.Size, Head: &head, Root: &root,
	}
}
