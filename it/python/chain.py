"""Recomputes every hash of an archive from its Parquet files and docs/format.md, section 2.

The argument is the folder of an archive that was never compacted. Prints the number of rows,
or ends with the first row whose stored bytes do not give the stored hash. It shares no line
with the product, and no library with it.
"""

import hashlib
import json
import pathlib
import sys

import pyarrow as pa
import pyarrow.parquet as pq

HEADER = """tenant_id topic partition seq kafka_offset kafka_timestamp archived_at kind audit_record_version
record_id session_id turn_id stage_id seq_within_turn created_at actor_kind session_auth_method call_class
family model_id transport tool_name subagent_depth parent_turn_id input_tokens output_tokens status latency_us
finish_reason http_status redaction_policy""".split()
SLOTS = """decision outcome_why family_lock fallback_step provider_cascade cache_breakpoint tool_fallback_step
token_cost synthesis_quality tool_selection plan_generation interrupt_decision plugin_payloads context prompts
ext raw""".split()
TIMES = {"kafka_timestamp", "archived_at", "created_at"}


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def text(value):
    """T of the format: null, integer or string."""
    if value is None:
        return b"n,"
    if isinstance(value, int):
        return b"i%d," % value
    raw = value if isinstance(value, bytes) else value.encode()
    return b"s%d:%b," % (len(raw), raw)


def hexed(value):
    return value.hex().encode()


def slot_salt(row_salt, name):
    return sha(b"ledgerlake.salt.v1\n", text(name), hexed(row_salt), b"\n")


def commitments(row):
    salt = row["row_salt"]
    parts = []
    for name in SLOTS:
        value = row[name]
        commit = b"-"
        if value is not None:
            raw = value if isinstance(value, bytes) else value.encode()
            commit = hexed(sha(b"ledgerlake.slot.v1\n", text(name), hexed(slot_salt(salt, name)), b"\n", raw))
        parts += [text(name), commit, b"\n"]
    payload = sha(b"ledgerlake.payload.v1\n", hexed(slot_salt(salt, "*")), b"\n", *parts)
    user = None
    if row["user_id"] is not None:
        user = sha(b"ledgerlake.user.v1\n", hexed(slot_salt(salt, "user_id")), b"\n", text(row["user_id"]))
    return user, payload


def row_hash(row, user, payload):
    header = b"".join(text(row[name]) for name in HEADER)
    user = hexed(user) if user else b"-"
    return sha(b"ledgerlake.row.v1\n", hexed(row["prev_hash"]), b"\n", header, b"\n", user, b"\n", hexed(payload), b"\n")


def genesis(archive_id, segment, tenant):
    names = (segment["topic"], segment["topicId"], segment["partition"])
    scheme = text("ledgerlake-v1") + text(archive_id) + text(tenant)
    return sha(b"ledgerlake.genesis.v1\n", scheme, *map(text, names), text(0), text(None), text(0), text(None))


def append(frontier, size, leaf):
    """Adds a leaf to the perfect subtrees of a tree of the given size."""
    while size & 1:
        leaf = sha(b"\x01", frontier.pop(), leaf)
        size >>= 1
    frontier.append(leaf)


def rows(path):
    table = pq.ParquetFile(path).read(columns=HEADER + SLOTS + ["user_id", "row_salt", "prev_hash", "row_hash", "payload_commit", "user_commit"])
    for name in TIMES:
        at = table.schema.get_field_index(name)
        assert table.schema.field(at).type == pa.timestamp("us", tz="UTC"), f"{path}: {name} is {table.schema.field(at).type}"
        table = table.set_column(at, name, table.column(name).cast(pa.int64()))
    return table.to_pylist()


def check_row(row, where):
    user, payload = commitments(row)
    assert row["payload_commit"] == payload, f"{where}: payload_commit"
    assert row["user_commit"] == user, f"{where}: user_commit"
    assert row["row_hash"] == row_hash(row, user, payload), f"{where}: row_hash"


def check_segment(path, archive_id, previous, logs):
    """Checks one segment against the state of its logs, {tenant: (head, size, frontier)}."""
    meta = json.loads(pq.ParquetFile(path).metadata.metadata[b"ledgerlake"])
    assert meta["archiveId"] == archive_id, f"{path}: archiveId"
    assert meta["previousSha256"] == previous, f"{path}: previousSha256"
    count = 0
    for row in rows(path):
        where = f"{path}: {row['tenant_id']}: seq {row['seq']}"
        head, size, frontier = logs.get(row["tenant_id"]) or (genesis(archive_id, meta, row["tenant_id"]), 0, [])
        assert row["seq"] == size, f"{where}: want seq {size}"
        assert row["prev_hash"] == head, f"{where}: prev_hash"
        check_row(row, where)
        append(frontier, size, sha(b"\x00", row["row_hash"]))
        logs[row["tenant_id"]] = row["row_hash"], size + 1, frontier
        count += 1
    for log in meta["logs"]:
        head, size, frontier = logs[log["tenant"]]
        stated = log["headOut"], log["size"], log["frontier"]
        assert stated == (head.hex(), size, [f.hex() for f in frontier]), f"{path}: log {log['tenant']}"
    return count


def check(folder):
    archive_id = json.loads((folder / "ledgerlake.json").read_text())["archiveId"]
    total = 0
    for line in sorted({path.parent for path in (folder / "log").rglob("*.parquet")}):
        previous, logs = None, {}
        for path in sorted(line.glob("*.parquet")):
            total += check_segment(path, archive_id, previous, logs)
            previous = hashlib.sha256(path.read_bytes()).hexdigest()
    return total


print(check(pathlib.Path(sys.argv[1])))
