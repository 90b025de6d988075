package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/ledgerlake/ledgerlake/export/serve"
)

const tokenHelp = program + ` token new makes a token for ` + program + ` serve.

  ` + program + ` token new --name NAME --tenant TENANT [--tenant …] [--not-after DAY]
  ` + program + ` token new --name NAME --all-tenants [--not-after DAY]

  ` + program + ` token new --name acme-app --tenant acme >> tokens.yaml
  ` + program + ` token new --name auditor --all-tenants --not-after 2027-06-30

The token goes to stderr, for whoever is to have it: it is kept nowhere, and cannot be had again. The entry for the file of
tokens goes to stdout; it holds the token's SHA-256, which is no secret. The file begins with the line "tokens:".

Flags:
  --name NAME
        What logs call it. Each token of a file has another.
  --tenant TENANT
        Whose records it shows. May be given more than once.
  --all-tenants
        It shows those of all tenants, also those to come.
  --not-after DAY|TIME
        When it ends: a day (its end, UTC) or a time. Without it, it does not end.
`

// tokens runs what the next argument says.
func tokens(_ context.Context, c call) (int, error) {
	if len(c.args) == 0 || c.args[0] != "new" {
		if len(c.args) > 0 && (c.args[0] == "--help" || c.args[0] == "-h") {
			return showTokenHelp(c)
		}
		return exitCannotRun, fmt.Errorf("%w: want `token new`; --help says more", errUsage)
	}
	c.args = c.args[1:]
	return newToken(c)
}

func showTokenHelp(c call) (int, error) {
	_, err := fmt.Fprint(c.stdout, tokenHelp)
	return exitDone, err
}

func newToken(c call) (int, error) {
	f := flag.NewFlagSet("token new", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	var name string
	var tenants []string
	var all bool
	var notAfter time.Time
	f.StringVar(&name, "name", "", "")
	f.Func("tenant", "", func(v string) error {
		if v == serve.AllTenants { // a producer may call itself that
			return errors.New("* is no name of a tenant here: --all-tenants")
		}
		tenants = append(tenants, v)
		return nil
	})
	f.BoolVar(&all, "all-tenants", false, "")
	f.Func("not-after", "", func(v string) (err error) { notAfter, err = serve.ParseNotAfter(v); return err })
	switch err := f.Parse(c.args); {
	case errors.Is(err, flag.ErrHelp):
		return showTokenHelp(c)
	case err != nil:
		return exitCannotRun, fmt.Errorf("%w: %w", errUsage, err)
	case f.NArg() > 0:
		return exitCannotRun, fmt.Errorf("%w: want flags alone, got %q", errUsage, f.Args())
	case all && tenants != nil:
		return exitCannotRun, fmt.Errorf("%w: want --tenant or --all-tenants", errUsage)
	case !notAfter.IsZero() && notAfter.Before(time.Now()):
		return exitCannotRun, fmt.Errorf("%w: --not-after is over", errUsage)
	case all:
		tenants = []string{serve.AllTenants}
	}
	secret, entry, err := serve.NewToken(rand.Reader, name, tenants, notAfter)
	if err != nil {
		return exitCannotRun, fmt.Errorf("%w: %w", errUsage, err)
	}
	if _, err := fmt.Fprint(c.stdout, entry); err != nil {
		return exitCannotRun, err
	}
	_, err = fmt.Fprintf(c.stderr, "%s\n", secret)
	return exitDone, err
}
