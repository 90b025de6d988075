package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A derived column says what the member says, or is null: one that is not of
// its type is no reason to refuse the row.
func TestDerive(t *testing.T) {
	for decision, want := range map[string]string{
		`{}`: "- - - -",
		`{"requestedModel":null,"selectedReason":"family-lock","rungOrdinal":0,"fallbackChain":[]}`:     `- "family-lock" 0 []`,
		`{"requestedModel":"m","selectedReason":"","rungOrdinal":-0,"fallbackChain":["a","\u00e9"]}`:    `"m" "" 0 ["a" "é"]`,
		` { "rungOrdinal" : 1.0e2 , "fallbackChain" : [ "a" ] } `:                                       `- - 100 ["a"]`,
		`{"rungOrdinal":9223372036854775807}`:                                                           "- - 9223372036854775807 -",
		`{"rungOrdinal":9223372036854775808,"requestedModel":7,"selectedReason":{},"fallbackChain":{}}`: "- - - -",
		`{"rungOrdinal":1.5,"fallbackChain":["a",1]}`:                                                   "- - - -",
		`{"rungOrdinal":"1","fallbackChain":[null]}`:                                                    "- - - -",
		`{"rungOrdinal":1e400,"fallbackChain":null}`:                                                    "- - - -",
		`{"RungOrdinal":1,"x":{"rungOrdinal":2},"\u0072ungOrdinal":3}`:                                  "- - 3 -",
		``:                                  "- - - -",
		`[]`:                                "- - - -",
		`{"rungOrdinal":1`:                  "- - - -",
		`{"rungOrdinal":1,"rungOrdinal":1}`: "- - - -",
		"{\"requestedModel\":\"\xff\"}":     "- - - -",
	} {
		d := Derive([]byte(decision))
		text := func(t Text) string {
			if !t.Valid {
				return "-"
			}
			return fmt.Sprintf("%q", t.S)
		}
		rung, chain := "-", "-"
		if d.RungOrdinal.Valid {
			rung = fmt.Sprint(d.RungOrdinal.N)
		}
		if d.FallbackChain != nil {
			chain = fmt.Sprintf("%q", d.FallbackChain)
		}
		if got := strings.Join([]string{text(d.RequestedModel), text(d.SelectedReason), rung, chain}, " "); got != want {
			t.Errorf("%s: %s, want %s", decision, got, want)
		}
	}
	if d := Derive(nil); d.RungOrdinal.Valid || d.FallbackChain != nil {
		t.Error("a null slot derives something")
	}
}

// FuzzDerive holds that deriving never panics, and that what Decode derives is
// what a verifier derives from the stored slot.
func FuzzDerive(f *testing.F) {
	f.Add([]byte(`{"requestedModel":"m","rungOrdinal":1,"fallbackChain":["a"]}`))
	f.Add([]byte(` {}`))
	f.Fuzz(func(t *testing.T, decision []byte) {
		want := Derive(decision)
		var r Record
		if new(Decoder).Decode(&r, message(with(bareCall, `"decision":`+string(decision)))) != nil || r.Slots[SlotDecision] == nil {
			return
		}
		got := r.Derived
		if !json.Valid(decision) { // more than a decision was put into the text
			want = Derive(r.Slots[SlotDecision])
		}
		if got.RequestedModel != want.RequestedModel || got.SelectedReason != want.SelectedReason || got.RungOrdinal != want.RungOrdinal ||
			!slices.Equal(got.FallbackChain, want.FallbackChain) || (got.FallbackChain == nil) != (want.FallbackChain == nil) {
			t.Fatalf("%s: %v, want %v", decision, got, want)
		}
	})
}

// The history has every version from the first to the latest once, in order,
// and names only members that exist.
func TestVersions(t *testing.T) {
	for i, v := range Versions {
		if v.To != FirstVersion+i {
			t.Errorf("version %d stands at place %d", v.To, i)
		}
	}
	if last := Versions[len(Versions)-1].To; last != LatestVersion {
		t.Errorf("the last version is %d, want %d", last, LatestVersion)
	}
	for version, member := range map[int]string{8: "pluginPayloads", 18: "decision.requestedModel", 19: "outcome.why"} {
		if !slices.Equal(Versions[version-FirstVersion].Members, []string{member}) {
			t.Errorf("version %d adds %v, want %s", version, Versions[version-FirstVersion].Members, member)
		}
	}
}
