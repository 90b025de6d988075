package event

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
)

var update = flag.Bool("update", false, "write docs/export-mappings.md")

const page = "../../docs/export-mappings.md"

// docs/export-mappings.md says what the tables say that the encoders use.
func TestMappingsPageIsOfTheTables(t *testing.T) {
	want := mappingsPage()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/export-mappings.md is not what the tables say: go test ./export/event -update")
	}
}

// Every kind of row and of event has its place in the tables.
func TestEveryKindIsMapped(t *testing.T) {
	var names []string
	for i := range kinds {
		names = append(names, kinds[i].name)
	}
	for _, k := range []string{
		audit.KindCall, audit.KindDecision, audit.KindLLMRequest, audit.KindLLMResponse, audit.KindToolCall, audit.KindWorldMutation,
		audit.KindPolicyDecision, audit.KindSourceChainReset, audit.KindSourceRotation, audit.KindQueueDropped, audit.KindRejected,
		audit.KindGap, audit.KindChainReset, audit.KindRedaction, audit.KindRedactionCancelled, audit.KindErasureDone,
		audit.KindRetentionCut, audit.KindLegalHold, string(KindHead), string(KindErasure), string(KindCheck),
	} {
		if !slices.Contains(names, k) {
			t.Errorf("%s is not in the table of kinds", k)
		}
	}
	if len(kindByName) != len(kinds) {
		t.Error("a kind stands there twice")
	}
}

// What follows in an object stands together, or it would be opened twice; keys
// are plain, and those of text formats are ones that their parsers take.
func TestTablesAreInOrder(t *testing.T) {
	for _, f := range Formats {
		closed, open := map[string]bool{}, ""
		for _, c := range Columns(f) {
			in := strings.Join(c.Path[:len(c.Path)-1], ".")
			for at := open; at != "" && !strings.HasPrefix(in+".", at+"."); at = parent(at) {
				closed[at] = true
			}
			for at := in; at != ""; at = parent(at) {
				if closed[at] {
					t.Errorf("%s: %s comes back to %s", f, c.Path, at)
				}
			}
			open = in
			for _, name := range c.Path {
				if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@") != "" {
					t.Errorf("%s: %q", f, name)
				}
			}
			if (f == CEF || f == LEEF) && c.Limit == 0 {
				t.Errorf("%s: %s has no limit", f, c.Path)
			}
		}
	}
}

func parent(path string) string {
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return path[:i]
	}
	return ""
}

func mappingsPage() string {
	var b strings.Builder
	b.WriteString(mappingsHead)
	title := func(s string) { fmt.Fprintf(&b, "\n## %s\n\n", s) }
	title("Kinds")
	b.WriteString("| kind | title (CEF's name) | OCSF activity | severity | outcome¹ | ECS category, type | GenAI operation |\n|---|---|---|---|---|---|---|\n")
	for i := range kinds {
		k := &kinds[i]
		fmt.Fprintf(&b, "| `%s` | %s | %d %s | %s | %s | %s, %s | %s |\n", k.name, k.title, k.activity, k.doing, severities[k.severity].name, outcomes[k.outcome].name, k.category, k.typ, k.genAI)
	}
	fmt.Fprintf(&b, "\n¹ Where neither a status nor a verdict says more. Kinds of rows that are not in the table are %q.\n", unknownKind.title)
	title("Statuses and verdicts")
	b.WriteString("`status` and, of an entry, `policyDecision` are looked up here; the greater severity counts, and a failure stays one. What is not listed is an outcome of\nno class: other, informational.\n\n| status or verdict | outcome | severity |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(statuses)) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, outcomes[statuses[name].outcome].name, severities[statuses[name].severity].name)
	}
	b.WriteString("\n| outcome | OCSF `status_id` | ECS `event.outcome` | LEEF `cat` |\n|---|---|---|---|\n")
	for _, o := range outcomes {
		fmt.Fprintf(&b, "| %s | %d | `%s` | `%s` |\n", o.name, o.ocsf, o.ecs, o.inLEEF)
	}
	b.WriteString("\nThe reason of a reject can make it more severe: ")
	var more []string
	for _, r := range slices.Sorted(maps.Keys(reasons)) {
		more = append(more, fmt.Sprintf("`%s` is %s", r, strings.ToLower(severities[reasons[r]].name)))
	}
	b.WriteString(strings.Join(more, ", ") + ".\n")
	title("Severities")
	b.WriteString("| severity | OCSF `severity_id` | CEF, LEEF, ECS | OTLP |\n|---|---|---|---|\n")
	for _, s := range []severity{informational, low, medium, high} {
		l := severities[s]
		fmt.Fprintf(&b, "| %s | %d | %d | %d %s |\n", l.name, s, l.ten, l.otlp, l.otlpText)
	}
	title("Actors")
	b.WriteString("| `actor_kind` | OCSF `actor.user.type_id` |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(actors)) {
		fmt.Fprintf(&b, "| `%s` | %d %s |\n", name, actors[name].id, actors[name].name)
	}
	b.WriteString("| any other | 0 |\n")
	for _, f := range []struct {
		format Format
		text   string
	}{{JSON, jsonHead}, {OCSF18, ocsf18Head}, {OCSF13, ocsf13Head}, {ECS, ecsHead}, {CEF, cefHead}, {LEEF, leefHead}} {
		title("`" + string(f.format) + "`")
		b.WriteString(f.text)
		writeFields(&b, fieldsOf(f.format), f.format == CEF || f.format == LEEF)
	}
	title("OTLP")
	b.WriteString(otlpHead)
	writeFields(&b, otlp, false)
	return b.String()
}

func writeFields(b *strings.Builder, fields []field, limits bool) {
	if limits {
		b.WriteString("\n| key | label | from | at most |\n|---|---|---|---|\n")
		for _, f := range fields {
			fmt.Fprintf(b, "| `%s` | %s | %s | %d |\n", f.path, f.label, strings.ReplaceAll(f.says, "|", `\|`), f.limit)
		}
		return
	}
	b.WriteString("\n| field | from |\n|---|---|\n")
	for _, f := range fields {
		fmt.Fprintf(b, "| `%s` | %s |\n", f.path, strings.ReplaceAll(f.says, "|", `\|`))
	}
}

const mappingsHead = `# What SIEMs get

Which field of which format gets what of a row. This page is made from the tables that the encoders themselves use, by ` + "`go test ./export/event -update`" + `; a test
fails where they differ. What the columns mean is in [format.md](format.md); how a record becomes columns, in [wire-columns.md](wire-columns.md).

- A field whose source is null is left out. Of an erased row what went is left out, and its sentinel says what that was. Rows that an erasure reaches are sent
  as if it had been carried out already.
- Every event of a row has its tenant, its log (topic, topic id, partition), ` + "`seq`, `prev_hash` and `row_hash`" + `: a receiver that has all of a log finds a hole (a seq that
  is missing), a repeat (a row_hash that is there twice), and a swap or a change (a prev_hash that is not the row_hash of seq − 1;
  only the first row of a later epoch, a chain-reset, begins from another). The pointer of a row has them too.
- Whatever a producer wrote stays a value. JSON is escaped also where some reader of lines would end one (U+0085, U+2028, U+2029); CEF and LEEF are escaped as
  said below. Text that is cut is cut between characters, ends in …, and is listed; what an order's reference or a test's name has beyond 256 bytes always is.
- A row that is too large for a destination is sent as a **pointer**: the same event without its content, every text but the tenant's id cut to 96 bytes, 7,680 bytes at
  most. Its id is the row's.
- **Heads** of anchors, **notices of erasures** and **tests** of destinations are events too: see Kinds.

What is checked by packages that are not ours, over some thousand events of every kind, erased and hostile ones among them (` + "`it/schemas`" + `): OCSF 1.8 and 1.3
by the JSON schemas of ` + "`ocsf-json-schema`" + `, which allow no unknown member; ECS by the fields, types and allowed values of ` + "`@elastic/ecs`" + `; CEF by the parser ` + "`cefp`" + ` and the
dictionary of ` + "`cefevent`" + `; names of OTLP attributes by ` + "`opentelemetry-semantic-conventions`" + `. For LEEF no package was found: a parser of our own, written after IBM's guide,
reads it back. Nor is there one for our own JSON, which this page defines.
`

const jsonHead = `Our own JSON, version 1: all of a row. Members may be added to a version; none is taken away, renamed or given another meaning. ` + "`record`" + ` is the record as it was
sent, value for value, with sentinels where content went; a row that no decoder of ours wrote has its columns and slots there, in ` + "`$columns`" + `.
`

const ocsf18Head = `OCSF 1.8.0, class API Activity (6003), with the profile ai_operation. ` + "`src_endpoint`" + `, which the class requires, can only name the stream that rows come by: no
address is archived.
`

const ocsf13Head = `OCSF 1.3.0, class API Activity (6003): what Amazon Security Lake takes. Texts have at most 65,535 bytes.
`

const ecsHead = `Elastic Common Schema ` + ecsVersion + `. What it has no field for stands in ` + "`ledgerlake`" + `. Objects of a producer are strings here, so that no record can change the mapping of an index.
Texts have at most 32,766 bytes, Lucene's limit, but ` + "`event.original`" + `, which ECS does not index.
`

const cefHead = `ArcSight Common Event Format, version 0: ` + "`CEF:0|Ledgerlake|Export|version|kind|title|severity|…`" + `. In the header ` + "`\\` and `|`" + ` are escaped, in values ` + "`\\` and `=`" + `. A carriage
return is ` + "`\\r`" + `, anything else that ends a line ` + "`\\n`" + `, other control characters are spaces. A key of our own is named as the format asks, vendor, product and name. A
whole event has at most 7,680 bytes, so that it fits the 8,192 of syslog; limits are in bytes, escapes included. Content is not sent.
`

const leefHead = `QRadar Log Event Extended Format 2.0: ` + "`LEEF:2.0|Ledgerlake|Export|version|kind|x09|…`" + `, attributes with a tab between them. The format has no escapes: in values a
backslash is ` + "`\\\\`" + `, and control characters and what ends a line are written as in JSON (` + "`\\t`, `\\n`, `\\u0085`" + `). At most 7,680 bytes; content is not sent.
`

const otlpHead = `Log records of OTLP. The semantic conventions are those of version ` + SemConvVersion + `, the last in which the ones for GenAI are part of them. The event's name is ` + "`ledgerlake.`" + `
and the kind, its time the event's, its observed time ` + "`archived_at`" + `.
`
