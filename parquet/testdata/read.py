"""Reads a Parquet object with pyarrow and with DuckDB, and prints what each found as one line of JSON.

    {"version": DuckDB's, "arrow": [row, …], "duckdb": [row, …], "types": {column: DuckDB's type},
     "schema": [text of a column, …], "encodings": [name, …], "codecs": [name, …], "keys": [name, …],
     "found": {column: how many rows an equality with its own value did not find, over all rows},
     "missed": [the same by pyarrow's filters],
     "filtered": [columns with a bloom filter, as DuckDB sees it], "excluded": of these, in how many an absent value is seen
     to be absent by the filters of all row groups}

A row is {column: null | text | integer | [text, …]}: times are microseconds since 1970, binary values are hex.
"""

import json
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

BINARY = {"raw"}
HASHES = {"prev_hash", "row_hash", "payload_commit", "user_commit", "row_salt", "user_salt"}
TIMES = {"kafka_timestamp", "archived_at", "created_at"}


def plain(name, column):
    if name in TIMES:
        column = column.cast(pa.int64())
    values = column.to_pylist()
    if name in HASHES | BINARY:
        return [None if v is None else v.hex() for v in values]
    return values


def by_arrow(path):
    table = pq.read_table(path)
    columns = {name: plain(name, table[name]) for name in table.column_names}
    return [{name: columns[name][i] for name in columns} for i in range(table.num_rows)]


def expression(name):
    if name in TIMES:
        return f"epoch_us({name})"
    if name in HASHES | BINARY:
        return f"lower(hex({name}))"
    return name


def by_duckdb(db, path, names):
    rows = db.execute(f"select {', '.join(map(expression, names))} from read_parquet(?)", [path]).fetchall()
    return [dict(zip(names, row)) for row in rows]


def literal(name, value):
    """The SQL by which a user would look for a value."""
    if name in HASHES | BINARY:
        return f"unhex('{value}')"
    if name in TIMES:
        return f"make_timestamptz({value})"
    if isinstance(value, int):
        return str(value)
    if "\0" in value:
        parts = ("'" + p.replace("'", "''") + "'" for p in value.split("\0"))
        return "(" + " || chr(0) || ".join(parts) + ")"
    return "'" + value.replace("'", "''") + "'"


def not_found(db, path, rows, names):
    """For each column, how many rows an equality with their own value does not find."""
    missing = {}
    for name in names:
        if name == "fallback_chain":
            continue
        counts = {}
        for row in rows:
            if row[name] is not None:
                counts[row[name]] = counts.get(row[name], 0) + 1
        for value, want in list(counts.items())[:20]:
            got = db.execute(f"select count(*) from read_parquet(?) where {name} = {literal(name, value)}", [path]).fetchone()[0]
            missing[name] = missing.get(name, 0) + want - got
    return missing


def arrow_not_found(path, rows):
    missing = 0
    for name in ("user_id", "turn_id", "seq", "kind"):
        for value in list({row[name] for row in rows if row[name] is not None})[:20]:
            want = sum(1 for row in rows if row[name] == value)
            missing += want - pq.read_table(path, columns=[name], filters=[(name, "==", value)]).num_rows
    return missing


def filtered(db, path):
    query = "select distinct path_in_schema from parquet_metadata(?) where bloom_filter_offset is not null order by 1"
    return [name for (name,) in db.execute(query, [path]).fetchall()]


def excluded(db, path, names):
    query = "select bool_and(bloom_filter_excludes) from parquet_bloom_probe(?, ?, 'nobody has this')"
    return sum(db.execute(query, [path, name]).fetchone()[0] or False for name in names)


def main(path):
    db = duckdb.connect()
    db.execute("set timezone = 'Asia/Tehran'")
    meta = pq.ParquetFile(path).metadata
    chunks = [meta.row_group(g).column(c) for g in range(meta.num_row_groups) for c in range(meta.num_columns)]
    types = dict(db.execute("select column_name, column_type from (describe select * from read_parquet(?))", [path]).fetchall())
    arrow = by_arrow(path)
    json.dump(
        {
            "version": duckdb.__version__,
            "arrow": arrow,
            "duckdb": by_duckdb(db, path, list(types)),
            "types": types,
            "schema": [str(meta.schema.column(i)) for i in range(meta.num_columns)],
            "encodings": sorted({e for c in chunks for e in c.encodings}),
            "codecs": sorted({c.compression for c in chunks}),
            "keys": sorted(k.decode() for k in meta.metadata or {}),
            "found": not_found(db, path, arrow, types),
            "missed": arrow_not_found(path, arrow),
            "filtered": filtered(db, path),
            "excluded": excluded(db, path, filtered(db, path)),
        },
        sys.stdout,
    )


main(sys.argv[1])
