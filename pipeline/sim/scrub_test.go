package sim_test

import (
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/redact"
)

// policy is what every ingest of a world scrubs by, in one world of three.
var policy = func() *redact.Policy {
	p, err := redact.ParsePolicy([]byte("name: sim\nrules: [{rule: ssn-us}]"))
	if err != nil {
		panic(err)
	}
	return p
}()

// noted is what producers then say besides.
const noted = `,"note":"123-45-6789"`

// scrubs says whether it is such a world.
func (s seed) scrubs() bool { return chance(s.at("", "scrubs", "", 0), 1.0/3) }

// policy returns the policy of the world, nil where there is none.
func (w *world) policy() *redact.Policy {
	if w.seed.scrubs() {
		return policy
	}
	return nil
}

// scrub makes of what was produced what is to be stored, by the policy that the
// segment states.
func (j *judging) scrub(want *audit.Record) error {
	if j.o.Writer.Policy == policy.ID() {
		return policy.Scrub(want)
	}
	return nil
}

// scrubbed is scrub, of the value of a record that is rejected.
func (j *judging) scrubbed(value []byte) []byte {
	if j.o.Writer.Policy != policy.ID() {
		return value
	}
	text, err := policy.Try("", value)
	if err != nil {
		panic(err)
	}
	return text
}
