package redact

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/internal/strictyaml"
)

// A policyText is what a file says.
type policyText struct {
	Rules   []ruleText
	Tenants map[string][]ruleText `json:",omitempty"`
}

type ruleText struct {
	Rule    string
	Name    string   `json:",omitempty"`
	Key     string   `json:",omitempty"`
	Pattern string   `json:",omitempty"`
	States  []string `json:",omitempty"`
}

// The rules, as a file names them.
const (
	ruleSSN   = "ssn-us"
	ruleCard  = "luhn"
	ruleDL    = "us-dl"
	ruleKeyed = "keyed-regex"
)

// Limits of a policy.
const (
	maxRules        = 64
	maxPatternBytes = 1024
	maxProgram      = 4096 // instructions of a pattern: how much each byte of a text can cost
)

// ParsePolicy reads a policy file, strictly: what it does not know is an error
// that names the member and its line.
//
//	name: pii-us             # a-z, 0-9 and -, at most 32 characters
//	rules:
//	  - rule: ssn-us
//	  - rule: luhn
//	  - rule: us-dl
//	    states: [CA, NY]     # there is no default
//	  - rule: keyed-regex
//	    name: email          # stands in the mark: [redacted:email]
//	    key: (?:.*e-?mail)   # of the whole member name, upper or lower case
//	    pattern: '[^@\s]+@[^@\s]+'
//	tenants:                 # in place of rules, for these
//	  acme:
//	    - rule: ssn-us
//	  beta: []
//
// Patterns are those of Go's package regexp (RE2), whose time is linear in the
// text. One that can match nothing is refused, and one that is too large.
func ParsePolicy(text []byte) (*Policy, error) {
	top, some, err := strictyaml.Document(text)
	if err != nil {
		return nil, err
	}
	if !some {
		return nil, errors.New("an empty file: want name and rules")
	}
	members, err := top.Members("name", "rules", "tenants")
	if err != nil {
		return nil, err
	}
	r := reader{says: &policyText{Tenants: map[string][]ruleText{}}, policy: &Policy{tenants: map[string]*ruleSet{}}}
	for _, m := range members {
		if err := r.member(m); err != nil {
			return nil, err
		}
	}
	if r.name == "" || r.policy.rules == nil {
		return nil, top.Fault("want name and rules")
	}
	r.policy.id = idOf(r.name, r.says)
	return r.policy, nil
}

// A reader reads one file.
type reader struct {
	name   string
	says   *policyText
	policy *Policy
}

func (r *reader) member(m strictyaml.Member) (err error) {
	switch m.Name {
	case "name":
		r.name, err = nameIn(m.Value)
	case "rules":
		r.says.Rules, r.policy.rules, err = rulesIn(m.Value)
	case "tenants":
		err = r.tenants(m.Value)
	}
	return err
}

func (r *reader) tenants(n strictyaml.Node) error {
	members, err := n.Members()
	if err != nil {
		return err
	}
	for _, m := range members {
		if err := audit.ValidTenant(m.Name); err != nil && !audit.IsReservedTenant(m.Name) {
			return m.Value.Fault("%v", err)
		}
		if r.says.Tenants[m.Name], r.policy.tenants[m.Name], err = rulesIn(m.Value); err != nil {
			return err
		}
	}
	return nil
}

const wantName = "a name of a-z, 0-9 and -, at most 32 characters"

func nameIn(n strictyaml.Node) (string, error) {
	name, err := n.Text(wantName)
	if err != nil {
		return "", err
	}
	if len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r > 'z' || !isNameByte(byte(r)) }) {
		return "", n.Fault("%q is not allowed: want %s", name, wantName)
	}
	return name, nil
}

func rulesIn(n strictyaml.Node) ([]ruleText, *ruleSet, error) {
	list, err := n.List("rules")
	if err != nil {
		return nil, nil, err
	}
	if len(list) > maxRules {
		return nil, nil, n.Fault("%d rules: at most %d are allowed", len(list), maxRules)
	}
	texts, set := []ruleText{}, &ruleSet{digits: math.MaxInt}
	for _, one := range list {
		if err := set.read(one, &texts); err != nil {
			return nil, nil, err
		}
	}
	return texts, set, nil
}

// read adds the rule of a node.
func (rs *ruleSet) read(n strictyaml.Node, texts *[]ruleText) error {
	t, r, err := ruleIn(n)
	if err != nil {
		return err
	}
	name := t.Rule
	if t.Name != "" {
		name = t.Name
	}
	if slices.Contains(rs.names, name) {
		return n.Fault("another rule puts [redacted:%s] in place of what it finds: give this one another name", name)
	}
	rs.add(r, name)
	*texts = append(*texts, t)
	return nil
}

func (rs *ruleSet) add(r rule, name string) {
	switch r := r.(type) {
	case ssn:
		rs.digits = min(rs.digits, ssnDigits)
	case luhn:
		rs.digits = min(rs.digits, minCard)
	case *license:
		rs.digits = min(rs.digits, r.digits())
	case *keyed:
		rs.keyed |= 1 << len(rs.rules)
	}
	rs.rules, rs.names = append(rs.rules, r), append(rs.names, name)
}

var wantRule = strings.Join([]string{ruleSSN, ruleCard, ruleDL, ruleKeyed}, ", ")

// ruleIn reads a rule. Its kind says which other members it has.
func ruleIn(n strictyaml.Node) (ruleText, rule, error) {
	members, err := n.Members("rule", "states", "name", "key", "pattern")
	if err != nil {
		return ruleText{}, nil, err
	}
	of := map[string]strictyaml.Node{}
	for _, m := range members {
		of[m.Name] = m.Value
	}
	kind, ok := of["rule"]
	if !ok {
		return ruleText{}, nil, n.Fault("no rule: want one of %s", wantRule)
	}
	t := ruleText{}
	if t.Rule, err = kind.Text(wantRule); err != nil {
		return t, nil, err
	}
	switch t.Rule {
	case ruleSSN:
		return t, ssn{}, only(n, of)
	case ruleCard:
		return t, luhn{}, only(n, of)
	case ruleDL:
		if err := only(n, of, "states"); err != nil {
			return t, nil, err
		}
		t.States, err = statesIn(of["states"])
		return t, newLicense(t.States), err
	case ruleKeyed:
		if err := only(n, of, "name", "key", "pattern"); err != nil {
			return t, nil, err
		}
		k, err := keyedIn(of, &t)
		return t, k, err
	}
	return t, nil, kind.Fault("%q is no rule: want one of %s", t.Rule, wantRule)
}

// only requires that a rule has these members beside its kind, and no others.
func only(n strictyaml.Node, of map[string]strictyaml.Node, names ...string) error {
	for _, name := range names {
		if _, ok := of[name]; !ok {
			return n.Fault("%s is missing", name)
		}
	}
	for name, v := range of {
		if name != "rule" && !slices.Contains(names, name) {
			return v.Fault("this rule has no such member")
		}
	}
	return nil
}

func statesIn(n strictyaml.Node) (states []string, err error) {
	list, err := n.List("states")
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, n.Fault("an empty list: want states of %s", strings.Join(States(), ", "))
	}
	for _, one := range list {
		state, err := one.Text("a state, like CA")
		if err != nil {
			return nil, err
		}
		if _, ok := licenseForms[state]; !ok {
			return nil, one.Fault("%q is not allowed: want states of %s", state, strings.Join(States(), ", "))
		}
		states = append(states, state)
	}
	return states, nil
}

func keyedIn(of map[string]strictyaml.Node, t *ruleText) (k *keyed, err error) {
	k = &keyed{}
	if t.Name, err = nameIn(of["name"]); err != nil {
		return nil, err
	}
	if t.Key, err = of["key"].Text("a pattern of member names"); err != nil {
		return nil, err
	}
	if k.key, err = patternIn(of["key"], t.Key, `(?i)\A(?:%s)\z`); err != nil {
		return nil, err
	}
	if t.Pattern, err = of["pattern"].Text("a pattern"); err != nil {
		return nil, err
	}
	k.pattern, err = patternIn(of["pattern"], t.Pattern, "%s")
	return k, err
}

// patternIn compiles a pattern, as part of another one.
func patternIn(n strictyaml.Node, pattern, within string) (*regexp.Regexp, error) {
	if len(pattern) > maxPatternBytes {
		return nil, n.Fault("%d bytes: at most %d are allowed", len(pattern), maxPatternBytes)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, n.Fault("%v (the language is that of Go's package regexp)", err)
	}
	if matchesNothing(parsed) {
		return nil, n.Fault("%q can match nothing, in front of every character: let it match one at least", pattern)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, n.Fault("%v", err)
	}
	if len(prog.Inst) > maxProgram {
		return nil, n.Fault("its repetitions come to %d steps: at most %d are allowed", len(prog.Inst), maxProgram)
	}
	re, err := regexp.Compile(fmt.Sprintf(within, pattern))
	if err != nil {
		return nil, n.Fault("%v", err)
	}
	return re, nil
}

// matchesNothing reports whether a pattern can match a text of no characters.
func matchesNothing(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune) == 0
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpNoMatch:
		return false
	case syntax.OpCapture, syntax.OpPlus:
		return matchesNothing(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min == 0 || matchesNothing(re.Sub[0])
	case syntax.OpConcat:
		return !slices.ContainsFunc(re.Sub, func(s *syntax.Regexp) bool { return !matchesNothing(s) })
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, matchesNothing)
	}
	return true // *, ?, and all that stands between characters
}
