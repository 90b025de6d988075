// Package signing is what a process signs notes with: keys of files, and a key
// that it makes for itself and has certified by AWS KMS, renewed at half of its
// life; and which keys are good, by the settings.
package signing

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/awskms"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/pipeline"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// A Use says what keys are for: which settings name them, and what they sign.
type Use struct {
	What       string // in the plural, for people: anchors
	Role       sign.Role
	Files, KMS string // names of the settings
	Unsigned   string // what it means that none are set
}

// Anchors are what ingest signs.
var Anchors = Use{
	What: "anchors", Role: sign.Anchor, Files: "anchor-key", KMS: "anchor-kms-key",
	Unsigned: "anchors are not signed: whoever can write to the bucket can write another archive; set anchor-key or anchor-kms-key (docs/keys.md)",
}

// Catalogs are what compaction signs.
var Catalogs = Use{
	What: "catalogs", Role: sign.Catalog, Files: "catalog-key", KMS: "catalog-kms-key",
	Unsigned: "catalogs are not signed, and unsigned anchors count: whoever can write to the bucket can write another archive; set catalog-key and key (docs/keys.md)",
}

// Keys are what notes are signed with, and which keys are good:
//
//	files            each signs each note
//	a key of KMS     certifies a key that is made here and signs each note
//	…-keys           are good; each anchor says so
type Keys struct {
	log      *zap.Logger
	use      Use
	settings config.Keys
	origins  config.Origins
	files    []*sign.Signer
	ring     *sign.Ring
	says     archive.AnchorKeys

	kms     certifier // nil: none
	current atomic.Pointer[certified]
	// The rest belongs to who renews.
	id      string // of the archive
	bucket  archive.Bucket
	second  archive.Bucket // nil: none
	pending *certified     // made, and perhaps not in the bucket
	owed    []*certified   // what the second bucket may not have yet
}

// A certifier is a key whose signature makes another one good.
type certifier interface {
	note.Signer
	VKey() string
}

// A certified is a key that lives in this process, and why it is good.
type certified struct {
	signer   *sign.Signer
	note     []byte
	notAfter time.Time
}

// New reads the files of keys.
func New(log *zap.Logger, use Use, s config.Keys, origins config.Origins) (*Keys, error) {
	k := &Keys{log: log, use: use, settings: s, origins: origins, ring: &sign.Ring{}}
	for _, file := range s.Files {
		if err := k.read(file); err != nil {
			return nil, k.fault(k.use.Files, err)
		}
	}
	for _, given := range []struct {
		setting string
		vkeys   []string
		role    sign.Role
		says    *[]string
	}{
		{"anchor-keys", s.Anchor, sign.Anchor, &k.says.Anchor},
		{"catalog-keys", s.Catalog, sign.Catalog, &k.says.Catalog},
		{"control-keys", s.Control, sign.Control, &k.says.Control},
	} {
		for _, vkey := range given.vkeys {
			if err := k.trust(vkey, given.role, given.says); err != nil {
				return nil, k.fault(given.setting, err)
			}
		}
	}
	return k, nil
}

// fault is a setting that cannot be used.
func (k *Keys) fault(name string, err error) error {
	return &config.Error{Name: name, Source: k.origins[name], Fault: err.Error()}
}

func (k *Keys) read(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	s, err := sign.NewSigner(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if slices.ContainsFunc(k.files, func(other *sign.Signer) bool { return other.VKey() == s.VKey() }) {
		return fmt.Errorf("%s: it holds the same key as another of the files", file)
	}
	k.files = append(k.files, s)
	return k.trust(s.VKey(), k.use.Role, k.saysOf(k.use.Role))
}

// trust takes a key for good, and has anchors say so. What they say does not
// depend on the order of settings.
func (k *Keys) trust(vkey string, role sign.Role, says *[]string) error {
	if err := k.ring.Add(vkey, role, "settings"); err != nil {
		return err
	}
	*says = append(*says, vkey)
	slices.Sort(*says)
	*says = slices.Compact(*says)
	return nil
}

// saysOf returns the list of keys that are good for a role.
func (k *Keys) saysOf(role sign.Role) *[]string {
	switch role {
	case sign.Catalog:
		return &k.says.Catalog
	case sign.Control:
		return &k.says.Control
	}
	return &k.says.Anchor
}

// Ring returns the keys that are good.
func (k *Keys) Ring() *sign.Ring { return k.ring }

// Says returns the keys that are good, as anchors list them.
func (k *Keys) Says() archive.AnchorKeys { return k.says }

// Signers returns the func that returns what signs a note of a time; nil where
// no key is set.
func (k *Keys) Signers() func(at time.Time) []note.Signer {
	if len(k.files) == 0 && k.kms == nil {
		return nil
	}
	return k.signers
}

// Begin makes ready what signs, for the archive of an id. Where KMS certifies, it
// returns once the first certificate is in the bucket, and renews until ctx is
// done. second, which may be nil, gets the certificates too, when it can.
func (k *Keys) Begin(ctx context.Context, archiveID string, bucket, second archive.Bucket) error {
	if k.settings.KMS.Key != "" {
		if err := k.OpenKMS(ctx); err != nil {
			return err
		}
		k.id, k.bucket, k.second = archiveID, bucket, second
		if err := k.first(ctx); err != nil {
			return err
		}
		go k.renew(ctx)
	}
	if k.Signers() == nil {
		k.log.Warn(k.use.Unsigned)
		return nil
	}
	k.log.Info(k.use.What+" are signed", zap.Strings("vkeys", k.vkeys()))
	return nil
}

// OpenKMS asks for the key of KMS, where one is set, until KMS answers. A key that is unfit, or that this
// process may not use, is a fault of the settings.
func (k *Keys) OpenKMS(ctx context.Context) error {
	s := k.settings
	if s.KMS.Key == "" {
		return nil
	}
	for attempt := 1; ; attempt++ {
		key, err := awskms.Open(ctx, s.KMS.Key, awskms.Options{Name: s.Name, Region: s.KMS.Region, Endpoint: s.KMS.Endpoint})
		if err == nil {
			k.kms = key
			k.log.Info("KMS certifies the key that signs "+k.use.What, zap.String("arn", key.ARN()), zap.String("vkey", key.VKey()))
			return k.trust(key.VKey(), k.use.Role, k.saysOf(k.use.Role))
		}
		if ctx.Err() != nil {
			return err
		}
		if !awskms.Transient(err) {
			return k.fault(k.use.KMS, err)
		}
		k.log.Warn("KMS does not answer; trying again", zap.Int("attempt", attempt), zap.Error(err))
		if pipeline.BackOff(ctx, attempt) != nil {
			return err
		}
	}
}

// first certifies the first key. Where KMS refuses to sign, the process does not
// start: nothing would be signed.
func (k *Keys) first(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := k.certify(ctx, time.Now())
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		var refused *awskms.Error
		switch {
		case awskms.Transient(err), s3sink.Transient(err):
		case errors.As(err, &refused), errors.Is(err, awskms.ErrForged):
			return k.fault(k.use.KMS, err)
		default:
			return err
		}
		k.log.Warn("the key that signs "+k.use.What+" is not certified yet; trying again", zap.Int("attempt", attempt), zap.Error(err))
		if pipeline.BackOff(ctx, attempt) != nil {
			return err
		}
	}
}

// certify makes a key, has KMS certify it, and puts the certificate into the
// bucket; only then does the key sign. A crash in between leaves a certificate of
// a key that nobody has.
func (k *Keys) certify(ctx context.Context, now time.Time) error {
	if k.pending == nil || now.After(k.halfLife(k.pending)) {
		c, err := k.generate(now)
		if err != nil {
			return err
		}
		k.pending = c
	}
	if err := create(ctx, k.bucket, k.pending); err != nil {
		if errors.Is(err, errOtherCertificate) {
			k.pending = nil
		}
		return err
	}
	if k.second != nil {
		k.owed = append(k.owed, k.pending)
	}
	k.current.Store(k.pending)
	k.pending = nil
	return nil
}

func (k *Keys) generate(now time.Time) (*certified, error) {
	signer, err := sign.GenerateMember(rand.Reader, k.kms.Name())
	if err != nil {
		return nil, err
	}
	notAfter := now.Add(k.settings.Life).UTC().Truncate(time.Microsecond)
	body, err := sign.Sign(sign.KeyNoteText(k.id, signer.VKey(), notAfter), k.kms)
	return &certified{signer, body, notAfter}, err
}

// errOtherCertificate: the bucket holds other bytes under the key of a
// certificate.
var errOtherCertificate = errors.New("the bucket holds something else there")

func create(ctx context.Context, b archive.Bucket, c *certified) error {
	key := sign.KeyNoteKey(c.signer.VKey())
	_, err := b.Create(ctx, key, c.note)
	if errors.Is(err, archive.ErrExists) { // by us, whose reply was lost
		var there []byte
		if there, err = b.Get(ctx, key); err == nil && !bytes.Equal(there, c.note) {
			err = errOtherCertificate
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// payOff gives the second bucket the certificates that it may not have yet.
func (k *Keys) payOff(ctx context.Context) {
	for len(k.owed) > 0 {
		err := k.belongs(ctx, k.second)
		if err == nil {
			err = create(ctx, k.second, k.owed[0])
		}
		if err != nil {
			if ctx.Err() == nil {
				k.log.Warn("the second bucket does not get the certificate of the key that signs "+k.use.What+"; trying again", zap.Error(err))
			}
			return
		}
		k.owed = k.owed[1:]
	}
}

// belongs requires that a bucket is one of the same archive. The pipeline, which
// copies the rest, makes it one.
func (k *Keys) belongs(ctx context.Context, b archive.Bucket) error {
	ours, err := k.bucket.Get(ctx, archive.RootKey)
	if err != nil {
		return fmt.Errorf("%s: %w", archive.RootKey, err)
	}
	theirs, err := b.Get(ctx, archive.RootKey)
	if err != nil {
		return fmt.Errorf("%s: %w", archive.RootKey, err)
	}
	if !bytes.Equal(ours, theirs) {
		return errors.New("it is not a copy of this archive")
	}
	return nil
}

// renewAgain is how often what failed is tried again.
const renewAgain = time.Minute

// renew certifies the next key at half of the life of the one before.
func (k *Keys) renew(ctx context.Context) {
	failed := false
	for {
		wait := time.Until(k.halfLife(k.current.Load()))
		if failed || len(k.owed) > 0 {
			wait = renewAgain
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if now := time.Now(); !now.Before(k.halfLife(k.current.Load())) {
			failed = !k.renewed(ctx, now)
		}
		k.payOff(ctx)
	}
}

func (k *Keys) renewed(ctx context.Context, now time.Time) bool {
	err := k.certify(ctx, now)
	end := k.current.Load().notAfter
	switch {
	case err == nil:
		k.log.Info("another key signs "+k.use.What, zap.String("vkey", k.current.Load().signer.VKey()), zap.Time("notAfter", end))
	case ctx.Err() != nil:
	case now.Before(end):
		k.log.Warn("the key that signs "+k.use.What+" is not renewed; trying again", zap.Time("notAfter", end), zap.Error(err))
	default:
		k.log.Error("the key that signs "+k.use.What+" has ended and is not renewed: "+k.use.What+" wait; trying again", zap.Time("notAfter", end), zap.Error(err))
	}
	return err == nil
}

func (k *Keys) halfLife(c *certified) time.Time { return c.notAfter.Add(-k.settings.Life / 2) }

// signers returns what signs an anchor of that time: nothing where the only key
// has ended.
func (k *Keys) signers(at time.Time) []note.Signer {
	var all []note.Signer
	for _, s := range k.files {
		all = append(all, s)
	}
	// A note's time may be a moment after at.
	if c := k.current.Load(); c != nil && at.Add(time.Second).Before(c.notAfter) {
		all = append(all, c.signer)
	}
	return all
}

func (k *Keys) vkeys() (all []string) {
	for _, s := range k.signers(time.Now()) {
		all = append(all, s.(*sign.Signer).VKey())
	}
	return all
}
