package helm

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// dockerfile reads the Dockerfile as BuildKit does.
func dockerfile(t *testing.T) []instructions.Stage {
	t.Helper()
	body, err := os.ReadFile(root + "/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	return stages
}

// ignored reads .dockerignore as docker does.
func ignored(t *testing.T) *patternmatcher.PatternMatcher {
	t.Helper()
	f, err := os.Open(root + "/.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	patterns, err := ignorefile.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	m, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// sent reports whether a file is in the build's context.
func sent(t *testing.T, m *patternmatcher.PatternMatcher, name string) bool {
	t.Helper()
	skip, err := m.MatchesOrParentMatches(name)
	if err != nil {
		t.Fatal(err)
	}
	return !skip
}

// The image runs as nobody, has nothing but what the first stage built, and no shell:
// no command of the last stage needs one.
func TestDockerfile(t *testing.T) {
	stages := dockerfile(t)
	if len(stages) != 2 || stages[0].Name != "build" || stages[1].BaseName != "${BASE_IMAGE}" {
		t.Fatalf("%+v", stages)
	}
	m := ignored(t)
	user := ""
	for i, s := range stages {
		for _, c := range s.Commands {
			switch c := c.(type) {
			case *instructions.UserCommand:
				user = c.User
			case *instructions.CopyCommand:
				for _, source := range c.SourcePaths {
					if _, err := os.Stat(filepath.Join(root, source)); c.From == "" && (err != nil || !sent(t, m, filepath.Clean(source)) && source != ".") {
						t.Errorf("COPY %s: it is not there, or .dockerignore leaves it out: %v", source, err)
					}
				}
			case *instructions.RunCommand, *instructions.AddCommand, *instructions.EntrypointCommand, *instructions.CmdCommand, *instructions.HealthCheckCommand:
				if i == 1 {
					t.Errorf("the last stage has %s", c.Name())
				}
			}
		}
	}
	if user != "65532:65532" {
		t.Errorf("it runs as %q", user)
	}
}

// builds returns what the first stage runs to build, as a script.
func builds(t *testing.T) string {
	t.Helper()
	for _, c := range dockerfile(t)[0].Commands {
		if r, ok := c.(*instructions.RunCommand); ok && strings.Contains(strings.Join(r.CmdLine, " "), "go build") {
			return strings.Join(r.CmdLine, " ")
		}
	}
	t.Fatal("the first stage builds nothing")
	return ""
}

// The image, make build and make dist are built by the same flags.
func TestBuildsAreTheSame(t *testing.T) {
	makefile, err := os.ReadFile(root + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	dist, err := os.ReadFile(root + "/tools/dist/build.go")
	if err != nil {
		t.Fatal(err)
	}
	script := builds(t)
	for _, flag := range []string{"-trimpath", "-buildvcs=false", "-s -w -X main.version=", "CGO_ENABLED=0", "GOWORK"} {
		if !strings.Contains(string(makefile), flag) || !strings.Contains(string(dist), flag) || !strings.Contains(script, flag) {
			t.Errorf("%s is not in each of Makefile, tools/dist/build.go and Dockerfile", flag)
		}
	}
}

// needed lists the files that the commands are built from, below the checkout.
func needed(t *testing.T) (names []string) {
	t.Helper()
	c := exec.Command("go", "list", "-deps", "-json=Dir,Standard,Module,GoFiles,SFiles,EmbedFiles", "./cmd/ingest", "./cmd/compact", "./cmd/export", "./cmd/verify")
	c.Dir = root
	c.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS=linux")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir                         string
			Module                      struct{ Main bool }
			GoFiles, SFiles, EmbedFiles []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return append(names, "go.mod", "go.sum", "LICENSE")
		} else if err != nil {
			t.Fatal(err)
		}
		for _, f := range slices.Concat(p.GoFiles, p.SFiles, p.EmbedFiles) {
			if p.Module.Main {
				name, err := filepath.Rel(top, filepath.Join(p.Dir, f))
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, name)
			}
		}
	}
}

// What .dockerignore lets through is what the commands are built from, and little
// else: no tests, no data, nothing of git.
func TestContext(t *testing.T) {
	m := ignored(t)
	names := needed(t)
	if len(names) < 200 {
		t.Fatalf("%d files", len(names))
	}
	for _, name := range names {
		if !sent(t, m, name) {
			t.Errorf("%s is needed, and left out", name)
		}
	}
	for _, name := range []string{".git/config", "bin/ledgerlake-verify", "data/demo/s3/x", "it/run.sh", "cmd/ingest/main_test.go", "dist/SHA256SUMS", "audit/testdata/x.json", "compaction.test"} {
		if sent(t, m, name) {
			t.Errorf("%s is sent to the builder", name)
		}
	}
}

// lay copies the context to a folder, as a builder gets it.
func lay(t *testing.T, to string) {
	t.Helper()
	m := ignored(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || name == "." {
			return err
		}
		switch {
		case !sent(t, m, name) && d.IsDir():
			return fs.SkipDir
		case !sent(t, m, name) || d.IsDir() || !d.Type().IsRegular():
			return nil
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return errors.Join(os.MkdirAll(filepath.Join(to, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(to, name), body, 0o644))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The first stage builds from its context alone: its own script, in a folder that has
// only what is sent, makes the four commands, and they need no linker in the image.
func TestImageBuilds(t *testing.T) {
	t.Parallel()
	src, out := t.TempDir(), t.TempDir()
	lay(t, src)
	c := exec.Command("sh", "-c", strings.ReplaceAll(builds(t), "/out/", out+"/"))
	c.Dir = src
	c.Env = append(os.Environ(), "TARGETOS=linux", "TARGETARCH=amd64", "VERSION=v0.0.0-test")
	if says, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, says)
	}
	for _, name := range []string{"ingest", "compact", "export", "verify"} {
		f, err := elf.Open(filepath.Join(out, "ledgerlake-"+name))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
				t.Errorf("%s is not static", name)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
