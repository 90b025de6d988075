"""Runs the DuckDB queries of README.md as they stand there, on what make demo left. Each must answer with rows."""

import re

import duckdb

queries = re.findall(r'duckdb -c "\n(.*?)"\n```', open("README.md").read(), re.S)
assert len(queries) >= 2, "found no queries; the pattern must be wrong"
for query in queries:
    answer = duckdb.sql(query)
    print(answer)
    assert len(answer) > 0, "no rows"
