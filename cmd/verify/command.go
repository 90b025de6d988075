package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/internal/reach"
)

// program is what the binary is called.
const program = "ledgerlake-verify"

// exitCannotRun: there is no verdict.
const exitCannotRun = 2

// errUsage: the arguments are not understood.
var errUsage = reach.ErrUsage

// A call is what a command is run with.
type call struct {
	args           []string // behind the command's name
	environ        []string
	stdout, stderr io.Writer
}

// A command is what the first argument can be. run returns the exit code; an
// error means that there is no verdict.
type command struct {
	name  string
	args  string // as help shows them
	short string // one line
	run   func(context.Context, call) (int, error)
}

// commands lists the commands in the order of help. A first argument that is
// none of them is the archive that is to be verified: a folder that is called
// like a command is reached as ./NAME, or by the command archive.
func commands() []command {
	return []command{
		{"archive", "TARGET", "check a whole archive; this is what runs without a command too", verifyArchive},
		{"prove", "RECORD-ID TARGET -o FILE", "write the proof of one row as a file that checks without the archive", prove},
		{"row", "RECORD-ID TARGET", "print a row for a person, and check its proof", row},
		{"pack", "TARGET -o FILE.zip", "write a case as one zip that explains and proves itself", pack},
		{"proof", "FILE", "check a proof or a pack, without the archive", checkProof},
		{"consistency", "OLD NEW", "show that one tree of a log continues another", consistency},
		{"tiles", "TARGET DIR", "write a log's tree as C2SP tlog-tiles, and extend it", tiles},
		{"keys", "TARGET", "print which keys signed what, and how they were introduced", keyUses},
		{"jsonl", "FILE...", "check chained JSONL files, each alone and all as a set", jsonl},
		{"keygen", "--name NAME --out FILE", "make a key that signs, and print its public half", keygen},
	}
}

// commandOf parts the command from its arguments.
func commandOf(args []string) (command, []string) {
	all := commands()
	if len(args) > 0 {
		if i := slices.IndexFunc(all, func(c command) bool { return c.name == args[0] }); i >= 0 {
			return all[i], args[1:]
		}
	}
	return all[0], args
}

// commandList is the part of the help that names the commands.
func commandList() string {
	var b strings.Builder
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-11s %s\n", c.name, c.short)
	}
	return b.String()
}
