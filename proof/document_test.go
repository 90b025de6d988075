package proof

import (
	"strings"
	"testing"
)

// No metadata, root, anchor or note makes a reader panic.
func FuzzDocuments(f *testing.F) {
	f.Add([]byte(`{"format":"ledgerlake-v1","archiveId":"01KBCDEFGHJKMNPQRSTVWXYZ01","createdAt":"2026-05-28T20:26:40.000000Z","graceSeconds":3600}`))
	f.Add([]byte("ledgerlake anchor v1\n{\"number\":0}\n\n— name cgGQTw==\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = readRoot(text)
		_, _, _, _, _ = readReset(text)
		_, _ = readReject(text)
		if m, err := readMetadata(text); err == nil {
			checkMetadata(m, func(FaultKind, string) {})
		}
		_ = new(anchor).parse(text)
		if noted, n, err := splitNote(text); err == nil && n == 0 && noted+"\n" != string(text) {
			t.Fatalf("%q is not its text and an empty line", text)
		}
	})
}

// A note is a text, an empty line and signature lines, in the one form that
// writing it again gives.
func TestNotesHaveOneForm(t *testing.T) {
	const good = "a\nb\n\n— key/1 cgGQT5usojs=\n"
	if text, n, err := splitNote([]byte(good)); err != nil || text != "a\nb\n" || n != 1 {
		t.Fatalf("%q, %d, %v", text, n, err)
	}
	for _, c := range [][2]string{
		{"a\nb\n\n", "a\nb\n"},
		{"\n\n", "\n"},
		{"usojs=\n", "usojs="},
		{"usojs=\n", "usojt=\n"}, // bits behind the last byte
		{"usojs=\n", "usojs\n"},
		{"usojs=\n", "usojs=\r\n"},
		{"cgGQT5usojs=", "cgGQTw=="},
		{"— ", "- "},
		{"key/1 ", "key/1  "},
		{"key/1 ", "key+1 "},
		{"key/1 ", " "},
		{"a\nb", "a\n\xff"},
		{"usojs=\n", "usojs=\n" + strings.Repeat("— key/1 cgGQT5usojs=\n", 100)},
	} {
		bad := strings.Replace(good, c[0], c[1], 1)
		if text, n, err := splitNote([]byte(bad)); err == nil {
			t.Errorf("%.80q is a note: %q, %d", bad, text, n)
		}
	}
}
