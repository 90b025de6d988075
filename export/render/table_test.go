package render

import (
	"strings"
	"testing"
	"unicode"

	"github.com/ledgerlake/ledgerlake/export"
)

// A hostile cell moves nothing on a terminal: a row is a line of printable
// characters, and the next column stands where it should.
func TestTableIsSafe(t *testing.T) {
	l := newLogbook(t)
	var rows []*export.Row
	texts := append([]string{"\x1b[2J\x1b]0;x\a", "\u202eevil\u2066", "a\vb\fc\u0085d\u200be", "\u009b31m", `back\slash`, "tab\there", "end\r\n", strings.Repeat("long", 40), "\ufeff", "日本"}, hostile...)
	for _, text := range texts {
		rows = append(rows, l.value(call(text)))
	}
	text := string(written(t, Table, Options{Columns: []string{"seq", "model_id", "turn_id"}}, rows...))
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != len(rows)+1 {
		t.Fatalf("%d lines of %d rows:\n%s", len(lines), len(rows), text)
	}
	column := strings.Index(lines[0], "TURN_ID")
	for _, line := range lines {
		for _, r := range line {
			if !unicode.IsPrint(r) {
				t.Errorf("%q has %U", line, r)
			}
		}
		if r := []rune(line); column < 0 || len(r) <= column || r[column-1] != ' ' {
			t.Errorf("no column at %d of %q", column, line)
		}
	}
	for i, want := range map[int]string{1: `\u{1b}[2J\u{1b}]0;x\u{7}`, 2: `\u{202e}evil\u{2066}`, 5: `back\\slash`, 6: `tab\there`, 7: `end\r\n`, 8: strings.Repeat("long", 15) + "…"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("no %s in %s", want, lines[i])
		}
	}
}

func TestTableOfUsualRows(t *testing.T) {
	row := newLogbook(t).value(call("claude"))
	const want = "CREATED_AT                KIND  SESSION_ID  TURN_ID  SEQ_WITHIN_TURN  STAGE_ID   MODEL_ID  TOOL_NAME  STATUS  LATENCY_MS  INPUT_TOKENS  OUTPUT_TOKENS  SEQ  REDACTION_ID\n" +
		"2026-05-15T12:00:00.123Z  call  s           t        3                tool-loop  claude    -          -       -5          -             -              0    -\n"
	if got := string(written(t, Table, Options{}, row)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
