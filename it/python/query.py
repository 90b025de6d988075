"""Runs SQL in DuckDB: a JSON array of statements on stdin, the rows of the last as JSON on stdout.

A cell is null or text, so that no integer is rounded on its way. Binary is hex.
"""

import json
import sys

import duckdb


def cell(value):
    if value is None:
        return None
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    return str(value)


connection = duckdb.connect()
rows = []
for statement in json.load(sys.stdin):
    rows = connection.execute(statement).fetchall()
json.dump([[cell(value) for value in row] for row in rows], sys.stdout)
