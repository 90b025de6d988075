package proof

import (
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive/sign"
)

// No metadata, root, anchor or note makes a reader panic.
func FuzzDocuments(f *testing.F) {
	f.Add([]byte(`{"format":"ledgerlake-v1","archiveId":"01KBCDEFGHJKMNPQRSTVWXYZ01","createdAt":"2026-05-28T20:26:40.000000Z","graceSeconds":3600}`))
	f.Add([]byte("ledgerlake/01KBCDEFGHJKMNPQRSTVWXYZ01/acme/audit.calls/kTq2VqYJQ0mFvY8v2b3m0A/0\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n"))
	f.Add([]byte(`{"exit":0,"lines":[{"topic":"t","logs":[{"tenant":"a","size":1,"proved":true}]}]}`))
	f.Add([]byte(`{"exit":0,"lines":[null]}`))
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
		if n, err := sign.Parse(text); err == nil {
			if e, err := v.expectedCheckpoint(n); err == nil && e.Topic == "" {
				t.Fatalf("%q is a checkpoint of no topic", text)
			}
		}
		if s, err := DecodeSaved(text); err == nil {
			if again, err := s.Encode(); err != nil || len(again) == 0 {
				t.Fatalf("%q is read, and not written: %v", text, err)
			}
		}
		_, _ = ExpectedOf(text, "x")
		if _, err := readKeyNote(string(text)); err == nil && !strings.HasSuffix(string(text), "\n") {
			t.Fatalf("%q is no text of a note", text)
		}
	})
}
