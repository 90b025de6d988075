package config

import (
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/s3sink"
)

// Anchors is how a line's heads are signed and kept apart.
type Anchors struct {
	Every       time.Duration  // a change waits for its anchor
	Rows        int            // or so many rows do
	Topic       string         // "" is none
	Bucket      string         // URL of a second bucket; "" is none
	S3          s3sink.Options // credentials for it
	TrustBucket bool
	Lock        s3sink.Lock // of anchors and notes on keys, in the archive's bucket
}

func (a *Anchors) settings() []Setting {
	url := single("URL", "s3://bucket/prefix?setting=value, or none", func(text string) error {
		if text == None {
			a.Bucket = ""
			return nil
		}
		_, err := s3sink.ParseURL(text)
		a.Bucket = text
		return err
	})
	url.hidden = true // someone may have put a secret into it
	settings := []Setting{
		{
			Name: "anchor-every", Default: "1m", Help: "How long a change waits for its anchor, the signed statement of all heads of a partition. There is also one after a start and at a clean stop, and none where nothing changed.",
			Value: duration(&a.Every, time.Second, 24*time.Hour),
		},
		{
			Name: "anchor-rows", Default: "100000", Help: "So many rows of a partition are anchored at once.",
			Value: count(&a.Rows, 1, 100_000_000),
		},
		{
			Name: "anchor-topic", Default: "ledgerlake.anchors",
			Help:  "The topic in which Kafka keeps the newest anchor of each partition, out of reach of whoever can only write to the bucket: a bucket that went back in time is noticed by it. It is made where that is allowed (one partition, cleanup.policy=compact, max.message.bytes=67108864). Only signed anchors count. none: no copies.",
			Value: textOrNone(&a.Topic, "TOPIC", "the name of a Kafka topic", isTopic),
		},
		{
			Name: "anchor-bucket", Default: None,
			Help:  "A second bucket that gets a copy of every anchor, of ledgerlake.json and of key/, under the same keys: best of another account, with Object Lock. The parameters of the URL are as for bucket, and nothing is taken from the settings that begin with s3. What is not reached is copied later.",
			Value: url,
		},
		{
			Name: "trust-bucket", Default: "false",
			Help:  "Go on from what the bucket has, although Kafka knows that it had more. Without it ingest ends with exit code 3. For one start, after a bucket was restored from a backup: what it lost is archived anew as far as Kafka has it, and who holds an anchor of what it lost can prove that the archive was forked.",
			Value: boolean(&a.TrustBucket),
		},
	}
	return slices.Concat(settings, lockSettings("anchor", "anchors and notes on keys of the archive's bucket (those of anchor-bucket are locked by its default retention)", &a.Lock), a.credentials())
}

// credentials are those of the second bucket that no URL should hold.
func (a *Anchors) credentials() (settings []Setting) {
	for _, s := range storeSettings("anchor-s3.", &a.S3) {
		if s.Name == "anchor-s3.access-key" || s.Value.secret {
			s.Help = strings.TrimSuffix(s.Help, ".") + ", for anchor-bucket."
			settings = append(settings, s)
		}
	}
	return settings
}
