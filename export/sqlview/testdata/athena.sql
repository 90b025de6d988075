-- Archive 01KBCDEFGHM9S346Q3D2000001, for Amazon Athena. Each row is there once.
--   audit.calls/0: 1 data files of version 1 of the catalog, 1 segments, 3 to 3?DROP TABLE x
-- Without what is ordered to be erased and not erased yet, as of now.
-- Without rows of which all content is erased; --include-erased brings them.
-- Without rows that repeat another one, as far as compaction has found them; --include-repeats brings them.
-- Run the statements one after the other, in a database of your choice.
-- The table reads what ledgerlake-compact keeps below sql/rows/ where compact.sql-manifests is on: rows that came after its last pass are not in it (docs/queries.md).
-- A hash is compared so: row_hash = from_hex('8d2a0660…').

CREATE EXTERNAL TABLE IF NOT EXISTS ledgerlake_objects (
  `tenant_id` string,
  `topic` string,
  `partition` int,
  `seq` bigint,
  `kafka_offset` bigint,
  `kafka_timestamp` timestamp,
  `archived_at` timestamp,
  `kind` string,
  `audit_record_version` int,
  `record_id` string,
  `session_id` string,
  `turn_id` string,
  `stage_id` string,
  `seq_within_turn` bigint,
  `created_at` timestamp,
  `actor_kind` string,
  `session_auth_method` string,
  `call_class` string,
  `family` string,
  `model_id` string,
  `transport` string,
  `tool_name` string,
  `subagent_depth` bigint,
  `parent_turn_id` string,
  `input_tokens` bigint,
  `output_tokens` bigint,
  `status` string,
  `latency_us` bigint,
  `finish_reason` string,
  `http_status` bigint,
  `redaction_policy` string,
  `decision` string,
  `outcome_why` string,
  `family_lock` string,
  `fallback_step` string,
  `provider_cascade` string,
  `cache_breakpoint` string,
  `tool_fallback_step` string,
  `token_cost` string,
  `synthesis_quality` string,
  `tool_selection` string,
  `plan_generation` string,
  `interrupt_decision` string,
  `plugin_payloads` string,
  `context` string,
  `prompts` string,
  `ext` string,
  `raw` binary,
  `prev_hash` binary,
  `row_hash` binary,
  `payload_commit` binary,
  `user_commit` binary,
  `row_salt` binary,
  `user_salt` binary,
  `user_id` string,
  `residual` string,
  `redaction` string,
  `redaction_id` string,
  `topic_id` string,
  `epoch` int,
  `requested_model` string,
  `selected_reason` string,
  `rung_ordinal` bigint,
  `fallback_chain` array<string>,
  `repeat_of` bigint
)
PARTITIONED BY (`manifest_tenant` string)
ROW FORMAT SERDE 'org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe'
STORED AS INPUTFORMAT 'org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat'
OUTPUTFORMAT 'org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat'
LOCATION 's3://bucket/audit/sql/rows/';

ALTER TABLE ledgerlake_objects ADD IF NOT EXISTS PARTITION (manifest_tenant = 'acme') LOCATION 's3://bucket/audit/sql/rows/tenant=acme/';
ALTER TABLE ledgerlake_objects ADD IF NOT EXISTS PARTITION (manifest_tenant = 'O\'Brien \\ 東京') LOCATION 's3://bucket/audit/sql/rows/tenant=O~27Brien~20~5C~20~E6~9D~B1~E4~BA~AC/';

-- ledgerlake_places: where each row stands, hidden ones too; no content
CREATE OR REPLACE VIEW ledgerlake_places AS
SELECT "tenant_id", "topic", "topic_id", "partition", "epoch", "seq", "kind", "kafka_offset", "archived_at", "repeat_of", "redaction_id"
FROM ledgerlake_objects
WHERE "tenant_id" = "manifest_tenant";

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
WHERE "tenant_id" = "manifest_tenant"
  AND ("redaction" IS NULL OR "residual" IS NOT NULL)
  AND "repeat_of" IS NULL
  AND NOT coalesce(CASE "tenant_id"
    WHEN 'O''Brien \ 東京' THEN (("kind" NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND (lower(to_hex(sha256(to_utf8("user_id")))) = '3e4df717f4d7d41f64af6dfff3c3d468c417dfdcb4daf7cd3419c7b2fd86fccb' OR "kind" = 'rejected') AND (CAST(floor(to_unixtime("archived_at") * 1000) AS bigint) * 1000 <= 1780000000000000 OR CAST(floor(to_unixtime(coalesce("created_at", "kafka_timestamp", "archived_at")) * 1000) AS bigint) * 1000 <= 1779999999999999)) AND ("redaction" IS NULL OR "residual" IS NOT NULL OR "user_id" IS NOT NULL OR "redaction" NOT LIKE '%"hard":true}'))
    WHEN 'acme' THEN (("kind" NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND upper("record_id") = '01KBCDEFGHJKMNPQRSTX000001') AND ("redaction" IS NULL OR "residual" IS NOT NULL))
      OR (("kind" NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND "session_id" = 's' AND "turn_id" = 't' AND "stage_id" = 'g' AND "seq_within_turn" = 3) AND ("redaction" IS NULL OR "residual" IS NOT NULL OR "user_id" IS NOT NULL))
    ELSE false END, false);

-- ledgerlake_prices: from the file of --prices; empty without one
CREATE OR REPLACE VIEW ledgerlake_prices AS
SELECT CAST('anthropic' AS varchar) AS provider, CAST('claude' AS varchar) AS model, CAST('2026-01-01' AS date) AS valid_from, CAST(3 AS double) AS input_per_million, CAST(15 AS double) AS output_per_million, CAST(0.3 AS double) AS cache_read_per_million, CAST(NULL AS double) AS cache_write_per_million, CAST('USD' AS varchar) AS currency
UNION ALL SELECT CAST('o''ai' AS varchar) AS provider, CAST('m' AS varchar) AS model, CAST('2026-01-01' AS date) AS valid_from, CAST(1 AS double) AS input_per_million, CAST(2 AS double) AS output_per_million, CAST(NULL AS double) AS cache_read_per_million, CAST(NULL AS double) AS cache_write_per_million, CAST('EUR' AS varchar) AS currency;

-- v_calls: calls of models and tools: one row a call, retry, rung or step
CREATE OR REPLACE VIEW v_calls AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status", "user_id", "actor_kind", "session_auth_method", "call_class", "transport", "tool_name", "subagent_depth", "parent_turn_id", "input_tokens", "output_tokens", "latency_us", "finish_reason", "http_status", "requested_model", "selected_reason", "rung_ordinal", "fallback_chain"
FROM ledgerlake_rows
WHERE "kind" = 'call';

-- v_decision: why a model ran
CREATE OR REPLACE VIEW v_decision AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  json_extract_scalar("decision", '$.requestedModel') AS "requested_model",
  json_extract_scalar("decision", '$.selectedReason') AS "selected_reason",
  TRY_CAST(json_extract_scalar("decision", '$.rungOrdinal') AS bigint) AS "rung_ordinal",
  json_format(json_extract("decision", '$.fallbackChain')) AS "fallback_chain",
  "decision" AS "slot_json"
FROM ledgerlake_rows
WHERE "decision" IS NOT NULL;

-- v_outcome_why: why a call came out as it did
CREATE OR REPLACE VIEW v_outcome_why AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  json_extract_scalar("outcome_why", '$.nativeFinishReason') AS "native_finish_reason",
  json_extract_scalar("outcome_why", '$.servingProvider') AS "serving_provider",
  TRY_CAST(json_extract_scalar("outcome_why", '$.gatewayAttempt') AS bigint) AS "gateway_attempt",
  json_format(json_extract("outcome_why", '$.statistics')) AS "statistics",
  "outcome_why" AS "slot_json"
FROM ledgerlake_rows
WHERE "outcome_why" IS NOT NULL;

-- v_family_lock: how a family of models was resolved
CREATE OR REPLACE VIEW v_family_lock AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  json_extract_scalar("family_lock", '$.resolverPath') AS "resolver_path",
  json_extract_scalar("family_lock", '$.emitSite') AS "emit_site",
  json_extract_scalar("family_lock", '$.requestedFamily') AS "requested_family",
  TRY_CAST(json_extract_scalar("family_lock", '$.familyMismatch') AS boolean) AS "family_mismatch",
  TRY_CAST(json_extract_scalar("family_lock", '$.byokActive') AS boolean) AS "byok_active",
  json_extract_scalar("family_lock", '$.byokKeyId') AS "byok_key_id",
  TRY_CAST(json_extract_scalar("family_lock", '$.resolvedViaAlias') AS boolean) AS "resolved_via_alias",
  json_extract_scalar("family_lock", '$.legacyDefaultModel') AS "legacy_default_model",
  "family_lock" AS "slot_json"
FROM ledgerlake_rows
WHERE "family_lock" IS NOT NULL;

-- v_fallback_step: rungs of ladders of models
CREATE OR REPLACE VIEW v_fallback_step AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  json_extract_scalar("fallback_step", '$.originalFamily') AS "original_family",
  json_extract_scalar("fallback_step", '$.originalModel') AS "original_model",
  json_extract_scalar("fallback_step", '$.originalCallClass') AS "original_call_class",
  json_extract_scalar("fallback_step", '$.attemptFamily') AS "attempt_family",
  json_extract_scalar("fallback_step", '$.attemptModel') AS "attempt_model",
  json_extract_scalar("fallback_step", '$.attemptCallClass') AS "attempt_call_class",
  TRY_CAST(json_extract_scalar("fallback_step", '$.attemptIndex') AS bigint) AS "attempt_index",
  json_extract_scalar("fallback_step", '$.reason') AS "reason",
  TRY_CAST(json_extract_scalar("fallback_step", '$.inFamily') AS boolean) AS "in_family",
  TRY_CAST(json_extract_scalar("fallback_step", '$.originalLadderStep') AS bigint) AS "original_ladder_step",
  TRY_CAST(json_extract_scalar("fallback_step", '$.ladderStep') AS bigint) AS "ladder_step",
  TRY_CAST(json_extract_scalar("fallback_step", '$.ladderRegression') AS boolean) AS "ladder_regression",
  "fallback_step" AS "slot_json"
FROM ledgerlake_rows
WHERE "fallback_step" IS NOT NULL;

-- v_provider_cascade: pivots between providers
CREATE OR REPLACE VIEW v_provider_cascade AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  json_extract_scalar("provider_cascade", '$.source') AS "source",
  json_extract_scalar("provider_cascade", '$.trigger') AS "trigger",
  json_extract_scalar("provider_cascade", '$.errorType') AS "error_type",
  json_extract_scalar("provider_cascade", '$.providerFrom') AS "provider_from",
  json_extract_scalar("provider_cascade", '$.providerTo') AS "provider_to",
  TRY_CAST(json_extract_scalar("provider_cascade", '$.attemptN') AS bigint) AS "attempt_n",
  TRY_CAST(json_extract_scalar("provider_cascade", '$.userAbortValid') AS boolean) AS "user_abort_valid",
  "provider_cascade" AS "slot_json"
FROM ledgerlake_rows
WHERE "provider_cascade" IS NOT NULL;

-- v_cache_breakpoint: what providers read from caches
CREATE OR REPLACE VIEW v_cache_breakpoint AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  json_extract_scalar("cache_breakpoint", '$.fingerprintComposite') AS "fingerprint_composite",
  TRY_CAST(json_extract_scalar("cache_breakpoint", '$.cacheReadTokens') AS bigint) AS "cache_read_tokens",
  TRY_CAST(json_extract_scalar("cache_breakpoint", '$.cacheCreationTokens') AS bigint) AS "cache_creation_tokens",
  TRY_CAST(json_extract_scalar("cache_breakpoint", '$.inputTokens') AS bigint) AS "input_tokens",
  TRY_CAST(json_extract_scalar("cache_breakpoint", '$.hitPct') AS double) AS "hit_pct",
  "cache_breakpoint" AS "slot_json"
FROM ledgerlake_rows
WHERE "cache_breakpoint" IS NOT NULL;

-- v_tool_fallback_step: tools that were tried after others
CREATE OR REPLACE VIEW v_tool_fallback_step AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  json_extract_scalar("tool_fallback_step", '$.originalTool') AS "original_tool",
  json_extract_scalar("tool_fallback_step", '$.cascadedTo') AS "cascaded_to",
  json_extract_scalar("tool_fallback_step", '$.capabilityId') AS "capability_id",
  json_extract_scalar("tool_fallback_step", '$.failureClass') AS "failure_class",
  TRY_CAST(json_extract_scalar("tool_fallback_step", '$.attemptIndex') AS bigint) AS "attempt_index",
  TRY_CAST(json_extract_scalar("tool_fallback_step", '$.triedToolCount') AS bigint) AS "tried_tool_count",
  TRY_CAST(json_extract_scalar("tool_fallback_step", '$.inClass') AS boolean) AS "in_class",
  TRY_CAST(json_extract_scalar("tool_fallback_step", '$.cascadeApplied') AS boolean) AS "cascade_applied",
  json_extract_scalar("tool_fallback_step", '$.triggerSite') AS "trigger_site",
  "tool_fallback_step" AS "slot_json"
FROM ledgerlake_rows
WHERE "tool_fallback_step" IS NOT NULL;

-- v_token_cost: use of tokens, as the producer has it
CREATE OR REPLACE VIEW v_token_cost AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status",
  TRY_CAST(json_extract_scalar("token_cost", '$.inputTokens') AS bigint) AS "input_tokens",
  TRY_CAST(json_extract_scalar("token_cost", '$.outputTokens') AS bigint) AS "output_tokens",
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
  json_extract_scalar("context", '$.inputs.intent') AS "inputs_intent",
  json_extract_scalar("context", '$.inputs.satelliteId') AS "inputs_satellite_id",
  json_extract_scalar("context", '$.outcome') AS "outcome",
  json_format(json_extract("context", '$.action')) AS "action",
  json_format(json_extract("context", '$.calls')) AS "calls",
  "context" AS "slot_json"
FROM ledgerlake_rows
WHERE "kind" = 'decision';

-- v_entries: entries of interaction logs
CREATE OR REPLACE VIEW v_entries AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status", "kind", "actor_kind", "tool_name", "latency_us",
  json_extract_scalar("context", '$.promptHash') AS "prompt_hash",
  json_extract_scalar("context", '$.policyDecision') AS "policy_decision",
  json_extract_scalar("context", '$.sourceTag') AS "source_tag",
  json_extract_scalar("context", '$.rollbackHandle') AS "rollback_handle",
  json_format(json_extract("context", '$.args')) AS "args",
  json_format(json_extract("context", '$.worldDiff')) AS "world_diff",
  json_format(json_extract("context", '$.resultDetail')) AS "result_detail",
  "context" AS "slot_json"
FROM ledgerlake_rows
WHERE "kind" IN ('llm-request', 'llm-response', 'tool-call', 'world-mutation', 'policy-decision');

-- v_rejected: records that could not be archived as they were
CREATE OR REPLACE VIEW v_rejected AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status", "archived_at", "kafka_offset",
  json_extract_scalar("context", '$.reason') AS "reason",
  json_extract_scalar("context", '$.detail') AS "detail",
  TRY_CAST(json_extract_scalar("context", '$.size') AS bigint) AS "size",
  json_extract_scalar("context", '$.sha256') AS "sha256",
  "context" AS "slot_json"
FROM ledgerlake_rows
WHERE "kind" = 'rejected';

-- v_erasures: requests for erasure, their receipts and cancellations
CREATE OR REPLACE VIEW v_erasures AS
SELECT "tenant_id", "topic", "topic_id", "partition", "seq", "created_at", "record_id", "session_id", "turn_id", "stage_id", "seq_within_turn", "family", "model_id", "status", "kind", "archived_at",
  json_extract_scalar("context", '$.redactionId') AS "redaction_id",
  json_extract_scalar("context", '$.reason') AS "reason",
  json_extract_scalar("context", '$.requestRef') AS "request_ref",
  json_format(json_extract("context", '$.target')) AS "target",
  json_format(json_extract("context", '$.slots')) AS "slots",
  json_extract_scalar("context", '$.by') AS "ordered_by",
  TRY_CAST(json_extract_scalar("context", '$.user') AS boolean) AS "takes_user",
  TRY_CAST(json_extract_scalar("context", '$.hard') AS boolean) AS "is_hard",
  "context" AS "slot_json"
FROM ledgerlake_rows
WHERE "kind" IN ('redaction', 'redaction-cancelled', 'erasure-done');

