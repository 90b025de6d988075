package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A voucher names a segment of a line that a process of the group wrote, or
// compared with Kafka. It lies in Kafka, out of reach of whoever can only write
// to the bucket: as the metadata of an offset that is committed for a group
// beside the own one, so that to set that one back loses none. It says nothing
// of where to go on: a stale one, or none, only means that more segments are
// compared.
type voucher struct {
	ArchiveID string         `json:"archiveId"`
	TopicID   string         `json:"topicId"`
	Ordinal   int64          `json:"ordinal"`
	SHA256    chain.Hash     `json:"sha256"` // of the whole object
	Writer    archive.Writer `json:"writer"` // of who vouches
	// Forgone are anchors that Kafka has and the bucket lost, and that somebody
	// decided to go on without.
	Forgone []chain.Hash `json:"forgone,omitempty"`
}

// writer returns the writer of the voucher; nil has none.
func (v *voucher) writer() archive.Writer {
	if v == nil {
		return archive.Writer{}
	}
	return v.Writer
}

// forgone returns the anchors that are gone for good; nil has none.
func (v *voucher) forgone() []chain.Hash {
	if v == nil {
		return nil
	}
	return v.Forgone
}

// text returns the voucher as the metadata of an offset commit.
func (v *voucher) text() string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and integers always marshal
	}
	return string(b)
}

// parseVoucher returns the voucher for a line that an offset's metadata holds,
// nil if it holds none: another client's metadata, none at all, or that of
// another archive or of a topic of the same name.
func parseVoucher(metadata, archiveID string, l archive.Line) *voucher {
	var v voucher
	if json.Unmarshal([]byte(metadata), &v) != nil || v.ArchiveID != archiveID || v.TopicID != l.TopicID || v.Ordinal < 0 {
		return nil
	}
	return &v
}

// errOtherArchive: the group vouched for segments of another archive.
var errOtherArchive = errors.New("it was archived elsewhere before")

// warnOfOther says that the group's voucher for a line is one for another
// archive: the bucket may be a wrong one, or one that was emptied. It is none of
// the line's faults; whoever wants a new archive gets it.
func (c *consumer) warnOfOther(metadata string, l archive.Line) {
	var v voucher
	if json.Unmarshal([]byte(metadata), &v) == nil && v.TopicID == l.TopicID && v.ArchiveID != c.Root.ArchiveID {
		c.warn(fmt.Sprintf("%s/%d: this group vouched for its segments up to %d in archive %s, and the bucket holds archive %s",
			l.Topic, l.Partition, v.Ordinal, v.ArchiveID, c.Root.ArchiveID), errOtherArchive)
	}
}

// check returns nil if a state is the one behind the segment of the voucher.
func (v *voucher) check(st *archive.State) error {
	if st.PreviousSHA256 == nil || *st.PreviousSHA256 != v.SHA256 {
		return v.replaced()
	}
	return nil
}

// replaced says that the bucket has another segment than that of the voucher.
func (v *voucher) replaced() error {
	return fmt.Errorf("segment %d: %w: it is another one than this group wrote or compared. %s", v.Ordinal, ErrWentBack, wayOut)
}

// missing says that the bucket ends before the segment of the voucher.
func (v *voucher) missing() error {
	return fmt.Errorf("segment %d: %w: this group wrote or compared it, and the bucket ends before it. %s", v.Ordinal, ErrWentBack, wayOut)
}

// wayOut says what to do about a bucket that went back in time.
const wayOut = "Restore the bucket; or start once with trust-bucket, to go on from what it has: what it lost is archived anew as far as Kafka has it, " +
	"and who holds an anchor of what it lost can prove that the archive was forked"

// checkListed returns nil if the segment of the voucher is the one that anchors
// list, or they list none of its ordinal.
func (v *voucher) checkListed(t *trail) error {
	for _, n := range t.notes {
		for i := range n.Segments {
			if s := &n.Segments[i]; s.Ordinal == v.Ordinal && s.SHA256 != v.SHA256 {
				return v.replaced()
			}
		}
	}
	return nil
}

// voucherGroup is the group whose offsets carry vouchers. It has no members.
func (s *Settings) voucherGroup() string { return s.Group + ".vouchers" }

// vouch commits a voucher for the segment that each position ends at. Where
// this is not allowed, it says so once: then every start compares all that
// Kafka still has.
func (c *consumer) vouch(ctx context.Context, parts map[place]*running, due map[place]position) error {
	if c.mute {
		return nil
	}
	offsets := kadm.Offsets{}
	for at, d := range due {
		v := voucher{ArchiveID: c.Root.ArchiveID, TopicID: parts[at].line.TopicID, Ordinal: d.ordinal, SHA256: d.sum, Writer: c.writer, Forgone: parts[at].forgone}
		offsets.Add(kadm.Offset{Topic: at.topic, Partition: at.number, At: d.offset, LeaderEpoch: d.epoch, Metadata: v.text()})
	}
	resp, err := c.admin.CommitOffsets(ctx, c.voucherGroup(), offsets)
	if err = cmp.Or(err, resp.Error()); errors.Is(err, kerr.GroupAuthorizationFailed) {
		c.mute = true
		c.warn("vouch for segments in group "+c.voucherGroup()+": every start will compare all that Kafka still has", err)
		return nil
	}
	return err
}

// vouchers returns the metadata of the committed vouchers for topics.
func (c *consumer) vouchers(ctx context.Context, topics []string) (map[place]string, error) {
	for attempt := 1; ; attempt++ {
		offsets, err := c.admin.FetchOffsetsForTopics(ctx, c.voucherGroup(), topics...)
		if err = cmp.Or(err, offsets.Error()); err == nil || errors.Is(err, kerr.GroupIDNotFound) {
			return metadataOf(offsets), nil
		}
		if errors.Is(err, kerr.GroupAuthorizationFailed) {
			return nil, nil // nothing is vouched for; vouch says so
		}
		if ctx.Err() == nil {
			c.warn("fetch the offsets of group "+c.voucherGroup(), err)
		}
		if err := c.backOff(ctx, attempt); err != nil {
			return nil, err
		}
	}
}

func metadataOf(offsets kadm.OffsetResponses) map[place]string {
	out := map[place]string{}
	offsets.Each(func(o kadm.OffsetResponse) { out[place{o.Topic, o.Partition}] = o.Metadata })
	return out
}
