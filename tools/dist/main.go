// Command dist makes the archives of a release: for each target one tar.gz with the
// four commands, the licences of all that is in them, a bill of materials (CycloneDX
// 1.6), the pages, the chart and what lies in deploy, and SHA256SUMS over all.
//
//	go run ./tools/dist -version v1.0.0 -out dist linux/amd64 linux/arm64
//
// The same commit, version and Go give the same bytes, wherever the checkout lies: times
// are that of the commit (or SOURCE_DATE_EPOCH), files stand in order and have no owner,
// and the compiler is told to leave out paths. A binary for Linux that would need a
// dynamic linker, and a module whose licence is none of those that may be used, end the
// run: nothing is left in the folder then.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Commands are what an archive has, by the folder of each below cmd.
var commands = []string{"ingest", "compact", "export", "verify"}

// Targets are what is built where nothing else is asked for.
var targets = []string{"linux/amd64", "linux/arm64", "darwin/arm64", "windows/amd64"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// A release is what is asked for.
type release struct {
	root     string // of the checkout
	out      string // folder
	version  string
	commands []string
	when     time.Time
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	var r release
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	flags.StringVar(&r.root, "root", ".", "the checkout")
	flags.StringVar(&r.out, "out", "dist", "the folder that archives are written to")
	flags.StringVar(&r.version, "version", "dev", "the version that the commands say")
	only := flags.String("commands", strings.Join(commands, ","), "which commands an archive has")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r.commands = strings.Split(*only, ",")
	wanted := flags.Args()
	if len(wanted) == 0 {
		wanted = targets
	}
	if strings.ContainsAny(r.version, `/\ `) {
		return fmt.Errorf("-version %q: want one without slashes and blanks", r.version)
	}
	var err error
	if r.when, err = commitTime(ctx, r.root); err != nil {
		return err
	}
	return r.make(ctx, wanted, stdout)
}

// commitTime is SOURCE_DATE_EPOCH (reproducible-builds.org), or when the commit that is
// checked out was made.
func commitTime(ctx context.Context, root string) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		c := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct")
		c.Dir = root
		out, err := c.Output()
		if err != nil {
			return time.Time{}, errors.New("no commit to take the time of: set SOURCE_DATE_EPOCH to seconds since 1970")
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q: want seconds since 1970", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// make makes all archives in a folder of its own, and puts them in their place.
func (r *release) make(ctx context.Context, wanted []string, stdout io.Writer) error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(r.out, ".work-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	var made []string
	for _, target := range wanted {
		files, err := r.target(ctx, target, work)
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		made = append(made, files...)
	}
	sums, err := writeSums(work, made)
	if err != nil {
		return err
	}
	for _, name := range append(made, sums) {
		if err := os.Rename(filepath.Join(work, name), filepath.Join(r.out, name)); err != nil {
			return err
		}
		fmt.Fprintln(stdout, filepath.Join(r.out, name))
	}
	return nil
}

// ownFiles returns the names of files that go beside the programs: what is to be
// read, and what they are operated with.
func ownFiles(ctx context.Context, root string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", "-C", root, "ls-files", "-z", "--", "LICENSE", ":(glob)*.md", "docs", "deploy", "helm")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	names := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, ".go") }), nil
}

// target makes the archive of one target, and its bill of materials beside it.
func (r *release) target(ctx context.Context, target, work string) ([]string, error) {
	goos, arch, ok := strings.Cut(target, "/")
	if !ok {
		return nil, errors.New("want OS/ARCH, such as linux/amd64")
	}
	name := strings.Join([]string{"ledgerlake", r.version, goos, arch}, "_")
	binaries, err := r.build(ctx, goos, arch, filepath.Join(work, name+".bin"))
	if err != nil {
		return nil, err
	}
	modules, err := modulesOf(ctx, r.root, binaries)
	if err != nil {
		return nil, err
	}
	bom, err := r.bom(name, binaries, modules)
	if err != nil {
		return nil, err
	}
	files := map[string]file{"sbom.cdx.json": {body: bom, mode: 0o644}, "THIRD-PARTY-LICENCES.txt": {body: notices(modules), mode: 0o644}}
	own, err := ownFiles(ctx, r.root)
	if err != nil {
		return nil, err
	}
	for _, own := range own {
		body, err := os.ReadFile(filepath.Join(r.root, own))
		if err != nil {
			return nil, err
		}
		files[own] = file{body: body, mode: 0o644}
	}
	for _, b := range binaries {
		files[filepath.Base(b.path)] = file{body: b.body, mode: 0o755}
	}
	sbom := name + ".sbom.cdx.json"
	if err := os.WriteFile(filepath.Join(work, sbom), bom, 0o644); err != nil {
		return nil, err
	}
	return []string{name + ".tar.gz", sbom}, pack(filepath.Join(work, name+".tar.gz"), name, files, r.when)
}
