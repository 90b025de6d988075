package chain

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
)

// MinKey is the least length of a key, in bytes: of a master key and of a log's
// own.
const MinKey = 32

// ErrNoKey: a log is keyed, and its key is not at hand.
var ErrNoKey = errors.New("the log is keyed, and there is no key for it")

// Keys returns the key of a log under [SchemeHMACv1], and false where it has
// none. It may be called by several goroutines at once. The nil Keys have none.
type Keys func(l Log) (key []byte, ok bool)

// Has reports whether there is a key of a log.
func (k Keys) Has(l Log) bool {
	if k == nil {
		return false
	}
	_, ok := k(l)
	return ok
}

// Or returns the keys of k, and those of others where k has none.
func (k Keys) Or(others Keys) Keys {
	switch {
	case k == nil:
		return others
	case others == nil:
		return k
	}
	return func(l Log) ([]byte, bool) {
		if key, ok := k(l); ok {
			return key, true
		}
		return others(l)
	}
}

// MasterKeys returns the keys that [LogKey] makes of one master key of at least
// [MinKey] bytes; a shorter one panics.
func MasterKeys(master []byte) Keys {
	if len(master) < MinKey {
		panic(fmt.Sprintf("chain: a master key of %d bytes", len(master)))
	}
	return func(l Log) ([]byte, bool) { return LogKey(master, l), true }
}

// LogKey returns the key of one log, 32 bytes, so that who has it learns nothing
// about another log's.
//
//	log key = HKDF-SHA256(master key, no salt, "ledgerlake.logkey.v1\n" T(archiveId) T(tenant) T(topic) T(topicId) T(partition), 32 bytes)
//
// Source: docs/format.md, section 2; HKDF is RFC 5869.
func LogKey(master []byte, l Log) []byte {
	info := []byte("ledgerlake.logkey.v1\n")
	for _, s := range [...]string{l.ArchiveID, l.Tenant, l.Topic, l.TopicID} {
		info = AppendString(info, s)
	}
	info = AppendInt(info, int64(l.Partition))
	key, err := hkdf.Key(sha256.New, master, nil, string(info), sha256.Size)
	if err != nil {
		panic(err) // 32 bytes are not too many, and SHA-256 is always there
	}
	return key
}

// LogKeyFile returns the name of the file of one log's key in a folder of keys:
// what stands between log/ and the ordinal in the keys of its segments, and the
// escaped tenant.
func LogKeyFile(l Log) string {
	return fmt.Sprintf("%s/%s/%05d/%s", Escape(l.Topic), Escape(l.TopicID), l.Partition, Escape(l.Tenant))
}

// ParseKey reads the text of a file with a key: hex, or base64 in either
// alphabet, with or without padding, of [MinKey] bytes or more. Space around it
// is dropped.
func ParseKey(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if key, err := hex.DecodeString(text); err == nil {
		return longEnough(key)
	}
	bare := strings.TrimRight(text, "=")
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if key, err := alphabet.Strict().DecodeString(bare); err == nil {
			return longEnough(key)
		}
	}
	return nil, fmt.Errorf("neither hex nor base64: want %d random bytes or more, as openssl rand -hex %d writes them", MinKey, MinKey)
}

func longEnough(key []byte) ([]byte, error) {
	if len(key) < MinKey {
		return nil, fmt.Errorf("%d bytes: want %d random bytes or more, as openssl rand -hex %d writes them", len(key), MinKey, MinKey)
	}
	return key, nil
}

// Hashers gives one goroutine the [Hasher] of each log that it comes to.
type Hashers struct {
	keys   Keys
	plain  *Hasher
	keyed  *Hasher           // of the log that was asked for last
	outers map[Log]hash.Hash // of the logs that were asked for before
}

// maxOuters bounds Hashers.outers: a partition may have any number of logs.
const maxOuters = 1024

// NewHashers returns Hashers that know keys, which may be nil.
func NewHashers(keys Keys) *Hashers { return &Hashers{keys: keys, plain: NewHasher(nil)} }

// For returns the Hasher of a log, until the next call. The error matches
// [ErrNoKey] where the log is keyed and there is no key for it.
func (h *Hashers) For(scheme string, l Log) (*Hasher, error) {
	switch scheme {
	case SchemeV1:
		return h.plain, nil
	case SchemeHMACv1:
	default:
		return nil, fmt.Errorf("scheme %.40q is unknown", scheme)
	}
	outer, ok := h.outers[l]
	if !ok {
		key, there := []byte(nil), false
		if h.keys != nil {
			key, there = h.keys(l)
		}
		if !there {
			return nil, ErrNoKey
		}
		outer = h.remember(l, hmac.New(sha256.New, key))
	}
	if h.keyed == nil {
		h.keyed = &Hasher{plain: h.plain.plain, buf: make([]byte, 0, 2048)}
	}
	h.keyed.outer = outer
	return h.keyed, nil
}

func (h *Hashers) remember(l Log, outer hash.Hash) hash.Hash {
	if len(h.outers) >= maxOuters {
		clear(h.outers)
	}
	if h.outers == nil {
		h.outers = map[Log]hash.Hash{}
	}
	l.Tenant = strings.Clone(l.Tenant) // which may be a part of a page
	h.outers[l] = outer
	return outer
}
