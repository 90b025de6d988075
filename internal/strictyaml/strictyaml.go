// Package strictyaml reads small YAML files of rules, strictly: one document,
// members that are known and there once, plain values. It refuses anchors,
// aliases and tags, by which a value could be another one than it looks.
//
// An error names the member by its path, and its line:
//
//	rules.2.pattern (line 7): no value: want a regular expression
//
// It reads text as text: `010` and `1e3` are what they look like, and what a
// value means is for the caller to say.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Node is a value of a file, and where it stands.
type Node struct {
	*yaml.Node
	Path string // members joined by dots; "" is the whole file
}

// A Member is one member of a mapping.
type Member struct {
	Name  string
	Value Node
}

// Document returns the one document of a file; false where it is empty.
func Document(text []byte) (Node, bool, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return Node{}, false, nil
	case err != nil:
		return Node{}, false, fmt.Errorf("not YAML: %w", err)
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return Node{}, false, errors.New("more than one document: want one")
	}
	top := doc.Content[0]
	return Node{Node: top}, top.Tag != "!!null", nil
}

// Fault returns an error about a value.
func (n Node) Fault(format string, args ...any) error {
	at := n.Path
	if at == "" {
		at = "the file"
	}
	return fmt.Errorf("%s (line %d): %s", at, n.Line, fmt.Sprintf(format, args...))
}

func (n Node) sub(name string, v *yaml.Node) Node {
	return Node{Node: v, Path: strings.TrimPrefix(n.Path+"."+name, ".")}
}

// plain reports whether the value is what it looks like.
func (n Node) plain(kind yaml.Kind) bool {
	return n.Kind == kind && n.Anchor == "" && n.Style&yaml.TaggedStyle == 0
}

// Members returns the members of a mapping in the order of the file. They must
// be among known, where that is not empty.
func (n Node) Members(known ...string) ([]Member, error) {
	if !n.plain(yaml.MappingNode) {
		return nil, n.Fault("want members with values")
	}
	var all []Member
	for i := 0; i < len(n.Content); i += 2 {
		name, m := n.Content[i], Member{Name: n.Content[i].Value}
		m.Value = n.sub(m.Name, n.Content[i+1])
		here := n.sub(m.Name, name)
		switch {
		case name.Kind != yaml.ScalarNode || name.Tag != "!!str" || name.Anchor != "":
			return nil, Node{Node: name, Path: n.Path}.Fault("%q is no name: write it in quotes", name.Value)
		case len(known) > 0 && !slices.Contains(known, m.Name):
			return nil, here.Fault("no such member: want %s", strings.Join(known, ", "))
		case slices.ContainsFunc(all, func(o Member) bool { return o.Name == m.Name }):
			return nil, here.Fault("it is there twice")
		}
		all = append(all, m)
	}
	return all, nil
}

// IsList reports whether the value is a list.
func (n Node) IsList() bool { return n.plain(yaml.SequenceNode) }

// List returns the elements of a list; their paths end in their numbers, from 1.
func (n Node) List(want string) ([]Node, error) {
	if !n.IsList() {
		return nil, n.Fault("want a list of %s", want)
	}
	var all []Node
	for i, v := range n.Content {
		all = append(all, n.sub(fmt.Sprint(i+1), v))
	}
	return all, nil
}

// Text returns the text of a plain value, which must not be empty.
func (n Node) Text(want string) (string, error) {
	if !n.plain(yaml.ScalarNode) || n.Tag == "!!null" || n.Value == "" {
		return "", n.Fault("no value: want %s", want)
	}
	return n.Value, nil
}
