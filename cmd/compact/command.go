package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/compaction"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
)

// program is what the binary is called.
const program = "ledgerlake-compact"

// An invocation is what a command is run with.
type invocation struct {
	args           []string // behind the command's name
	environ        []string
	stdout, stderr io.Writer
}

// A command is what the first argument can be.
type command struct {
	name  string
	short string // one line
	run   func(context.Context, invocation) error
}

// commands lists the commands in the order of help.
func commands() []command {
	return []command{
		{"run", "compact, erase and expire, until it is told to stop", runLoop},
		{"once", "the same, until nothing is left to do now", once},
		{"plan", "print what would be done now; nothing is written", plan},
		{"status", "print how far compaction of each line is", status},
		{"erase", "order that something is erased", erase},
		{"cancel", "take an order of erasure back, before it is due", cancel},
		{"hold", "set a legal hold", hold},
		{"release", "lift a legal hold", release},
		{"erasures", "print the state of each order of erasure, line by line", erasures},
		{"retention", "order what is due to go by policy", retain},
		{"offboard", "order that all of a tenant goes", offboard},
		{"doctor", "probe a bucket, and the control topic", doctor},
		{"versions", "list what the store keeps besides the newest version of each object", versions},
	}
}

// errUsage: the arguments are not understood.
var errUsage = errors.New("not understood")

func unknownCommand(name string) error {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return daemon.UnknownCommand(errUsage, name, names...)
}

// commandList is the part of the help that names the commands.
func commandList() string {
	var b strings.Builder
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %s %-10s %s\n", program, c.name, c.short)
	}
	return b.String()
}

// The exit codes.
const (
	exitDone     = 0
	exitFailed   = 1
	exitBadUse   = 2 // nothing was done
	exitNothing  = 3 // what was asked for is not there
	exitOverdue  = 4 // something is overdue, or not there in time
	codesInWords = `Exit codes:
  0  done, or stopped cleanly
  1  failed, or a line is halted; the last line of stderr says why
  2  bad configuration or arguments: nothing was done
  3  what is meant is not known, or nothing counts without a key: nothing was done
  4  something is overdue, or was not archived in the time of --wait
`
)

var (
	// errNothing: what was asked for is not there.
	errNothing = errors.New("nothing found")
	// errOverdue: something should have been done by now.
	errOverdue = errors.New("overdue")
)

// exitCode returns the exit code of an error of run.
func exitCode(err error) int {
	var fault *config.Error
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &fault), errors.Is(err, errUsage):
		return exitBadUse
	case errors.Is(err, errNothing):
		return exitNothing
	case errors.Is(err, errOverdue):
		return exitOverdue
	}
	return exitFailed
}

// halted reports whether an operator has to look.
func halted(err error) bool { return errors.Is(err, compaction.ErrHalted) }

// load reads the settings of a command. own are those of it alone. help is what
// stands before the settings where they are asked for: done is then true.
func load(in invocation, c *config.Compact, own config.Section, keep func(config.Setting) bool, help string) (origins config.Origins, done bool, err error) {
	all := c.Sections()
	offered := config.Select(all, keep)
	if own.Settings != nil {
		all, offered = append([]config.Section{own}, all...), append([]config.Section{own}, offered...)
	}
	origins, err = config.Load(all, offered, config.Input{Args: in.args, Environ: in.environ})
	if errors.Is(err, config.ErrHelp) {
		return nil, true, writeHelp(in.stdout, help, offered)
	}
	return origins, false, err
}

// anySetting keeps all settings.
func anySetting(config.Setting) bool { return true }

// looking keeps those of who only reads the bucket.
func looking(s config.Setting) bool {
	return slices.Contains([]string{
		"bucket", "control-topic", "purge-after", "late-window", "erasure-within", "retention-file", "key", "anchor-keys", "catalog-keys", "control-keys",
		"log-level", "log-format", "log-tenants",
	}, s.Name) || strings.HasPrefix(s.Name, "s3.") || strings.HasPrefix(s.Name, "chain.") || s.Name == "compact.memory"
}

// ordering keeps those of who reads the bucket and writes to the control topic.
func ordering(s config.Setting) bool {
	return looking(s) || s.Name == "brokers" || s.Name == "control-key" ||
		strings.HasPrefix(s.Name, "kafka.") && !slices.Contains([]string{"kafka.instance-id", "kafka.session-timeout", "kafka.group-protocol", "kafka.rack", "kafka.metadata-age"}, s.Name)
}
