//go:build it

package quickstart

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/it/parts"
)

var (
	// A command of ours, as pages quote it, up to where a shell or the page ends it.
	quoted   = regexp.MustCompile(`\b(ledgerlake-(?:ingest|compact|export|verify|devstack)) ([^` + "`" + `\n|<>;&#…()]*)`)
	quotes   = regexp.MustCompile(`'[^']*'|"[^"]*"`)
	flagName = regexp.MustCompile(`^--[a-z0-9.-]+`)
	fence    = regexp.MustCompile("(?ms)^```.*?^```$|(?:^    .*\n)+|`[^`\n]+`")
)

// Each command that a page quotes is one that its program has, and so is each
// of its flags, by what the program says of itself under --help.
func TestCommandsOfPages(t *testing.T) {
	seen := 0
	for path, page := range pages(t) {
		for _, block := range fence.FindAllString(page, -1) {
			block = strings.ReplaceAll(block, "\\\n", " ")
			for _, m := range quoted.FindAllStringSubmatch(quotes.ReplaceAllString(block, "X"), -1) {
				seen++
				if wrong := check(m[1], strings.Fields(m[2])); wrong != "" {
					t.Errorf("%s: %s %s: %s", path, m[1], strings.TrimSpace(m[2]), wrong)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("%d commands found; the pattern must be wrong", seen)
	}
	for _, bad := range [][]string{{"ledgerlake-export", "turns"}, {"ledgerlake-export", "turn", "--tennant"}, {"ledgerlake-verify", "--state", "--kee"}} {
		if check(bad[0], bad[1:]) == "" {
			t.Errorf("%q is a command", bad)
		}
	}
}

// pages returns all that is written for people, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(parts.Root(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata" || name == "data") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, ".md") || name == "CHANGELOG.md" {
			return nil
		}
		page, err := os.ReadFile(path)
		all[path] = string(page)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// check returns what is wrong with a command, and nothing where nothing is.
func check(program string, args []string) string {
	help := helpOf(program)
	if len(args) > 0 && regexp.MustCompile(`^[a-z][a-z-]+$`).MatchString(args[0]) {
		if help = helpOf(program, args[0]); help == "" {
			return "no such command: " + args[0]
		}
	}
	for _, arg := range args {
		flag := flagName.FindString(arg)
		if flag == "" || flag == "--help" || flag == "--version" {
			continue
		}
		if !regexp.MustCompile(regexp.QuoteMeta(flag) + `([^a-z0-9.-]|$)`).MatchString(help) {
			return "no such flag: " + flag
		}
	}
	return ""
}

var helps = map[string]string{}

// helpOf is what a program says under --help, or nothing where it has no such command.
func helpOf(program string, command ...string) string {
	line := strings.Join(append([]string{program}, command...), " ")
	if _, ok := helps[line]; !ok {
		said, err := exec.Command(parts.Binary(program), append(command, "--help")...).Output()
		if err != nil {
			said = nil
		}
		helps[line] = string(said)
	}
	return helps[line]
}
