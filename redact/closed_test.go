package redact

import (
	"errors"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
)

// broken is a rule that breaks on what it sees, and says what that was.
type broken struct{}

func (broken) find(s *subject, _ int) { panic(string(s.b)) }

// rude finds something that is no part of the text.
type rude struct{}

func (rude) find(s *subject, number int) { s.add(0, len(s.b)+1, number) }

// A fault of a rule is an error that does not show the payload, and ends no
// process. The policy goes on with the next record.
func TestAFaultOfARuleIsAnError(t *testing.T) {
	for name, r := range map[string]rule{"broken": broken{}, "rude": rude{}} {
		p := &Policy{id: "x@0", rules: &ruleSet{rules: []rule{r}, names: []string{"x"}, digits: 1}}
		for _, kind := range []string{audit.KindCall, audit.KindRejected} {
			bad := audit.Record{Kind: audit.Str(kind), RedactionPolicy: audit.Str(audit.PolicyNone)}
			bad.Slots[audit.SlotContext], bad.Slots[audit.SlotRaw] = []byte(`{"key":"secret 1"}`), []byte(`"secret 1"`)
			if err := p.Scrub(&bad); !errors.Is(err, ErrScrub) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
		}
		good := audit.Record{Kind: audit.Str(audit.KindCall), RedactionPolicy: audit.Str(audit.PolicyNone)}
		good.Slots[audit.SlotContext] = []byte(`{"key":"nothing"}`)
		if err := p.Scrub(&good); err != nil || good.RedactionPolicy.S != "x@0" {
			t.Errorf("%s: the next record: %v", name, err)
		}
	}
}
