package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// file is the YAML file as a provider of koanf. It works on YAML's nodes and not
// on decoded values, so that a value is read as it is written (010 stays 010,
// where YAML would say 8) and an error can name the line.
type file struct {
	path   string
	body   []byte
	loader *loader
}

// Read returns the tree of values that the file gives.
func (f *file) Read() (map[string]any, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(f.body))
	var document yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return map[string]any{}, nil
	}
	if err != nil {
		return nil, &Error{Source: "file " + f.path, Fault: err.Error()}
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, &Error{Source: "file " + f.path, Fault: "want one YAML document, there are more"}
	}
	return f.mapping(document.Content[0], "")
}

// ReadBytes returns the file as it is. koanf does not call it where there is no
// parser.
func (f *file) ReadBytes() ([]byte, error) { return f.body, nil }

// mapping returns the values under a key; "" is the whole document.
func (f *file) mapping(n *yaml.Node, key string) (map[string]any, error) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" && key == "" {
		return map[string]any{}, nil // nothing but comments
	}
	if n.Kind != yaml.MappingNode {
		return nil, f.fault(n, key, "want settings, one a line: name: value")
	}
	values := map[string]any{}
	for i := 0; i < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if _, twice := values[name.Value]; twice {
			return nil, f.fault(name, join(key, name.Value), "set twice")
		}
		if key == "" && name.Value == DestinationsKey {
			continue // a list of its own: Destinations reads it
		}
		v, err := f.value(name, value, join(key, name.Value))
		if err != nil {
			return nil, err
		}
		values[name.Value] = v
	}
	return values, nil
}

// nested writes a name with dots as a file has it.
func nested(name string) string {
	parts := strings.Split(name, ".")
	return strings.Join(parts, ": {") + ": …" + strings.Repeat("}", len(parts)-1)
}

// value returns what stands behind a key: a value, or a further mapping.
func (f *file) value(name, n *yaml.Node, key string) (any, error) {
	s, known := f.loader.find(key)
	switch {
	case strings.Contains(name.Value, "."):
		return nil, f.fault(name, key, "a dot in a name of the file: write "+nested(name.Value)+", not "+name.Value+": …")
	case known:
		return f.given(s, n)
	case f.isPrefix(key):
		return f.mapping(n, key)
	default:
		return nil, f.unknownKey(name, key)
	}
}

func (f *file) isPrefix(key string) bool {
	for _, s := range f.loader.settings {
		if strings.HasPrefix(s.Name, key+".") {
			return true
		}
	}
	return false
}

// given returns the value of a setting: one scalar, or a list of them.
func (f *file) given(s Setting, n *yaml.Node) (any, error) {
	g := given{Source: f.line(n)}
	switch {
	case isText(n):
		g.Texts = f.loader.split(s, n.Value)
		return g, nil
	case n.Kind == yaml.SequenceNode && s.Value.list:
		for _, item := range n.Content {
			if !isText(item) {
				return nil, f.fault(item, s.Name, "want "+s.Value.Allowed)
			}
			g.Texts = append(g.Texts, item.Value)
		}
		return g, nil
	}
	return nil, f.fault(n, s.Name, "want "+s.Value.Allowed)
}

// isText reports whether a node is one value, and not null.
func isText(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag != "!!null" }

func (f *file) unknownKey(n *yaml.Node, key string) error {
	names := []string{DestinationsKey}
	for _, s := range f.loader.settings {
		names = append(names, s.Name)
	}
	return f.fault(n, key, unknown(key, names, ""))
}

func (f *file) fault(n *yaml.Node, key, fault string) error {
	return &Error{Name: key, Source: f.line(n), Fault: fault}
}

func (f *file) line(n *yaml.Node) string { return fmt.Sprintf("file %s line %d", f.path, n.Line) }

// join puts a name under a key.
func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}
