-- Decisions not to act: what was asked for, and what the policy said.
--
-- A decision of which the context was erased does not tell, and is left out.
SELECT tenant_id, {{moment "created_at"}} AS decided_at, turn_id AS decision_id, session_id AS conversation_id,
  inputs_intent AS intent, status AS verdict, outcome
FROM v_decisions
WHERE slot_json IS NOT NULL AND (action IS NULL OR action = 'null'){{if .Tenant}} AND tenant_id = {{literal .Tenant}}{{end}}
ORDER BY tenant_id, decided_at, decision_id;
