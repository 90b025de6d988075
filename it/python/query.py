"""Runs SQL in DuckDB for a test, until stdin ends.

A request is a line of JSON: an array of statements, run in a new database in memory. The answer is a line:
{"rows": those of the last statement} or {"error": text}. A cell is null or text, so that no integer is rounded
on its way. Binary is hex.
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


def answer(statements):
    connection = duckdb.connect()
    rows = []
    for statement in statements:
        rows = connection.execute(statement).fetchall()
    connection.close()
    return [[cell(value) for value in row] for row in rows]


for line in sys.stdin:
    try:
        reply = {"rows": answer(json.loads(line))}
    except duckdb.Error as error:
        reply = {"error": str(error)}
    print(json.dumps(reply), flush=True)
