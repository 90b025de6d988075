-- Calls that a guard rejected, per tenant, provider, model and finish reason, and their share of the model's calls.
WITH call AS (
  SELECT tenant_id, family AS provider, model_id AS model, finish_reason, status,
    count(*) OVER (PARTITION BY tenant_id, family, model_id) AS calls
  FROM v_calls
  WHERE status IS NOT NULL{{if .Tenant}} AND tenant_id = {{literal .Tenant}}{{end}}
)
SELECT tenant_id, provider, model, finish_reason, count(*) AS rejections, max(calls) AS calls,
  round(CAST(count(*) AS {{double}}) / max(calls), 6) AS share
FROM call
WHERE status = 'guard-rejected'
GROUP BY tenant_id, provider, model, finish_reason
ORDER BY tenant_id, provider, model, finish_reason;
