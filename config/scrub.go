package config

import (
	"os"

	"github.com/ledgerlake/ledgerlake/redact"
)

// scrubPolicy is the setting that names a policy of scrubbing.
func scrubPolicy(path *string) Setting {
	return Setting{
		Name: "scrub-policy", Default: None,
		Help:  "A YAML file that says what is taken out of records before they are stored (docs/scrubbing.md). Its id stands in each row. It is read once, at the start; processes of one group should have the same. none: nothing is taken out.",
		Value: textOrNone(path, "FILE", "the path of a file", notEmpty),
	}
}

// Scrub is what a policy is tried on.
type Scrub struct {
	In     string // a file; "" is standard input
	Tenant string // "" is one without rules of its own
}

// Section returns the settings of the trial alone.
func (s *Scrub) Section() Section {
	return Section{"What it is tried on", []Setting{
		{Name: "in", Help: "A file of lines: the values of records, or any text. Default: standard input.", Value: text(&s.In, "FILE", "the path of a file", notEmpty)},
		{Name: "tenant", Help: "Whose records they are, where the policy has rules for single tenants.", Value: text(&s.Tenant, "TENANT", "a tenant id", notEmpty)},
	}}
}

// ReadScrubPolicy reads the policy of a file, nil where path is "".
func ReadScrubPolicy(path string, origins Origins) (*redact.Policy, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err == nil {
		var p *redact.Policy
		if p, err = redact.ParsePolicy(text); err == nil {
			return p, nil
		}
	}
	return nil, &Error{Name: "scrub-policy", Source: origins["scrub-policy"], Fault: err.Error()}
}
