package event_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/event/eventtest"
)

// keysOf returns the keys that a text format may have.
func keysOf(f event.Format) map[string]bool {
	keys := map[string]bool{}
	for _, c := range event.Columns(f) {
		keys[c.Path[0]] = true
	}
	return keys
}

// parseLEEF reads an event as IBM's guide says: a header of six fields, the
// last being the delimiter in hex; attributes between tabs; the key ends at
// the first =.
func parseLEEF(line string) (header []string, attributes map[string]string, err error) {
	header = strings.SplitN(line, "|", 7)
	if len(header) != 7 || header[0] != "LEEF:2.0" || header[5] != "x09" {
		return nil, nil, fmt.Errorf("no header: %q", header)
	}
	attributes = map[string]string{}
	for _, pair := range strings.Split(header[6], "\t") {
		key, value, ok := strings.Cut(pair, "=")
		if _, twice := attributes[key]; !ok || twice {
			return nil, nil, fmt.Errorf("no attribute, or twice: %q", pair)
		}
		attributes[key] = value
	}
	return header[:6], attributes, nil
}

var cefKey = regexp.MustCompile(`(?:^| )([A-Za-z0-9]+)=`)

// parseCEF reads an event as ArcSight's guide says: a header of seven fields
// between pipes that are not escaped; keys stand before = that are not.
func parseCEF(line string) (header []string, extension map[string]string, err error) {
	rest, ok := strings.CutPrefix(line, "CEF:")
	for range 7 {
		at := unescaped(rest, '|')
		if !ok || at < 0 {
			return nil, nil, fmt.Errorf("no header: %q", line)
		}
		header, rest = append(header, rest[:at]), rest[at+1:]
	}
	extension = map[string]string{}
	hidden := strings.NewReplacer(`\\`, "\x00\x00", `\=`, "\x00\x01").Replace(rest)
	places := cefKey.FindAllStringSubmatchIndex(hidden, -1)
	for i, p := range places {
		end := len(rest)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		key := rest[p[2]:p[3]]
		if _, twice := extension[key]; twice {
			return nil, nil, fmt.Errorf("%s twice: %q", key, line)
		}
		extension[key] = rest[p[1]:end]
	}
	if len(places) != strings.Count(hidden, "=") || len(places) == 0 || places[0][0] != 0 {
		return nil, nil, fmt.Errorf("not only pairs: %q", rest)
	}
	return header, extension, nil
}

// unescaped returns where the first c stands that no backslash escapes, or -1.
func unescaped(s string, c byte) int {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
		} else if s[i] == c {
			return i
		}
	}
	return -1
}

// No text of a row can become a field, end a value or move the header: what is
// parsed has the keys of the table alone, each once, with the values of the row.
func TestNoValueForgesAField(t *testing.T) {
	events := eventtest.Events(6, 2500)
	for _, c := range []struct {
		format        event.Format
		parse         func(string) ([]string, map[string]string, error)
		tenant, chain string
		kind, fields  int
	}{
		{event.CEF, parseCEF, "cs1", "cs2", 4, 7},
		{event.LEEF, parseLEEF, "tenant", "rowHash", 4, 6},
	} {
		e, keys := encoder(t, c.format), keysOf(c.format)
		seen := map[string]bool{}
		for _, ev := range events {
			body, err := e.Append(nil, ev)
			if err != nil {
				t.Fatal(err)
			}
			header, fields, err := c.parse(string(body))
			if err != nil || len(header) != c.fields {
				t.Fatalf("%s: %v\n%q", c.format, err, body)
			}
			for key, value := range fields {
				if !keys[key] || value == "" {
					t.Fatalf("%s: %s=%q was forged\n%q", c.format, key, value, body)
				}
				seen[key] = true
			}
			if ev.IsRow() && fields[c.chain] != ev.ID {
				t.Fatalf("%s: %s is %q, not %s", c.format, c.chain, fields[c.chain], ev.ID)
			}
			if !strings.ContainsAny(ev.Tenant, "=\\\u2028\u2029\u0085\t\n") && fields[c.tenant] != ev.Tenant {
				t.Fatalf("%s: the tenant is %q, not %q", c.format, fields[c.tenant], ev.Tenant)
			}
		}
		for key := range keys {
			if !seen[key] {
				t.Errorf("%s: no event has %s", c.format, key)
			}
		}
	}
}

// The parsers can fail: an event into which a value was put as it is, is read
// as one that was forged.
func TestParsersSeeForgeries(t *testing.T) {
	_, fields, err := parseCEF(`CEF:0|a|b|c|d|e|9|msg=x suid=forged`)
	if err != nil || fields["suid"] != "forged" || fields["msg"] != "x" {
		t.Errorf("%v, %v", fields, err)
	}
	if _, _, err := parseCEF(`CEF:0|a|b|c|d|e|9|msg=x msg=y`); err == nil {
		t.Error("a key twice passes")
	}
	if _, fields, err := parseLEEF("LEEF:2.0|a|b|c|d|x09|k=v\tusrName=forged"); err != nil || fields["usrName"] != "forged" {
		t.Errorf("%v, %v", fields, err)
	}
	if _, _, err := parseLEEF("LEEF:2.0|a|b|c|d|x09|k=v\tloose"); err == nil {
		t.Error("a loose value passes")
	}
}
