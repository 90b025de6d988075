-- Tool cascades of turns, in order: which tool was tried after which, and why. --turn asks for one turn.
SELECT tenant_id, session_id, turn_id,
  row_number() OVER (PARTITION BY tenant_id, session_id, turn_id ORDER BY seq_within_turn, created_at, seq) AS step,
  seq_within_turn, original_tool, cascaded_to, failure_class, attempt_index, tried_tool_count, cascade_applied, trigger_site, status
FROM v_tool_fallback_step
WHERE turn_id IS NOT NULL{{if .Tenant}} AND tenant_id = {{literal .Tenant}}{{end}}{{if .Turn}} AND turn_id = {{literal .Turn}}{{end}}
ORDER BY tenant_id, session_id, turn_id, step;
