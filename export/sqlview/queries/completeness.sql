-- Completeness per tenant and log: rows are numbered without holes, from 0 or from where retention has cut.
--
-- This tells what is there. That nothing of it was changed, and that it is all, is for ledgerlake-verify to say.
WITH log AS (
  SELECT tenant_id, topic, topic_id, partition, min(seq) AS first_seq, max(seq) AS last_seq, count(*) AS row_count, count(DISTINCT seq) AS places
  FROM ledgerlake_places{{if .Tenant}}
  WHERE tenant_id = {{literal .Tenant}}{{end}}
  GROUP BY tenant_id, topic, topic_id, partition
),
cut AS (
  SELECT tenant_id, {{text "context" "topic"}} AS topic, {{text "context" "topicId"}} AS topic_id, {{int "context" "partition"}} AS partition,
    max({{int "context" "size"}}) AS size
  FROM ledgerlake_rows
  WHERE kind = 'retention-cut'
  GROUP BY tenant_id, {{text "context" "topic"}}, {{text "context" "topicId"}}, {{int "context" "partition"}}
)
SELECT l.tenant_id, l.topic, l.topic_id, l.partition, l.first_seq, l.last_seq, l.row_count,
  l.last_seq - l.first_seq + 1 - l.places AS missing, l.row_count - l.places AS doubled, coalesce(c.size, 0) AS cut_at,
  CASE WHEN l.first_seq <= coalesce(c.size, 0) AND l.last_seq - l.first_seq + 1 = l.row_count AND l.row_count = l.places THEN 'complete' ELSE 'incomplete' END AS verdict
FROM log l
LEFT JOIN cut c ON c.tenant_id = l.tenant_id AND c.topic = l.topic AND c.topic_id = l.topic_id AND c.partition = l.partition
ORDER BY l.tenant_id, l.topic, l.topic_id, l.partition;
