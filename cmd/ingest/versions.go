package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/ledgerlake/ledgerlake/audit"
)

// versions is the command that prints the version history of AuditableCall.
func versions(_ context.Context, in invocation) error {
	switch strings.Join(in.args, " ") {
	case "":
		return writeVersions(in.stdout)
	case "--json":
		e := json.NewEncoder(in.stdout)
		e.SetIndent("", "  ")
		return e.Encode(audit.Versions)
	case "--help", "-h":
		_, err := io.WriteString(in.stdout, versionsHelp)
		return err
	}
	return fmt.Errorf("versions: %w: want --json or nothing, not %q", errUsage, in.args)
}

// writeVersions writes a table of the versions.
func writeVersions(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "VERSION\tLANDED\tNEW MEMBERS\tREASON")
	for _, v := range audit.Versions {
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", v.To, orDash(v.LandedAt), orDash(strings.Join(v.Members, ", ")), orDash(v.Reason))
	}
	return table.Flush() // has the error of any write before
}

// orDash shows that nothing is known.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
