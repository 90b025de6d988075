//go:build it

package cases

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/it/oracle"
)

// A record without a value is what ended many a sink. Each kind of nothing has
// a reason of its own, and what there was of the record is kept.
func TestRecordsWithoutValue(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	s.send(
		record(topic, "acme", call("acme", 0)),
		&kgo.Record{Topic: topic, Key: []byte("acme")},
		&kgo.Record{Topic: topic, Key: []byte("acme"), Value: []byte{}},
		&kgo.Record{Topic: topic, Headers: []kgo.RecordHeader{{Key: "x-only", Value: []byte("header")}}},
		record(topic, "acme", call("acme", 4)),
	)
	a := s.settle(oracle.Proved)
	s.wantFates(a, topic, "row", "null_value", "empty_value", "null_value", "row")
	s.wantRows(a, `select kafka_offset, context->>'key', context->>'headers', context->>'size', octet_length(raw)
		from {rows} where kind = 'rejected' order by kafka_offset`,
		[]any{"1", "acme", "[]", "0", nil}, []any{"2", "acme", "[]", "0", "0"}, []any{"3", nil, `[["x-only","header"]]`, "0", nil})
	at, err := s.group.Committed(t.Context(), topic)
	s.must(err)
	if at[topic+"/0"] != 5 {
		t.Errorf("committed %v, want 5", at)
	}
}

// Every digit that a producer sent must come back, whatever a float64 or an
// int64 makes of it.
func TestNumbersKeepTheirDigits(t *testing.T) {
	const data = `{"a":73314510714175488,"b":9007199254740993,"c":-9007199254740993,"d":18446744073709551615,` +
		`"e":327267367867168100000,"f":1.10,"g":1e2,"h":-0,"i":1e400}`
	s := newStage(t, faults3.Options{}, topic)
	s.produce(topic, "acme",
		call("acme", 0, `{"x":1}`, data),
		call("acme", 1, `"inputTokens":100`, `"inputTokens":9007199254740993`),
		call("acme", 2, `"inputTokens":100`, `"inputTokens":1e2`),
		call("acme", 3, `"inputTokens":100`, `"inputTokens":18446744073709551615`),
		call("acme", 4, `"inputTokens":100`, `"inputTokens":1.5`),
	)
	a := s.settle(oracle.Proved)
	s.wantFates(a, topic, "row", "row", "row", "out_of_range", "wrong_type")
	s.wantRows(a, `select plugin_payloads from {rows} where turn_id = 't-0'`,
		[]any{`[{"pluginId":"p","subKind":"k","data":` + data + `}]`})
	s.wantRows(a, `select input_tokens from {rows} where kind = 'call' order by kafka_offset`,
		[]any{"100"}, []any{"9007199254740993"}, []any{"100"})
}

// NaN and Infinity are no JSON. 1e400 is, but no column can hold it.
func TestNumbersThatAreNone(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	s.produce(topic, "acme",
		call("acme", 0),
		call("acme", 1, `{"x":1}`, `{"x":NaN}`),
		call("acme", 2, `812`, `Infinity`),
		call("acme", 3, `{"x":1}`, `{"x":1e400}`),
		call("acme", 4, `812`, `1e400`),
		call("acme", 5, `claude-x`, `NaN`),
		call("acme", 6, `812`, `"NaN"`),
		call("acme", 7),
	)
	a := s.settle(oracle.Proved)
	s.wantFates(a, topic, "row", "invalid_json", "invalid_json", "row", "out_of_range", "row", "wrong_type", "row")
	s.wantRows(a, `select plugin_payloads::json->0->>'data' from {rows} where turn_id = 't-3'`, []any{`{"x":1e400}`})
}

// Where a name comes twice, two readers may each believe another of the two.
// No record with such a name becomes a row, not even where it hides in a slot
// or behind an escape; and a name in other case is another name.
func TestNamesThatComeTwice(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	tenant := func(second string) []string {
		return []string{`"tenantId":"acme",`, `"tenantId":"acme",` + second + `:"globex",`}
	}
	s.produce(topic, "acme",
		call("acme", 0),
		call("acme", 1, tenant(`"tenantId"`)...),
		call("acme", 2, tenant(`"tenant\u0049d"`)...),
		call("acme", 3, tenant(`"TENANTID"`)...),
		call("acme", 4, `"status":"ok"`, `"status":"ok","status":"timeout"`),
		call("acme", 5, `{"x":1}`, `{"x":1,"x":2}`),
		call("acme", 6),
	)
	a := s.settle(oracle.Proved)
	s.wantFates(a, topic, "row", "duplicate_key", "duplicate_key", "row", "duplicate_key", "duplicate_key", "row")
	s.wantRows(a, `select count(*) from {rows} where tenant_id = 'globex'`, []any{"0"})
	s.wantRows(a, `select tenant_id, ext->>'TENANTID' from {rows} where turn_id = 't-3'`, []any{"acme", "globex"})
}

// Half a surrogate pair is no character. Libraries put U+FFFD in its place, so
// that different records become one.
func TestHalfSurrogates(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	model := func(n int, text string) string { return call("acme", n, `"model":"claude-x"`, `"model":"`+text+`"`) }
	s.produce(topic, "acme",
		model(0, `\ud800\udc00`), model(1, `\ud800`), model(2, `\udc00`), model(3, `\udc00\ud800`), model(4, "\xed\xa0\x80"),
		call("acme", 5, `{"x":1}`, `{"\udfff":1}`), call("acme", 6),
	)
	a := s.settle(oracle.Proved)
	bad := "invalid_unicode"
	s.wantFates(a, topic, "row", bad, bad, bad, bad, bad, "row")
	s.wantRows(a, `select unicode(model_id), length(model_id) from {rows} where turn_id = 't-0'`, []any{"65536", "1"})
	s.wantRows(a, `select count(*) from {rows} where contains(model_id, chr(65533))`, []any{"0"})
	s.wantRows(a, `select count(distinct row_hash) from {rows}`, []any{"7"})
}

// One bad string must not make a file that readers refuse as a whole.
func TestOneBadStringAmongGoodOnes(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	values := calls("acme", 0, 32)
	values[7] = call("acme", 7, "claude-x", "a\xff\xfeb")
	s.produce(topic, "acme", values...)
	a := s.settle(oracle.Proved)
	s.wantRows(a, `select count(*), count(distinct model_id) from {rows} where kind = 'call'`, []any{"31", "1"})
	s.wantRows(a, `select context->>'reason', contains(hex(raw), '61FFFE62') from {rows} where kind = 'rejected'`,
		[]any{"invalid_unicode", "True"})
}

// An escaped NUL is a character like others. A raw one is no JSON. Neither
// holds up anybody else.
func TestNulCharacters(t *testing.T) {
	const other = "audit.other"
	s := newStage(t, faults3.Options{}, topic, other)
	s.start()
	s.produce(topic, "acme",
		call("acme", 0), call("acme", 1, "claude-x", `a\u0000b`), call("acme", 2, "claude-x", "a\x00"+secret), call("acme", 3))
	s.produce(other, "globex", calls("globex", 0, 2)...)
	s.drain(other)
	s.drain()
	s.stop()
	a := s.check(oracle.Proved)
	s.wantFates(a, topic, "row", "row", "invalid_json", "row")
	s.wantFates(a, other, "row", "row")
	s.wantRows(a, `select length(model_id), unicode(model_id[2]) from {rows} where turn_id = 't-1' and tenant_id = 'acme'`, []any{"3", "0"})
}

// Times lie where readers of nanoseconds wrap into another century.
func TestTimesOfAllCenturies(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	at := func(n int, text string) string { return call("acme", n, "2026-11-20T10:00:00.000Z", text) }
	s.produce(topic, "acme",
		at(0, "0001-01-01T00:00:00Z"), at(1, "1600-01-01T00:00:00.000Z"), at(2, "2300-01-01T00:00:00.000Z"),
		at(3, "9999-12-31T23:59:59.999Z"), at(4, "2026-05-15T12:00:00.000Z"), at(5, "tomorrow"), at(6, "2026-02-30T00:00:00Z"))
	a := s.settle(oracle.Proved)
	s.wantFates(a, topic, "row", "row", "row", "row", "row", "bad_timestamp", "bad_timestamp")
	s.wantRows(a, `select epoch_us(created_at) from {rows} where kind = 'call' order by kafka_offset`,
		[]any{"-62135596800000000"}, []any{"-11676096000000000"}, []any{"10413792000000000"}, []any{"253402300799999000"}, []any{"1778846400000000"})
}

// The instant must be the same whatever zone the reader sits in, also where
// its clocks jump.
func TestTimesInEveryZone(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	s.produce(topic, "acme",
		call("acme", 0, "2026-11-20T10:00:00.000Z", "2026-05-15T12:00:00.123456Z"),
		call("acme", 1, "2026-11-20T10:00:00.000Z", "2026-03-08T05:31:00.000Z"))
	a := s.settle(oracle.Proved)
	for _, zone := range []string{"UTC", "Asia/Tehran", "America/St_Johns"} {
		rows := s.query(a, "set timezone='"+zone+"'", "select epoch_us(created_at) from {rows} order by kafka_offset")
		if got := fmt.Sprint(rows); got != "[[1778846400123456] [1772947860000000]]" {
			t.Errorf("in %s: %s", zone, got)
		}
	}
	s.wantRows(a, `select distinct type, logical_type from parquet_schema('{glob}') where name = 'created_at'`,
		[]any{"INT64", "TimestampType(isAdjustedToUTC=1, unit=TimeUnit(MILLIS=<null>, MICROS=MicroSeconds(), NANOS=<null>))"})
	s.wantRows(a, `select ext->>'createdAt' from {rows} where turn_id = 't-0'`, []any{"2026-05-15T12:00:00.123456Z"})
}

// Large records are archived whole, or refused with their size and hash; none
// vanishes, and none takes more memory than was allowed.
func TestLargeRecords(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	const limit = 16 << 20
	long := func(n, size int) string {
		plain := len(call("acme", n, `{"x":1}`, `{"x":""}`))
		return call("acme", n, `{"x":1}`, `{"x":"`+strings.Repeat("x", size-plain)+`"}`)
	}
	values := []string{call("acme", 0), long(1, 900_000), long(2, 1_100_000), long(3, 5<<20), long(4, limit), long(5, limit+1), call("acme", 6)}
	for i := range 32 {
		values = append(values, long(7+i, 1<<20))
	}
	values = append(values, call("acme", 39))
	s.produce(topic, "acme", values...)
	a := s.settle(oracle.Proved, "--memory", "64MiB")
	want := make([]string, len(values))
	for i := range want {
		want[i] = "row"
	}
	want[5] = "too_large"
	s.wantFates(a, topic, want...)
	sum := sha256.Sum256([]byte(values[5]))
	s.wantRows(a, `select context->>'size', context->>'sha256', raw is null from {rows} where kind = 'rejected'`,
		[]any{fmt.Sprint(limit + 1), hex.EncodeToString(sum[:]), "True"})
	s.wantRows(a, `select length(plugin_payloads::json->0->'data'->>'x') from {rows} where turn_id = 't-4'`,
		[]any{fmt.Sprint(limit - len(call("acme", 4, `{"x":1}`, `{"x":""}`)))})
	s.wantMemory()
}

// One bad record in five is nothing to a partition: it goes on at full speed,
// the group stays as it is, and the log neither swells nor tells.
func TestManyBadRecords(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	joins := s.countJoins()
	s.start("--log-level", "info")
	s.produce(topic, "acme", call("acme", 0))
	s.drain()
	joined, begin := joins(), time.Now()
	values := calls("acme", 1, 1000)
	for i := 0; i < len(values); i += 5 {
		values[i] = "{" + secret + values[i]
	}
	s.produce(topic, "acme", values...)
	s.drain()
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
	if joins() != joined {
		t.Errorf("the group joined again %d times", joins()-joined)
	}
	s.stop()
	a := s.check(oracle.Proved)
	s.wantRows(a, `select kind, context->>'reason', count(*) from {rows} group by all order by all`,
		[]any{"call", nil, "801"}, []any{"rejected", "invalid_json", "200"})
	if lines := strings.Count(s.ingest.Output(), "\n"); lines > 100 {
		t.Errorf("%d lines of log for 200 bad records", lines)
	}
}
