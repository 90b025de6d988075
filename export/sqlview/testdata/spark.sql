-- Archive 01KBCDEFGHM9S346Q3D2000001, for Apache Spark. Each row is there once.
--   audit.calls/0: 1 data files of version 1 of the catalog, 1 segments, 3 to 3?DROP TABLE x
-- Without what is ordered to be erased and not erased yet, as of now.
-- Without rows of which all content is erased; --include-erased brings them.
-- Without rows that repeat another one, as far as compaction has found them; --include-repeats brings them.
-- The views name files, which stay readable for graceSeconds of ledgerlake.json (one hour) once compaction goes on: make them anew after that.
-- A hash is compared so: row_hash = unhex('8d2a0660…').

SET TIME ZONE 'UTC';

CREATE OR REPLACE TEMPORARY VIEW ledgerlake_objects USING parquet OPTIONS (path 's3://bucket/audit/{data/acme/day=2026-05-28/a.parquet,log/audit.calls/kTq2VqYJQ0mFvY8v2b3m0A/00000/00000000000000000003.parquet}');

-- ledgerlake_places: where each row stands, hidden ones too; no content
CREATE OR REPLACE TEMPORARY VIEW ledgerlake_places AS
SELECT `tenant_id`, `topic`, `topic_id`, `partition`, `epoch`, `seq`, `kind`, `kafka_offset`, `archived_at`, `repeat_of`, `redaction_id`
FROM ledgerlake_objects;

-- ledgerlake_rows: every row that is shown, once
CREATE OR REPLACE TEMPORARY VIEW ledgerlake_rows AS
SELECT
  `tenant_id`,
  `topic`,
  `partition`,
  `seq`,
  `kafka_offset`,
  `kafka_timestamp`,
  `archived_at`,
  `kind`,
  `audit_record_version`,
  `record_id`,
  `session_id`,
  `turn_id`,
  `stage_id`,
  `seq_within_turn`,
  `created_at`,
  `actor_kind`,
  `session_auth_method`,
  `call_class`,
  `family`,
  `model_id`,
  `transport`,
  `tool_name`,
  `subagent_depth`,
  `parent_turn_id`,
  `input_tokens`,
  `output_tokens`,
  `status`,
  `latency_us`,
  `finish_reason`,
  `http_status`,
  `redaction_policy`,
  CASE WHEN CASE `tenant_id`
    WHEN 'acme' THEN (`kind` NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND `topic` = 'audit.calls' AND `topic_id` = 'kTq2VqYJQ0mFvY8v2b3m0A' AND `partition` = 0 AND `seq` < 9)
    ELSE false END THEN NULL ELSE `decision` END AS `decision`,
  `outcome_why`,
  `family_lock`,
  `fallback_step`,
  `provider_cascade`,
  `cache_breakpoint`,
  `tool_fallback_step`,
  `token_cost`,
  `synthesis_quality`,
  `tool_selection`,
  `plan_generation`,
  `interrupt_decision`,
  `plugin_payloads`,
  CASE WHEN CASE `tenant_id`
    WHEN 'acme' THEN (`kind` NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled') AND `topic` = 'audit.calls' AND `topic_id` = 'kTq2VqYJQ0mFvY8v2b3m0A' AND `partition` = 0 AND `kafka_offset` = 812)
    ELSE false END THEN NULL ELSE `context` END AS `context`,
  `prompts`,
  `ext`,
  `raw`,
  `prev_hash`,
  `row_hash`,
  `payload_commit`,
  `user_commit`,
  CASE WHEN CASE `tenant_id`
    WHEN 'acme' THEN (`kind` NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled') AND `topic` = 'audit.calls' AND `topic_id` = 'kTq2VqYJQ0mFvY8v2b3m0A' AND `partition` = 0 AND `kafka_offset` = 812)
      OR (`kind` NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND `topic` = 'audit.calls' AND `topic_id` = 'kTq2VqYJQ0mFvY8v2b3m0A' AND `partition` = 0 AND `seq` < 9)
    ELSE false END THEN NULL ELSE `row_salt` END AS `row_salt`,
  CASE WHEN CASE `tenant_id`
    WHEN 'acme' THEN (`kind` NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND `topic` = 'audit.calls' AND `topic_id` = 'kTq2VqYJQ0mFvY8v2b3m0A' AND `partition` = 0 AND `seq` < 9)
    ELSE false END THEN NULL ELSE `user_salt` END AS `user_salt`,
  CASE WHEN CASE `tenant_id`
    WHEN 'acme' THEN (`kind` NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND `topic` = 'audit.calls' AND `topic_id` = 'kTq2VqYJQ0mFvY8v2b3m0A' AND `partition` = 0 AND `seq` < 9)
    ELSE false END THEN NULL ELSE `user_id` END AS `user_id`,
  CASE WHEN CASE `tenant_id`
    WHEN 'acme' THEN (`kind` NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled') AND `topic` = 'audit.calls' AND `topic_id` = 'kTq2VqYJQ0mFvY8v2b3m0A' AND `partition` = 0 AND `kafka_offset` = 812)
      OR (`kind` NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND `topic` = 'audit.calls' AND `topic_id` = 'kTq2VqYJQ0mFvY8v2b3m0A' AND `partition` = 0 AND `seq` < 9)
    ELSE false END THEN NULL ELSE `residual` END AS `residual`,
  `redaction`,
  `redaction_id`,
  `topic_id`,
  `epoch`,
  CASE WHEN CASE `tenant_id`
    WHEN 'acme' THEN (`kind` NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND `topic` = 'audit.calls' AND `topic_id` = 'kTq2VqYJQ0mFvY8v2b3m0A' AND `partition` = 0 AND `seq` < 9)
    ELSE false END THEN NULL ELSE `requested_model` END AS `requested_model`,
  CASE WHEN CASE `tenant_id`
    WHEN 'acme' THEN (`kind` NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND `topic` = 'audit.calls' AND `topic_id` = 'kTq2VqYJQ0mFvY8v2b3m0A' AND `partition` = 0 AND `seq` < 9)
    ELSE false END THEN NULL ELSE `selected_reason` END AS `selected_reason`,
  CASE WHEN CASE `tenant_id`
    WHEN 'acme' THEN (`kind` NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND `topic` = 'audit.calls' AND `topic_id` = 'kTq2VqYJQ0mFvY8v2b3m0A' AND `partition` = 0 AND `seq` < 9)
    ELSE false END THEN NULL ELSE `rung_ordinal` END AS `rung_ordinal`,
  CASE WHEN CASE `tenant_id`
    WHEN 'acme' THEN (`kind` NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND `topic` = 'audit.calls' AND `topic_id` = 'kTq2VqYJQ0mFvY8v2b3m0A' AND `partition` = 0 AND `seq` < 9)
    ELSE false END THEN NULL ELSE `fallback_chain` END AS `fallback_chain`,
  `repeat_of`
FROM ledgerlake_objects
WHERE (`redaction` IS NULL OR `residual` IS NOT NULL)
  AND `repeat_of` IS NULL
  AND NOT coalesce(CASE `tenant_id`
    WHEN 'O\'Brien \\ 東京' THEN ((`kind` NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND (sha2(`user_id`, 256) = '3e4df717f4d7d41f64af6dfff3c3d468c417dfdcb4daf7cd3419c7b2fd86fccb' OR `kind` = 'rejected') AND (unix_micros(`archived_at`) <= 1780000000000000 OR unix_micros(coalesce(`created_at`, `kafka_timestamp`, `archived_at`)) <= 1779999999999999)) AND (`redaction` IS NULL OR `residual` IS NOT NULL OR `user_id` IS NOT NULL OR `redaction` NOT LIKE '%"hard":true}'))
    WHEN 'acme' THEN ((`kind` NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND upper(`record_id`) = '01KBCDEFGHJKMNPQRSTX000001') AND (`redaction` IS NULL OR `residual` IS NOT NULL))
      OR ((`kind` NOT IN ('gap', 'chain-reset', 'erasure-done', 'retention-cut', 'redaction-cancelled', 'redaction', 'legal-hold') AND `session_id` = 's' AND `turn_id` = 't' AND `stage_id` = 'g' AND `seq_within_turn` = 3) AND (`redaction` IS NULL OR `residual` IS NOT NULL OR `user_id` IS NOT NULL))
    ELSE false END, false);

-- ledgerlake_prices: from the file of --prices; empty without one
CREATE OR REPLACE TEMPORARY VIEW ledgerlake_prices AS
SELECT CAST('anthropic' AS STRING) AS provider, CAST('claude' AS STRING) AS model, CAST('2026-01-01' AS DATE) AS valid_from, CAST(3 AS DOUBLE) AS input_per_million, CAST(15 AS DOUBLE) AS output_per_million, CAST(0.3 AS DOUBLE) AS cache_read_per_million, CAST(NULL AS DOUBLE) AS cache_write_per_million, CAST('USD' AS STRING) AS currency
UNION ALL SELECT CAST('o\'ai' AS STRING) AS provider, CAST('m' AS STRING) AS model, CAST('2026-01-01' AS DATE) AS valid_from, CAST(1 AS DOUBLE) AS input_per_million, CAST(2 AS DOUBLE) AS output_per_million, CAST(NULL AS DOUBLE) AS cache_read_per_million, CAST(NULL AS DOUBLE) AS cache_write_per_million, CAST('EUR' AS STRING) AS currency;

-- v_calls: calls of models and tools: one row a call, retry, rung or step
CREATE OR REPLACE TEMPORARY VIEW v_calls AS
SELECT `tenant_id`, `topic`, `topic_id`, `partition`, `seq`, `created_at`, `record_id`, `session_id`, `turn_id`, `stage_id`, `seq_within_turn`, `family`, `model_id`, `status`, `user_id`, `actor_kind`, `session_auth_method`, `call_class`, `transport`, `tool_name`, `subagent_depth`, `parent_turn_id`, `input_tokens`, `output_tokens`, `latency_us`, `finish_reason`, `http_status`, `requested_model`, `selected_reason`, `rung_ordinal`, `fallback_chain`
FROM ledgerlake_rows
WHERE `kind` = 'call';

-- v_decision: why a model ran
CREATE OR REPLACE TEMPORARY VIEW v_decision AS
SELECT `tenant_id`, `topic`, `topic_id`, `partition`, `seq`, `created_at`, `record_id`, `session_id`, `turn_id`, `stage_id`, `seq_within_turn`, `family`, `model_id`, `status`,
  get_json_object(`decision`, '$.requestedModel') AS `requested_model`,
  get_json_object(`decision`, '$.selectedReason') AS `selected_reason`,
  TRY_CAST(get_json_object(`decision`, '$.rungOrdinal') AS BIGINT) AS `rung_ordinal`,
  get_json_object(`decision`, '$.fallbackChain') AS `fallback_chain`,
  `decision` AS `slot_json`
FROM ledgerlake_rows
WHERE `decision` IS NOT NULL;

-- v_outcome_why: why a call came out as it did
CREATE OR REPLACE TEMPORARY VIEW v_outcome_why AS
SELECT `tenant_id`, `topic`, `topic_id`, `partition`, `seq`, `created_at`, `record_id`, `session_id`, `turn_id`, `stage_id`, `seq_within_turn`, `family`, `model_id`, `status`,
  get_json_object(`outcome_why`, '$.nativeFinishReason') AS `native_finish_reason`,
  get_json_object(`outcome_why`, '$.servingProvider') AS `serving_provider`,
  TRY_CAST(get_json_object(`outcome_why`, '$.gatewayAttempt') AS BIGINT) AS `gateway_attempt`,
  get_json_object(`outcome_why`, '$.statistics') AS `statistics`,
  `outcome_why` AS `slot_json`
FROM ledgerlake_rows
WHERE `outcome_why` IS NOT NULL;

-- v_family_lock: how a family of models was resolved
CREATE OR REPLACE TEMPORARY VIEW v_family_lock AS
SELECT `tenant_id`, `topic`, `topic_id`, `partition`, `seq`, `created_at`, `record_id`, `session_id`, `turn_id`, `stage_id`, `seq_within_turn`, `family`, `model_id`, `status`,
  get_json_object(`family_lock`, '$.resolverPath') AS `resolver_path`,
  get_json_object(`family_lock`, '$.emitSite') AS `emit_site`,
  get_json_object(`family_lock`, '$.requestedFamily') AS `requested_family`,
  TRY_CAST(get_json_object(`family_lock`, '$.familyMismatch') AS BOOLEAN) AS `family_mismatch`,
  TRY_CAST(get_json_object(`family_lock`, '$.byokActive') AS BOOLEAN) AS `byok_active`,
  get_json_object(`family_lock`, '$.byokKeyId') AS `byok_key_id`,
  TRY_CAST(get_json_object(`family_lock`, '$.resolvedViaAlias') AS BOOLEAN) AS `resolved_via_alias`,
  get_json_object(`family_lock`, '$.legacyDefaultModel') AS `legacy_default_model`,
  `family_lock` AS `slot_json`
FROM ledgerlake_rows
WHERE `family_lock` IS NOT NULL;

-- v_fallback_step: rungs of ladders of models
CREATE OR REPLACE TEMPORARY VIEW v_fallback_step AS
SELECT `tenant_id`, `topic`, `topic_id`, `partition`, `seq`, `created_at`, `record_id`, `session_id`, `turn_id`, `stage_id`, `seq_within_turn`, `family`, `model_id`, `status`,
  get_json_object(`fallback_step`, '$.originalFamily') AS `original_family`,
  get_json_object(`fallback_step`, '$.originalModel') AS `original_model`,
  get_json_object(`fallback_step`, '$.originalCallClass') AS `original_call_class`,
  get_json_object(`fallback_step`, '$.attemptFamily') AS `attempt_family`,
  get_json_object(`fallback_step`, '$.attemptModel') AS `attempt_model`,
  get_json_object(`fallback_step`, '$.attemptCallClass') AS `attempt_call_class`,
  TRY_CAST(get_json_object(`fallback_step`, '$.attemptIndex') AS BIGINT) AS `attempt_index`,
  get_json_object(`fallback_step`, '$.reason') AS `reason`,
  TRY_CAST(get_json_object(`fallback_step`, '$.inFamily') AS BOOLEAN) AS `in_family`,
  TRY_CAST(get_json_object(`fallback_step`, '$.originalLadderStep') AS BIGINT) AS `original_ladder_step`,
  TRY_CAST(get_json_object(`fallback_step`, '$.ladderStep') AS BIGINT) AS `ladder_step`,
  TRY_CAST(get_json_object(`fallback_step`, '$.ladderRegression') AS BOOLEAN) AS `ladder_regression`,
  `fallback_step` AS `slot_json`
FROM ledgerlake_rows
WHERE `fallback_step` IS NOT NULL;

-- v_provider_cascade: pivots between providers
CREATE OR REPLACE TEMPORARY VIEW v_provider_cascade AS
SELECT `tenant_id`, `topic`, `topic_id`, `partition`, `seq`, `created_at`, `record_id`, `session_id`, `turn_id`, `stage_id`, `seq_within_turn`, `family`, `model_id`, `status`,
  get_json_object(`provider_cascade`, '$.source') AS `source`,
  get_json_object(`provider_cascade`, '$.trigger') AS `trigger`,
  get_json_object(`provider_cascade`, '$.errorType') AS `error_type`,
  get_json_object(`provider_cascade`, '$.providerFrom') AS `provider_from`,
  get_json_object(`provider_cascade`, '$.providerTo') AS `provider_to`,
  TRY_CAST(get_json_object(`provider_cascade`, '$.attemptN') AS BIGINT) AS `attempt_n`,
  TRY_CAST(get_json_object(`provider_cascade`, '$.userAbortValid') AS BOOLEAN) AS `user_abort_valid`,
  `provider_cascade` AS `slot_json`
FROM ledgerlake_rows
WHERE `provider_cascade` IS NOT NULL;

-- v_cache_breakpoint: what providers read from caches
CREATE OR REPLACE TEMPORARY VIEW v_cache_breakpoint AS
SELECT `tenant_id`, `topic`, `topic_id`, `partition`, `seq`, `created_at`, `record_id`, `session_id`, `turn_id`, `stage_id`, `seq_within_turn`, `family`, `model_id`, `status`,
  get_json_object(`cache_breakpoint`, '$.fingerprintComposite') AS `fingerprint_composite`,
  TRY_CAST(get_json_object(`cache_breakpoint`, '$.cacheReadTokens') AS BIGINT) AS `cache_read_tokens`,
  TRY_CAST(get_json_object(`cache_breakpoint`, '$.cacheCreationTokens') AS BIGINT) AS `cache_creation_tokens`,
  TRY_CAST(get_json_object(`cache_breakpoint`, '$.inputTokens') AS BIGINT) AS `input_tokens`,
  TRY_CAST(get_json_object(`cache_breakpoint`, '$.hitPct') AS DOUBLE) AS `hit_pct`,
  `cache_breakpoint` AS `slot_json`
FROM ledgerlake_rows
WHERE `cache_breakpoint` IS NOT NULL;

-- v_tool_fallback_step: tools that were tried after others
CREATE OR REPLACE TEMPORARY VIEW v_tool_fallback_step AS
SELECT `tenant_id`, `topic`, `topic_id`, `partition`, `seq`, `created_at`, `record_id`, `session_id`, `turn_id`, `stage_id`, `seq_within_turn`, `family`, `model_id`, `status`,
  get_json_object(`tool_fallback_step`, '$.originalTool') AS `original_tool`,
  get_json_object(`tool_fallback_step`, '$.cascadedTo') AS `cascaded_to`,
  get_json_object(`tool_fallback_step`, '$.capabilityId') AS `capability_id`,
  get_json_object(`tool_fallback_step`, '$.failureClass') AS `failure_class`,
  TRY_CAST(get_json_object(`tool_fallback_step`, '$.attemptIndex') AS BIGINT) AS `attempt_index`,
  TRY_CAST(get_json_object(`tool_fallback_step`, '$.triedToolCount') AS BIGINT) AS `tried_tool_count`,
  TRY_CAST(get_json_object(`tool_fallback_step`, '$.inClass') AS BOOLEAN) AS `in_class`,
  TRY_CAST(get_json_object(`tool_fallback_step`, '$.cascadeApplied') AS BOOLEAN) AS `cascade_applied`,
  get_json_object(`tool_fallback_step`, '$.triggerSite') AS `trigger_site`,
  `tool_fallback_step` AS `slot_json`
FROM ledgerlake_rows
WHERE `tool_fallback_step` IS NOT NULL;

-- v_token_cost: use of tokens, as the producer has it
CREATE OR REPLACE TEMPORARY VIEW v_token_cost AS
SELECT `tenant_id`, `topic`, `topic_id`, `partition`, `seq`, `created_at`, `record_id`, `session_id`, `turn_id`, `stage_id`, `seq_within_turn`, `family`, `model_id`, `status`,
  TRY_CAST(get_json_object(`token_cost`, '$.inputTokens') AS BIGINT) AS `input_tokens`,
  TRY_CAST(get_json_object(`token_cost`, '$.outputTokens') AS BIGINT) AS `output_tokens`,
  `token_cost` AS `slot_json`
FROM ledgerlake_rows
WHERE `token_cost` IS NOT NULL;

-- v_synthesis_quality: of answers; members are free
CREATE OR REPLACE TEMPORARY VIEW v_synthesis_quality AS
SELECT `tenant_id`, `topic`, `topic_id`, `partition`, `seq`, `created_at`, `record_id`, `session_id`, `turn_id`, `stage_id`, `seq_within_turn`, `family`, `model_id`, `status`,
  `synthesis_quality` AS `slot_json`
FROM ledgerlake_rows
WHERE `synthesis_quality` IS NOT NULL;

-- v_tool_selection: of tool loops; members are free
CREATE OR REPLACE TEMPORARY VIEW v_tool_selection AS
SELECT `tenant_id`, `topic`, `topic_id`, `partition`, `seq`, `created_at`, `record_id`, `session_id`, `turn_id`, `stage_id`, `seq_within_turn`, `family`, `model_id`, `status`,
  `tool_selection` AS `slot_json`
FROM ledgerlake_rows
WHERE `tool_selection` IS NOT NULL;

-- v_plan_generation: of plans; members are free
CREATE OR REPLACE TEMPORARY VIEW v_plan_generation AS
SELECT `tenant_id`, `topic`, `topic_id`, `partition`, `seq`, `created_at`, `record_id`, `session_id`, `turn_id`, `stage_id`, `seq_within_turn`, `family`, `model_id`, `status`,
  `plan_generation` AS `slot_json`
FROM ledgerlake_rows
WHERE `plan_generation` IS NOT NULL;

-- v_interrupt: humans that were asked; members are free
CREATE OR REPLACE TEMPORARY VIEW v_interrupt AS
SELECT `tenant_id`, `topic`, `topic_id`, `partition`, `seq`, `created_at`, `record_id`, `session_id`, `turn_id`, `stage_id`, `seq_within_turn`, `family`, `model_id`, `status`,
  `interrupt_decision` AS `slot_json`
FROM ledgerlake_rows
WHERE `interrupt_decision` IS NOT NULL;

-- v_plugin_payloads: what plugins wrote: a JSON array of {pluginId, subKind, data}
CREATE OR REPLACE TEMPORARY VIEW v_plugin_payloads AS
SELECT `tenant_id`, `topic`, `topic_id`, `partition`, `seq`, `created_at`, `record_id`, `session_id`, `turn_id`, `stage_id`, `seq_within_turn`, `family`, `model_id`, `status`,
  `plugin_payloads` AS `slot_json`
FROM ledgerlake_rows
WHERE `plugin_payloads` IS NOT NULL;

-- v_decisions: decisions of agents, those not to act too
CREATE OR REPLACE TEMPORARY VIEW v_decisions AS
SELECT `tenant_id`, `topic`, `topic_id`, `partition`, `seq`, `created_at`, `record_id`, `session_id`, `turn_id`, `stage_id`, `seq_within_turn`, `family`, `model_id`, `status`, `input_tokens`, `output_tokens`,
  get_json_object(`context`, '$.inputs.intent') AS `inputs_intent`,
  get_json_object(`context`, '$.inputs.satelliteId') AS `inputs_satellite_id`,
  get_json_object(`context`, '$.outcome') AS `outcome`,
  get_json_object(`context`, '$.action') AS `action`,
  get_json_object(`context`, '$.calls') AS `calls`,
  `context` AS `slot_json`
FROM ledgerlake_rows
WHERE `kind` = 'decision';

-- v_entries: entries of interaction logs
CREATE OR REPLACE TEMPORARY VIEW v_entries AS
SELECT `tenant_id`, `topic`, `topic_id`, `partition`, `seq`, `created_at`, `record_id`, `session_id`, `turn_id`, `stage_id`, `seq_within_turn`, `family`, `model_id`, `status`, `kind`, `actor_kind`, `tool_name`, `latency_us`,
  get_json_object(`context`, '$.promptHash') AS `prompt_hash`,
  get_json_object(`context`, '$.policyDecision') AS `policy_decision`,
  get_json_object(`context`, '$.sourceTag') AS `source_tag`,
  get_json_object(`context`, '$.rollbackHandle') AS `rollback_handle`,
  get_json_object(`context`, '$.args') AS `args`,
  get_json_object(`context`, '$.worldDiff') AS `world_diff`,
  get_json_object(`context`, '$.resultDetail') AS `result_detail`,
  `context` AS `slot_json`
FROM ledgerlake_rows
WHERE `kind` IN ('llm-request', 'llm-response', 'tool-call', 'world-mutation', 'policy-decision');

-- v_rejected: records that could not be archived as they were
CREATE OR REPLACE TEMPORARY VIEW v_rejected AS
SELECT `tenant_id`, `topic`, `topic_id`, `partition`, `seq`, `created_at`, `record_id`, `session_id`, `turn_id`, `stage_id`, `seq_within_turn`, `family`, `model_id`, `status`, `archived_at`, `kafka_offset`,
  get_json_object(`context`, '$.reason') AS `reason`,
  get_json_object(`context`, '$.detail') AS `detail`,
  TRY_CAST(get_json_object(`context`, '$.size') AS BIGINT) AS `size`,
  get_json_object(`context`, '$.sha256') AS `sha256`,
  `context` AS `slot_json`
FROM ledgerlake_rows
WHERE `kind` = 'rejected';

-- v_erasures: requests for erasure, their receipts and cancellations
CREATE OR REPLACE TEMPORARY VIEW v_erasures AS
SELECT `tenant_id`, `topic`, `topic_id`, `partition`, `seq`, `created_at`, `record_id`, `session_id`, `turn_id`, `stage_id`, `seq_within_turn`, `family`, `model_id`, `status`, `kind`, `archived_at`,
  get_json_object(`context`, '$.redactionId') AS `redaction_id`,
  get_json_object(`context`, '$.reason') AS `reason`,
  get_json_object(`context`, '$.requestRef') AS `request_ref`,
  get_json_object(`context`, '$.target') AS `target`,
  get_json_object(`context`, '$.slots') AS `slots`,
  get_json_object(`context`, '$.by') AS `ordered_by`,
  TRY_CAST(get_json_object(`context`, '$.user') AS BOOLEAN) AS `takes_user`,
  TRY_CAST(get_json_object(`context`, '$.hard') AS BOOLEAN) AS `is_hard`,
  `context` AS `slot_json`
FROM ledgerlake_rows
WHERE `kind` IN ('redaction', 'redaction-cancelled', 'erasure-done');

