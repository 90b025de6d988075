-- Checks an archive of ledgerlake with DuckDB (1.5 and 2.0): commitments, row hashes, chain links, tree roots, the
-- hashes of segments, and what anchors say of all of it. Not signatures, which SQL cannot: check.py does.
--
--     SET VARIABLE archive = 'data/demo/s3/audit';      -- a folder, or s3://BUCKET with the extension httpfs
--     .read check.sql
--
-- or: duckdb -bail -c "SET VARIABLE archive = 'FOLDER'" -f check.sql. The first result has a line per log, the second
-- one the faults that were found, the first hundred. Where there are faults the last statement is an error, so that the
-- command fails. Numbers such as 3.1 are sections of docs/format.md. Only segments are read: on a compacted archive it
-- ends at once, and says so.

SET preserve_insertion_order = false;

-- Section 2. Hashes are lower-case hex, as in the hashed texts; lf is the byte 0x0A.
CREATE OR REPLACE TEMP MACRO lf() AS chr(10);
CREATE OR REPLACE TEMP MACRO t_text(v) AS coalesce('s' || strlen(v) || ':' || v || ',', 'n,');
CREATE OR REPLACE TEMP MACRO t_int(v) AS coalesce('i' || v || ',', 'n,');
CREATE OR REPLACE TEMP MACRO t_time(v) AS coalesce('i' || epoch_us(v) || ',', 'n,');
CREATE OR REPLACE TEMP MACRO hx(v) AS lower(hex(v));
CREATE OR REPLACE TEMP MACRO salt(row_salt, name) AS
    sha256('ledgerlake.salt.v1' || lf() || t_text(name) || hx(row_salt) || lf());
CREATE OR REPLACE TEMP MACRO slot_head(row_salt, name) AS
    'ledgerlake.slot.v1' || lf() || t_text(name) || salt(row_salt, name) || lf();
CREATE OR REPLACE TEMP MACRO slot(row_salt, name, v) AS
    t_text(name) || CASE WHEN v IS NULL THEN '-' ELSE sha256(slot_head(row_salt, name) || v) END || lf();
CREATE OR REPLACE TEMP MACRO txt(doc, name) AS json_extract_string(doc, name);
CREATE OR REPLACE TEMP MACRO node(l, r) AS sha256('\x01'::BLOB || unhex(l) || unhex(r));
CREATE OR REPLACE TEMP MACRO genesis(scheme, id, tenant, topic, topic_id, part, epoch, head, size, reason) AS
    sha256('ledgerlake.genesis.v1' || lf() || t_text(scheme) || t_text(id) || t_text(tenant) || t_text(topic) || t_text(topic_id)
        || t_int(part) || t_int(epoch) || t_text(head) || t_int(size) || t_text(reason));

SELECT CASE WHEN count(*) > 0 THEN error('the archive was compacted, and this script reads segments alone: use check.py') END AS compacted
FROM glob(getvariable('archive') || '/catalog/**/*.note');

-- The objects. line is topic/topicId/partition, as in keys: escaped.
CREATE OR REPLACE TEMP TABLE root AS
    SELECT sha256(content) AS sum, txt(decode(content), 'archiveId') AS id
    FROM read_blob(getvariable('archive') || '/ledgerlake.json');
CREATE OR REPLACE TEMP TABLE object AS
    SELECT filename AS file, regexp_extract(filename, '/log/(.*)/[0-9]{20}\.parquet$', 1) AS line,
        regexp_extract(filename, '([0-9]{20})\.parquet$', 1)::BIGINT AS ordinal, octet_length(content) AS bytes, sha256(content) AS sum
    FROM read_blob(getvariable('archive') || '/log/**/*.parquet');
CREATE OR REPLACE TEMP TABLE metadata AS
    SELECT file_name AS file, decode(value)::JSON AS doc
    FROM parquet_kv_metadata(getvariable('archive') || '/log/**/*.parquet') WHERE decode(key) = 'ledgerlake';
CREATE OR REPLACE TEMP TABLE segment AS
    SELECT o.*, m.doc, txt(doc, 'previousSha256') AS previous, (txt(doc, 'firstOffset'))::BIGINT AS first_offset,
        (txt(doc, 'nextOffset'))::BIGINT AS next_offset, (txt(doc, 'rows'))::BIGINT AS row_count, (txt(doc, 'made'))::BIGINT AS made,
        json_array_length(json_extract(doc, 'duplicates')) AS duplicates,
        coalesce(list_sum([(txt(g, 1))::BIGINT - (txt(g, 0))::BIGINT FOR g IN ((json_extract(doc, 'gaps'))::JSON[])]), 0)::BIGINT AS gaps
    FROM object o LEFT JOIN metadata m USING (file);
CREATE OR REPLACE TEMP TABLE void AS
    SELECT line, (txt(v, 0))::BIGINT AS ordinal, txt(v, 1) AS sum FROM (SELECT line, unnest((json_extract(doc, 'voided'))::JSON[]) AS v FROM segment);

-- The rows: what each says of itself. A segment has live rows only (3.1), so that all of them recompute from row_salt.
CREATE OR REPLACE TEMP TABLE hashed AS
    WITH stored AS (
        SELECT *, file_row_number AS place,
            sha256('ledgerlake.payload.v1' || lf() || salt(row_salt, '*') || lf()
                || slot(row_salt, 'decision', decision) || slot(row_salt, 'outcome_why', outcome_why)
                || slot(row_salt, 'family_lock', family_lock) || slot(row_salt, 'fallback_step', fallback_step)
                || slot(row_salt, 'provider_cascade', provider_cascade) || slot(row_salt, 'cache_breakpoint', cache_breakpoint)
                || slot(row_salt, 'tool_fallback_step', tool_fallback_step) || slot(row_salt, 'token_cost', token_cost)
                || slot(row_salt, 'synthesis_quality', synthesis_quality) || slot(row_salt, 'tool_selection', tool_selection)
                || slot(row_salt, 'plan_generation', plan_generation) || slot(row_salt, 'interrupt_decision', interrupt_decision)
                || slot(row_salt, 'plugin_payloads', plugin_payloads) || slot(row_salt, 'context', context)
                || slot(row_salt, 'prompts', prompts) || slot(row_salt, 'ext', ext)
                || t_text('raw') || coalesce(sha256(encode(slot_head(row_salt, 'raw')) || raw), '-') || lf()) AS payload,
            CASE WHEN user_id IS NOT NULL
                THEN sha256('ledgerlake.user.v1' || lf() || salt(row_salt, 'user_id') || lf() || t_text(user_id)) END AS person
        FROM read_parquet(getvariable('archive') || '/log/**/*.parquet', filename = 'file', file_row_number = true, hive_partitioning = false))
    SELECT file, place, topic, topic_id, "partition" AS part, tenant_id AS tenant, seq, epoch, kind, kafka_offset, record_id,
        archived_at, hx(prev_hash) AS prev_hash, hx(row_hash) AS row_hash, CASE WHEN kind IN ('chain-reset', 'gap') THEN context END AS context,
        row_salt IS NOT NULL AND residual IS NULL AND user_salt IS NULL AND redaction IS NULL AND redaction_id IS NULL AS live,
        payload IS NOT DISTINCT FROM hx(payload_commit) AS payload_good,
        person IS NOT DISTINCT FROM hx(user_commit) AS user_good,
        hx(row_hash) = sha256('ledgerlake.row.v1' || lf() || hx(prev_hash) || lf() || t_text(tenant_id) || t_text(topic)
            || t_int("partition") || t_int(seq) || t_int(kafka_offset) || t_time(kafka_timestamp) || t_time(archived_at) || t_text(kind)
            || t_int(audit_record_version) || t_text(record_id) || t_text(session_id) || t_text(turn_id) || t_text(stage_id)
            || t_int(seq_within_turn) || t_time(created_at) || t_text(actor_kind) || t_text(session_auth_method) || t_text(call_class)
            || t_text(family) || t_text(model_id) || t_text(transport) || t_text(tool_name) || t_int(subagent_depth)
            || t_text(parent_turn_id) || t_int(input_tokens) || t_int(output_tokens) || t_text(status) || t_int(latency_us)
            || t_text(finish_reason) || t_int(http_status) || t_text(redaction_policy) || lf() || coalesce(hx(user_commit), '-') || lf()
            || hx(payload_commit) || lf()) AS row_good
    FROM stored;

-- The logs: rows in seq order, each beside the one before. Void segments (4, chain-reset) count for nothing.
CREATE OR REPLACE TEMP TABLE log AS
    SELECT row_number() OVER (ORDER BY line, tenant) AS log, line, tenant,
        any_value(scheme ORDER BY ordinal) AS scheme, any_value(topic) AS topic, any_value(topic_id) AS topic_id, any_value(part) AS part
    FROM (SELECT line, ordinal, txt(l, 'tenant') AS tenant, txt(l, 'scheme') AS scheme, txt(doc, 'topic') AS topic, txt(doc, 'topicId') AS topic_id,
            (txt(doc, 'partition'))::INT AS part
        FROM (SELECT line, ordinal, doc, unnest((json_extract(doc, 'logs'))::JSON[]) AS l FROM segment))
    GROUP BY line, tenant;
CREATE OR REPLACE TEMP TABLE linked AS
    SELECT h.* EXCLUDE (file, topic, topic_id, part, tenant), s.ordinal, l.log, l.scheme,
        h.topic = l.topic AND h.topic_id = l.topic_id AND h.part = l.part AND (kafka_offset IS NOT NULL) = (kind NOT IN ('gap', 'chain-reset'))
            AND coalesce(kafka_offset >= first_offset AND kafka_offset < next_offset, true) AS in_place,
        lag(row_hash) OVER by_seq AS head, lag(archived_at) OVER by_seq AS before, lag(epoch) OVER by_seq AS last_epoch,
        row_number() OVER by_seq - 1 AS index,
        max(kafka_offset) OVER (PARTITION BY file ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS last_offset
    FROM hashed h JOIN segment s USING (file) LEFT JOIN log l ON l.line = s.line AND l.tenant = h.tenant
        ANTI JOIN void v ON v.line = s.line AND v.ordinal = s.ordinal
    WINDOW by_seq AS (PARTITION BY s.line, h.tenant ORDER BY seq, s.ordinal, place);
CREATE OR REPLACE TEMP TABLE part AS -- of a log in a segment
    SELECT log, ordinal, min(seq) AS first_seq, count(*) AS row_count, arg_max(row_hash, index) AS head, max(archived_at) AS newest
    FROM linked GROUP BY log, ordinal;

-- The anchors: what they say of segments and heads (6). Without one, read_blob still has a file to read.
SET VARIABLE notes = (SELECT list_concat(coalesce(list(file), []), [getvariable('archive') || '/ledgerlake.json'])
    FROM glob(getvariable('archive') || '/anchor/**/*.note'));
CREATE OR REPLACE TEMP TABLE note AS
    SELECT regexp_extract(filename, '/anchor/(.*)/[0-9]{20}\.note$', 1) AS line,
        regexp_extract(filename, '([0-9]{20})\.note$', 1)::BIGINT AS number, split_part(body, lf(), 1) AS title,
        sha256(split_part(body, lf() || lf(), 1) || lf()) AS sum, split_part(body, lf(), 2)::JSON AS doc, (txt(doc, 'ordinal'))::BIGINT AS ordinal
    FROM (SELECT filename, decode(content) AS body FROM read_blob(getvariable('notes')) WHERE filename LIKE '%.note');
CREATE OR REPLACE TEMP TABLE entry AS
    SELECT line, number, (txt(doc, 'time'))::TIMESTAMPTZ AS said, (txt(e, 'ordinal'))::BIGINT AS ordinal, (txt(e, 'bytes'))::BIGINT AS bytes, txt(e, 'sha256') AS sum,
        [txt(e, 'firstOffset'), txt(e, 'nextOffset'), txt(e, 'rows'), txt(e, 'made'), txt(e, 'duplicates'), txt(e, 'gaps')]::BIGINT[] AS counts
    FROM (SELECT line, number, doc, unnest((json_extract(doc, 'segments'))::JSON[]) AS e FROM note);
CREATE OR REPLACE TEMP TABLE head AS
    SELECT n.line, number, l.log, txt(h, 'tenant') AS tenant, (txt(h, 'size'))::BIGINT AS size, txt(h, 'head') AS head, txt(h, 'root') AS root
    FROM (SELECT line, number, unnest((json_extract(doc, 'heads'))::JSON[]) AS h FROM note) n LEFT JOIN log l ON l.line = n.line AND l.tenant = txt(h, 'tenant');
CREATE OR REPLACE TEMP TABLE anchored AS
    SELECT log, arg_max(size, number) AS size, arg_max(root, number) AS root FROM head WHERE log IS NOT NULL GROUP BY log;

-- The trees (RFC 6962), level by level from the leaves: of all rows of a log, and of those that the newest anchor covers.
CREATE OR REPLACE TEMP TABLE tree AS
    WITH RECURSIVE level(log, covered, index, nodes, hash) AS (
        SELECT log, false, index, count(*) OVER (PARTITION BY log), sha256('\x00'::BLOB || unhex(row_hash)) FROM linked
        UNION ALL
        SELECT l.log, true, index, a.size, sha256('\x00'::BLOB || unhex(row_hash)) FROM linked l JOIN anchored a ON a.log = l.log AND index < a.size
        UNION ALL
        SELECT log, covered, index // 2, any_value((nodes + 1) // 2), CASE count(*) WHEN 2 THEN
            node(max(hash) FILTER (index % 2 = 0), max(hash) FILTER (index % 2 = 1)) ELSE any_value(hash) END
        FROM level WHERE nodes > 1 GROUP BY log, covered, index // 2)
    SELECT log, covered, hash AS root FROM level WHERE nodes = 1;

-- What does not hold.
CREATE OR REPLACE TEMP TABLE fault AS
    SELECT log, NULL::VARCHAR AS place, seq, what
    FROM (SELECT log, seq, unnest([
        CASE WHEN log IS NULL THEN 'the log is not in the segment''s metadata' END,
        CASE WHEN NOT live THEN 'a row of a segment that is not live' END,
        CASE WHEN NOT payload_good THEN 'payload_commit is not the commitment to the slots' END,
        CASE WHEN NOT user_good THEN 'user_commit is not the commitment to user_id' END,
        CASE WHEN scheme = 'ledgerlake-v1' AND NOT row_good THEN 'row_hash is not the hash of the row' END,
        CASE WHEN NOT in_place THEN 'topic, partition or offset is not one of the segment' END,
        CASE WHEN kafka_offset <= last_offset THEN 'its offset is not above that of the row before it in the segment' END,
        CASE WHEN kind NOT IN ('call', 'decision', 'llm-request', 'llm-response', 'tool-call', 'world-mutation', 'policy-decision',
                'source-chain-reset', 'source-rotation', 'queue-dropped', 'rejected', 'gap', 'chain-reset', 'redaction',
                'redaction-cancelled', 'erasure-done', 'retention-cut', 'legal-hold') THEN 'its kind is unknown' END,
        CASE WHEN seq <> index THEN 'seq ' || index || ' belongs here' END,
        CASE WHEN archived_at < before THEN 'archived_at is before that of the row before it' END,
        CASE WHEN kind <> 'chain-reset' AND epoch <> coalesce(last_epoch, 0) OR kind = 'chain-reset' AND epoch <> coalesce(last_epoch, 0) + 1
            THEN 'another epoch belongs here' END,
        CASE WHEN prev_hash <> CASE
            WHEN kind = 'chain-reset' THEN (SELECT genesis(scheme, id, tenant, topic, topic_id, part, epoch, coalesce(head, genesis(scheme, id, tenant, topic, topic_id, part, 0, NULL, 0, NULL)), index, txt(context, 'reason')) FROM root)
            WHEN head IS NULL THEN (SELECT genesis(scheme, id, tenant, topic, topic_id, part, 0, NULL, 0, NULL) FROM root)
            ELSE head END THEN 'prev_hash is not the row_hash of the row before it' END]) AS what
        FROM (SELECT k.*, tenant, topic, topic_id, part FROM linked k LEFT JOIN log USING (log)))
    WHERE what IS NOT NULL;
INSERT INTO fault -- segments, and what their metadata says
    WITH counted AS (SELECT file, count(*) AS row_count, count(*) FILTER (kafka_offset IS NULL) AS made, count(DISTINCT kafka_offset) AS offsets, count(*) FILTER (kind = 'gap') AS gap_rows FROM hashed GROUP BY file),
    x AS (SELECT s.*, row_number() OVER by_ordinal - 1 AS expected, lag(s.sum) OVER by_ordinal AS before, v.sum AS void,
            lag(next_offset) OVER (PARTITION BY s.line, v.sum IS NULL ORDER BY s.ordinal) AS last_offset,
            coalesce(c.row_count, 0) AS stored, coalesce(c.made, 0) AS stored_made, coalesce(c.offsets, 0) AS offsets, coalesce(c.gap_rows, 0) AS gap_rows
        FROM segment s LEFT JOIN counted c USING (file) LEFT JOIN void v ON v.line = s.line AND v.ordinal = s.ordinal
        WINDOW by_ordinal AS (PARTITION BY s.line ORDER BY s.ordinal))
    SELECT NULL, line || ', segment ' || ordinal, NULL, what FROM (SELECT line, ordinal, unnest([
        CASE WHEN doc IS NULL THEN 'no metadata' END,
        CASE WHEN ordinal <> expected THEN 'segment ' || expected || ' is missing' END,
        CASE WHEN previous IS DISTINCT FROM before THEN 'previousSha256 is not the hash of the segment before' END,
        CASE WHEN void <> sum THEN 'its hash is not that of the reset that declared it void' END,
        CASE WHEN void IS NULL AND ((txt(doc, 'ordinal'))::BIGINT <> ordinal OR txt(doc, 'archiveId') <> (SELECT id FROM root)
            OR line NOT LIKE '%/' || txt(doc, 'topicId') || '/' || lpad(txt(doc, 'partition'), 5, '0')) THEN 'it belongs elsewhere by its metadata' END,
        CASE WHEN void IS NULL AND (row_count <> stored OR made <> stored_made OR stored - stored_made <> offsets) THEN 'rows or made are others, or an offset is there twice' END,
        CASE WHEN void IS NULL AND next_offset - first_offset <> row_count - made + duplicates + gaps THEN 'offsets are not accounted for (coverage)' END,
        CASE WHEN void IS NULL AND first_offset <> last_offset THEN 'it begins at offset ' || first_offset || ', the one before ends at ' || last_offset END,
        CASE WHEN void IS NULL AND gap_rows <> len([g FOR g IN ((json_extract(doc, 'gaps'))::JSON[]) IF txt(g, 2) = 'lost']) THEN 'lost gaps and gap rows differ' END]) AS what FROM x)
    WHERE what IS NOT NULL;
INSERT INTO fault -- what a segment says of its logs
    WITH stated AS (SELECT s.line, s.ordinal, l, txt(x, 'tenant') AS tenant, x FROM (SELECT line, ordinal, unnest((json_extract(doc, 'logs'))::JSON[]) AS x, true AS l FROM segment) s
        ANTI JOIN void v ON v.line = s.line AND v.ordinal = s.ordinal)
    SELECT log.log, NULL, first_seq, 'logs in segment ' || s.ordinal || ' is not what its rows are' FROM stated s JOIN log USING (line, tenant)
    LEFT JOIN part p ON p.log = log.log AND p.ordinal = s.ordinal
    WHERE p.log IS NULL OR p.first_seq <> (txt(x, 'firstSeq'))::BIGINT OR p.row_count <> (txt(x, 'rows'))::BIGINT OR p.head <> txt(x, 'headOut') OR first_seq + p.row_count <> (txt(x, 'size'))::BIGINT;
INSERT INTO fault -- the newest frontier of each log, folded to its root
    WITH stated AS (SELECT line, txt(x, 'tenant') AS tenant, arg_max((json_extract(x, 'frontier'))::VARCHAR[], ordinal) AS frontier FROM (SELECT line, ordinal, unnest((json_extract(doc, 'logs'))::JSON[]) AS x FROM segment) GROUP BY ALL)
    SELECT log, NULL, NULL, 'frontier is not that of the tree' FROM stated JOIN log USING (line, tenant) JOIN tree USING (log)
    WHERE NOT covered AND root <> list_reduce(list_reverse(frontier), lambda below, left_one: node(left_one, below));
INSERT INTO fault -- anchors
    WITH sums AS (SELECT s.line, s.ordinal, [min(first_offset) OVER w, next_offset, sum(row_count) OVER w, sum(made) OVER w, sum(duplicates) OVER w, sum(gaps) OVER w]::BIGINT[] AS counts
        FROM segment s ANTI JOIN void v ON v.line = s.line AND v.ordinal = s.ordinal WINDOW w AS (PARTITION BY s.line ORDER BY s.ordinal)),
    x AS (SELECT n.*, lag(sum) OVER w AS before, lag(n.ordinal, 1, -1) OVER w AS covered, row_number() OVER w - 1 AS expected, counts,
            (SELECT count(*) FROM entry e WHERE e.line = n.line AND e.number = n.number) AS entries,
            (SELECT count(*) FROM void v WHERE v.line = n.line AND v.ordinal <= n.ordinal) AS voids
        FROM note n LEFT JOIN sums ON sums.line = n.line AND sums.ordinal = n.ordinal WINDOW w AS (PARTITION BY n.line ORDER BY number))
    SELECT NULL, line || ', anchor ' || number, NULL, what FROM (SELECT line, number, unnest([
        CASE WHEN title <> 'ledgerlake anchor v1' OR (txt(doc, 'number'))::BIGINT <> number OR line NOT LIKE '%/' || txt(doc, 'topicId') || '/' || lpad(txt(doc, 'partition'), 5, '0') THEN 'it is of another place' END,
        CASE WHEN txt(doc, 'archiveId') <> (SELECT id FROM root) OR txt(doc, 'archiveSha256') <> (SELECT r.sum FROM root r) THEN 'it is of another archive, or ledgerlake.json was changed' END,
        CASE WHEN number <> expected THEN 'anchor ' || expected || ' is missing' END,
        CASE WHEN txt(doc, 'previous') IS DISTINCT FROM before THEN 'previous is not the hash of the anchor before' END,
        CASE WHEN voids = 0 AND ordinal - covered <> entries THEN 'segments are not those since the anchor before' END,
        CASE WHEN ordinal >= 0 AND counts IS NULL THEN 'it covers segments up to ' || ordinal || ', which are not there: the tail is missing' END,
        CASE WHEN counts <> [txt(doc, '$.totals.firstOffset'), txt(doc, '$.totals.nextOffset'), txt(doc, '$.totals.rows'), txt(doc, '$.totals.made'), txt(doc, '$.totals.duplicates'), txt(doc, '$.totals.gaps')]::BIGINT[]
            THEN 'totals are not those of the segments' END]) AS what FROM x)
    WHERE what IS NOT NULL;
INSERT INTO fault -- segments against anchors
    SELECT NULL, e.line || ', segment ' || e.ordinal, NULL, 'it is not there, or not what anchor ' || number || ' says: it was changed'
    FROM entry e LEFT JOIN segment s USING (line, ordinal)
    WHERE s.file IS NULL OR s.sum <> e.sum OR s.bytes <> e.bytes OR counts <> [first_offset, next_offset, row_count, made, duplicates, gaps];
INSERT INTO fault -- rows and heads against anchors
    SELECT p.log, NULL, first_seq, 'archived more than 5 minutes after anchor ' || number
    FROM part p JOIN log USING (log) JOIN entry e USING (line, ordinal) WHERE newest > said + INTERVAL 5 MINUTES
    UNION ALL
    SELECT h.log, h.line || ', anchor ' || number || ': ' || tenant, size - 1, 'the head is not that of the log''s rows'
    FROM head h LEFT JOIN linked k ON k.log = h.log AND k.index = h.size - 1 WHERE k.row_hash IS DISTINCT FROM h.head
    UNION ALL
    SELECT a.log, NULL, size - 1, 'the root in the newest anchor is not that of the tree'
    FROM anchored a LEFT JOIN tree t ON t.log = a.log AND covered WHERE t.root IS DISTINCT FROM a.root;

-- A line per log: compare head and root of the rows that are anchored with a head that you have from elsewhere.
SELECT topic, part AS "partition", tenant, l.scheme, count(index) AS rows, arg_max(row_hash, index) AS head, any_value(t.root) AS root,
    coalesce(any_value(a.size), 0) AS anchored, (SELECT count(*) FROM fault f WHERE f.log = l.log) AS faults
FROM log l LEFT JOIN linked USING (log) LEFT JOIN tree t ON t.log = l.log AND NOT covered LEFT JOIN anchored a ON a.log = l.log
GROUP BY ALL ORDER BY topic, part, tenant;

SELECT coalesce(place, topic || '/' || part || ', ' || tenant) AS place, seq, what FROM fault LEFT JOIN log USING (log) ORDER BY ALL LIMIT 100;

SELECT CASE
    WHEN (SELECT count(*) FROM fault) > 0 THEN error('FAULTS: ' || (SELECT count(*) FROM fault) || ': the archive was tampered with or is damaged')
    WHEN (SELECT count(*) FROM root WHERE id IS NOT NULL) <> 1 THEN error('no archive there')
    WHEN (SELECT count(*) FROM log WHERE scheme <> 'ledgerlake-v1') > 0 THEN 'no faults; keyed logs: their row_hash was not checked'
    ELSE 'no faults; signatures were not checked' END AS verdict;
