package workload

import (
	"bytes"
	"slices"
	"strings"
)

// A fault is one way in which a record can be unfit, and the class of reject
// that it must lead to.
type fault struct {
	reason string
	calls  bool // it needs the members of a call
	do     func(r *Record)
}

var faults = []fault{
	{"null_value", false, func(r *Record) { r.Value = nil }},
	{"empty_value", false, func(r *Record) { r.Value = []byte{} }},
	{"invalid_json", false, func(r *Record) { r.Value = r.Value[:len(r.Value)*3/5] }},
	{"invalid_unicode", false, func(r *Record) { r.replace(`"tenantId":"`, "\"nickname\":\"caf\xe9\",\"tenantId\":\"") }},
	{"invalid_unicode", false, func(r *Record) { r.replace(`"tenantId":"`, `"nickname":"\ud83d","tenantId":"`) }},
	{"duplicate_key", true, func(r *Record) { r.replace(`"turnId":`, `"stageId":"tool-loop","turnId":`) }},
	{"missing_field", true, func(r *Record) { r.replace(`"turnId":`, `"turnID":`) }},
	{"wrong_type", true, func(r *Record) { r.replace(`"decision":{`, `"decision":"see outcome","decisions":{`) }},
	{"out_of_range", true, func(r *Record) { r.replace(`"seqWithinTurn":`, `"seqWithinTurn":9223372036854775808,"seqBefore":`) }},
	{"bad_record_id", true, func(r *Record) { r.replace(`"recordId":"0`, `"recordId":"U`) }},
	{"bad_timestamp", true, func(r *Record) { r.replace(`"createdAt":"2`, `"createdAt":"on 2`) }},
	{"tenant_mismatch", false, func(r *Record) { r.Headers[0].Value = []byte(r.Tenant + "-staging") }},
	{"bad_tenant_id", false, func(r *Record) {
		r.Headers[0].Value = []byte("_system")
		r.replace(`"tenantId":"`+r.Tenant+`"`, `"tenantId":"_system"`)
	}},
	{"too_deep", false, func(r *Record) {
		r.replace(`{`, `{"trail":`+strings.Repeat("[", 70)+strings.Repeat("]", 70)+`,`)
	}},
	{"unknown_kind", true, func(r *Record) { r.Headers = append(r.Headers, Header{"ledgerlake-kind", []byte("telemetry")}) }},
	{"reserved_kind", true, func(r *Record) { r.Headers = append(r.Headers, Header{"ledgerlake-kind", []byte("legal-hold")}) }},
}

// replace puts another text for the first place of one in the value.
func (r *Record) replace(old, with string) {
	r.Value = bytes.Replace(r.Value, []byte(old), []byte(with), 1)
}

// damage puts one fault into a fresh record. Its coordinates are used up with
// it, so that no good record shares them.
func (g *Generator) damage(r Record) Record {
	f := pick(g, faults)
	for f.calls && r.Kind != "call" {
		f = pick(g, faults)
	}
	f.do(&r)
	r.Class, r.Reason = Broken, f.reason
	return r
}

// repeat sends a good record once more: half of the time the very same bytes,
// as a producer does that missed an acknowledgement, half of the time a call
// is recorded anew, with another id and time.
func (g *Generator) repeat() Record {
	r := g.older()
	r.Class, r.Time = Repeat, g.now
	if r.Kind == "call" && g.chance(0.5) {
		r.Value = g.renamed(r.Value)
	}
	return r
}

// renamed returns a call under a new recordId and createdAt.
func (g *Generator) renamed(value []byte) []byte {
	v := slices.Clone(value)
	put := func(member, text string) { copy(v[bytes.Index(v, []byte(member))+len(member):], text) }
	put(`"recordId":"`, string(g.ulids.append(nil, g.now, g.idRNG)))
	put(`"createdAt":"`, g.now.UTC().Format(timeLayout))
	return v
}

// conflict sends the coordinates of a good record with other content.
func (g *Generator) conflict() Record {
	r := g.older()
	r.Class, r.Reason, r.Time = Conflict, "conflict", g.now
	r.replace(`"tenantId":"`, `"contradicts":true,"tenantId":"`)
	return r
}
