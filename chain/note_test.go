package chain

import (
	"errors"
	"strings"
	"testing"
)

const someOrigin = "ledgerlake/01KBCDEFGHJKMNPQRSTVWXYZ01/a~2Fb/audit.calls/kTq2VqYJQ0mFvY8v2b3m0A/3"

func TestNoteTextIsTwoLines(t *testing.T) {
	for _, kind := range []NoteKind{AnchorNote, CatalogNote, KeyNote} {
		text := NoteText(kind, []byte(`{"a":1}`))
		if text != string(kind)+"\n{\"a\":1}\n" {
			t.Errorf("%q", text)
		}
		if got, document, err := ParseNoteText(text); err != nil || got != kind || string(document) != `{"a":1}` {
			t.Errorf("%q: %q, %s, %v", text, got, document, err)
		}
	}
	requirePanic(t, "a document of two lines", func() { NoteText(AnchorNote, []byte("{\n}")) })
}

func TestParseNoteTextRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"empty":             "",
		"one line":          "ledgerlake anchor v1\n",
		"no end":            "ledgerlake anchor v1\n{}",
		"three lines":       "ledgerlake anchor v1\n{}\n{}\n",
		"empty line":        "ledgerlake anchor v1\n\n",
		"blank after":       "ledgerlake anchor v1\n{}\n\n",
		"unknown kind":      "ledgerlake anchor v2\n{}\n",
		"kind with a space": "ledgerlake anchor v1 \n{}\n",
		"other case":        "Ledgerlake anchor v1\n{}\n",
	} {
		if kind, _, err := ParseNoteText(text); !errors.Is(err, ErrNoteText) {
			t.Errorf("%s: %q, %v", name, kind, err)
		}
	}
}

func TestControlTextIsSixLines(t *testing.T) {
	want := `ledgerlake control v1
01KBCDEFGHJKMNPQRSTVWXYZ01
acme
redaction
01KBCDEFGHJKMNPQRSTVWXYZ02
44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a
`
	if got := ControlText(someULID, "acme", "redaction", "01KBCDEFGHJKMNPQRSTVWXYZ02", []byte("{}")); got != want {
		t.Errorf("%s", got)
	}
}

func TestCheckpointOriginIsEscaped(t *testing.T) {
	l := Log{ArchiveID: someULID, Tenant: "a/b", Topic: "audit.calls", TopicID: "kTq2VqYJQ0mFvY8v2b3m0A", Partition: 3}
	if got := CheckpointOrigin(l); got != someOrigin {
		t.Errorf("%s", got)
	}
}

func TestParseCheckpointTextIsTheInverse(t *testing.T) {
	for _, size := range []int64{0, 1, 1<<63 - 1} {
		text := CheckpointText(someOrigin, size, otherSum)
		origin, n, root, err := ParseCheckpointText(text)
		if err != nil || origin != someOrigin || n != size || root != otherSum {
			t.Errorf("%q: %s, %d, %s, %v", text, origin, n, root, err)
		}
	}
}

func TestParseCheckpointTextRefuses(t *testing.T) {
	root := strings.Split(CheckpointText("o", 7, Hash{}), "\n")[2] // 43 characters and "="
	for name, text := range map[string]string{
		"empty":            "",
		"no end":           "o\n7\n" + root,
		"no origin":        "\n7\n" + root + "\n",
		"extension line":   "o\n7\n" + root + "\nx\n",
		"empty line":       "o\n7\n" + root + "\n\n",
		"leading zero":     "o\n07\n" + root + "\n",
		"plus":             "o\n+7\n" + root + "\n",
		"negative":         "o\n-7\n" + root + "\n",
		"no size":          "o\n\n" + root + "\n",
		"size over int64":  "o\n9223372036854775808\n" + root + "\n",
		"short root":       "o\n7\nAAAA\n",
		"no padding":       "o\n7\n" + root[:43] + "\n",
		"trailing bits":    "o\n7\n" + root[:42] + "B=\n",
		"carriage return":  "o\n7\n" + root + "\r\n",
		"break in base64":  "o\n7\n" + root[:20] + "\r" + root[20:] + "\n",
		"another alphabet": "o\n7\n" + "-" + root[1:] + "\n",
	} {
		if _, _, _, err := ParseCheckpointText(text); !errors.Is(err, ErrCheckpoint) {
			t.Errorf("%s: %q: %v", name, text, err)
		}
	}
}

func FuzzParseNoteText(f *testing.F) {
	f.Add("ledgerlake anchor v1\n{}\n")
	f.Add("ledgerlake key v1\n{}\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		if kind, document, err := ParseNoteText(text); err == nil && NoteText(kind, document) != text {
			t.Errorf("%q comes back as %q", text, NoteText(kind, document))
		}
	})
}

func FuzzParseCheckpointText(f *testing.F) {
	f.Add(CheckpointText(someOrigin, 7, otherSum))
	f.Add("o\n07\n" + strings.Repeat("A", 43) + "=\n")
	f.Fuzz(func(t *testing.T, text string) {
		if origin, size, root, err := ParseCheckpointText(text); err == nil && CheckpointText(origin, size, root) != text {
			t.Errorf("%q comes back as %q", text, CheckpointText(origin, size, root))
		}
	})
}
