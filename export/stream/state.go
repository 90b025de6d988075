package stream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// The states of a destination.
const (
	Active    = "active"
	Paused    = "paused"    // somebody wanted it: resume ends it
	Suspended = "suspended" // it takes nothing: resume ends it, changed settings, or a try that goes well
	Invalid   = "invalid"   // its settings cannot be used
	Removed   = "removed"   // no exporter is set to have it any more; its cursors stay
)

// A State is what is known of a destination: its document.
type State struct {
	V           int          `json:"v"`
	ArchiveID   string       `json:"archiveId"`
	Name        string       `json:"name"`
	Type        string       `json:"type"`
	Spec        string       `json:"spec"`        // its settings, without secrets
	Fingerprint string       `json:"fingerprint"` // of them
	State       string       `json:"state"`
	Change      string       `json:"change"` // what became of it last
	Reason      string       `json:"reason"`
	Since       archive.Time `json:"since"`
	By          string       `json:"by"` // the process or the person that wrote it
	Count       int64        `json:"count"`
}

// The changes of a destination.
const (
	ChangeNew       = "new"
	ChangeSettings  = "changed"
	ChangePaused    = "paused"
	ChangeResumed   = "resumed"
	ChangeSuspended = "suspended"
	ChangeInvalid   = "invalid"
	ChangeRemoved   = "removed"
	ChangeActive    = "active" // after it was suspended or invalid
)

// recordAgain is how long a change is told once more at each start, so that one
// that nobody could record then is recorded: the same change is the same record.
const recordAgain = 24 * time.Hour

// Fingerprint returns what tells settings apart: a hash, in hex.
func Fingerprint(spec string) string { return chain.Hash(sha256.Sum256([]byte(spec))).String() }

func decodeState(body []byte, key string) (*State, error) {
	if body == nil {
		return nil, nil
	}
	s := &State{}
	if err := json.Unmarshal(body, s); err != nil {
		return nil, fmt.Errorf("%s: it is no state: %w", key, err)
	}
	if s.V != docVersion || !slices.Contains([]string{Active, Paused, Suspended, Invalid, Removed}, s.State) {
		return nil, fmt.Errorf("%s: it is of version %d, and its state is %q, which this program does not know: use a newer one, or remove the object, which makes the destination active", key, s.V, s.State)
	}
	return s, nil
}

// ReadState reads the state of a destination; nil where it was never exported to.
func ReadState(ctx context.Context, src archive.Source, destination string) (*State, error) {
	key := stateKey(destination)
	var body []byte
	err := whole(key, func() (err error) { body, err = src.Get(ctx, key); return err })
	if errors.Is(err, archive.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeState(body, key)
}

// Names returns the names of all destinations that were ever exported to.
func Names(ctx context.Context, src archive.Source) (names []string, err error) {
	for after := ""; ; {
		name, found := "", false
		for o, err := range src.List(ctx, Prefix, after) {
			if err != nil {
				return nil, err
			}
			name, _, _ = strings.Cut(strings.TrimPrefix(o.Key, Prefix), "/")
			found = true
			break
		}
		if !found {
			slices.Sort(names)
			return names, nil
		}
		after = Prefix + name + "0" // behind all that begins with its "/"
		if plain, ok := chain.Unescape(name); ok {
			names = append(names, plain)
		}
	}
}

// tries is how often a person's change is tried while exporters change the same.
const tries = 20

// ErrNoDestination: no such destination was ever exported to.
var ErrNoDestination = errors.New("no such destination")

// SetState pauses, resumes or removes a destination, and returns its state, and
// whether that is another one than it was. Exporters see it within
// Settings.LinesEvery.
func SetState(ctx context.Context, dst archive.Swapper, destination, state, reason, by string, now time.Time) (s State, changed bool, err error) {
	key := stateKey(destination)
	for range tries {
		var body []byte
		var tag string
		err := whole(key, func() (err error) { body, tag, err = dst.GetTagged(ctx, key); return err })
		if errors.Is(err, archive.ErrNotFound) {
			return s, false, fmt.Errorf("%w: %s", ErrNoDestination, destination)
		}
		if err != nil {
			return s, false, err
		}
		old, err := decodeState(body, key)
		if err != nil {
			return s, false, err
		}
		if s = *old; old.State == state {
			return s, false, nil
		}
		s.State, s.Change, s.Reason, s.By, s.Since, s.Count = state, changeTo(state), reason, by, archive.Time{Time: now}, old.Count+1
		if body, err = json.Marshal(&s); err != nil {
			return s, false, err
		}
		_, err = dst.Swap(ctx, key, body, tag)
		if errors.Is(err, archive.ErrExists) {
			continue
		}
		return s, err == nil, err
	}
	return s, false, fmt.Errorf("%s: it changed %d times meanwhile: try again", key, tries)
}

func changeTo(state string) string {
	switch state {
	case Paused:
		return ChangePaused
	case Removed:
		return ChangeRemoved
	}
	return ChangeResumed
}
