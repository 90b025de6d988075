-- Makes a view, rows, of every row of an archive of ledgerlake once: of the data files that the newest version of each
-- catalog names, and of the segments from its watermark on. For DuckDB 1.5 and 2.0.
--
--     SET VARIABLE archive = 'data/demo/s3/audit';      -- a folder, or s3://BUCKET with the extension httpfs
--     .read rows.sql
--     SELECT tenant_id, count(*) FROM rows GROUP BY ALL;
--
-- It works on archives that were never compacted too. The view names files: where compaction goes on, read this file
-- again before a ledgerlake.json's graceSeconds (one hour) have passed. Nothing is checked here: that is verify's.

-- Where nothing matches, ledgerlake.json stands in: read_text and read_parquet want a file.
SET VARIABLE notes = (SELECT coalesce(list(file), [getvariable('archive') || '/ledgerlake.json'])
    FROM glob(getvariable('archive') || '/catalog/*/*/*/*.note'));
CREATE OR REPLACE TEMP TABLE catalog AS
    SELECT regexp_extract(filename, '/catalog/(.*)/[0-9]{20}\.note$', 1) AS line, max_by(split_part(content, chr(10), 2)::JSON, filename) AS doc
    FROM read_text(getvariable('notes')) WHERE filename LIKE '%.note' GROUP BY ALL;
SET VARIABLE parts = (
    SELECT coalesce(list(getvariable('archive') || '/' || json_extract_string(p, 'key')), [getvariable('archive') || '/ledgerlake.json'])
    FROM (SELECT unnest(json_extract(doc, 'parts')::JSON[]) AS p FROM catalog));
CREATE OR REPLACE TEMP TABLE file AS
    SELECT getvariable('archive') || '/' || json_extract_string(f, 'key') AS name
    FROM (SELECT unnest(json_extract(content::JSON, 'files')::JSON[]) AS f FROM read_text(getvariable('parts')) WHERE filename LIKE '%/part/%')
    UNION ALL
    SELECT g.file FROM glob(getvariable('archive') || '/log/*/*/*/*.parquet') g
    LEFT JOIN catalog c ON c.line = regexp_extract(g.file, '/log/(.*)/[0-9]{20}\.parquet$', 1)
    WHERE c.line IS NULL
       OR regexp_extract(g.file, '([0-9]{20})\.parquet$', 1)::BIGINT >= json_extract_string(c.doc, 'watermark')::BIGINT;
-- Segments that a later one declares void (a chain reset) are left out: their metadata says which.
SET VARIABLE segments = (SELECT coalesce(list(name) FILTER (name LIKE '%/log/%'), [min(name)]) FROM file);
CREATE OR REPLACE TEMP TABLE void AS
    SELECT regexp_replace(file_name, '[0-9]{20}\.parquet$', '') || lpad(json_extract_string(v, '$[0]'), 20, '0') || '.parquet' AS name
    FROM (SELECT file_name, unnest(json_extract(decode(value)::JSON, '$.voided')::JSON[]) AS v
        FROM parquet_kv_metadata(getvariable('segments')) WHERE decode(key) = 'ledgerlake');
SET VARIABLE files = (SELECT list(name ORDER BY name) FROM file WHERE name NOT IN (SELECT name FROM void));
CREATE OR REPLACE TEMP VIEW rows AS SELECT * FROM read_parquet(getvariable('files'));
