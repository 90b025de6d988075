-- Cost and tokens per tenant, model and day. What has no price is unpriced, and never 0.
--
-- Days are those of created_at, UTC. A price holds from its day to the next one of the same provider and model. cost is
-- (input × input_per_million + output × output_per_million + cache reads and writes × theirs, where they have a price) / 1,000,000.
-- It is null where there is no price, and where no call of the group says how many tokens it took.
WITH used AS (
  SELECT tenant_id, {{day "created_at"}} AS day, family AS provider, model_id AS model,
    count(*) AS calls,
    sum(CASE WHEN input_tokens IS NULL AND output_tokens IS NULL THEN 1 ELSE 0 END) AS calls_without_tokens,
    {{total "input_tokens"}} AS input_tokens, {{total "output_tokens"}} AS output_tokens,
    {{total (int "cache_breakpoint" "cacheReadTokens")}} AS cache_read_tokens,
    {{total (int "cache_breakpoint" "cacheCreationTokens")}} AS cache_write_tokens
  FROM ledgerlake_rows
  WHERE kind = 'call'{{if .Tenant}} AND tenant_id = {{literal .Tenant}}{{end}}
  GROUP BY tenant_id, {{day "created_at"}}, family, model_id
),
price AS (
  SELECT provider, model, valid_from, input_per_million, output_per_million, cache_read_per_million, cache_write_per_million, currency,
    lead(valid_from) OVER (PARTITION BY provider, model ORDER BY valid_from) AS valid_until
  FROM ledgerlake_prices
)
SELECT u.tenant_id, u.day, u.provider, u.model, u.calls, u.calls_without_tokens,
  u.input_tokens, u.output_tokens, u.cache_read_tokens, u.cache_write_tokens,
  CASE WHEN p.currency IS NULL THEN 'unpriced' ELSE 'priced' END AS price,
  p.currency,
  CASE WHEN u.calls > u.calls_without_tokens THEN
    round((coalesce(u.input_tokens, 0) * p.input_per_million + coalesce(u.output_tokens, 0) * p.output_per_million
      + coalesce(u.cache_read_tokens * p.cache_read_per_million, 0) + coalesce(u.cache_write_tokens * p.cache_write_per_million, 0)) / 1000000, 6)
  END AS cost
FROM used u
LEFT JOIN price p ON p.provider = u.provider AND p.model = u.model
  AND p.valid_from <= u.day AND (p.valid_until IS NULL OR u.day < p.valid_until)
ORDER BY u.tenant_id, u.day, u.provider, u.model;
