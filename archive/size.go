package archive

import (
	"fmt"
	"strings"
)

// CheckSize returns an error that matches [ErrDamaged] where an object is larger
// than any that ledgerlake writes under its key: 8 GiB of a data file, 256 MiB of
// all else. A store's driver asks before it reads an object whole, so that what
// somebody has put there exhausts no memory.
func CheckSize(key string, bytes int64) error {
	limit := int64(256 << 20)
	if strings.HasPrefix(key, DataPrefix) {
		limit = 8 << 30
	}
	if bytes > limit {
		return fmt.Errorf("%d bytes, and nothing that belongs there has more than %d: %w", bytes, limit, ErrDamaged)
	}
	return nil
}
