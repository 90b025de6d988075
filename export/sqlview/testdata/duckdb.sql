-- Archive 01KBCDEFGHM9S346Q3D2000001, for DuckDB. Each row is there once.
--   audit.calls/0: 1 data files of version 1 of the catalog, 1 segments, 3 to 3?DROP TABLE x
-- Without what is ordered to be erased and not erased yet, as of now.
-- Without rows of which all content is erased; --include-erased brings them.
-- Without rows that repeat another one, as far as compaction has found them; --include-repeats brings them.
-- The views name files, which stay readable for graceSeconds of ledgerlake.json (one hour) once compaction goes on: make them anew after that.
-- A hash is compared so: row_hash = unhex('8d2a0660…').
-- Over s3:// DuckDB needs its extension httpfs, and credentials:
--   INSTALL httpfs; LOAD httpfs; CREATE SECRET (TYPE s3, PROVIDER credential_chain)
--   for another store than AWS's: CREATE SECRET (TYPE s3, KEY_ID '…', SECRET '…', ENDPOINT 'HOST:PORT', URL_STYLE 'path', USE_SSL false)

CREATE OR REPLACE VIEW ledgerlake_objects AS
SELECT * FROM read_parquet([
  's3://bucket/audit/data/acme/day=2026-05-28/a.parquet',
  's3://bucket/audit/log/audit.calls/kTq2VqYJQ0mFvY8v2b3m0A/00000/00000000000000000003.parquet'
], hive_partitioning = false);

-- ledgerlake_places: where each row stands, hidden ones too; no content
CREATE OR REPLACE VIEW ledgerlake_places AS
SELECT "tenant_id", "topic", "topic_id", "partition", "epoch", "seq", "kind", "kafka_offset", "archived_at", "repeat_of", "redaction_id"
FROM ledgerlake_objects;

-- ledgerlake_rows: every row that is shown, once
CREATE OR REPLACE VIEW ledgerlake_rows AS
SELECT
  "tenant_id",
  "topic",
  "partition",
  "seq",
  "kafka_offset",
  "kafka_timestamp",
  "archived_at",
  "kind",
  "audit_record_version",
  "record_id",
  "session_id",
  "turn_id",
  "stage_id",
  "seq_within_turn",
  "created_at",
  "actor_kind",
  "session_auth_method",
  "call_class",
  "family",
  "model_id",
  "transport",
  "tool_name",
  "subagent_depth",
  "parent_turn_id",
  "input_tokens",
  "output_tokens",
  "status",
  "latency_us",
  "finish_reason",
  "http_status",
  "redaction_policy",
  CASE WHEN CASE "tenant_id"
    WHEN 'acme' THEN ("kind" NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND "topic" = 'audit.calls' AND "topic_id" = 'kTq2VqYJQ0mFvY8v2b3m0A' AND "partition" = 0 AND "seq" < 9)
    ELSE false END THEN NULL ELSE "decision" END AS "decision",
  "outcome_why",
  "family_lock",
  "fallback_step",
  "provider_cascade",
  "cache_breakpoint",
  "tool_fallback_step",
  "token_cost",
  "synthesis_quality",
  "tool_selection",
  "plan_generation",
  "interrupt_decision",
  "plugin_payloads",
  CASE WHEN CASE "tenant_id"
    WHEN 'acme' THEN ("kind" NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled') AND "topic" = 'audit.calls' AND "topic_id" = 'kTq2VqYJQ0mFvY8v2b3m0A' AND "partition" = 0 AND "kafka_offset" = 812)
    ELSE false END THEN NULL ELSE "context" END AS "context",
  "prompts",
  "ext",
  "raw",
  "prev_hash",
  "row_hash",
  "payload_commit",
  "user_commit",
  CASE WHEN CASE "tenant_id"
    WHEN 'acme' THEN ("kind" NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled') AND "topic" = 'audit.calls' AND "topic_id" = 'kTq2VqYJQ0mFvY8v2b3m0A' AND "partition" = 0 AND "kafka_offset" = 812)
      OR ("kind" NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND "topic" = 'audit.calls' AND "topic_id" = 'kTq2VqYJQ0mFvY8v2b3m0A' AND "partition" = 0 AND "seq" < 9)
    ELSE false END THEN NULL ELSE "row_salt" END AS "row_salt",
  CASE WHEN CASE "tenant_id"
    WHEN 'acme' THEN ("kind" NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND "topic" = 'audit.calls' AND "topic_id" = 'kTq2VqYJQ0mFvY8v2b3m0A' AND "partition" = 0 AND "seq" < 9)
    ELSE false END THEN NULL ELSE "user_salt" END AS "user_salt",
  CASE WHEN CASE "tenant_id"
    WHEN 'acme' THEN ("kind" NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND "topic" = 'audit.calls' AND "topic_id" = 'kTq2VqYJQ0mFvY8v2b3m0A' AND "partition" = 0 AND "seq" < 9)
    ELSE false END THEN NULL ELSE "user_id" END AS "user_id",
  CASE WHEN CASE "tenant_id"
    WHEN 'acme' THEN ("kind" NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled') AND "topic" = 'audit.calls' AND "topic_id" = 'kTq2VqYJQ0mFvY8v2b3m0A' AND "partition" = 0 AND "kafka_offset" = 812)
      OR ("kind" NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND "topic" = 'audit.calls' AND "topic_id" = 'kTq2VqYJQ0mFvY8v2b3m0A' AND "partition" = 0 AND "seq" < 9)
    ELSE false END THEN NULL ELSE "residual" END AS "residual",
  "redaction",
  "redaction_id",
  "topic_id",
  "epoch",
  CASE WHEN CASE "tenant_id"
    WHEN 'acme' THEN ("kind" NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND "topic" = 'audit.calls' AND "topic_id" = 'kTq2VqYJQ0mFvY8v2b3m0A' AND "partition" = 0 AND "seq" < 9)
    ELSE false END THEN NULL ELSE "requested_model" END AS "requested_model",
  CASE WHEN CASE "tenant_id"
    WHEN 'acme' THEN ("kind" NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND "topic" = 'audit.calls' AND "topic_id" = 'kTq2VqYJQ0mFvY8v2b3m0A' AND "partition" = 0 AND "seq" < 9)
    ELSE false END THEN NULL ELSE "selected_reason" END AS "selected_reason",
  CASE WHEN CASE "tenant_id"
    WHEN 'acme' THEN ("kind" NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND "topic" = 'audit.calls' AND "topic_id" = 'kTq2VqYJQ0mFvY8v2b3m0A' AND "partition" = 0 AND "seq" < 9)
    ELSE false END THEN NULL ELSE "rung_ordinal" END AS "rung_ordinal",
  CASE WHEN CASE "tenant_id"
    WHEN 'acme' THEN ("kind" NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND "topic" = 'audit.calls' AND "topic_id" = 'kTq2VqYJQ0mFvY8v2b3m0A' AND "partition" = 0 AND "seq" < 9)
    ELSE false END THEN NULL ELSE "fallback_chain" END AS "fallback_chain",
  "repeat_of"
FROM ledgerlake_objects
WHERE ("redaction" IS NULL OR "residual" IS NOT NULL)
  AND "repeat_of" IS NULL
  AND NOT coalesce(CASE "tenant_id"
    WHEN 'O''Brien \ 東京' THEN (("kind" NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND (sha256("user_id") = '3e4df717f4d7d41f64af6dfff3c3d468c417dfdcb4daf7cd3419c7b2fd86fccb' OR "kind" = 'rejected') AND (epoch_us("archived_at") <= 1780000000000000 OR epoch_us(coalesce("created_at", "kafka_timestamp", "archived_at")) <= 1779999999999999)) AND ("redaction" IS NULL OR "residual" IS NOT NULL OR "user_id" IS NOT NULL OR "redaction" NOT LIKE '%"hard":true}'))
    WHEN 'acme' THEN (("kind" NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND upper("record_id") = '01KBCDEFGHJKMNPQRSTX000001') AND ("redaction" IS NULL OR "residual" IS NOT NULL))
      OR (("kind" NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND "session_id" = 's' AND "turn_id" = 't' AND "stage_id" = 'g' AND "seq_within_turn" = 3) AND ("redaction" IS NULL OR "residual" IS NOT NULL OR "user_id" IS NOT NULL))
    ELSE false END, false);

-- ledgerlake_prices: from the file of --prices; empty without one
CREATE OR REPLACE VIEW ledgerlake_prices AS
SELECT CAST('anthropic' AS VARCHAR) AS provider, CAST('claude' AS VARCHAR) AS model, CAST('2026-01-01' AS DATE) AS valid_from, CAST(3 AS DOUBLE) AS input_per_million, CAST(15 AS DOUBLE) AS output_per_million, CAST(0.3 AS DOUBLE) AS cache_read_per_million, CAST(NULL AS DOUBLE) AS cache_write_per_million, CAST('USD' AS VARCHAR) AS currency
UNION ALL SELECT CAST('o''ai' AS VARCHAR) AS provider, CAST('m' AS VARCHAR) AS model, CAST('2026-01-01' AS DATE) AS valid_from, CAST(1 AS DOUBLE) AS input_per_million, CAST(2 AS DOUBLE) AS output_per_million, CAST(NULL AS DOUBLE) AS cache_read_per_million, CAST(NULL AS DOUBLE) AS cache_write_per_million, CAST('EUR' AS VARCHAR) AS currency;

-- v_calls: calls of models and tools: one row a call, retry, rung or step
CREATE OR REPLACE VIEW v_calls AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status", "user_id", "actor_kind", "session_auth_method", "call_class", "transport", "tool_name", "subagent_depth", "parent_turn_id", "input_tokens", "output_tokens", "latency_us", "finish_reason", "http_status", "requested_model", "selected_reason", "rung_ordinal", "fallback_chain"
FROM ledgerlake_rows
WHERE "kind" = 'call';

-- v_decision: why a model ran
CREATE OR REPLACE VIEW v_decision AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  TRY(json_extract_string("decision", '$.requestedModel')) AS "requested_model",
  TRY(json_extract_string("decision", '$.selectedReason')) AS "selected_reason",
  TRY_CAST(TRY(json_extract_string("decision", '$.rungOrdinal')) AS BIGINT) AS "rung_ordinal",
  TRY(CAST(json_extract("decision", '$.fallbackChain') AS VARCHAR)) AS "fallback_chain",
  "decision" AS "slot_json"
FROM ledgerlake_rows
WHERE "decision" IS NOT NULL;

-- v_outcome_why: why a call came out as it did
CREATE OR REPLACE VIEW v_outcome_why AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  TRY(json_extract_string("outcome_why", '$.nativeFinishReason')) AS "native_finish_reason",
  TRY(json_extract_string("outcome_why", '$.servingProvider')) AS "serving_provider",
  TRY_CAST(TRY(json_extract_string("outcome_why", '$.gatewayAttempt')) AS BIGINT) AS "gateway_attempt",
  TRY(CAST(json_extract("outcome_why", '$.statistics') AS VARCHAR)) AS "statistics",
  "outcome_why" AS "slot_json"
FROM ledgerlake_rows
WHERE "outcome_why" IS NOT NULL;

-- v_family_lock: how a family of models was resolved
CREATE OR REPLACE VIEW v_family_lock AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  TRY(json_extract_string("family_lock", '$.resolverPath')) AS "resolver_path",
  TRY(json_extract_string("family_lock", '$.emitSite')) AS "emit_site",
  TRY(json_extract_string("family_lock", '$.requestedFamily')) AS "requested_family",
  TRY_CAST(TRY(json_extract_string("family_lock", '$.familyMismatch')) AS BOOLEAN) AS "family_mismatch",
  TRY_CAST(TRY(json_extract_string("family_lock", '$.byokActive')) AS BOOLEAN) AS "byok_active",
  TRY(json_extract_string("family_lock", '$.byokKeyId')) AS "byok_key_id",
  TRY_CAST(TRY(json_extract_string("family_lock", '$.resolvedViaAlias')) AS BOOLEAN) AS "resolved_via_alias",
  TRY(json_extract_string("family_lock", '$.legacyDefaultModel')) AS "legacy_default_model",
  "family_lock" AS "slot_json"
FROM ledgerlake_rows
WHERE "family_lock" IS NOT NULL;

-- v_fallback_step: rungs of ladders of models
CREATE OR REPLACE VIEW v_fallback_step AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  TRY(json_extract_string("fallback_step", '$.originalFamily')) AS "original_family",
  TRY(json_extract_string("fallback_step", '$.originalModel')) AS "original_model",
  TRY(json_extract_string("fallback_step", '$.originalCallClass')) AS "original_call_class",
  TRY(json_extract_string("fallback_step", '$.attemptFamily')) AS "attempt_family",
  TRY(json_extract_string("fallback_step", '$.attemptModel')) AS "attempt_model",
  TRY(json_extract_string("fallback_step", '$.attemptCallClass')) AS "attempt_call_class",
  TRY_CAST(TRY(json_extract_string("fallback_step", '$.attemptIndex')) AS BIGINT) AS "attempt_index",
  TRY(json_extract_string("fallback_step", '$.reason')) AS "reason",
  TRY_CAST(TRY(json_extract_string("fallback_step", '$.inFamily')) AS BOOLEAN) AS "in_family",
  TRY_CAST(TRY(json_extract_string("fallback_step", '$.originalLadderStep')) AS BIGINT) AS "original_ladder_step",
  TRY_CAST(TRY(json_extract_string("fallback_step", '$.ladderStep')) AS BIGINT) AS "ladder_step",
  TRY_CAST(TRY(json_extract_string("fallback_step", '$.ladderRegression')) AS BOOLEAN) AS "ladder_regression",
  "fallback_step" AS "slot_json"
FROM ledgerlake_rows
WHERE "fallback_step" IS NOT NULL;

-- v_provider_cascade: pivots between providers
CREATE OR REPLACE VIEW v_provider_cascade AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  TRY(json_extract_string("provider_cascade", '$.source')) AS "source",
  TRY(json_extract_string("provider_cascade", '$.trigger')) AS "trigger",
  TRY(json_extract_string("provider_cascade", '$.errorType')) AS "error_type",
  TRY(json_extract_string("provider_cascade", '$.providerFrom')) AS "provider_from",
  TRY(json_extract_string("provider_cascade", '$.providerTo')) AS "provider_to",
  TRY_CAST(TRY(json_extract_string("provider_cascade", '$.attemptN')) AS BIGINT) AS "attempt_n",
  TRY_CAST(TRY(json_extract_string("provider_cascade", '$.userAbortValid')) AS BOOLEAN) AS "user_abort_valid",
  "provider_cascade" AS "slot_json"
FROM ledgerlake_rows
WHERE "provider_cascade" IS NOT NULL;

-- v_cache_breakpoint: what providers read from caches
CREATE OR REPLACE VIEW v_cache_breakpoint AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  TRY(json_extract_string("cache_breakpoint", '$.fingerprintComposite')) AS "fingerprint_composite",
  TRY_CAST(TRY(json_extract_string("cache_breakpoint", '$.cacheReadTokens')) AS BIGINT) AS "cache_read_tokens",
  TRY_CAST(TRY(json_extract_string("cache_breakpoint", '$.cacheCreationTokens')) AS BIGINT) AS "cache_creation_tokens",
  TRY_CAST(TRY(json_extract_string("cache_breakpoint", '$.inputTokens')) AS BIGINT) AS "input_tokens",
  TRY_CAST(TRY(json_extract_string("cache_breakpoint", '$.hitPct')) AS DOUBLE) AS "hit_pct",
  "cache_breakpoint" AS "slot_json"
FROM ledgerlake_rows
WHERE "cache_breakpoint" IS NOT NULL;

-- v_tool_fallback_step: tools that were tried after others
CREATE OR REPLACE VIEW v_tool_fallback_step AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  TRY(json_extract_string("tool_fallback_step", '$.originalTool')) AS "original_tool",
  TRY(json_extract_string("tool_fallback_step", '$.cascadedTo')) AS "cascaded_to",
  TRY(json_extract_string("tool_fallback_step", '$.capabilityId')) AS "capability_id",
  TRY(json_extract_string("tool_fallback_step", '$.failureClass')) AS "failure_class",
  TRY_CAST(TRY(json_extract_string("tool_fallback_step", '$.attemptIndex')) AS BIGINT) AS "attempt_index",
  TRY_CAST(TRY(json_extract_string("tool_fallback_step", '$.triedToolCount')) AS BIGINT) AS "tried_tool_count",
  TRY_CAST(TRY(json_extract_string("tool_fallback_step", '$.inClass')) AS BOOLEAN) AS "in_class",
  TRY_CAST(TRY(json_extract_string("tool_fallback_step", '$.cascadeApplied')) AS BOOLEAN) AS "cascade_applied",
  TRY(json_extract_string("tool_fallback_step", '$.triggerSite')) AS "trigger_site",
  "tool_fallback_step" AS "slot_json"
FROM ledgerlake_rows
WHERE "tool_fallback_step" IS NOT NULL;

-- v_token_cost: use of tokens, as the producer has it
CREATE OR REPLACE VIEW v_token_cost AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  TRY_CAST(TRY(json_extract_string("token_cost", '$.inputTokens')) AS BIGINT) AS "input_tokens",
  TRY_CAST(TRY(json_extract_string("token_cost", '$.outputTokens')) AS BIGINT) AS "output_tokens",
  "token_cost" AS "slot_json"
FROM ledgerlake_rows
WHERE "token_cost" IS NOT NULL;

-- v_synthesis_quality: of answers; members are free
CREATE OR REPLACE VIEW v_synthesis_quality AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  "synthesis_quality" AS "slot_json"
FROM ledgerlake_rows
WHERE "synthesis_quality" IS NOT NULL;

-- v_tool_selection: of tool loops; members are free
CREATE OR REPLACE VIEW v_tool_selection AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  "tool_selection" AS "slot_json"
FROM ledgerlake_rows
WHERE "tool_selection" IS NOT NULL;

-- v_plan_generation: of plans; members are free
CREATE OR REPLACE VIEW v_plan_generation AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  "plan_generation" AS "slot_json"
FROM ledgerlake_rows
WHERE "plan_generation" IS NOT NULL;

-- v_interrupt: humans that were asked; members are free
CREATE OR REPLACE VIEW v_interrupt AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  "interrupt_decision" AS "slot_json"
FROM ledgerlake_rows
WHERE "interrupt_decision" IS NOT NULL;

-- v_plugin_payloads: what plugins wrote: a JSON array of {pluginId, subKind, data}
CREATE OR REPLACE VIEW v_plugin_payloads AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  "plugin_payloads" AS "slot_json"
FROM ledgerlake_rows
WHERE "plugin_payloads" IS NOT NULL;

-- v_decisions: decisions of agents, those not to act too
CREATE OR REPLACE VIEW v_decisions AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status", "input_tokens", "output_tokens",
  TRY(json_extract_string("context", '$.inputs.intent')) AS "inputs_intent",
  TRY(json_extract_string("context", '$.inputs.satelliteId')) AS "inputs_satellite_id",
  TRY(json_extract_string("context", '$.outcome')) AS "outcome",
  TRY(CAST(json_extract("context", '$.action') AS VARCHAR)) AS "action",
  TRY(CAST(json_extract("context", '$.calls') AS VARCHAR)) AS "calls",
  "context" AS "slot_json"
FROM ledgerlake_rows
WHERE "kind" = 'decision';

-- v_entries: entries of interaction logs
CREATE OR REPLACE VIEW v_entries AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status", "kind", "actor_kind", "tool_name", "latency_us",
  TRY(json_extract_string("context", '$.promptHash')) AS "prompt_hash",
  TRY(json_extract_string("context", '$.policyDecision')) AS "policy_decision",
  TRY(json_extract_string("context", '$.sourceTag')) AS "source_tag",
  TRY(json_extract_string("context", '$.rollbackHandle')) AS "rollback_handle",
  TRY(CAST(json_extract("context", '$.args') AS VARCHAR)) AS "args",
  TRY(CAST(json_extract("context", '$.worldDiff') AS VARCHAR)) AS "world_diff",
  TRY(CAST(json_extract("context", '$.resultDetail') AS VARCHAR)) AS "result_detail",
  "context" AS "slot_json"
FROM ledgerlake_rows
WHERE "kind" IN ('llm-request', 'llm-response', 'tool-call', 'world-mutation', 'policy-decision');

-- v_rejected: records that could not be archived as they were
CREATE OR REPLACE VIEW v_rejected AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status", "archived_at", "kafka_offset",
  TRY(json_extract_string("context", '$.reason')) AS "reason",
  TRY(json_extract_string("context", '$.detail')) AS "detail",
  TRY_CAST(TRY(json_extract_string("context", '$.size')) AS BIGINT) AS "size",
  TRY(json_extract_string("context", '$.sha256')) AS "sha256",
  "context" AS "slot_json"
FROM ledgerlake_rows
WHERE "kind" = 'rejected';

-- v_erasures: requests for erasure, their receipts and cancellations
CREATE OR REPLACE VIEW v_erasures AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status", "kind", "archived_at",
  TRY(json_extract_string("context", '$.redactionId')) AS "redaction_id",
  TRY(json_extract_string("context", '$.reason')) AS "reason",
  TRY(json_extract_string("context", '$.requestRef')) AS "request_ref",
  TRY(CAST(json_extract("context", '$.target') AS VARCHAR)) AS "target",
  TRY(CAST(json_extract("context", '$.slots') AS VARCHAR)) AS "slots",
  TRY(json_extract_string("context", '$.by')) AS "ordered_by",
  TRY_CAST(TRY(json_extract_string("context", '$.user')) AS BOOLEAN) AS "takes_user",
  TRY_CAST(TRY(json_extract_string("context", '$.hard')) AS BOOLEAN) AS "is_hard",
  "context" AS "slot_json"
FROM ledgerlake_rows
WHERE "kind" IN ('redaction', 'redaction-cancelled', 'erasure-done');

