package audit

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxTenantBytes is the length of the longest tenant id.
const MaxTenantBytes = 256

// ErrTenant is matched by every error of [ValidTenant].
var ErrTenant = errors.New("bad tenant id")

// ValidTenant returns an error matching [ErrTenant] if id cannot be the tenant
// of a producer's record: ids are 1 to 256 bytes of UTF-8 without control
// characters, none is "." or "..", and none begins with "_". All other ids are
// good and distinct, whatever they look like: nothing is folded, trimmed or
// normalised. The error never shows the id. Source: docs/format.md, section 5.
func ValidTenant(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w: empty", ErrTenant)
	case len(id) > MaxTenantBytes:
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTenant, len(id), MaxTenantBytes)
	case !utf8.ValidString(id):
		return fmt.Errorf("%w: not UTF-8", ErrTenant)
	case id == "." || id == "..":
		return fmt.Errorf("%w: a path segment", ErrTenant)
	case id[0] == '_':
		return fmt.Errorf("%w: ids that begin with _ are reserved", ErrTenant)
	case strings.ContainsFunc(id, unicode.IsControl):
		return fmt.Errorf("%w: a control character", ErrTenant)
	}
	return nil
}

// IsReservedTenant says whether id is a tenant of our own: the log of what
// belongs to a partition, or to nobody who is known.
func IsReservedTenant(id string) bool {
	return id == TenantPartition || id == TenantUnattributed
}

// checkTenant is ValidTenant for a record of this decoder's topic. The control
// topic, which only operators can write to, also governs the reserved logs.
func (d *Decoder) checkTenant(id string) error {
	if d.Control && IsReservedTenant(id) {
		return nil
	}
	return ValidTenant(id)
}
