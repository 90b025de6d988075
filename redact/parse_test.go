package redact_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/redact"
)

// The id says what a policy says, and not how it is written.
func TestIDIsOfWhatThePolicySays(t *testing.T) {
	base := parse(t, "name: pii-us\nrules:\n- rule: ssn-us\n- {rule: us-dl, states: [CA, NY]}\n").ID()
	if name, hash, _ := strings.Cut(base, "@"); name != "pii-us" || len(hash) != 16 || strings.Trim(hash, "0123456789abcdef") != "" {
		t.Errorf("the id is %s", base)
	}
	if same := parse(t, "# of us\nrules: [{rule: \"ssn-us\"}, {states: ['CA', NY], rule: us-dl}]\nname: pii-us").ID(); same != base {
		t.Errorf("another layout is %s, not %s", same, base)
	}
	seen := []string{base, (*redact.Policy)(nil).ID()}
	for _, other := range []string{
		"name: pii-eu\nrules: [{rule: ssn-us}, {rule: us-dl, states: [CA, NY]}]",
		"name: pii-us\nrules: [{rule: ssn-us}, {rule: us-dl, states: [CA]}]",
		"name: pii-us\nrules: [{rule: us-dl, states: [CA, NY]}, {rule: ssn-us}]",
		"name: pii-us\nrules: [{rule: ssn-us}, {rule: us-dl, states: [CA, NY]}]\ntenants: {a: []}",
		"name: pii-us\nrules: [{rule: ssn-us}, {rule: us-dl, states: [CA, NY]}]\ntenants: {a: [{rule: luhn}]}",
		"name: pii-us\nrules: [{rule: keyed-regex, name: a, key: b, pattern: c}]",
		"name: pii-us\nrules: [{rule: keyed-regex, name: a, key: c, pattern: b}]",
		"name: pii-us\nrules: []",
	} {
		id := parse(t, other).ID()
		if slices.Contains(seen, id) {
			t.Errorf("%q has an id that is taken: %s", other, id)
		}
		seen = append(seen, id)
	}
}

// What could be misread is refused, with the member and the line.
func TestParsePolicyRefuses(t *testing.T) {
	keyed := func(members string) string {
		return "name: x\nrules:\n- {rule: keyed-regex, " + members + "}"
	}
	for text, want := range map[string]string{
		"":                     "an empty file: want name and rules",
		"name: x":              "the file (line 1): want name and rules",
		"rules: []":            "want name and rules",
		"name: X\nrules: []":   `name (line 1): "X" is not allowed: want a name of a-z`,
		"name: é\nrules: []":   `name (line 1): "é" is not allowed`,
		"name: [x]\nrules: []": "name (line 1): no value",
		"name: " + strings.Repeat("x", 33) + "\nrules: []":                                     "at most 32 characters",
		"name: x\nrules: ssn-us":                                                               "rules (line 2): want a list of rules",
		"name: x\nrules:\n- ssn-us":                                                            "rules.1 (line 3): want members",
		"name: x\nrules:\n- {states: [CA]}":                                                    "rules.1 (line 3): no rule: want one of ssn-us, luhn, us-dl, keyed-regex",
		"name: x\nrules:\n- {rule: ssn}":                                                       `rules.1.rule (line 3): "ssn" is no rule`,
		"name: x\nrules:\n- {rule: ssn-us, states: [CA]}":                                      "rules.1.states (line 3): this rule has no such member",
		"name: x\nrules:\n- rule: luhn\n- rule: luhn":                                          "rules.2 (line 4): another rule puts [redacted:luhn]",
		"name: x\nrules:\n- rule: luhn\n- {rule: keyed-regex, name: luhn, key: a, pattern: b}": "another rule puts [redacted:luhn]",
		"name: x\nrules:\n- {rule: us-dl}":                                                     "rules.1 (line 3): states is missing",
		"name: x\nrules:\n- {rule: us-dl, states: []}":                                         "rules.1.states (line 3): an empty list: want states of AK, AL",
		"name: x\nrules:\n- {rule: us-dl, states: CA}":                                         "rules.1.states (line 3): want a list",
		"name: x\nrules:\n- {rule: us-dl, states: [CA, ca]}":                                   `rules.1.states.2 (line 3): "ca" is not allowed`,
		keyed("name: a, key: b"):                                                               "rules.1 (line 3): pattern is missing",
		keyed("name: A, key: b, pattern: c"):                                                   "rules.1.name (line 3)",
		keyed("name: a, key: '(', pattern: c"):                                                 "rules.1.key (line 3): error parsing regexp: missing closing )",
		keyed("name: a, key: '.*', pattern: c"):                                                `rules.1.key (line 3): ".*" can match nothing`,
		keyed("name: a, key: b, pattern: 'c*'"):                                                "rules.1.pattern (line 3): \"c*\" can match nothing",
		keyed("name: a, key: b, pattern: 'c|d?'"):                                              "can match nothing",
		keyed("name: a, key: b, pattern: '\\bc{0,3}$'"):                                        "can match nothing",
		keyed("name: a, key: b, pattern: '(?=c)'"):                                             "invalid or unsupported Perl syntax",
		keyed("name: a, key: b, pattern: 'a)(b'"):                                              "unexpected )",
		keyed("name: a, key: b, pattern: '.{1000}.{1000}.{1000}.{1000}.{1000}'"):               "steps: at most 4096 are allowed",
		keyed("name: a, key: b, pattern: '" + strings.Repeat("x", 1025) + "'"):                 "1025 bytes: at most 1024 are allowed",
		"name: x\nrules: []\ntenants:\n  _x: []":                                               "tenants._x (line 4)",
		"name: x\nrules: []\ntenants:\n  acme: {rules: []}":                                    "tenants.acme (line 4): want a list of rules",
		"name: x\nrules: []\ntenants:\n  acme:\n  - rule: nope":                                "tenants.acme.1.rule (line 5)",
		"name: x\nrules: [" + strings.Repeat("{rule: ssn-us},", 65) + "]":                      "65 rules: at most 64",
		"name: x\nrules: []\nrule: []":                                                         "rule (line 3): no such member: want name, rules, tenants",
	} {
		if p, err := redact.ParsePolicy([]byte(text)); p != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q\n%v\nwant %s", text, err, want)
		}
	}
}

// Each state has forms, and each form is found beside a word and never without.
func TestEveryStateHasALicence(t *testing.T) {
	for _, state := range redact.States() {
		p := parse(t, "name: x\nrules: [{rule: us-dl, states: ["+state+"]}]")
		found := 0
		for _, number := range []string{
			"123456789", "12345678", "1234567", "A1234567", "A123456789012", "A12345678", "1234567890", "AB123456C", "A123456789", "A12345678901234", "AB1234567", "WDLABCD456DG", "ABC123456", "12ABC34567", "A1234567890123",
		} {
			with := scrub(t, p, fmt.Sprintf(`["driver's license %s"]`, number))
			without := fmt.Sprintf(`["order %s"]`, number)
			if scrub(t, p, without) != without {
				t.Errorf("%s: %s is found without a word", state, number)
			}
			if strings.Contains(with, "[redacted:us-dl]") {
				found++
			}
		}
		if found == 0 || found > 10 {
			t.Errorf("%s: %d of 15 are found", state, found)
		}
	}
}
