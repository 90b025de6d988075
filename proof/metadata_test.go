package proof_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// free are the changes of a segment's metadata that nothing but the object's hash
// sees: who wrote it, the leader at that time, and which of the rows of a log a
// duplicate repeats.
var free = []string{
	".leaderEpoch one more", ".writer.version changed", ".writer.policy changed", ".writer.settings changed", ".duplicates.0.2 one less",
}

// Every member of a segment's metadata is changed, taken away, named otherwise
// and said twice, with all hashes downstream made right: no change is proved.
func TestNoMemberOfMetadataCanBeChanged(t *testing.T) {
	_, line := small()
	for i := range 2 {
		for _, e := range edits("", metadata(t, line.Segments[i])) {
			t.Run(fmt.Sprintf("%d%s %s", i, e.path, e.name), func(t *testing.T) {
				a, l := small()
				l.Segments[i].EncodeWith([]byte(e.text))
				l.Relink(i + 1)
				r := verify(t, a.Objects())
				if slices.Contains(free, e.path+" "+e.name) {
					wantExit(t, r, 4)
					return
				}
				wantExit(t, r, 1)
			})
		}
	}
}

// small returns an archive of one line of three segments, the first of which
// has all that metadata can say.
func small() (*prooftest.Archive, *prooftest.Line) {
	a := prooftest.New()
	l := a.Line("t", 0)
	l.Segment(func(b *prooftest.Batch) {
		b.Call("acme")
		b.Call("a/b")
		b.Call("acme")
		b.Duplicate("acme", 1)
		b.Skip(1, archive.GapControl)
		b.Lost(2)
	})
	l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	l.Segment(func(b *prooftest.Batch) { b.Call("a/b"); b.Call("acme") })
	return a, l
}

func metadata(t *testing.T, s *prooftest.Segment) any {
	t.Helper()
	text, err := archive.EncodeSegment(&s.Meta)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, string(text))
}

func decode(t *testing.T, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// An edit is a document with one change.
type edit struct {
	path string // of what was changed: .logs.0.size
	name string // how
	text string
}

// edits returns all changes of a document that has one.
func edits(path string, v any) (all []edit) {
	lift := func(wrap func(text string) string, inner []edit) {
		for _, e := range inner {
			all = append(all, edit{e.path, e.name, wrap(e.text)})
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			rest := func(replace string) string {
				others := []string{}
				for other, m := range v {
					if other != name {
						others = append(others, fmt.Sprintf("%q:%s", other, text(m)))
					}
				}
				return "{" + strings.Join(append(others, replace), ",") + "}"
			}
			at := path + "." + name
			same := func(value string) string { return fmt.Sprintf("%q:%s", name, value) }
			lift(func(s string) string { return rest(same(s)) }, edits(at, member))
			all = append(all,
				edit{at, "gone", strings.Replace(rest("}"), ",}}", "}", 1)},
				edit{at, "in another case", rest(fmt.Sprintf("%q:%s", strings.ToUpper(name[:1])+name[1:], text(member)))},
				edit{at, "twice", rest(same(text(member)) + "," + same(text(member)))},
				edit{at, "of another type", rest(same(`{"a":1}`))})
			if member != nil {
				all = append(all, edit{at, "null", rest(same("null"))})
			}
		}
	case []any:
		for i, item := range v {
			at := fmt.Sprintf("%s.%d", path, i)
			with := func(replace ...string) string {
				items := make([]string, len(v))
				for j, other := range v {
					items[j] = text(other)
				}
				return "[" + strings.Join(slices.Replace(items, i, i+1, replace...), ",") + "]"
			}
			lift(func(s string) string { return with(s) }, edits(at, item))
			all = append(all, edit{at, "gone", with()}, edit{at, "twice", with(text(item), text(item))})
		}
	case json.Number:
		n, _ := v.Int64()
		for name, other := range map[string]string{
			"one more": fmt.Sprint(n + 1), "one less": fmt.Sprint(n - 1), "with a fraction": fmt.Sprintf("%d.0", n),
			"with an exponent": fmt.Sprintf("%de0", n), "too large": "9223372036854775808", "huge": "9223372036854775807",
		} {
			all = append(all, edit{path, name, other})
		}
	case string:
		all = append(all, edit{path, "changed", text(changed(v))})
		if len(v) == 64 {
			all = append(all, edit{path, "in upper case", text(strings.ToUpper(v[:63]) + "A")})
		}
	case nil:
		all = append(all, edit{path, "set", `"` + strings.Repeat("0", 64) + `"`})
	}
	return all
}

// changed returns a string of the same form that is another one.
func changed(s string) string {
	last := "1"
	if strings.HasSuffix(s, "1") {
		last = "2"
	}
	return s[:len(s)-1] + last
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// What is no metadata at all is a fault too.
func TestMetadataMustBeThere(t *testing.T) {
	for _, bad := range []string{``, `null`, `[]`, `{}`, `{"format":"ledgerlake-v1"`, "{}\x00"} {
		w := newWorld()
		w.calls.Segments[1].EncodeWith([]byte(bad))
		w.calls.Relink(2)
		wantFault(t, verify(t, w.Objects()), proof.FaultMetadata, w.calls.Key(1))
	}
}
