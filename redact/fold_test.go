package redact

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

// may never counts fewer digits than a character folds to: nothing is passed over.
func TestNoDigitIsPassedOver(t *testing.T) {
	var f folded
	most := map[byte]uint64{}
	for r := rune(utf8.RuneSelf); r <= unicode.MaxRune; r++ {
		text := []byte(string(r))
		f.fold(text)
		n := uint64(0)
		for _, c := range f.b {
			if isDigit(c) {
				n++
			}
		}
		if got := weights[text[0]] & maxWeight; n > got || n > maxDigits {
			t.Fatalf("%U folds to %q: its first byte %#x counts for %d digits", r, f.b, text[0], got)
		}
		if weights[text[0]] <= maxWeight {
			t.Fatalf("%U is taken for plain", r)
		}
		most[text[0]] = max(most[text[0]], n)
	}
	for c, w := range weights {
		if c >= utf8.RuneSelf && w&maxWeight != most[byte(c)] {
			t.Errorf("first byte %#x counts for %d digits, and %d are the most", c, w&maxWeight, most[byte(c)])
		}
	}
}

// What a character stands for.
func TestFold(t *testing.T) {
	var f folded
	for in, want := range map[string]string{
		"":           "",
		"plain":      "plain",
		"１２３":        "123",
		"٠١٢٣٤٥٦٧٨٩": "0123456789",
		"०१२३४५६७८९": "0123456789",
		"𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗𝟘𝟙𝟚𝟵": "01234567890129",
		"²³¹⁰₁①⑳⒈":                "231011201.",
		"ＡｂＣ＠":                    "AbC@",
		"‐‑‒–—―−﹣－⁃":              "----------",
		"a\u00a0\u2003\u3000b\tc": "a   b c",
		"1\u200b2\u200d3\u00ad4\ufeff5\u20606\ufe0f7\u20e38\u202e9": "123456789",
		"é ß 日本 é":                           "é ß 日本 é",
		`\u0031\n\t\"\\\/\uFF12\ud835\udfd1`: "1\n \"\\/23",
		`\ud800\u00`:                         "\ufffd\\u00",
		"\xff1\\":                            "\xff1\\",
		"\u2028":                             "\n",
	} {
		f.fold([]byte(in))
		if string(f.b) != want {
			t.Errorf("%q is folded to %q, want %q", in, f.b, want)
		}
		if len(f.at) != len(f.b)+1 || int(f.at[len(f.b)]) != len(in) {
			t.Errorf("%q: places %v", in, f.at)
		}
	}
}
