"""Reads the objects of a Security Lake by pyarrow, and checks each row by the JSON schema of OCSF 1.3:

    lake.py FOLDER

What is null is left out, and so are objects in which nothing is left. Prints {"rows", "objects", "days"}, or the
first faults, and exits 1.
"""

import json
import sys
from pathlib import Path

import jsonschema_rs
import pyarrow.parquet as pq
from ocsf_json_schema import OcsfJsonSchemaEmbedded, get_ocsf_schema


def there(value):
    if not isinstance(value, dict):
        return value
    pruned = {name: there(v) for name, v in value.items()}
    return {name: v for name, v in pruned.items() if v is not None and v != {}} or None


schema = OcsfJsonSchemaEmbedded(get_ocsf_schema(version="1.3.0")).get_class_schema("api_activity", profiles=[])
validator = jsonschema_rs.Draft202012Validator(schema)
done = {"rows": 0, "objects": 0, "days": 0}
days = set()
faults = []
for path in sorted(Path(sys.argv[1]).rglob("*.parquet")):
    done["objects"] += 1
    days.add(path.parent.name)
    for row in pq.ParquetFile(path).read().to_pylist():
        done["rows"] += 1
        for error in validator.iter_errors(there(row)):
            faults.append(f"{path.name}: {error.message} at {error.instance_path}: {json.dumps(there(row))[:1500]}")
    if len(faults) > 5:
        break
if faults:
    print("\n".join(faults[:5]), file=sys.stderr)
    sys.exit(1)
done["days"] = len(days)
print(json.dumps(done))
