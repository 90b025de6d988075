package chain

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// ParseHash accepts what String writes, and nothing that only looks like it.
func TestParseHashIsStrict(t *testing.T) {
	good := strings.Repeat("0f", 32)
	for name, text := range map[string]string{
		"empty":      "",
		"short":      good[:63],
		"long":       good + "0",
		"upper case": strings.ToUpper(good),
		"no hex":     "g" + good[1:],
		"space":      " " + good[1:],
		"0x":         "0x" + good[2:],
		"not ASCII":  "é" + good[2:],
		"between":    good[:31] + ":" + good[32:], // one above '9'
		"below":      good[:31] + "/" + good[32:], // one below '0'
		"backtick":   good[:31] + "`" + good[32:], // one below 'a'
		"at the end": good[:63] + "G",
	} {
		if h, err := ParseHash(text); !errors.Is(err, ErrHash) || h != (Hash{}) {
			t.Errorf("%s: %v, %v", name, h, err)
		}
	}
	if h, err := ParseHash(good); err != nil || h.String() != good {
		t.Errorf("%q: %v, %v", good, h, err)
	}
}

// In JSON a hash is its text; anything else is an error and changes nothing.
func TestHashJSON(t *testing.T) {
	was := Hash{31: 0xff}
	text, err := json.Marshal(was)
	if want := `"` + strings.Repeat("00", 31) + `ff"`; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	var is Hash
	if err := json.Unmarshal(text, &is); err != nil || is != was {
		t.Errorf("%v, %v", is, err)
	}
	for _, bad := range []string{`""`, `7`, `"` + strings.Repeat("00", 31) + `FF"`} {
		if err := json.Unmarshal([]byte(bad), &is); err == nil || is != was {
			t.Errorf("%s: %v, %v", bad, is, err)
		}
	}
}

func FuzzParseHash(f *testing.F) {
	f.Add(strings.Repeat("0f", 32))
	f.Add(strings.Repeat("0F", 32))
	f.Add("é" + strings.Repeat("0", 62))
	f.Fuzz(func(t *testing.T, text string) {
		if h, err := ParseHash(text); err == nil && h.String() != text {
			t.Errorf("%q comes back as %q", text, h)
		}
	})
}
