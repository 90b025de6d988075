package serve_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/export/serve"
)

var sum = hex.EncodeToString(make([]byte, sha256.Size))

// What is wrong in a file of tokens is named by its line, and never lets anybody
// in.
func TestFilesOfTokensThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "is empty",
		"tokens: []":                         "no tokens",
		"token: []":                          "token (line 1): no such member",
		"tokens:\n- name: a\n  tenants: [x]": "tokens.1 (line 2): no sha256",
		"tokens:\n- tenants: [x]\n  sha256: \"" + sum + "\"":                                                                   "no name",
		"tokens:\n- name: a\n  sha256: \"" + sum + "\"":                                                                        "no tenants",
		"tokens:\n- name: a\n  tenants: []\n  sha256: \"" + sum + "\"":                                                         "no tenant",
		"tokens:\n- name: a\n  tenants: [x, \"*\"]\n  sha256: \"" + sum + "\"":                                                 "not together with others",
		"tokens:\n- name: a\n  tenants: [..]\n  sha256: \"" + sum + "\"":                                                       "path segment",
		"tokens:\n- name: a\n  tenants: [x]\n  sha256: \"12\"":                                                                 "64 hex digits",
		"tokens:\n- name: a\n  tenants: [x]\n  sha256: llt_abc":                                                                "whoever can read this file has it",
		"tokens:\n- name: a\n  tenants: [x]\n  sha256: \"" + sum + "\"\n  not-after: soon":                                     "not-after (line 5)",
		"tokens:\n- name: a\n  tenants: [x]\n  sha256: \"" + sum + "\"\n  admin: true":                                         "no such member",
		"tokens:\n- {name: a, tenants: [x], sha256: \"" + sum + "\"}\n- {name: b, tenants: [y], sha256: \"" + sum + "\"}":      "the same token as",
		"tokens:\n- {name: a, tenants: [x], sha256: \"" + sum + "\"}\n- {name: a, tenants: [y], sha256: \"1" + sum[1:] + "\"}": "there twice",
	} {
		if _, err := serve.ParseTokens([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What is printed for the file is what the file says.
func TestTokensComeBack(t *testing.T) {
	for _, tenants := range [][]string{{"acme"}, {"acme", "wayne.enterprises", "tyrell corp"}, {"*"}, {`a"b\c: #x`}, {"010"}, {"null"}, {"~"}, {"_partition"}, {"тест"}} {
		secret, entry, err := serve.NewToken(bytes.NewReader(bytes.Repeat([]byte{7}, 32)), "a: b", tenants, time.Date(2027, 6, 30, 12, 0, 0, 0, time.UTC))
		if err != nil {
			t.Fatal(err)
		}
		all, err := serve.ParseTokens([]byte("tokens:\n" + entry.String()))
		if err != nil || all.Len() != 1 {
			t.Errorf("%q: %v\n%s", tenants, err, entry)
		}
		if !strings.HasPrefix(secret, serve.TokenPrefix) || len(secret) != 4+43 || strings.Contains(entry.String(), secret) {
			t.Errorf("%q", secret)
		}
	}
	if _, _, err := serve.NewToken(bytes.NewReader(nil), "a", []string{"x"}, time.Time{}); err == nil {
		t.Error("a token of no random bytes")
	}
}

// Whoever has no good token is told so, and nothing else: whatever the path is.
func TestWithoutAGoodToken(t *testing.T) {
	w := newWorld(t, calls("acme"), serve.Options{}, "a=acme")
	good := w.tokens["a"]
	for name, header := range map[string]string{
		"none": "", "another scheme": "Basic " + good, "no scheme": good, "cut": "Bearer " + good[:len(good)-1], "longer": "Bearer " + good + "x", "upper": "Bearer " + strings.ToUpper(good),
		"empty": "Bearer ", "two": "Bearer " + good + ", Bearer " + good, "its hash": "Bearer " + serve.TokenPrefix + sum,
	} {
		for _, path := range []string{"/v1/tenants", "/v1/tenants/acme/turns/turn-0", "/v1/tenants/acme/tail", "/nowhere", "/v1/tenants/acme/turns/turn-0?x=y"} {
			r := w.ask("", path, "Authorization", header)
			if r.status != 401 || r.header.Get("WWW-Authenticate") != `Bearer realm="ledgerlake"` || r.body != w.ask("", "/v1/tenants").body {
				t.Errorf("%s, %s: %d %s", name, path, r.status, r.body)
			}
		}
	}
	for _, path := range []string{"/v1/tenants?access_token=" + good, "/v1/tenants?token=" + good} {
		if r := w.ask("", path); r.status != 401 || strings.Contains(r.body, good) {
			t.Errorf("a token in the query: %d %s", r.status, r.body)
		}
		if r := w.ask("a", path); r.status != 400 || strings.Contains(r.body, good) {
			t.Errorf("a token in the query too: %d %s", r.status, r.body)
		}
	}
	if r := w.ask("", "/v1/tenants", "Authorization", "bearer "+good); r.status != 200 {
		t.Errorf("the scheme in lower case: %d", r.status)
	}
}

// A token ends when its time is over.
func TestATokenEnds(t *testing.T) {
	w := newWorld(t, calls("acme"), serve.Options{}, "a=acme")
	secret, entry, err := serve.NewToken(bytes.NewReader(bytes.Repeat([]byte{9}, 32)), "short", []string{"acme"}, w.clock().Add(time.Hour).Truncate(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	all, err := serve.ParseTokens([]byte("tokens:\n" + entry.String()))
	if err != nil {
		t.Fatal(err)
	}
	w.serve.SetTokens(all)
	w.tokens["short"] = secret
	if r := w.ask("short", "/v1/tenants"); r.status != 200 {
		t.Errorf("in time: %d", r.status)
	}
	w.later(2 * time.Hour)
	if r := w.ask("short", "/v1/tenants"); r.status != 401 {
		t.Errorf("over: %d", r.status)
	}
}

// Nobody who is told of requests is told a token or what was asked for.
func TestWhatIsToldOfRequests(t *testing.T) {
	w := newWorld(t, calls("acme"), serve.Options{}, "a=acme")
	w.ask("a", "/v1/tenants/acme/turns/turn-3?session=sess-0")
	w.ask("a", "/v1/tenants/globex/turns/turn-3")
	w.ask("", "/v1/tenants")
	w.mu.Lock()
	defer w.mu.Unlock()
	want := []serve.Request{
		{Route: "/v1/tenants/{tenant}/turns/{turn}", Token: "a", Tenant: "acme", Status: 200},
		{Route: "/v1/tenants/{tenant}/turns/{turn}", Token: "a", Status: 404},
		{Route: "/v1/tenants", Status: 401},
	}
	for i, got := range w.told {
		if got.Began.IsZero() {
			t.Errorf("%d: it has not begun", i)
		}
		got.Bytes, got.Began, got.Duration = 0, time.Time{}, 0
		if i >= len(want) || got != want[i] {
			t.Errorf("%d: %+v", i, got)
		}
	}
}

func FuzzParseTokens(f *testing.F) {
	f.Add([]byte("tokens:\n- {name: a, tenants: [x], sha256: \"" + sum + "\", not-after: 2027-01-01}"))
	f.Add([]byte("tokens:\n- name: a\n  tenants: \"*\"\n  sha256: " + sum))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := serve.ParseTokens(text); err == nil && s.Len() == 0 {
			t.Error("a file without tokens is good")
		}
	})
}
