// Package docs holds the tests of what is written for people: that links lead
// somewhere, that the index has every page, that metrics are called so, and that
// the list of dependencies is the one in the go.mod files.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

const root = ".."

// walk calls f for each file of the repository that ends with suffix.
func walk(t *testing.T, suffix string, f func(path string, body []byte)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (slices.Contains([]string{"testdata", "data", "bin", "node_modules"}, d.Name()) || strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, suffix) {
			return nil
		}
		body, err := os.ReadFile(path)
		if err == nil {
			f(path, body)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// A link between pages leads to a file that is there, and behind its # to a
// heading of it.
func TestLinks(t *testing.T) {
	links, headed := 0, map[string]map[string]bool{}
	walk(t, ".md", func(path string, body []byte) {
		for _, m := range link.FindAllStringSubmatch(string(body), -1) {
			target, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: link to %s leads nowhere", path, m[1])
			} else if fragment != "" && strings.HasSuffix(file, ".md") && !headings(t, headed, file)[fragment] {
				t.Errorf("%s: link to %s leads to a page without that heading", path, m[1])
			}
		}
	})
	if links < 10 {
		t.Errorf("found %d links; the pattern must be wrong", links)
	}
}

var (
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	code    = regexp.MustCompile("(?ms)^```.*?^```$")
	unsaid  = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// headings returns the names by which the headings of a page are linked to, as
// GitHub makes them: lower case, dashes for spaces, nothing but letters and digits.
func headings(t *testing.T, known map[string]map[string]bool, file string) map[string]bool {
	t.Helper()
	if known[file] == nil {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		known[file] = map[string]bool{}
		for _, m := range heading.FindAllStringSubmatch(code.ReplaceAllString(string(body), ""), -1) {
			text := link.ReplaceAllString(m[1], "")
			known[file][strings.ReplaceAll(unsaid.ReplaceAllString(strings.ToLower(text), ""), " ", "-")] = true
		}
	}
	return known[file]
}

var metric = regexp.MustCompile(`\bledgerlake_(?:ingest|compact|export|verify)_[a-z_]*[a-z]\b`)

// A metric that a page names is one that metrics.md has, which is made from the code.
func TestMetrics(t *testing.T) {
	page, err := os.ReadFile("metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	walk(t, ".md", func(path string, body []byte) {
		for _, name := range metric.FindAllString(string(body), -1) {
			named++
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				name = strings.TrimSuffix(name, suffix)
			}
			if !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("%s: there is no metric %s", path, name)
			}
		}
	})
	if named < 100 {
		t.Errorf("found %d names of metrics; the pattern must be wrong", named)
	}
}

// Every page in docs stands in the index, docs/README.md.
func TestIndex(t *testing.T) {
	index, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	decisions, err := filepath.Glob("decisions/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, decisions...) {
		if page != "README.md" && !strings.Contains(string(index), "]("+filepath.ToSlash(page)+")") {
			t.Errorf("docs/README.md does not list %s", page)
		}
	}
}

var (
	codeRef = regexp.MustCompile("`([a-z0-9/_]+\\.go):([A-Za-z0-9_]+)`")
	fileRef = regexp.MustCompile("`((?:[a-z0-9_]+/)+[a-z0-9_]+(?:\\.[a-z]+)?)`")
)

// ARCHITECTURE.md speaks of files and functions that are there.
func TestArchitecture(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	refs := codeRef.FindAllStringSubmatch(string(page), -1)
	if len(refs) < 10 {
		t.Errorf("found %d references to functions; the pattern must be wrong", len(refs))
	}
	for _, m := range refs {
		body, err := os.ReadFile(filepath.Join(root, m[1]))
		if err != nil {
			t.Errorf("%s: %v", m[0], err)
			continue
		}
		if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + m[2] + `[(\[]`).Match(body) {
			t.Errorf("%s has no function %s", m[1], m[2])
		}
	}
	for _, m := range fileRef.FindAllStringSubmatch(string(page), -1) {
		_, err := os.Stat(filepath.Join(root, m[1]))
		if err != nil && m[1] != "testing/synctest" {
			t.Errorf("%s is not there", m[1])
		}
	}
}

// allowed are the licences that a dependency may have.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "MIT", "MIT and Apache-2.0"}

// docs/dependencies.md has one line for each module that a go.mod file of ours
// requires directly, or names as a tool, with its version and a licence that
// may be used; and no other line.
func TestDependencies(t *testing.T) {
	page, err := os.ReadFile("dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{} // module and version -> licence
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^ |]+) \\| ([^|]+) \\|").FindAllStringSubmatch(string(page), -1) {
		listed[m[1]+" "+m[2]] = m[3]
		if !slices.Contains(allowed, m[3]) {
			t.Errorf("%s: licence %s is not one of %v", m[1], m[3], allowed)
		}
	}
	required := required(t)
	for module := range required {
		if _, ok := listed[module]; !ok {
			t.Errorf("docs/dependencies.md does not list %s", module)
		}
	}
	for module := range listed {
		if !required[module] {
			t.Errorf("docs/dependencies.md lists %s, which no go.mod requires directly", module)
		}
	}
}

// required returns the direct requirements of all modules of ours, and the
// modules of tools, as "path version".
func required(t *testing.T) map[string]bool {
	t.Helper()
	modules := map[string]bool{}
	walk(t, "go.mod", func(path string, body []byte) {
		f, err := modfile.Parse(path, body, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range f.Require {
			ours := strings.HasPrefix(r.Mod.Path, "github.com/ledgerlake/")
			tool := slices.ContainsFunc(f.Tool, func(tool *modfile.Tool) bool {
				return tool.Path == r.Mod.Path || strings.HasPrefix(tool.Path, r.Mod.Path+"/")
			})
			if !ours && (!r.Indirect || tool) {
				modules[r.Mod.Path+" "+r.Mod.Version] = true
			}
		}
	})
	return modules
}
