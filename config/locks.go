package config

import (
	"maps"

	"github.com/ledgerlake/ledgerlake/s3sink"
)

// lockSettings are those of a lock that S3 puts on new objects.
func lockSettings(name, what string, l *s3sink.Lock) []Setting {
	mode := single("MODE", "none, governance or compliance", func(text string) (err error) {
		l.Mode, err = s3sink.ParseLockMode(text)
		return err
	})
	return []Setting{
		{
			Name: name + "-lock", Default: None, Value: mode,
			Help: "Lock new " + what + " by S3's Object Lock, so that nobody deletes or overwrites them: governance, but for whoever has s3:BypassGovernanceRetention; compliance, nobody at all. The bucket must have Object Lock.",
		},
		{
			Name: name + "-lock-days", Value: count(&l.Days, 1, 36500),
			Help: "For how many days after they are written. There is no default: a lock in compliance mode cannot be taken back.",
		},
	}
}

// lockRules are the faults that lie between them.
func lockRules(name string, l s3sink.Lock) []rule {
	return []rule{
		{l.Mode != s3sink.NoLock && l.Days == 0, name + "-lock-days", "not set: " + name + "-lock needs a number of days"},
		{l.Mode == s3sink.NoLock && l.Days != 0, name + "-lock-days", "has no use without " + name + "-lock"},
	}
}

// locked returns o with a lock on folders.
func locked(o s3sink.Options, l s3sink.Lock, folders ...string) s3sink.Options {
	o.Locks = maps.Clone(o.Locks)
	if o.Locks == nil {
		o.Locks = map[string]s3sink.Lock{}
	}
	for _, folder := range folders {
		o.Locks[folder] = l
	}
	return o
}

// Store is how ingest reaches its bucket: what it signs there is locked.
func (s *Ingest) Store() s3sink.Options { return locked(s.S3, s.Anchors.Lock, "anchor", "key") }

// Store is how compact reaches the bucket.
func (c *Compact) Store() s3sink.Options { return locked(c.S3, c.CatalogLock, "catalog", "key") }
