package stream

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
)

// ErrDocument: an object that exporters keep cannot be read as it was written. The
// error names it, and says what to do.
var ErrDocument = errors.New("an object of a destination is damaged")

// damageTries is how often in a row an object has to arrive damaged, beyond what
// the store tries by itself, to be called so.
const damageTries = 5

// whole reads an object of a destination. Damage that stays is an error that
// matches [ErrDocument], and not [archive.ErrDamaged]: to try again does not help.
func whole(key string, read func() error) (err error) {
	for range damageTries {
		if err = read(); !errors.Is(err, archive.ErrDamaged) {
			return err
		}
	}
	return fmt.Errorf("%w: %s: %v: restore it, or remove it: %s", ErrDocument, key, err, withoutIt(key))
}

// withoutIt says what becomes of a destination of which an object is removed.
func withoutIt(key string) string {
	switch {
	case strings.HasSuffix(key, "/destination.json"):
		return "the destination is active then, and told as a new one; its cursors stay"
	case strings.HasSuffix(key, "/lease.json"):
		return "an exporter takes a new lease then"
	case strings.Contains(key, "/cursor/"):
		return "all rows of its line are sent once more then"
	case strings.Contains(key, "/backfill/"):
		return "the backfill is forgotten then"
	}
	return "it is forgotten then"
}
