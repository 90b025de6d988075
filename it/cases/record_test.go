//go:build it

package cases

import (
	"fmt"
	"strings"
)

// A plain call, with one of everything that a case may want to spoil.
const plainCall = `{"auditRecordVersion":19,"recordId":"01KB0000000000000000%06[2]d","sessionId":"s-1","turnId":"t-%[2]d",` +
	`"stageId":"tool-loop","seqWithinTurn":0,"createdAt":"2026-11-20T10:00:00.000Z","tenantId":%[1]q,` +
	`"principal":{"tenantId":%[1]q,"userId":"u-1","actorKind":"user","sessionAuthMethod":"api-key"},` +
	`"call":{"callClass":"chat","provider":"anthropic","model":"claude-x","transport":"native"},` +
	`"decision":{"requestedModel":"claude-x","selectedReason":"matrix-pick","rungOrdinal":0,"fallbackChain":[]},` +
	`"tokenCost":{"inputTokens":100,"outputTokens":7},` +
	`"outcome":{"status":"ok","latencyMs":812,"finishReason":"stop","httpStatus":200},` +
	`"pluginPayloads":[{"pluginId":"p","subKind":"k","data":{"x":1}}]}`

// call returns the value of call n of a tenant. edits are pairs: a text that
// stands in the plain call, and what stands there instead.
func call(tenant string, n int, edits ...string) string {
	text := fmt.Sprintf(plainCall, tenant, n)
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			panic(fmt.Sprintf("no %s in a call", edits[i]))
		}
		text = strings.Replace(text, edits[i], edits[i+1], 1)
	}
	return text
}

// calls returns n plain calls from number first on.
func calls(tenant string, first, n int) []string {
	values := make([]string, n)
	for i := range values {
		values[i] = call(tenant, first+i)
	}
	return values
}
