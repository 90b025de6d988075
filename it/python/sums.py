"""Sums up Parquet files with pyarrow, and prints what it found as one line of JSON.

    sums.py FOLDER     {"rows": count, "<integer column>": sum, …, "<text or binary column>": bytes in all, …,
                        "hashes": SHA-256 of all row_hash, sorted}
"""

import hashlib
import json
import sys

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.types as types

table = ds.dataset(sys.argv[1], format="parquet", exclude_invalid_files=False).to_table()
found = {"rows": table.num_rows}
for name in table.column_names:
    column = table[name]
    if types.is_timestamp(column.type):
        column = column.cast("int64")
    if types.is_integer(column.type):
        found[name] = pc.sum(column).as_py()
    elif types.is_string(column.type) or types.is_binary(column.type):
        found[name] = pc.sum(pc.binary_length(column)).as_py()
    elif types.is_list(column.type):
        found[name] = pc.sum(pc.list_value_length(column)).as_py()
digest = hashlib.sha256()
for value in sorted(table["row_hash"].to_pylist()):
    digest.update(value)
found["hashes"] = digest.hexdigest()
print(json.dumps(found))
