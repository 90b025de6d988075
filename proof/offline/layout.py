"""Checks how a Parquet object of ledgerlake is laid out (docs/format.md, 3 and 7.2), without a look at its rows.

What lies between the parts of a file, statistics that keep erased values readable, and bounds by which an engine would
skip rows: a reader of rows sees none of it. Python's standard library only.
"""

from core import HEADER, SLOTS, Fault, want

TIMES = {"kafka_timestamp", "archived_at", "created_at"}
INTS = {"seq", "kafka_offset", "seq_within_turn", "subagent_depth", "input_tokens", "output_tokens", "latency_us",
        "http_status", "rung_ordinal", "repeat_of"}
INT32S = {"partition", "audit_record_version", "epoch"}
HASHES = {"prev_hash", "row_hash", "payload_commit", "user_commit", "row_salt", "user_salt"}
OTHERS = """user_id residual redaction redaction_id topic_id epoch requested_model selected_reason rung_ordinal
repeat_of fallback_chain""".split()
COLUMNS = {*HEADER, *SLOTS, *HASHES, *OTHERS}
REQUIRED = {"tenant_id", "topic", "partition", "seq", "archived_at", "kind", "prev_hash", "row_hash", "payload_commit",
            "topic_id", "epoch"}
SEALED = {*SLOTS, *HASHES, "user_id", "residual", "redaction"}  # no statistics, bounds or dictionary


class Thrift:
    """Reads Thrift's compact protocol: a struct becomes {field id: value}."""

    def __init__(self, raw, at, end):
        self.raw, self.at, self.end = raw, at, end

    def take(self, size):
        want(0 <= size <= self.end - self.at, "Parquet: a structure is cut")
        self.at += size
        return self.raw[self.at - size:self.at]

    def byte(self):
        if self.at >= self.end:
            raise Fault("Parquet: a structure is cut")
        self.at += 1
        return self.raw[self.at - 1]

    def varint(self):
        n = self.byte()
        if n < 128:
            return n
        n, shift = n & 127, 7
        while True:
            byte = self.byte()
            n |= (byte & 127) << shift
            if byte < 128:
                return n
            shift += 7
            want(shift < 70, "Parquet: a number is too long")

    def zigzag(self):
        n = self.varint()
        return n >> 1 ^ -(n & 1)

    def value(self, kind):
        if kind in (1, 2):
            return kind == 1
        if kind in (3, 7):
            return self.take(1 if kind == 3 else 8)
        if kind in (4, 5, 6):
            return self.zigzag()
        if kind == 8:
            return self.take(self.varint())
        if kind in (9, 10):
            head = self.byte()
            size = self.varint() if head >> 4 == 15 else head >> 4
            return [self.byte() == 1 if head & 15 in (1, 2) else self.value(head & 15) for _ in range(size)]
        want(kind == 12, "Parquet: an unknown type in a structure")
        return self.struct()

    def struct(self):
        fields, last = {}, 0
        while head := self.byte():
            last = last + (head >> 4) if head >> 4 else self.zigzag()
            want(last not in fields, "Parquet: a field stands twice")
            fields[last] = self.value(head & 15)
        return fields


def footer(body):
    """(where the footer begins, FileMetaData, the metadata "ledgerlake") of an object."""
    want(len(body) >= 12 and body[:4] == body[-4:] == b"PAR1", "Parquet: no magic at start and end")
    start = len(body) - 8 - int.from_bytes(body[-8:-4], "little")
    want(start >= 4, "Parquet: the footer is longer than the object")
    thrift = Thrift(body, start, len(body) - 8)
    try:
        meta = thrift.struct()
    except RecursionError:
        raise Fault("Parquet: the footer nests too deep") from None
    want(thrift.at == len(body) - 8, "Parquet: bytes behind the footer")
    keys = [pair.get(1) for pair in meta.get(5, [])]
    want(keys.count(b"ledgerlake") == 1 and len(set(keys)) == len(keys), "Parquet: not one metadata ledgerlake")
    want(set(keys) <= {b"ledgerlake", b"ARROW:schema"}, "Parquet: a key-value that the format does not have")
    return start, meta, meta[5][keys.index(b"ledgerlake")].get(2, b"")


def check_layout(body):
    """Magic, pages, indexes, bloom filters and footer tile the object; sealed columns keep their values to their pages.
    Returns what is stated of the values of other columns: [(row group, column, first row, rows, min, max, nulls, filter)]."""
    start, meta, _ = footer(body)
    check_schema(meta[2])
    parts, bounds = [(0, 4)], []
    for index, group in enumerate(meta.get(4, [])):
        for chunk in group[1]:
            parts += check_chunk(body, index, group[3], chunk, bounds)
    at = 0
    for begin, size in sorted(parts):
        want(begin == at, f"Parquet: a hole or an overlap at byte {at}")
        at += size
    want(at == start, f"Parquet: a hole or an overlap at byte {at}")
    return bounds


def check_schema(elements):
    """The columns are those of section 3, all of them, each of its type."""
    seen, at = set(), 1
    while at < len(elements):
        element = elements[at]
        name, logical, kind = element[4].decode("utf-8", "replace"), element.get(10, {}), element.get(1)
        at += 1
        want(name in COLUMNS and name not in seen, f"Parquet: column {name} is unknown, or there twice")
        seen.add(name)
        if name == "fallback_chain":
            inner = elements[at:at + 2]
            levels = [e.get(3) for e in inner]
            good = 3 in logical and element.get(3) == 1 and levels[0] == 2 and levels[1] < 2 and inner[1].get(1) == 6 and 1 in inner[1].get(10, {})
            at += 2
        elif name in HASHES:
            good = kind == 7 and element.get(2) == 32 and not logical
        elif name in TIMES:
            good = kind == 2 and logical.get(8, {}).get(1) is True and 2 in logical[8].get(2, {})
        elif name in INTS or name in INT32S:
            good = kind == (2 if name in INTS else 1) and set(logical) <= {10}
        else:
            good = kind == 6 and (not logical if name == "raw" else 1 in logical)
        want(good, f"Parquet: column {name} is of another type")
        want(name == "fallback_chain" or element.get(3) == (0 if name in REQUIRED else 1), f"Parquet: whether column {name} may be null")
    want(seen == COLUMNS, f"Parquet: columns are missing: {sorted(COLUMNS - seen)}")


def check_chunk(body, group, rows, chunk, bounds):
    """The (start, size) of the parts of one column in one row group."""
    want(3 in chunk and not {1, 8, 9} & chunk.keys(), "Parquet: pages elsewhere, or encrypted")
    c = chunk[3]
    name, sealed = c[3][0].decode("utf-8", "replace"), c[3][0].decode("utf-8", "replace") in SEALED
    stats, begin = c.get(12, {}), c.get(11) or c[9]
    want(c[4] in (0, 6) and not c.get(8), f"Parquet: {name}: compression or key-values")
    want(not sealed or not {1, 2, 4, 5, 6} & stats.keys(), f"Parquet: statistics of {name}")
    bounded = {1, 2, 5, 6} & stats.keys()
    for low, high in ((stats.get(6), stats.get(5)), (stats.get(2), stats.get(1))):
        bounds.append((group, name, 0, rows, low, high, stats.get(3) if bounded or stats.get(3) else None, None))
    pages, parts = check_pages(body, begin, begin + c[7], name, sealed), [(begin, c[7])]
    if chunk.get(6) or chunk.get(7):
        index = whole(body, chunk[6], chunk[7])
        parts.append((chunk[6], chunk[7]))
        want(len(index.get(1, [])) == len(pages), f"Parquet: column index of {name}")
        want(not sealed or not any(index.get(2, []) + index.get(3, [])), f"Parquet: bounds of {name} in the column index")
        for at, (_, _, first, size) in enumerate(pages):
            low, high = (index[2][at], index[3][at]) if not sealed and not index[1][at] else (None, None)
            bounds.append((group, name, first, size, low, high, size if index[1][at] else (index.get(5) or [0] * len(pages))[at] or None, None))
    if chunk.get(4) or chunk.get(5):
        places = [(p[1], p[2], p[3]) for p in whole(body, chunk[4], chunk[5]).get(1, [])]
        parts.append((chunk[4], chunk[5]))
        if name == "fallback_chain":  # whose pages do not say how many rows they have
            want([p[:2] for p in places] == [p[:2] for p in pages], f"Parquet: offset index of {name}")
        else:
            want(places == [p[:3] for p in pages], f"Parquet: offset index of {name}")
    if c.get(14):
        want(name not in SEALED - {"user_id"} and name not in INTS | INT32S | TIMES, f"Parquet: bloom filter of {name}")
        thrift = Thrift(body, c[14], len(body))
        bits = thrift.take(thrift.struct()[1])
        bounds.append((group, name, 0, rows, None, None, None, bits))
        parts.append((c[14], thrift.at - c[14]))
    return parts


def whole(body, at, size):
    want(0 <= at and 0 <= size <= len(body) - at, "Parquet: an index outside of the object")
    thrift = Thrift(body, at, at + size)
    index = thrift.struct()
    want(thrift.at == at + size, "Parquet: bytes behind an index")
    return index


def check_pages(body, at, end, name, sealed):
    """[(offset, size, first row, rows)] of the data pages of a chunk, which fill it."""
    pages, row, first = [], 0, True
    want(4 <= at <= end <= len(body), "Parquet: a chunk outside of the object")
    while at < end:
        thrift = Thrift(body, at, end)
        head = thrift.struct()
        thrift.take(head[3])
        dictionary, page = head[1] == 2, head.get(5, head.get(7, {}))
        want(head[1] in (0, 2) and head.keys() <= {1, 2, 3, 4, 5, 7}, f"Parquet: {name}: a page that is no data page of version 1")
        want(not dictionary or first and not sealed, f"Parquet: {name}: a dictionary")
        want(not sealed or not {1, 2, 4, 5, 6} & page.get(5, {}).keys(), f"Parquet: statistics of {name} in a page")
        want(name in HASHES | INTS | INT32S | TIMES or page.get(2) in (0, 2, 8), f"Parquet: {name}: encoding of a page")
        if not dictionary:
            pages.append((at, thrift.at - at, row, page[1]))
            row += page[1]
        at, first = thrift.at, False
    return pages


def check_bounds(group, columns, stated):
    """What is stated of values, by which engines skip rows, is true of them: bounds, numbers of nulls, bloom filters."""
    for where, name, first, size, low, high, nulls, bits in stated:
        if where != group or name not in columns or name == "fallback_chain":
            continue
        number, values = name in INTS | INT32S | TIMES, columns[name][first:first + size]
        decode = (lambda v: int.from_bytes(v, "little", signed=True)) if number else bytes
        values = [v if number or isinstance(v, bytes) else v.encode() for v in values if v is not None]
        want(nulls is None or nulls == min(size, len(columns[name]) - first) - len(values), f"Parquet: the number of nulls of {name}")
        want(low is None or not values or decode(low) <= min(values), f"Parquet: a value of {name} lies below its bounds")
        want(high is None or not values or decode(high) >= max(values), f"Parquet: a value of {name} lies above its bounds")
        want(bits is None or all(in_filter(bits, v) for v in set(values)), f"Parquet: the bloom filter of {name} leaves out a value")


def in_filter(bits, value):
    """Whether a split block bloom filter may have a value: eight bits of one block of 32 bytes."""
    h, salts = xxh64(value), (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)
    at = ((h >> 32) * (len(bits) // 32) >> 32) * 32
    words = [int.from_bytes(bits[at + 4 * i:at + 4 * i + 4], "little") for i in range(8)]
    return all(word >> ((h & 0xFFFFFFFF) * salt % 2**32 >> 27) & 1 for word, salt in zip(words, salts))


def xxh64(data):
    """XXH64 with seed 0."""
    p1, p2, p3, p4, p5 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
    mask = 2**64 - 1
    rotate = lambda v, n: (v << n | v >> 64 - n) & mask
    mix = lambda acc, lane: rotate((acc + lane * p2) & mask, 31) * p1 & mask
    word = lambda at, size: int.from_bytes(data[at:at + size], "little")
    at, h = 0, p5
    if len(data) >= 32:
        lanes = [(p1 + p2) & mask, p2, 0, -p1 & mask]
        while at + 32 <= len(data):
            lanes = [mix(lane, word(at + 8 * i, 8)) for i, lane in enumerate(lanes)]
            at += 32
        h = sum(rotate(lane, n) for lane, n in zip(lanes, (1, 7, 12, 18))) & mask
        for lane in lanes:
            h = ((h ^ mix(0, lane)) * p1 + p4) & mask
    h = (h + len(data)) & mask
    while at + 8 <= len(data):
        h, at = (rotate(h ^ mix(0, word(at, 8)), 27) * p1 + p4) & mask, at + 8
    if at + 4 <= len(data):
        h, at = (rotate(h ^ word(at, 4) * p1 & mask, 23) * p2 + p3) & mask, at + 4
    for byte in data[at:]:
        h = rotate(h ^ byte * p5 & mask, 11) * p1 & mask
    h = (h ^ h >> 33) * p2 & mask
    h = (h ^ h >> 29) * p3 & mask
    return h ^ h >> 32
