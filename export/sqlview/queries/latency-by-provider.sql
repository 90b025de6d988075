-- Latency percentiles by provider, in milliseconds, of all calls that say how long they took.
SELECT family AS provider, count(*) AS calls,
  round({{quantile "latency_us" "0.5"}} / 1000.0, 3) AS p50_ms,
  round({{quantile "latency_us" "0.9"}} / 1000.0, 3) AS p90_ms,
  round({{quantile "latency_us" "0.95"}} / 1000.0, 3) AS p95_ms,
  round({{quantile "latency_us" "0.99"}} / 1000.0, 3) AS p99_ms,
  round(max(latency_us) / 1000.0, 3) AS max_ms
FROM v_calls
WHERE latency_us IS NOT NULL{{if .Tenant}} AND tenant_id = {{literal .Tenant}}{{end}}
GROUP BY family
ORDER BY provider;
