package s3sink

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// A Lock is what Object Lock keeps new objects for: nobody deletes or
// overwrites them before. The zero value is none.
//
// Only folders without payload may have one: in COMPLIANCE mode nobody at all
// can end it, so that no erasure could be kept within its time.
type Lock struct {
	Mode LockMode
	Days int // 1 to 36500, with a mode
}

// A LockMode says who may end a lock early.
type LockMode string

const (
	NoLock     LockMode = ""
	Governance LockMode = "GOVERNANCE" // whoever has s3:BypassGovernanceRetention
	Compliance LockMode = "COMPLIANCE" // nobody, the owner of the account included
)

// ParseLockMode reads none, governance or compliance.
func ParseLockMode(s string) (LockMode, error) {
	switch s {
	case "none":
		return NoLock, nil
	case "governance", "compliance":
		return LockMode(strings.ToUpper(s)), nil
	}
	return NoLock, errors.New("want none, governance or compliance")
}

// String is the inverse of [ParseLockMode].
func (m LockMode) String() string {
	if m == NoLock {
		return "none"
	}
	return strings.ToLower(string(m))
}

// maxLockDays is what S3 takes.
const maxLockDays = 36500

// Lockable are the folders whose objects may be locked: they hold no payload.
var lockable = []string{"anchor", "catalog", "key"}

func isLockable(key string) bool {
	folder, _, ok := strings.Cut(key, "/")
	return ok && slices.Contains(lockable, folder)
}

// lock asks for the lock of a key's folder.
func (o *Options) lock(in *s3.PutObjectInput, key string) {
	folder, _, ok := strings.Cut(key, "/")
	l := o.Locks[folder]
	if !ok || l.Mode == NoLock {
		return
	}
	in.ObjectLockMode = types.ObjectLockMode(l.Mode)
	in.ObjectLockRetainUntilDate = aws.Time(o.Now().UTC().Add(time.Duration(l.Days) * 24 * time.Hour).Truncate(time.Second))
}

// locks reports whether anything is to be locked.
func (o *Options) locks() bool {
	for _, l := range o.Locks {
		if l.Mode != NoLock {
			return true
		}
	}
	return false
}

func (o *Options) checkLocks() error {
	for folder, l := range o.Locks {
		switch {
		case l == Lock{} || l.Mode == NoLock:
		case !slices.Contains(lockable, folder):
			return fmt.Errorf("objects of %s/ are not to be locked: they hold what may have to be erased", folder)
		case l.Mode != Governance && l.Mode != Compliance:
			return fmt.Errorf("lock of %s/ has mode %q: want GOVERNANCE or COMPLIANCE", folder, string(l.Mode))
		case l.Days < 1 || l.Days > maxLockDays:
			return fmt.Errorf("lock of %s/ is for %d days: want 1 to %d", folder, l.Days, maxLockDays)
		case o.Checksum == NoChecksum:
			return fmt.Errorf("lock of %s/: a store takes no lock without a checksum: set another checksum than none", folder)
		}
	}
	return nil
}
