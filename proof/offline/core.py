"""What all checks share: the arithmetic of docs/format.md, section 2, Ed25519, strict documents, signed notes and keys.

Python's standard library only. Nothing here reads a file.
"""

import base64
import hashlib
import hmac
import json
import re
from datetime import datetime, timezone
from types import SimpleNamespace

HEADER = """tenant_id topic partition seq kafka_offset kafka_timestamp archived_at kind audit_record_version record_id
session_id turn_id stage_id seq_within_turn created_at actor_kind session_auth_method call_class family model_id
transport tool_name subagent_depth parent_turn_id input_tokens output_tokens status latency_us finish_reason http_status
redaction_policy""".split()  # columns in hashed order (3.2)
SLOTS = """decision outcome_why family_lock fallback_step provider_cascade cache_breakpoint tool_fallback_step token_cost
synthesis_quality tool_selection plan_generation interrupt_decision plugin_payloads context prompts ext raw""".split()
PLAIN, KEYED = "ledgerlake-v1", "ledgerlake-hmac-v1"


class Fault(Exception):
    """What is checked does not hold: tampered or damaged."""


def want(holds, text):
    if not holds:
        raise Fault(text)


# Hashing: section 2.


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def T(value):
    if value is None:
        return b"n,"
    if isinstance(value, int):
        return b"i%d," % value
    raw = value.encode()
    return b"s%d:%b," % (len(raw), raw)


def hexed(value):
    return b"-" if value is None else value.hex().encode()


def bytes_of(value):
    return value if isinstance(value, bytes) else value.encode()


def slot_salt(row_salt, name):
    return sha(b"ledgerlake.salt.v1\n", T(name), hexed(row_salt), b"\n")


def slot_commit(salt, name, value):
    return sha(b"ledgerlake.slot.v1\n", T(name), hexed(salt), b"\n", bytes_of(value))


def payload_commit(star_salt, commits):
    """commits: {slot: its commitment}, without the slots that are null."""
    parts = [part for name in SLOTS for part in (T(name), hexed(commits.get(name)), b"\n")]
    return sha(b"ledgerlake.payload.v1\n", hexed(star_salt), b"\n", *parts)


def user_commit(salt, user_id):
    return sha(b"ledgerlake.user.v1\n", hexed(salt), b"\n", T(user_id))


def live_commits(row):
    """user_commit and payload_commit of a live row, from its row_salt."""
    salt, user = row["row_salt"], row["user_id"]
    commits = {n: slot_commit(slot_salt(salt, n), n, row[n]) for n in SLOTS if row[n] is not None}
    return (None if user is None else user_commit(slot_salt(salt, "user_id"), user)), payload_commit(slot_salt(salt, "*"), commits)


def row_hash(row, key=None):
    """row_hash from header, prev_hash and stored commitments; key is that of a keyed log."""
    header = b"".join(T(row[name]) for name in HEADER)
    text = b"".join((b"ledgerlake.row.v1\n", hexed(row["prev_hash"]), b"\n", header, b"\n", hexed(row["user_commit"]),
                     b"\n", hexed(row["payload_commit"]), b"\n"))
    return sha(text) if key is None else hmac.new(key, text, hashlib.sha256).digest()


def log_key(master, log):
    """The key of one log from a master key: HKDF-SHA256 without a salt, for 32 bytes (RFC 5869)."""
    secret = hmac.new(bytes(32), master, hashlib.sha256).digest()
    return hmac.new(secret, b"ledgerlake.logkey.v1\n" + log + b"\x01", hashlib.sha256).digest()


def log_text(archive_id, tenant, topic, topic_id, partition):
    return T(archive_id) + T(tenant) + T(topic) + T(topic_id) + T(partition)


def genesis(scheme, log, epoch=0, head=None, size=0, reason=None):
    return sha(b"ledgerlake.genesis.v1\n", T(scheme), log, T(epoch), T(head and head.hex()), T(size), T(reason))


def grow(frontier, size, leaf):
    """Appends a leaf to a tree: frontier has the roots of its perfect subtrees, largest first (RFC 6962)."""
    while size & 1:
        leaf = sha(b"\x01", frontier.pop(), leaf)
        size >>= 1
    frontier.append(leaf)


def tree_root(frontier):
    root = None
    for node in reversed(frontier):
        root = node if root is None else sha(b"\x01", node, root)
    return sha() if root is None else root


def root_by_path(size, index, row_hash, path):
    """The root of a tree of size rows in which row_hash stands at index, by its inclusion path (RFC 9162, 2.1.3.2)."""
    want(0 <= index < size, f"there is no row {index} in a tree of {size}")
    leaf, node, last = sha(b"\x00", row_hash), index, size - 1
    for sibling in path:
        want(last > 0, "the inclusion path is too long")
        if node & 1 or node == last:
            leaf = sha(b"\x01", sibling, leaf)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            leaf = sha(b"\x01", leaf, sibling)
        node, last = node >> 1, last >> 1
    want(last == 0, "the inclusion path is too short")
    return leaf


# Ed25519: RFC 8032, with points in extended coordinates. Nothing here is secret, so that it may be slow and simple.

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P


def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def point(raw):
    """The point that 32 bytes encode, or None."""
    y = int.from_bytes(raw, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or (x * x - square) % P or x == 0 and sign:
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


def multiples(p):
    """Sixteen multiples of p for each of the 64 hex digits of a number, so that a product takes 64 additions."""
    table = []
    for _ in range(64):
        row = [(0, 1, 1, 0)]
        for _ in range(15):
            row.append(add(row[-1], p))
        table.append(row)
        p = add(row[-1], p)
    return table


def product(table, n, total=(0, 1, 1, 0)):
    for digit, row in enumerate(table):
        if n >> 4 * digit & 15:
            total = add(total, row[n >> 4 * digit & 15])
    return total


BASE = multiples(point((4 * pow(5, -1, P) % P).to_bytes(32, "little")))


def ed25519(minus_public_table, public, message, signature):
    """Whether signature = R, s fits: R = s B - h A."""
    r, s = signature[:32], int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or s >= L:
        return False
    h = int.from_bytes(hashlib.sha512(r + public + message).digest(), "little") % L
    x, y, z, _ = product(minus_public_table, h, product(BASE, s))
    inverse = pow(z, -1, P)
    x, y = x * inverse % P, y * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little") == r


# Documents: strict JSON, so that it says one thing to every reader.


def members(pairs):
    doc = dict(pairs)
    want(len(doc) == len(pairs), "a member stands twice in an object")
    return doc


def refuse(text):
    raise Fault(f"{text[:30]} is no plain integer")


def load(raw, number=refuse):
    """Strict JSON of UTF-8 bytes. Numbers that are no integers go to number."""
    try:
        text = raw.decode()
        doc = json.loads(text, object_pairs_hook=members, parse_float=number, parse_constant=refuse, parse_int=lambda s: int(s) if len(s) < 30 else number(s))
        if "\\" in text:
            json.dumps(doc, ensure_ascii=False).encode()  # refuses lone surrogates
        return doc
    except (ValueError, RecursionError) as error:
        raise Fault(f"not strict JSON: {error}") from None


def read(doc, **kinds):
    """The named members of an object, each read by its kind. Others are passed over."""
    want(isinstance(doc, dict), "an object was expected")
    out = {}
    for name, kind in kinds.items():
        want(name in doc, f"member {name} is missing")
        try:
            out[name] = kind(doc[name])
        except Fault as fault:
            raise Fault(f"{name}: {fault}") from None
    return SimpleNamespace(**out)


def integer(v):
    want(type(v) is int and -(2**63) <= v < 2**63, "an integer was expected")
    return v


def count(v):
    want(integer(v) >= 0, "an integer from 0 on was expected")
    return v


def text(v):
    want(type(v) is str, "a text was expected")
    return v


def boolean(v):
    want(type(v) is bool, "true or false was expected")
    return v


def digest(v):
    want(type(v) is str and re.fullmatch("[0-9a-f]{64}", v), "64 lower-case hex digits were expected")
    return bytes.fromhex(v)


def scheme(v):
    want(v in (PLAIN, KEYED), "an unknown scheme")
    return v


def moment(v):
    """A time of a document, in microseconds."""
    want(type(v) is str and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", v, re.ASCII), "a time was expected")
    try:
        at = datetime.strptime(v, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
    except ValueError:
        raise Fault("no such time") from None
    since = at - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds


def exactly(value):
    def kind(v):
        want(v == value and type(v) is type(value), f"{value} was expected")
        return v
    return kind


def null(kind):
    return lambda v: None if v is None else kind(v)


def many(kind):
    def kinds(v):
        want(isinstance(v, list), "an array was expected")
        return [kind(item) for item in v]
    return kinds


def each(*kinds):
    def kind(v):
        want(isinstance(v, list) and len(v) == len(kinds), f"an array of {len(kinds)} was expected")
        return tuple(k(item) for k, item in zip(kinds, v))
    return kind


def struct(**kinds):
    return lambda v: read(v, **kinds)


COUNTS = dict(firstOffset=count, nextOffset=count, rows=count, made=count, duplicates=count, gaps=count)
VOIDED = many(each(count, digest))
LOG = struct(tenant=text, scheme=scheme, epoch=count, firstSeq=count, rows=count, headIn=digest, headOut=digest, size=count, frontier=many(digest))
SEGMENT = struct(
    format=exactly(PLAIN), archiveId=text, topic=text, topicId=text, partition=count, ordinal=count, previousSha256=null(digest),
    firstOffset=count, nextOffset=count, leaderEpoch=integer, rows=count, made=count, duplicates=many(each(count, text, count)),
    gaps=many(each(count, count, text)), writer=struct(version=text, policy=text, settings=digest), logs=many(LOG))
HEAD = struct(tenant=text, scheme=scheme, epoch=count, size=count, head=digest, root=digest, frontier=many(digest))
ANCHOR = struct(
    archiveId=text, archiveSha256=digest, topic=text, topicId=text, partition=count, number=count, ordinal=integer, previous=null(digest),
    time=moment, totals=struct(**COUNTS), segments=many(struct(ordinal=count, bytes=count, sha256=digest, **COUNTS)), full=boolean,
    heads=many(HEAD), checkpoints=many(struct(tenant=text, note=text)),
    keys=struct(anchor=many(text), catalog=many(text), control=many(text)))


FILE = struct(key=text, bytes=count, sha256=digest, tenant=text, day=text, firstSeq=count, lastSeq=count, rows=count, headIn=digest, headOut=digest)
CATALOG = struct(
    archiveId=text, topic=text, topicId=text, partition=count, version=count, previous=null(digest), time=moment, watermark=count,
    parts=many(struct(day=text, key=text, bytes=count, sha256=digest, files=count)), doomed=many(struct(key=text, since=count)),
    cuts=many(struct(tenant=text, size=count, head=digest, frontier=many(digest))))
DATA_FILE = struct(
    format=exactly(PLAIN), archiveId=text, topic=text, topicId=text, partition=count, tenant=text, scheme=scheme, epoch=count, firstSeq=count,
    rows=count, headIn=digest, headOut=digest, frontierIn=many(digest), frontierOut=many(digest))
RESIDUAL = struct(salts=lambda v: {name: digest(salt) for name, salt in v.items()}, commits=lambda v: {name: digest(commit) for name, commit in v.items()})


def segment_document(raw):
    doc = load(raw)
    meta = SEGMENT(doc)
    meta.voided = VOIDED(doc.get("voided", []))
    return meta


def escape(name):
    """A name as keys hold it (5)."""
    parts = [f"~{c:02X}" if not re.match(rb"[A-Za-z0-9_.-]", bytes([c])) or c == 0x2E and i == 0 else chr(c) for i, c in enumerate(name.encode())]
    if len("".join(parts)) <= 120:
        return "".join(parts)
    while len("".join(parts)) > 80:
        parts.pop()
    return "".join(parts) + "~~" + sha(name.encode()).hex()[:32]


# Notes and keys: C2SP signed notes (5), and which keys are good (7.7).


def strict_base64(s):
    try:
        raw = base64.b64decode(s, validate=True)
    except ValueError:
        raise Fault("not base64") from None
    want(base64.b64encode(raw).decode() == s, "base64 that is not strict")
    return raw


def parse_note(raw):
    """(text, [(name, key hash, signature)]); refuses every form but the one that writing it again gives."""
    try:
        body, found, lines = raw.decode().rpartition("\n\n")
    except UnicodeDecodeError:
        raise Fault("a note that is not UTF-8") from None
    want(found, "not a note: a text, an empty line, and signature lines")
    want(lines == "" or lines.endswith("\n"), "a signature line is cut")
    signatures = []
    for line in lines.split("\n")[:-1]:
        parts = line.split(" ")
        want(len(parts) == 3 and parts[0] == "\u2014" and re.fullmatch(r"[^+\s]+", parts[1]), "a line that is no signature")
        signed = strict_base64(parts[2])
        want(len(signed) > 4, "a signature that is too short")
        signatures.append((parts[1], signed[:4], signed[4:]))
    want(len(signatures) <= 100 and len(set(signatures)) == len(signatures), "a signature twice, or more than 100")
    return body + "\n", signatures


def note_document(body, title):
    """The JSON line of a note of ours."""
    lines = body.split("\n")
    want(len(lines) == 3 and lines[0] == title and lines[2] == "", f"not the text of a {title}")
    return load(lines[1].encode())


def key_note(body):
    doc = read(note_document(body, "ledgerlake key v1"), archiveId=text, vkey=text, notAfter=moment)
    Key(doc.vkey)
    return doc


def checkpoint_text(archive_id, log, size, root):
    """The text of a C2SP tlog-checkpoint of a log."""
    origin = f"ledgerlake/{archive_id}/{escape(log.tenant)}/{escape(log.topic)}/{log.topicId}/{log.partition}"
    return f"{origin}\n{size}\n{base64.b64encode(root).decode()}\n"


class Key:
    """A verifier key, and for which roles and until when (None: for ever) it is good."""

    def __init__(self, vkey):
        name, _, rest = vkey.partition("+")
        hashed, _, encoded = rest.partition("+")
        raw = strict_base64(encoded)
        want(name and not re.search(r"\s", name) and len(raw) == 33 and raw[0] == 1, f"{vkey}: not an Ed25519 verifier key")
        self.id = name, sha(name.encode(), b"\n", raw)[:4]
        want(self.id[1].hex() == hashed, f"{vkey}: its hash is not that of its key")
        self.vkey, self.public, self.grants = vkey, raw[1:], set()
        at = point(self.public)
        want(at is not None, f"{vkey}: not a point of the curve")
        self.table = multiples((P - at[0], at[1], 1, P - at[3]))

    def good_for(self, role, time):
        return any(role in roles and (until is None or time is not None and time <= until) for roles, until in self.grants)


class Ring:
    """The keys that are good so far."""

    def __init__(self, vkeys):
        self.keys = {}
        for vkey in vkeys:
            self.grant(vkey, ("anchor", "catalog", "control"))

    def grant(self, vkey, roles, until=None):
        """Adds to what a key is good for; reports whether that is new."""
        key = self.keys.get(vkey) or self.keys.setdefault(vkey, Key(vkey))
        new = (tuple(roles), until) not in key.grants
        key.grants.add((tuple(roles), until))
        return new

    def take(self, doc):
        """Takes in the keys of a key note or an anchor that a good key signed."""
        if hasattr(doc, "vkey"):
            self.grant(doc.vkey, ("anchor", "catalog"), doc.notAfter)
            return
        for role in ("anchor", "catalog", "control"):
            for vkey in getattr(doc.keys, role):
                self.grant(vkey, (role,))

    def judge(self, raw, role, time=None):
        """(text, "good", "unknown" or "unsigned"). A signature by a good key that does not verify is a fault."""
        body, signatures = parse_note(raw)
        state = "unknown" if signatures else "unsigned"
        for name, hashed, signature in signatures:
            for key in self.keys.values():
                if key.id == (name, hashed) and key.good_for(role, time):
                    want(ed25519(key.table, key.public, body.encode(), signature), f"the signature by {name} does not verify")
                    state = "good"
        return body, state


def verdict(faults, less, looks, notes, what):
    """Prints what was found and returns the exit code."""
    code = 1 if faults else 3 if less else 4 if looks else 0
    for title, found in (("FAULT", faults), ("LESS", less), ("LOOK", looks), ("note", notes)):
        for line in found:
            print(f"{title} {line if line.isprintable() else ascii(line)}")
    print({0: "proved", 1: "tampered or damaged", 3: "not all that was asked for could be verified", 4: "proved, with something to look at"}[code] + f": {what}")
    return code
