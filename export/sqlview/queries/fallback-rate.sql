-- Fallback rate and ladder regressions per tenant, provider and day.
--
-- A call fell back where its rung is not the first (rung_ordinal > 0). A ladder regressed where a step says so.
SELECT tenant_id, {{day "created_at"}} AS day, family AS provider,
  count(*) AS calls,
  sum(CASE WHEN rung_ordinal > 0 THEN 1 ELSE 0 END) AS fallback_calls,
  round(CAST(sum(CASE WHEN rung_ordinal > 0 THEN 1 ELSE 0 END) AS {{double}}) / count(*), 6) AS fallback_rate,
  sum(CASE WHEN fallback_step IS NOT NULL THEN 1 ELSE 0 END) AS ladder_steps,
  sum(CASE WHEN {{text "fallback_step" "ladderRegression"}} = 'true' THEN 1 ELSE 0 END) AS ladder_regressions
FROM ledgerlake_rows
WHERE kind = 'call' AND rung_ordinal IS NOT NULL{{if .Tenant}} AND tenant_id = {{literal .Tenant}}{{end}}
GROUP BY tenant_id, {{day "created_at"}}, family
ORDER BY tenant_id, day, provider;
