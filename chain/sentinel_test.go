package chain

import (
	"errors"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
)

var sentinelTexts = []struct {
	sentinel Sentinel
	text     string
}{
	{Sentinel{ID: someULID, All: true}, `{"redacted":true,"id":"01KBCDEFGHJKMNPQRSTVWXYZ01","slots":"*"}`},
	{Sentinel{ID: someULID, All: true, User: true}, `{"redacted":true,"id":"01KBCDEFGHJKMNPQRSTVWXYZ01","slots":"*","user":true}`},
	{Sentinel{ID: someULID, All: true, User: true, Hard: true}, `{"redacted":true,"id":"01KBCDEFGHJKMNPQRSTVWXYZ01","slots":"*","user":true,"hard":true}`},
	{Sentinel{ID: someULID, Slots: SlotSetOf(audit.SlotPrompts)}, `{"redacted":true,"id":"01KBCDEFGHJKMNPQRSTVWXYZ01","slots":["prompts"]}`},
	{Sentinel{ID: someULID, Slots: SlotSetOf(audit.SlotRaw, audit.SlotDecision), User: true}, `{"redacted":true,"id":"01KBCDEFGHJKMNPQRSTVWXYZ01","slots":["decision","raw"],"user":true}`},
	{Sentinel{ID: someULID, User: true}, `{"redacted":true,"id":"01KBCDEFGHJKMNPQRSTVWXYZ01","slots":[],"user":true}`},
	{Sentinel{ID: strings.ToLower(someULID), All: true}, `{"redacted":true,"id":"01kbcdefghjkmnpqrstvwxyz01","slots":"*"}`},
}

func TestSentinelHasOneText(t *testing.T) {
	for _, c := range sentinelTexts {
		if got := c.sentinel.String(); got != c.text {
			t.Errorf("%+v is\n%s, want\n%s", c.sentinel, got, c.text)
		}
		if got, err := ParseSentinel(c.text); err != nil || got != c.sentinel {
			t.Errorf("%s is %+v, %v", c.text, got, err)
		}
	}
}

// Every other text is refused, however little it differs: a sentinel that can
// be written in two ways could say two things to two readers.
func TestParseSentinelIsStrict(t *testing.T) {
	for name, change := range map[string][2]string{
		"space":             {`,"id"`, `, "id"`},
		"space after":       {`}`, `} `},
		"not redacted":      {`true`, `false`},
		"no id":             {someULID, ``},
		"id too short":      {`01KB`, `1KB`},
		"id too long":       {`01KB`, `001KB`},
		"id over 128 bits":  {`01KB`, `81KB`},
		"id with U":         {`01KB`, `01UB`},
		"id with a quote":   {`01KB`, `01"B`},
		"unknown slot":      {`"prompts"`, `"prompt"`},
		"slot twice":        {`"prompts"`, `"prompts","prompts"`},
		"slots out of turn": {`"prompts"`, `"prompts","context"`},
		"star in a list":    {`"prompts"`, `"*"`},
		"slot with escape":  {`"prompts"`, `"\u0070rompts"`},
		"user_id as a slot": {`"prompts"`, `"user_id"`},
		"no slots":          {`["prompts"]`, `[]`},
		"null slots":        {`["prompts"]`, `null`},
		"empty name":        {`["prompts"]`, `[""]`},
		"comma":             {`["prompts"]`, `["prompts",]`},
		"nested":            {`["prompts"]`, `[["prompts"]]`},
		"no end of slots":   {`]`, ``},
		"user false":        {`]}`, `],"user":false}`},
		"user twice":        {`]}`, `],"user":true,"user":true}`},
		"hard alone":        {`]}`, `],"hard":true}`},
		"hard with a list":  {`]}`, `],"user":true,"hard":true}`},
		"hard before user":  {`["prompts"]`, `"*","hard":true,"user":true`},
		"hard without user": {`["prompts"]`, `"*","hard":true`},
		"unknown member":    {`]}`, `],"by":"dpo"}`},
		"cut":               {`]}`, `]`},
		"two":               {`]}`, `]}{}`},
	} {
		good := sentinelTexts[3].text
		text := strings.Replace(good, change[0], change[1], 1)
		if text == good {
			t.Fatalf("%s: nothing changed", name)
		}
		if s, err := ParseSentinel(text); !errors.Is(err, ErrSentinel) || s != (Sentinel{}) {
			t.Errorf("%s: %s is read as %+v, %v", name, text, s, err)
		}
	}
	if _, err := ParseSentinel(""); err == nil {
		t.Error("the empty text is read")
	}
}

func TestImpossibleSentinelsPanic(t *testing.T) {
	for name, s := range map[string]Sentinel{
		"zero":              {},
		"no ULID":           {ID: `x","slots":"*"}`, All: true},
		"nothing went":      {ID: someULID},
		"all and some":      {ID: someULID, All: true, Slots: 1},
		"hard, slots left":  {ID: someULID, User: true, Hard: true, Slots: 1},
		"hard, user left":   {ID: someULID, All: true, Hard: true},
		"slot out of range": {ID: someULID, Slots: 1 << audit.NumSlots},
	} {
		requirePanic(t, name, func() { _ = s.String() })
	}
}

// A further erasure keeps the first id, and what went adds up.
func TestUnionKeepsTheFirstID(t *testing.T) {
	other := "01KBCDEFGHJKMNPQRSTVWXYZ02"
	some := Sentinel{ID: someULID, Slots: SlotSetOf(audit.SlotExt)}
	for _, c := range []struct{ further, want Sentinel }{
		{Sentinel{ID: other, Slots: SlotSetOf(audit.SlotExt)}, some},
		{Sentinel{ID: other, Slots: SlotSetOf(audit.SlotRaw)}, Sentinel{ID: someULID, Slots: SlotSetOf(audit.SlotExt, audit.SlotRaw)}},
		{Sentinel{ID: other, User: true}, Sentinel{ID: someULID, Slots: some.Slots, User: true}},
		{Sentinel{ID: other, All: true}, Sentinel{ID: someULID, All: true}},
		{Sentinel{ID: other, All: true, User: true, Hard: true}, Sentinel{ID: someULID, All: true, User: true, Hard: true}},
	} {
		got := some.Union(c.further)
		if got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.further, got, c.want)
		}
		if again := got.Union(c.further); again != got {
			t.Errorf("%+v: a second time gives %+v", c.further, again)
		}
	}
}

func FuzzParseSentinel(f *testing.F) {
	for _, c := range sentinelTexts {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := ParseSentinel(text); err == nil && s.String() != text {
			t.Errorf("%q comes back as %q", text, s)
		}
	})
}
