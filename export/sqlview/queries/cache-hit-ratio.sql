-- Cache hit ratio per tenant, provider and model: which share of input tokens was read from a cache.
SELECT tenant_id, family AS provider, model_id AS model,
  count(*) AS answers,
  {{total "input_tokens"}} AS input_tokens,
  {{total "cache_read_tokens"}} AS cache_read_tokens,
  {{total "cache_creation_tokens"}} AS cache_creation_tokens,
  CASE WHEN {{total "input_tokens"}} > 0 THEN round(CAST({{total "cache_read_tokens"}} AS {{double}}) / {{total "input_tokens"}}, 6) END AS hit_ratio
FROM v_cache_breakpoint
WHERE cache_read_tokens IS NOT NULL AND input_tokens IS NOT NULL{{if .Tenant}} AND tenant_id = {{literal .Tenant}}{{end}}
GROUP BY tenant_id, family, model_id
ORDER BY tenant_id, provider, model;
