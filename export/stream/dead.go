package stream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A Letter is an event that its destination never takes. It holds nothing of a
// row's content.
type Letter struct {
	Kind   string `json:"kind"`
	Tenant string `json:"tenant"`
	// Seq is that of the row that it was made of: of an erasure, the receipt's in
	// the control log. -1: it was made of none, and is not sent again.
	Seq    int64        `json:"seq"`
	ID     string       `json:"id"`     // of the event: of a record its row_hash
	Reason string       `json:"reason"` // what the destination said
	Time   archive.Time `json:"time"`
}

// Letters are the dead letters of one attempt.
type Letters struct {
	V           int      `json:"v"`
	ArchiveID   string   `json:"archiveId"`
	Destination string   `json:"destination"`
	Topic       string   `json:"topic"`
	TopicID     string   `json:"topicId"`
	Partition   int32    `json:"partition"`
	Letters     []Letter `json:"letters"`

	Key      string `json:"-"`
	Replayed bool   `json:"-"`
}

// Line returns the line of the rows.
func (l *Letters) Line() archive.Line {
	return archive.Line{Topic: l.Topic, TopicID: l.TopicID, Partition: l.Partition}
}

// letters records events that were refused for good, for as long as it takes. What
// a crash repeats has the same key, and is there already.
func (r *runner) letters(ctx context.Context, dead []*item) error {
	doc := Letters{V: docVersion, ArchiveID: r.e.s.Root.ArchiveID, Destination: r.d.Name, Topic: r.line.Topic, TopicID: r.line.TopicID, Partition: r.line.Partition}
	id := sha256.New()
	for _, it := range dead {
		l := Letter{
			Kind: string(it.ev.Kind), Tenant: it.ev.Tenant, Seq: it.ev.Seq, ID: it.ev.ID,
			Reason: short(it.refused), Time: archive.Time{Time: r.e.s.Now()},
		}
		if it.g != nil {
			l.Tenant, l.Seq = it.g.Tenant, it.at.next
		}
		doc.Letters = append(doc.Letters, l)
		id.Write([]byte(it.ev.ID))
	}
	body, err := json.Marshal(&doc)
	if err != nil {
		return err
	}
	key := deadKey(r.d.Name, r.line, chain.Hash(id.Sum(nil)))
	for attempt := 1; ; attempt++ {
		_, err := r.e.s.Archive.Create(ctx, key, body)
		if err == nil || errors.Is(err, archive.ErrExists) {
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.e.warn(r.d.Name, "a dead letter cannot be recorded; trying again", err)
		if err := pause(ctx, r.e.backOff(attempt)); err != nil {
			return err
		}
	}
	for _, l := range doc.Letters {
		r.d.died(r, l)
	}
	return nil
}

// short cuts a reason, which may be what a destination answered.
func short(s string) string {
	const most = 500
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// DeadLetters yields what a destination refused for good, by line.
func DeadLetters(ctx context.Context, src archive.Source, destination string) iter.Seq2[*Letters, error] {
	return func(yield func(*Letters, error) bool) {
		replayed := map[string]bool{}
		for o, err := range src.List(ctx, destinationPrefix(destination)+"replayed/", "") {
			if err != nil {
				yield(nil, err)
				return
			}
			replayed[o.Key] = true
		}
		for o, err := range src.List(ctx, deadPrefix(destination), "") {
			if err != nil {
				yield(nil, err)
				return
			}
			l, err := readLetters(ctx, src, o.Key)
			if l != nil {
				l.Replayed = replayed[replayedKey(destination, o.Key)]
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

func readLetters(ctx context.Context, src archive.Source, key string) (*Letters, error) {
	var body []byte
	err := whole(key, func() (err error) { body, err = src.Get(ctx, key); return err })
	if err != nil {
		return nil, err
	}
	l := &Letters{Key: key}
	if err := json.Unmarshal(body, l); err != nil || l.V != docVersion {
		return nil, fmt.Errorf("%s: it is no dead letter of this version: %w", key, err)
	}
	return l, nil
}
