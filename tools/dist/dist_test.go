package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// made makes the archive of this machine's system with one command, and returns what
// lies in the folder then.
func made(t *testing.T) map[string][]byte {
	t.Helper()
	out := t.TempDir()
	args := []string{"-root", "../..", "-out", out, "-version", "v0.0.0-test", "-commands", "verify", runtime.GOOS + "/" + runtime.GOARCH}
	if err := run(t.Context(), args, io.Discard); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(out, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// unpack returns the files of a tar.gz.
func unpack(t *testing.T, packed []byte) map[string][]byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.ModTime.Unix() != 1_800_000_000 {
			t.Errorf("%s: %+v", h.Name, h)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// Two runs give the same bytes. What they give is whole: a static command that says its
// version and knows its modules, a bill of materials that lists these, with a licence
// each, and the licences themselves.
func TestTwoRunsGiveTheSame(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1800000000")
	first, second := made(t), made(t)
	name := "ledgerlake_v0.0.0-test_" + runtime.GOOS + "_" + runtime.GOARCH
	if len(first) != 3 || first["SHA256SUMS"] == nil || first[name+".tar.gz"] == nil {
		t.Fatalf("%v", len(first))
	}
	for file, body := range first {
		if !bytes.Equal(body, second[file]) {
			t.Errorf("%s is not the same the second time", file)
		}
	}
	files := unpack(t, first[name+".tar.gz"])
	verify := files[name+"/ledgerlake-verify"]
	info, err := buildinfo.Read(bytes.NewReader(verify))
	if err != nil {
		t.Fatal(err)
	}
	if err := isStatic(runtime.GOOS, verify); err != nil {
		t.Error(err)
	}
	if bytes.Contains(verify, []byte(wd(t))) {
		t.Error("the binary names the folder that it was built in")
	}
	listed := componentsOf(t, files[name+"/sbom.cdx.json"])
	notices := string(files[name+"/THIRD-PARTY-LICENCES.txt"])
	for _, m := range info.Deps {
		if !slices.Contains(listed, m.Path+" "+m.Version) || !strings.Contains(notices, m.Path+" "+m.Version+": ") {
			t.Errorf("%s %s is in the binary, and not listed", m.Path, m.Version)
		}
	}
	if len(listed) != len(info.Deps)+1 {
		t.Errorf("%d modules are listed, and %d and Go's library are in the binary", len(listed), len(info.Deps))
	}
}

func wd(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(filepath.Dir(dir)) + "/"
}

// componentsOf reads a bill of materials back.
func componentsOf(t *testing.T, text []byte) (all []string) {
	t.Helper()
	var b cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&b); err != nil {
		t.Fatal(err)
	}
	for _, c := range *b.Components {
		if c.Licenses == nil || len(*c.Licenses) == 0 {
			t.Errorf("%s has no licence", c.Name)
		}
		all = append(all, c.Name+" "+c.Version)
	}
	return all
}

// A binary that needs a dynamic linker is refused: the shell of this machine is one.
func TestDynamicIsSeen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Linux only")
	}
	body, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Skip(err)
	}
	if err := isStatic("linux", body); !errors.Is(err, errDynamic) {
		t.Errorf("/bin/sh: %v", err)
	}
}

// A module without a licence that may be used ends the run.
func TestLicences(t *testing.T) {
	for text, want := range map[string]string{
		"Permission is hereby granted, free of charge, to any person\nobtaining a copy":               "MIT",
		"Apache License\n  Version 2.0, January 2004":                                                 "Apache-2.0",
		"Redistribution and use in source and binary forms, … to endorse or promote products derived": "BSD-3-Clause",
		"Redistribution and use in source and binary forms, with or without":                          "BSD-2-Clause",
		"GNU AFFERO GENERAL PUBLIC LICENSE Version 3":                                                 "",
		"Business Source License 1.1":                                                                 "",
	} {
		if got := strings.Join(identify(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("GNU GENERAL PUBLIC LICENSE"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (&module{Path: "example.org/gpl", Dir: dir}).read(); err == nil || !strings.Contains(err.Error(), "no licence that may be used") {
		t.Error(err)
	}
}

// What cannot be right leaves nothing behind.
func TestBadArguments(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1800000000")
	for _, args := range [][]string{{"-version", "a/b"}, {"linux"}, {"-commands", "nothing", "linux/amd64"}, {"-root", "/nowhere", "linux/amd64"}} {
		out := t.TempDir()
		if err := run(t.Context(), append([]string{"-root", "../..", "-out", out}, args...), io.Discard); err == nil {
			t.Errorf("%v is taken", args)
		}
		if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
			t.Errorf("%v: %v, %v", args, left, err)
		}
	}
}
