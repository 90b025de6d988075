package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	escape "golang.org/x/mod/module"
)

// A module is one that is in a binary, with what its licence says.
type module struct {
	Path, Version, Sum string
	Dir                string
	licences           []string // SPDX
	texts              []notice
}

// A notice is a file that must go with what is distributed.
type notice struct {
	name string
	text []byte
}

// modulesOf returns the modules of which something is in a binary, and Go's own
// library, sorted.
func modulesOf(ctx context.Context, root string, binaries []binary) ([]module, error) {
	found := map[string]module{}
	goVersion := ""
	for _, b := range binaries {
		info, err := buildinfo.Read(bytes.NewReader(b.body))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(b.path), err)
		}
		goVersion = info.GoVersion
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			found[m.Path] = module{Path: m.Path, Version: m.Version, Sum: m.Sum}
		}
	}
	cache, err := goEnv(ctx, root, "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	goroot, err := goEnv(ctx, root, "GOROOT")
	if err != nil {
		return nil, err
	}
	all := []module{{Path: "std", Version: strings.TrimPrefix(goVersion, "go"), Dir: goroot}}
	for _, m := range found {
		if m.Dir, err = sources(cache, m); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	for i := range all {
		if err := all[i].read(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// goEnv returns what go env says, of the Go that builds.
func goEnv(ctx context.Context, root, name string) (string, error) {
	c := exec.CommandContext(ctx, "go", "env", name)
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("go env %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// sources is where the sources of a module lie, which was built from them just now.
func sources(cache string, m module) (string, error) {
	path, err := escape.EscapePath(m.Path)
	if err != nil {
		return "", err
	}
	version, err := escape.EscapeVersion(m.Version)
	return filepath.Join(cache, filepath.FromSlash(path)+"@"+version), err
}

var noticeName = regexp.MustCompile(`(?i)^(licen[cs]e|notice|copying|copyright|patents)([.-].*)?$`)

// read takes in the texts of a module's licence.
func (m *module) read() error {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || !noticeName.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, e.Name()))
		if err != nil {
			return err
		}
		m.texts = append(m.texts, notice{e.Name(), text})
		for _, id := range identify(string(text)) {
			if !slices.Contains(m.licences, id) {
				m.licences = append(m.licences, id)
			}
		}
	}
	slices.Sort(m.licences)
	if len(m.licences) == 0 {
		return fmt.Errorf("%s@%s: no licence that may be used is found in %s", m.Path, m.Version, m.Dir)
	}
	return nil
}

// phrases tell licences by words that no other has.
var phrases = []struct{ id, has string }{
	{"Apache-2.0", "Apache License Version 2.0, January 2004"},
	{"Apache-2.0", "Licensed under the Apache License, Version 2.0"},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose"},
	{"ISC", "Permission to use, copy, modify, and distribute this software for any purpose"},
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"MPL-2.0", "Mozilla Public License, version 2.0"},
}

// identify returns the licences whose words stand in a text.
func identify(text string) (ids []string) {
	text = strings.Join(strings.Fields(text), " ")
	for _, p := range phrases {
		if strings.Contains(text, p.has) && !slices.Contains(ids, p.id) {
			ids = append(ids, p.id)
		}
	}
	if strings.Contains(text, "Redistribution and use in source and binary forms") {
		id := "BSD-2-Clause"
		if strings.Contains(text, "to endorse or promote products") {
			id = "BSD-3-Clause"
		}
		ids = append(ids, id)
	}
	return ids
}

// notices is the text of all licences, which those that ask for it must have beside
// what is built of them.
func notices(modules []module) []byte {
	var b bytes.Buffer
	b.WriteString("What is in these programs beside ledgerlake itself, and under which terms.\n")
	for _, m := range modules {
		name := m.Path + " " + m.Version
		if m.Path == "std" {
			name = "The Go standard library " + m.Version
		}
		fmt.Fprintf(&b, "\n%s\n%s: %s\n", strings.Repeat("=", 80), name, strings.Join(m.licences, ", "))
		for _, t := range m.texts {
			fmt.Fprintf(&b, "\n--- %s\n\n%s\n", t.name, bytes.TrimSpace(t.text))
		}
	}
	return b.Bytes()
}
