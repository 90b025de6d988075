-- Who asked for which erasure, why, and whether it was carried out.
--
-- After its receipt a request's own context, which may name a person, is erased: then only the receipt tells what went.
WITH receipt AS (
  SELECT tenant_id, upper(redaction_id) AS id, min(archived_at) AS first_at, max(archived_at) AS last_at,
    max(reason) AS reason, max(request_ref) AS request_ref, max(slots) AS slots
  FROM v_erasures WHERE kind = 'erasure-done' GROUP BY tenant_id, upper(redaction_id)
),
cancelled AS (
  SELECT tenant_id, upper(redaction_id) AS id, min(archived_at) AS at FROM v_erasures WHERE kind = 'redaction-cancelled' GROUP BY tenant_id, upper(redaction_id)
)
SELECT o.tenant_id, o.record_id AS request_id, {{moment "o.archived_at"}} AS ordered_at, o.ordered_by,
  coalesce(o.reason, r.reason) AS reason, coalesce(o.request_ref, r.request_ref) AS request_ref, o.target, coalesce(o.slots, r.slots) AS slots,
  o.takes_user, o.is_hard,
  CASE WHEN r.id IS NOT NULL THEN 'done' WHEN c.id IS NOT NULL THEN 'cancelled' ELSE 'open' END AS state,
  {{moment "r.first_at"}} AS done_at, {{moment "r.last_at"}} AS last_receipt_at
FROM v_erasures o
LEFT JOIN receipt r ON r.tenant_id = o.tenant_id AND r.id = upper(o.record_id)
LEFT JOIN cancelled c ON c.tenant_id = o.tenant_id AND c.id = upper(o.record_id)
WHERE o.kind = 'redaction'{{if .Tenant}} AND o.tenant_id = {{literal .Tenant}}{{end}}
ORDER BY o.tenant_id, ordered_at, request_id;
