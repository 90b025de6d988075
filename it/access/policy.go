// Package access holds what deploy/ gives each role, policies of IAM and ACLs of
// Kafka, against what the programs of that role do, and what they must not do.
package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Policy is a policy of IAM, as far as those of deploy/iam go: statements that
// allow, without conditions.
type Policy struct {
	Version   string
	Statement []Statement
}

// A Statement allows actions on resources. Both may have * in them.
type Statement struct {
	Sid      string
	Effect   string
	Action   []string
	Resource []string
}

// Read reads the policy of a role below the root of the repository.
func Read(root, role string) (*Policy, error) {
	name := filepath.Join(root, "deploy", "iam", role+".json")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	p := &Policy{}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(p); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

func (p *Policy) check() error {
	if p.Version != "2012-10-17" || len(p.Statement) == 0 {
		return errors.New("it is of another version, or has no statement")
	}
	for i := range p.Statement {
		s := &p.Statement[i]
		switch {
		case s.Effect != "Allow" || s.Sid == "" || len(s.Action) == 0 || len(s.Resource) == 0:
			return fmt.Errorf("statement %d allows nothing, or has no name", i)
		case slices.ContainsFunc(s.Action, func(a string) bool { return strings.Contains(a, "*") }):
			return fmt.Errorf("%s: it allows whole families of actions", s.Sid)
		}
	}
	return nil
}

// Allows reports whether the policy allows an action on a resource, as IAM
// evaluates it: * stands for any characters.
func (p *Policy) Allows(action, resource string) bool {
	return slices.ContainsFunc(p.Statement, func(s Statement) bool { return s.allows(action, resource) })
}

func (s *Statement) allows(action, resource string) bool {
	return slices.ContainsFunc(s.Action, func(a string) bool { return strings.EqualFold(a, action) }) &&
		slices.ContainsFunc(s.Resource, func(r string) bool { return matches(r, resource) })
}

// matches reports whether a text is what a pattern means. The pattern has one * at
// most, at its end, as those of deploy/iam have.
func matches(pattern, text string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if star && rest == "" {
		return strings.HasPrefix(text, head)
	}
	return pattern == text
}

// The bucket that the policies name, and its objects.
const (
	bucketARN  = "arn:aws:s3:::BUCKET"
	objectsARN = bucketARN + "/"
)
