package sim_test

import (
	"fmt"
	"time"
)

// values makes what producers send, and knows what it has sent to each
// partition, so that it can repeat itself.
type values struct {
	dice dice
	n    int
	note string // a further member; "" is none
	sent map[int32][]sent
}

type sent struct {
	tenant string
	value  string
	seq    int
}

func newValues(d dice) *values { return &values{dice: d, sent: map[int32][]sent{}} }

// next returns a value for a partition, and which kind of one it is.
func (v *values) next(partition int32, tenants int, now time.Time) (kind, tenant string, value []byte) {
	before := v.sent[partition]
	tenant = fmt.Sprintf("tenant-%d", v.dice.IntN(tenants))
	switch at := v.dice.Float64(); {
	case len(before) > 0 && at < 0.10:
		s := before[len(before)-1-v.dice.IntN(min(5, len(before)))]
		return "repeat-near", s.tenant, []byte(s.value)
	case len(before) > 30 && at < 0.17:
		s := before[v.dice.IntN(len(before)-20)]
		return "repeat-far", s.tenant, []byte(s.value)
	case len(before) > 0 && at < 0.23:
		s := before[len(before)-1-v.dice.IntN(min(40, len(before)))]
		return "conflict", s.tenant, []byte(v.call(s.tenant, s.seq, partition, "model-b", now))
	case at < 0.30:
		return "poison", tenant, []byte(one(v.dice,
			`{"auditRecordVersion":19`, `{}`, "\xff", `{"principal":{"tenantId":"_x"}}`, `[1]`, ``,
			fmt.Sprintf(`{"principal":{"tenantId":%q},"sessionId":7}`, tenant),
			fmt.Sprintf(`{"principal":{"tenantId":%q,"userId":"user-%d"},"sessionId":7}`, tenant, v.n%7),
			fmt.Sprintf(`{"principal":{"tenantId":%q},"sessionId":7,"note":"by \u0075ser-%d"}`, tenant, v.n%7),
			fmt.Sprintf(`{"principal":{"tenantId":%q},"principal":{"tenantId":%q}}`, tenant, tenant)) + v.note)
	case at < 0.32:
		return "null", tenant, nil
	}
	v.n++
	s := sent{tenant: tenant, seq: v.n, value: v.call(tenant, v.n, partition, "model-a", now)}
	v.sent[partition] = append(before, s)
	return "fresh", tenant, []byte(s.value)
}

// call returns a good record. One in twenty ends a turn.
func (v *values) call(tenant string, n int, partition int32, model string, now time.Time) string {
	stage := "tool-loop"
	if n%20 == 0 {
		stage = "post-turn"
	}
	return fmt.Sprintf(`{"auditRecordVersion":19,"recordId":"01KRNR3ZG0%016d","sessionId":"s-%d","turnId":"t-%d","stageId":%q,"seqWithinTurn":%d,`+
		`"createdAt":%q,"principal":{"tenantId":%q,"userId":"user-%d","actorKind":"user","sessionAuthMethod":"api-key"},`+
		`"call":{"callClass":"default","provider":"anthropic","model":%q,"transport":"native"},"outcome":{"status":"ok","latencyMs":%d},"extra":%d%s}`,
		n, partition, n/20, stage, n, now.UTC().Format("2006-01-02T15:04:05.000Z"), tenant, n%7, model, n%900, n, v.note)
}
