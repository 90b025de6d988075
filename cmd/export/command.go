package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/internal/reach"
)

// program is what the binary is called.
const program = "ledgerlake-export"

// The exit codes.
const (
	exitDone       = 0
	exitTampered   = 1 // what is stored does not fit together
	exitCannotRun  = 2
	exitIncomplete = 3
	codesInWords   = `Exit codes:
  0  done; also where nothing is asked for that exists
  1  what is stored does not fit together: damaged, changed, or a position that is not of this archive
  2  cannot run: arguments, settings, no archive there, or the store does not answer
  3  incomplete: a bundle lacks something, there is no such record, or a destination did not take what check sent it
`
)

// errUsage: the arguments are not understood.
var errUsage = reach.ErrUsage

// A call is what a command is run with.
type call struct {
	args           []string // behind the command's name
	environ        []string
	stdout, stderr io.Writer
}

// A command is what the first argument can be. run returns the exit code; an error
// is what is still to be said.
type command struct {
	name  string
	short string // one line
	run   func(context.Context, call) (int, error)
}

// commands lists the commands in the order of help.
func commands() []command {
	return []command{
		{"turn", "the records of a turn, in order", turn},
		{"session", "the records of a session, the newest first", session},
		{"range", "the records of a range of time, of one tenant or all", timeRange},
		{"record", "the record of an id, or of a place in a log", record},
		{"subject", "all records of a person, in all logs", subject},
		{"sql", "views and queries by which DuckDB, Athena, Trino or Spark read the archive", sqlViews},
		{"replay", "a bundle from which a turn or a decision can be run again", replayTurn},
		{"serve", "answer over HTTP, with a page for people", serveArchive},
		{"token", "make a token for serve", tokens},
		{"check-jsonl", "whether exported lines fit together, without the archive", checkJSONL},
		{"stream", "send rows to destinations, for as long as it runs", streams},
		{"status", "how destinations stand", status},
		{"pause", "stop delivery to a destination for now", pause},
		{"resume", "go on with one that is paused or suspended", resume},
		{"check", "send a test event to a destination, and print the answer", check},
		{"backfill", "send rows once more, beside what is live", backfill},
		{"dead", "what a destination refused for good", dead},
	}
}

func unknownCommand(name string) error {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return daemon.UnknownCommand(errUsage, name, names...)
}

const helpText = program + ` answers from an archive, and sends it elsewhere. It needs no Kafka to read.

  ` + program + ` COMMAND … TARGET          each command has a --help of its own

{commands}
TARGET is the archive: s3://BUCKET/PREFIX?endpoint=URL&region=NAME, or a folder with a copy of a bucket. Where it is left
out, it is the setting bucket (LEDGERLAKE_BUCKET, or bucket in a file that --config names).

What is asked to be erased is shown to nobody, also where that is not carried out yet. Each record is checked by its hash
before it is shown.

` + codesInWords

// help is the text of --help.
func help() string {
	var b strings.Builder
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-12s %s\n", c.name, c.short)
	}
	return strings.Replace(helpText, "{commands}", b.String(), 1)
}

// showHelp prints the help of a command where that was asked for.
func showHelp(c call, text string, err error) (int, error) {
	if !errors.Is(err, flag.ErrHelp) {
		return exitCannotRun, err
	}
	_, err = io.WriteString(c.stdout, text+"\n"+codesInWords+"\n"+reach.StoreHelp())
	return exitDone, err
}

// outcome returns the exit code of an error: one that says something of the
// archive is printed here, and is no error any more.
func outcome(c call, err error) (int, error) {
	switch {
	case err == nil:
		return exitDone, nil
	case errors.Is(err, export.ErrTampered):
		_, err = fmt.Fprintf(c.stderr, "%s: %v\n", program, err)
		return exitTampered, err
	}
	return exitCannotRun, err
}
