package chain

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
)

// Whatever is erased, in however many steps, the row keeps its hashes, checks,
// and has the same residual as if all of it had gone at once.
func TestErasuresAddUpAndMoveNoHash(t *testing.T) {
	rng, h := rand.New(rand.NewPCG(1, 2)), NewHasher(nil)
	for range 300 {
		row, stamped := liveRow(), liveRow()
		var sum Sentinel
		for range 1 + rng.IntN(4) {
			more := Sentinel{ID: someULID, Slots: SlotSet(1 + rng.Uint32N(uint32(AllSlots)))}
			if sum.ID == "" {
				sum = more
			}
			sum = sum.Union(more)
			residual, err := h.Residual(row, more.Slots)
			if err != nil {
				t.Fatal(err)
			}
			eraseSlots(row, residual, sum)
			if err := h.Check(row); err != nil || row.RowHash != stamped.RowHash || row.PayloadCommit != stamped.PayloadCommit {
				t.Fatalf("%s: %v", sum, err)
			}
		}
		atOnce, err := h.Residual(stamped, sum.Slots)
		if err != nil || atOnce.String() != row.Residual.S {
			t.Fatalf("%s: %v\nin steps %s\nat once  %s", sum, err, row.Residual.S, &atOnce)
		}
	}
}

// A residual holds nothing by which a guess at erased content can be tested:
// neither row_salt, nor the salt of an erased slot or of user_id.
func TestResidualKeepsNoSaltOfWhatWent(t *testing.T) {
	row := liveRow()
	residual, err := NewHasher(nil).Residual(row, SlotSetOf(audit.SlotDecision))
	if err != nil {
		t.Fatal(err)
	}
	for name, salt := range map[string]Hash{
		"row_salt": someSalt,
		"decision": SlotSalt(someSalt, "decision"),
		"user_id":  SlotSalt(someSalt, "user_id"),
	} {
		if strings.Contains(residual.String(), salt.String()) {
			t.Errorf("the residual has the salt of %s", name)
		}
	}
}

// Slots that are named and null, or gone already, change nothing.
func TestResidualOfNullSlotsIsUnchanged(t *testing.T) {
	h, row := NewHasher(nil), liveRow()
	none, err := h.Residual(row, 0)
	if err != nil || none.Commits != [audit.NumSlots]NullHash{} {
		t.Fatalf("%s, %v", &none, err)
	}
	if got, err := h.Residual(row, SlotSetOf(audit.SlotRaw, audit.SlotPrompts)); err != nil || got != none {
		t.Errorf("%s, %v", &got, err)
	}
}

func TestResidualOfAnErasedRow(t *testing.T) {
	h := NewHasher(nil)
	for _, row := range []*Row{erasedRow(), hardErasedRow()} {
		if _, err := h.Residual(row, AllSlots); !errors.Is(err, ErrErased) {
			t.Errorf("%v", err)
		}
	}
	var fault *Fault
	if _, err := h.Residual(&Row{}, AllSlots); !errors.As(err, &fault) {
		t.Errorf("no state: %v", err)
	}
}

// Other writers lay JSON out otherwise; what it says is the same.
func TestParseResidualTakesAnyLayout(t *testing.T) {
	star, a, b := hashText(1), hashText(2), hashText(3)
	want := Residual{Star: Hash{1}}
	want.Salts[audit.SlotDecision] = NullHash{Hash: Hash{2}, Valid: true}
	want.Commits[audit.SlotExt] = NullHash{Hash: Hash{3}, Valid: true}
	for _, text := range []string{
		`{"salts":{"*":"` + star + `","decision":"` + a + `"},"commits":{"ext":"` + b + `"}}`,
		`{"salts": {"*": "` + star + `", "decision": "` + a + `"}, "commits": {"ext": "` + b + `"}}`,
		" {\n\t\"commits\" : { \"ext\" : \"" + b + "\" } ,\r\n\"salts\" : { \"decision\" : \"" + a + "\" , \"*\" : \"" + star + "\" } } ",
	} {
		if got, err := ParseResidual(text); err != nil || got != want {
			t.Errorf("%s is %s, %v", text, &got, err)
		}
	}
	if got := want.String(); got != `{"salts":{"*":"`+star+`","decision":"`+a+`"},"commits":{"ext":"`+b+`"}}` {
		t.Errorf("written as %s", got)
	}
}

func hashText(first byte) string { return Hash{first}.String() }

func TestParseResidualRefuses(t *testing.T) {
	star, a := `"*":"`+hashText(1)+`"`, hashText(2)
	for name, text := range map[string]string{
		"empty":               ``,
		"null":                `null`,
		"array":               `[]`,
		"empty object":        `{}`,
		"no commits":          `{"salts":{` + star + `}}`,
		"no salts":            `{"commits":{}}`,
		"no star":             `{"salts":{},"commits":{}}`,
		"star in commits":     `{"salts":{` + star + `},"commits":{` + star + `}}`,
		"star twice":          `{"salts":{` + star + `,` + star + `},"commits":{}}`,
		"salts twice":         `{"salts":{` + star + `},"salts":{` + star + `},"commits":{}}`,
		"commits twice":       `{"salts":{` + star + `},"commits":{},"commits":{}}`,
		"slot twice":          `{"salts":{` + star + `,"ext":"` + a + `","ext":"` + a + `"},"commits":{}}`,
		"salt and commitment": `{"salts":{` + star + `,"ext":"` + a + `"},"commits":{"ext":"` + a + `"}}`,
		"unknown slot":        `{"salts":{` + star + `,"exta":"` + a + `"},"commits":{}}`,
		"user_id":             `{"salts":{` + star + `,"user_id":"` + a + `"},"commits":{}}`,
		"unknown member":      `{"salts":{` + star + `},"commits":{},"x":{}}`,
		"unknown text":        `{"salts":{` + star + `},"commits":{},"x":"y"}`,
		"null member":         `{"salts":{` + star + `},"commits":null}`,
		"null hash":           `{"salts":{` + star + `,"ext":null},"commits":{}}`,
		"short hash":          `{"salts":{` + star + `,"ext":"` + a[:62] + `"},"commits":{}}`,
		"upper case":          `{"salts":{` + star + `,"ext":"` + strings.ToUpper(hashText(0xab)) + `"},"commits":{}}`,
		"escape":              `{"salts":{` + star + `,"\u0065xt":"` + a + `"},"commits":{}}`,
		"text after":          `{"salts":{` + star + `},"commits":{}}x`,
		"second value":        `{"salts":{` + star + `},"commits":{}}{}`,
		"comma at the end":    `{"salts":{` + star + `,},"commits":{}}`,
		"comma before":        `{,"salts":{` + star + `},"commits":{}}`,
		"no comma":            `{"salts":{` + star + `}"commits":{}}`,
		"no colon":            `{"salts"{` + star + `},"commits":{}}`,
		"cut in a string":     `{"salts":{` + star + `},"commi`,
		"cut in an object":    `{"salts":{` + star + `},"commits":{`,
		"cut at the end":      `{"salts":{` + star + `},"commits":{}`,
		"no break space":      "{\u00a0" + `"salts":{` + star + `},"commits":{}}`,
	} {
		if r, err := ParseResidual(text); !errors.Is(err, ErrResidual) || r != (Residual{}) {
			t.Errorf("%s: %s is read as %s, %v", name, text, &r, err)
		}
	}
}

// A problem names a member from outside, and must not fill a log with it.
func TestResidualProblemsAreShort(t *testing.T) {
	_, err := ParseResidual(fmt.Sprintf(`{"%s":{}}`, strings.Repeat("x", 1<<16)))
	if err == nil || len(err.Error()) > 200 {
		t.Errorf("%.300v", err)
	}
}

func FuzzParseResidual(f *testing.F) {
	star := `"*":"` + hashText(1) + `"`
	f.Add(`{"salts":{` + star + `},"commits":{}}`)
	f.Add(`{"salts":{` + star + `,"raw":"` + hashText(2) + `"},"commits":{"ext":"` + hashText(3) + `"}}`)
	f.Add(`{ "commits" : {} , "salts" : {` + star + `} }`)
	f.Add(`{"salts":{` + star + `,"raw":"` + hashText(2) + `"},"commits":{"raw":"` + hashText(3) + `"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseResidual(text)
		if err != nil {
			return
		}
		again, err := ParseResidual(r.String())
		if err != nil || again != r {
			t.Errorf("%q comes back as %s: %v", text, &again, err)
		}
	})
}
