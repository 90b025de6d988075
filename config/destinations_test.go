package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// destinations reads a file of settings.
func destinations(t *testing.T, text string, environ ...string) ([]config.Destination, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "export.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Destinations(path, environ)
}

// What cannot be right is told in one line, which names the setting and its line,
// and says what is allowed.
func TestDestinationsThatCannotBe(t *testing.T) {
	one := "destinations:\n- name: files\n  type: file\n  path: /x\n"
	for text, want := range map[string]string{
		"destinations: {}":                                           "line 1): want a list of destinations",
		"destinations: [x]":                                          "destinations.1 (line 1): want members",
		"destinations:\n- type: file\n  path: /x":                    "destinations.1 (line 2): no name",
		"destinations:\n- name: a":                                   "no type: want one of",
		"destinations:\n- name: A b\n  type: file":                   "destinations.1.name (line 2): want lower-case letters",
		"destinations:\n- name: a\n  type: fax":                      `destinations.1.type (line 3): no type "fax": want one of`,
		"destinations:\n- name: a\n  type: file":                     "no path: want the path of a folder",
		one + "  pathh: x":                                           "destinations.1.pathh (line 5): no such setting of this type: did you mean path?",
		one + "  url: s3://x":                                        "url (line 5): no such setting",
		one + "  path: /y":                                           "there twice",
		one + "  format: xml":                                        `destinations.1.format (line 5): "xml" is not allowed: want one of json, `,
		one + "  filter: [acme]":                                     "destinations.1.filter (line 5): want members",
		one + "  filter: {tenant: acme}":                             "destinations.1.filter.tenant (line 5): no such setting of this type: did you mean filter.tenants?",
		one + "  filter: {tenants: []}":                              "the list is empty",
		one + "  filter: {kinds: [call, call]}":                      "is not allowed: want one or more of",
		one + "  limits: {batch-events: 0}":                          `"0" is not allowed: want a whole number from 1`,
		one + "  limits: {batch-bytes: 100}":                         `"100" is not allowed: want a size`,
		one + "  on-poison: drop":                                    `"drop" is not allowed: want one of dead-letter, block`,
		one + "  from: yesterday":                                    "want one of beginning, now",
		one + "  verify: no":                                         `"no" is not allowed: want true or false`,
		one + "  linger: 5":                                          "want a duration",
		one + "  path-file: /x":                                      "no such setting",
		one + "- name: files\n  type: file\n  path: /y":              `destinations.2 (line 5): there is another destination "files"`,
		one + "  heads: &a true":                                     "no value",
		"destinations:\n- name: a\n  type: s3\n  url: http://x":      "line 4): ",
		"destinations:\n- name: a\n  type: s3\n  secret-key: hush\n": "destinations.1.secret-key (line 4): a secret does not stand here: use secret-key-file or secret-key-env",
		"destinations:\n- name: a\n  type: s3\n  secret-key-env: NO": `the environment variable "NO" is not set`,
	} {
		_, err := destinations(t, text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s\n gives %v\nwant %s", text, err, want)
		}
	}
	if _, err := config.Destinations(filepath.Join(t.TempDir(), "absent"), nil); err == nil {
		t.Error("a file that is not there is read")
	}
}

// What is set is what the destination has; what is not has its default, which for
// some depends on the type.
func TestDestinations(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := destinations(t, `
# other settings may stand beside the list
bucket: s3://audit
destinations:
  - name: siem
    type: s3
    url: s3://siem/in
    region: eu-central-1
    access-key-env: MY_ID
    secret-key-file: `+secret+`
    format: ocsf-1.8
    filter: {tenants: [acme, "010"], kinds: [call]}
    limits:
      batch-events: 500
      event-bytes: 64KiB
    on-poison: block
    heads: false
    from: now
  - {name: files, type: file, path: `+t.TempDir()+`, linger: 5s}
`, "MY_ID=key")
	if err != nil {
		t.Fatal(err)
	}
	a, b := all[0], all[1]
	if a.Name != "siem" || a.Type != "s3" || a.Format != "ocsf-1.8" || strings.Join(a.Tenants, " ") != "acme 010" || a.Limits.Events != 500 || a.Limits.EventBytes != 64<<10 ||
		!a.Block || a.Heads || !a.FromNow || !a.Verify || a.Linger != time.Minute || !a.Stepwise || a.MaxDead != 1000 {
		t.Errorf("%+v", a)
	}
	if b.Format != "json" || b.Block || !b.Heads || b.FromNow || b.Linger != 5*time.Second || b.Tenants != nil {
		t.Errorf("%+v", b)
	}
	for i := range all {
		s, err := all[i].Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	want := "access-key-env: MY_ID\nfilter.kinds: call\nfilter.tenants: acme, 010\nformat: ocsf-1.8\nfrom: now\nheads: false\nlimits.batch-events: 500\nlimits.event-bytes: 64KiB\non-poison: block\nregion: eu-central-1\nsecret-key-file: " + secret + "\ntype: s3\nurl: (not shown, SHA-256 "
	if !strings.HasPrefix(a.Spec, want) {
		t.Errorf("spec:\n%s\nwant\n%s", a.Spec, want)
	}
	if all, err = destinations(t, "bucket: s3://audit\n"); err != nil || len(all) != 0 {
		t.Errorf("a file without destinations: %v, %v", all, err)
	}
}

// A secret of the environment reaches its driver, and stands in no text.
func TestDestinationSecretOfTheEnvironment(t *testing.T) {
	all, err := destinations(t, "destinations:\n- {name: siem, type: s3, region: eu-central-1, url: s3://siem, secret-key-env: MY_KEY, access-key-env: MY_ID}\n", "MY_KEY=hush", "MY_ID=key")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all[0].Open(t.Context()); err != nil || strings.Contains(all[0].Spec, "hush") || !strings.Contains(all[0].Spec, "secret-key-env: MY_KEY") {
		t.Errorf("%v; spec %s", err, all[0].Spec)
	}
}

// Each type can be told of: it has help, settings with help, and a name that a file
// can say.
func TestSinkTypes(t *testing.T) {
	for _, name := range config.SinkTypes() {
		if config.SinkHelp(name) == "" {
			t.Errorf("%s: no help", name)
		}
		for _, section := range config.SinkSettings(name) {
			for _, s := range section.Settings {
				if s.Help == "" || s.Value.Allowed == "" || s.Name != strings.ToLower(s.Name) {
					t.Errorf("%s: setting %+v", name, s)
				}
			}
		}
	}
}

// Files do not get among an archive's own.
func TestFilesWithinTheArchive(t *testing.T) {
	all, err := destinations(t, "destinations:\n- {name: a, type: s3, url: \"s3://audit/x?region=x\", access-key-env: K, secret-key-env: K}", "K=s")
	if err != nil {
		t.Fatal(err)
	}
	if all[0].Archive, err = s3sink.Open(t.Context(), "s3://audit?region=x", s3sink.Options{AccessKey: "k", SecretKey: "s"}); err != nil {
		t.Fatal(err)
	}
	if s, err := all[0].Open(t.Context()); err == nil || !strings.Contains(err.Error(), "within the archive") {
		t.Errorf("%v, %v", s, err)
	}
}
