package chain

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A NoteKind is the first line of a note's text.
type NoteKind string

// The kinds of notes that hold a document.
const (
	AnchorNote  NoteKind = "ledgerlake anchor v1"
	CatalogNote NoteKind = "ledgerlake catalog v1"
	KeyNote     NoteKind = "ledgerlake key v1"
)

// The errors of texts that are signed.
var (
	// ErrNoteText: a text is not the one that [NoteText] gives.
	ErrNoteText = errors.New("no text of a note")
	// ErrCheckpoint: a text is not the one that [CheckpointText] gives.
	ErrCheckpoint = errors.New("no checkpoint")
)

// NoteText returns the text of a note: exactly the bytes that are signed, two
// lines, the second one being document, a JSON object. It panics where document
// has a line break in it, which JSON without indentation does not.
func NoteText(kind NoteKind, document []byte) string {
	if strings.ContainsRune(string(document), '\n') {
		panic("chain: a note's document is one line")
	}
	return string(kind) + "\n" + string(document) + "\n"
}

// ParseNoteText is the inverse of [NoteText]: it returns the kind and the line
// that holds the document, which it does not decode. An error matches
// [ErrNoteText].
func ParseNoteText(text string) (NoteKind, []byte, error) {
	first, rest, _ := strings.Cut(text, "\n")
	document, after, ok := strings.Cut(rest, "\n")
	if !ok || after != "" || document == "" {
		return "", nil, fmt.Errorf("%w: not two lines", ErrNoteText)
	}
	switch kind := NoteKind(first); kind {
	case AnchorNote, CatalogNote, KeyNote:
		return kind, []byte(document), nil
	}
	return "", nil, fmt.Errorf("%w: unknown first line", ErrNoteText)
}

// ControlText returns the text that a control key signs for one record of the
// control topic: six lines, the last one being hex(SHA-256(value)).
func ControlText(archiveID, tenant, kind, recordID string, value []byte) string {
	sum := Hash(sha256.Sum256(value))
	return strings.Join([]string{"ledgerlake control v1", archiveID, tenant, kind, recordID, sum.String(), ""}, "\n")
}

// CheckpointOrigin returns the origin of the checkpoints of a log:
//
//	ledgerlake/{archiveId}/{escaped tenant}/{escaped topic}/{topicId}/{partition}
func CheckpointOrigin(l Log) string {
	return fmt.Sprintf("ledgerlake/%s/%s/%s/%s/%d", l.ArchiveID, Escape(l.Tenant), Escape(l.Topic), l.TopicID, l.Partition)
}

// CheckpointText returns the text of a C2SP tlog-checkpoint: origin, size in
// rows and root in base64, a line each.
func CheckpointText(origin string, size int64, root Hash) string {
	return fmt.Sprintf("%s\n%d\n%s\n", origin, size, base64.StdEncoding.EncodeToString(root[:]))
}

// ParseCheckpointText is the inverse of [CheckpointText]. It accepts no
// extension lines, for none of ours has any: an error matches [ErrCheckpoint].
func ParseCheckpointText(text string) (origin string, size int64, root Hash, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[0] == "" {
		return "", 0, Hash{}, fmt.Errorf("%w: not three lines", ErrCheckpoint)
	}
	size, err = strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 {
		return "", 0, Hash{}, fmt.Errorf("%w: size", ErrCheckpoint)
	}
	digest, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || len(digest) != len(root) {
		return "", 0, Hash{}, fmt.Errorf("%w: root", ErrCheckpoint)
	}
	copy(root[:], digest)
	if CheckpointText(lines[0], size, root) != text {
		return "", 0, Hash{}, fmt.Errorf("%w: not written as it must be", ErrCheckpoint)
	}
	return lines[0], size, root, nil
}
