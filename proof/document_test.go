package proof

import (
	"strings"
	"testing"
)

// No metadata, root, anchor or note makes a reader panic.
func FuzzDocuments(f *testing.F) {
	f.Add([]byte(`{"format":"ledgerlake-v1","archiveId":"01KBCDEFGHJKMNPQRSTVWXYZ01","createdAt":"2026-05-28T20:26:40.000000Z","graceSeconds":3600}`))
	f.Add([]byte("ledgerlake anchor v1\n{\"number\":0}\n\n— name cgGQTw==\n"))
	v := newVerifier(nil, Options{})
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = readRoot(text)
		_, _, _, _, _ = readReset(text)
		_, _ = readReject(text)
		if m, err := readMetadata(text); err == nil {
			checkMetadata(m, func(FaultKind, string) {})
		}
		if a := (&anchor{}); v.readAnchor(a, text) == nil && a.Anchor == nil {
			t.Fatalf("%q is read as no anchor", text)
		}
		if _, err := readKeyNote(string(text)); err == nil && !strings.HasSuffix(string(text), "\n") {
			t.Fatalf("%q is no text of a note", text)
		}
	})
}
