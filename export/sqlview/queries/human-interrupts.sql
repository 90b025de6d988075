-- Humans that were asked: when, in which turn, and what came of it.
--
-- The members of the slot are the producer's own: question, answer and channel are null where it calls them otherwise.
SELECT tenant_id, {{moment "created_at"}} AS asked_at, session_id, turn_id, seq_within_turn,
  {{text "slot_json" "question"}} AS question, {{text "slot_json" "answer"}} AS answer, {{text "slot_json" "channel"}} AS channel,
  slot_json
FROM v_interrupt{{if .Tenant}}
WHERE tenant_id = {{literal .Tenant}}{{end}}
ORDER BY tenant_id, asked_at, session_id, turn_id, seq_within_turn;
