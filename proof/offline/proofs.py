"""Checks a proof bundle or an evidence pack (docs/proofs.md): what is shown of rows, that they are in their log's tree,
and who signed that tree. Python's standard library only.

The root of a tree counts for as much as the signature over it: without one by a key that was given, no more is proved
than that the file fits together.
"""

import base64
from types import SimpleNamespace

from core import (
    ANCHOR, HEADER, KEYED, SLOTS, Fault, checkpoint_text, count, digest, exactly, genesis, integer, key_note, load,
    log_text, many, note_document, null, parse_note, payload_commit, read, root_by_path, row_hash, scheme, sha, slot_commit,
    strict_base64, struct, text, user_commit, want,
)

INTEGERS = set("""partition seq kafka_offset kafka_timestamp archived_at audit_record_version seq_within_turn created_at
subagent_depth input_tokens output_tokens latency_us http_status""".split())
REQUIRED = ("tenant_id", "topic", "partition", "seq", "archived_at", "kind")

COLUMNS = struct(**{name: null(integer if name in INTEGERS else text) for name in HEADER})
HEADERS = lambda v: want(isinstance(v, dict) and v.keys() <= set(HEADER), "an object of header columns was expected") or COLUMNS(v)
ROW = struct(seq=count, scheme=scheme, header=null(HEADERS), prevHash=null(digest), userCommit=null(digest), payloadCommit=null(digest),
             rowHash=digest, user=null(struct(id=text, salt=digest)), starSalt=null(digest), slots=lambda v: slots(v))
LOG = struct(tenant=text, topic=text, topicId=text, partition=count)
TREE = struct(size=count, root=digest)
BUNDLE = dict(format=exactly("ledgerlake proof v1"), archiveId=text, log=LOG, row=ROW, tree=TREE, path=many(digest), checkpoint=null(text),
              anchor=null(text), introductions=many(text), tlogProof=null(text))

RANGE = dict(format=exactly("ledgerlake range v1"), archiveId=text, log=LOG, scheme=scheme, first=count, hashes=many(digest), tree=TREE,
             nodes=many(digest), checkpoint=null(text), anchor=null(text), introductions=many(text))
MANIFEST = dict(format=exactly("ledgerlake pack v1"), archiveId=text, files=many(struct(name=text, bytes=count, sha256=digest)))


class Proof:
    """What was found. ring holds the keys that were given; key_of_log gives those of keyed logs."""

    def __init__(self, ring, key_of_log):
        self.ring, self.key_of_log = ring, key_of_log
        self.less, self.looks, self.notes, self.rows = [], [], [], 0

    def check_bundle(self, raw):
        b = read(load(raw), **BUNDLE)
        named = log_text(b.archiveId, b.log.tenant, b.log.topic, b.log.topicId, b.log.partition)
        self.check_row(b.row, b.log, named)
        leaf_root = root_by_path(b.tree.size, b.row.seq, b.row.rowHash, b.path)
        want(leaf_root == b.tree.root, "the inclusion path does not lead to the root")
        want(b.tlogProof == tlog_proof(b), "tlogProof does not say what the bundle says")
        self.check_statement(b.archiveId, b.log, b.row.scheme, b.tree, b)

    def check_pack(self, files):
        """files: {name: bytes}. They are those of the manifest, rows.jsonl has rows of ranges, and ranges are proved."""
        want("manifest.json" in files, "there is no manifest.json")
        manifest = read(load(files["manifest.json"]), **MANIFEST)
        for name in files:
            plain = all(part not in ("", ".", "..") for part in name.split("/"))
            want(plain and not set(name) & set("\\:"), f"{name!r} is not the name of a file in a pack")
        want(len({name.lower() for name in files}) == len(files), "two names are the same but for the size of letters")
        stated = {f.name: (f.bytes, f.sha256) for f in manifest.files}
        want(len(stated) == len(manifest.files), "the manifest names a file twice")
        found = {name: (len(raw), sha(raw)) for name, raw in files.items() if name != "manifest.json"}
        for name in sorted(stated.keys() | found.keys()):
            want(stated.get(name) == found.get(name), f"{name}: not in the manifest, not there, or changed")
        ranges = {name: self.check_range(name, manifest.archiveId, files) for name in sorted(files) if name.startswith("ranges/")}
        lines = files.get("rows.jsonl", b"").split(b"\n")
        want(lines.pop() == b"", "rows.jsonl: the last line is cut")
        seen = set()
        for number, line in enumerate(lines, 1):
            try:
                self.check_line(load(line), ranges, seen)
            except Fault as fault:
                raise Fault(f"rows.jsonl, line {number}: {fault}") from None
        hidden = sum(len(r.hashes) for r in ranges.values()) - len(seen)
        if hidden:
            self.notes.append(f"{hidden} rows of the ranges are withheld: their hashes alone are there")

    def check_range(self, name, archive_id, files):
        """The rows of a range are in the tree of their log, which a good key signed."""
        r = read(load(files[name]), **RANGE)
        want(r.archiveId == archive_id and r.hashes, f"{name}: of another archive, or empty")
        nodes = list(r.nodes)
        want(0 < r.tree.size < 2**62 and r.first + len(r.hashes) <= r.tree.size, f"{name}: it goes beyond its tree")
        want(range_root(0, r.tree.size, r.first, r.hashes, nodes) == r.tree.root and not nodes, f"{name}: it does not lead to its root")
        file = lambda file: want(file in files, f"{name}: {file} is not there") or files[file].decode()
        notes = SimpleNamespace(checkpoint=r.checkpoint, anchor=r.anchor and file(r.anchor), introductions=[file(f) for f in r.introductions])
        self.check_statement(r.archiveId, r.log, r.scheme, r.tree, notes)
        return r

    def check_line(self, doc, ranges, seen):
        row, name = ROW(doc), read(doc, range=text).range
        want(name in ranges, f"there is no {name}")
        r = ranges[name]
        at = row.seq - r.first
        want(0 <= at < len(r.hashes) and r.hashes[at] == row.rowHash and r.scheme == row.scheme, "it is not a row of its range")
        reset = row.header is not None and row.header.kind == "chain-reset"  # whose prevHash is a genesis
        want(row.header is None or at == 0 or reset or row.prevHash == r.hashes[at - 1], "it does not follow the row before it in its range")
        named = log_text(r.archiveId, r.log.tenant, r.log.topic, r.log.topicId, r.log.partition)
        want((named, row.seq) not in seen, f"row {row.seq} is there twice")
        seen.add((named, row.seq))
        self.check_row(row, r.log, named)

    def check_row(self, row, log, named):
        """All that is shown of a row is what its row_hash commits to."""
        self.rows += 1
        if row.header is None:
            rest = (row.prevHash, row.payloadCommit, row.userCommit, row.user, row.starSalt)
            want(rest == (None,) * 5 and not row.slots, f"row {row.seq}: header is null, and other members are not")
            self.looks.append(f"row {row.seq}: erased with its header, or withheld: its place and row_hash alone are proved")
            return
        header = vars(row.header)
        want(row.prevHash and row.payloadCommit and all(header[n] is not None for n in REQUIRED), f"row {row.seq}: what must be there is null")
        place = (header["tenant_id"], header["topic"], header["partition"], header["seq"])
        want(place == (log.tenant, log.topic, log.partition, row.seq), f"row {row.seq}: the header is that of another row")
        want(row.seq > 0 or row.prevHash == genesis(row.scheme, named), "prevHash of the first row is not the genesis of its log")
        self.check_content(row)
        key = self.key_of_log(named, log) if row.scheme == KEYED else None
        if row.scheme == KEYED and not key:
            self.less.append(f"row {row.seq}: its log is keyed, and the key was not given: row_hash is not checked")
            return
        stored = dict(header, prev_hash=row.prevHash, user_commit=row.userCommit, payload_commit=row.payloadCommit)
        want(row_hash(stored, key) == row.rowHash, f"row {row.seq}: rowHash is not the hash of what is shown")

    def check_content(self, row):
        """Commitments to what is shown; what is withheld or erased stands as its commitment."""
        if row.user:
            want(row.userCommit == user_commit(row.user.salt, row.user.id), f"row {row.seq}: userCommit is not the commitment to the user id")
        elif row.userCommit:
            self.notes.append(f"row {row.seq}: user_id is withheld or erased")
        if row.starSalt is None:
            want(not row.slots, f"row {row.seq}: starSalt is null, and there are slots")
            self.notes.append(f"row {row.seq}: its slots were erased, or are withheld")
            return
        commits = {name: s.commit or slot_commit(s.salt, name, s.content) for name, s in row.slots.items()}
        want(payload_commit(row.starSalt, commits) == row.payloadCommit, f"row {row.seq}: payloadCommit is not the commitment to the slots")
        hidden = [name for name, s in row.slots.items() if s.commit]
        if hidden:
            self.notes.append(f"row {row.seq}: withheld or erased: {', '.join(hidden)}")

    def check_statement(self, archive_id, log, kind, tree, notes):
        """That notes state this tree of the log, and that a good key signed one of them."""
        want(notes.checkpoint or notes.anchor, "neither a checkpoint nor an anchor: nobody states the root")
        self.introduce(notes.introductions, archive_id)
        states, at = [], None
        if notes.anchor is not None:
            body, _ = parse_note(notes.anchor.encode())
            a = ANCHOR(note_document(body, "ledgerlake anchor v1"))
            want((a.archiveId, a.topic, a.topicId, a.partition) == (archive_id, log.topic, log.topicId, log.partition), "the anchor is of another archive or partition")
            stated = [(h.size, h.root, h.scheme) for h in a.heads if h.tenant == log.tenant]
            want(stated == [(tree.size, tree.root, kind)], "the anchor does not state this tree of the log")
            states.append(self.ring.judge(notes.anchor.encode(), "anchor", a.time)[1])
            if states == ["good"] and notes.checkpoint in [c.note for c in a.checkpoints]:
                at = a.time  # the checkpoint has no time of its own, and a certified key needs one
        if notes.checkpoint is not None:
            body, state = self.ring.judge(notes.checkpoint.encode(), "anchor", at)
            want(body == checkpoint_text(archive_id, log, tree.size, tree.root), "the checkpoint is not that of this tree of the log")
            states.append(state)
        if "good" not in states:
            self.less.append("nobody vouches for the root: no signature over it is by a key that was given")
            return
        want("unknown" not in states, "of anchor and checkpoint one is signed by a good key, and the other by none")
        if "unsigned" in states:
            self.less.append("of anchor and checkpoint one is not signed")

    def introduce(self, notes, archive_id):
        """Takes in the keys of key notes and anchors that good keys signed; their order plays no part."""
        left, new = list(notes), True
        while new:
            new = False
            for note in list(left):
                body, _ = parse_note(note.encode())
                if body.startswith("ledgerlake key v1\n"):
                    doc, time = key_note(body), None
                else:
                    doc = ANCHOR(note_document(body, "ledgerlake anchor v1"))
                    time = doc.time
                want(doc.archiveId == archive_id, "an introduction is of another archive")
                if self.ring.judge(note.encode(), "anchor", time)[1] == "good":
                    self.ring.take(doc)
                    left.remove(note)
                    new = True


def range_root(low, high, first, hashes, nodes):
    """The root of rows low to high of a tree: of those in hashes from their hashes, of others from the next of nodes."""
    if high <= first or low >= first + len(hashes):
        want(nodes, "a node is missing")
        return nodes.pop(0)
    if high - low == 1:
        return sha(b"\x00", hashes[low - first])
    middle = low + (1 << (high - low - 1).bit_length() - 1)
    return sha(b"\x01", range_root(low, middle, first, hashes, nodes), range_root(middle, high, first, hashes, nodes))


def slots(v):
    """{slot: its salt and content, or its commitment}."""
    want(isinstance(v, dict) and v.keys() <= set(SLOTS), "an object of slots was expected")
    return {name: slot(v[name]) for name in SLOTS if name in v}


def slot(v):
    want(isinstance(v, dict) and sorted(v.keys() & {"salt", "commit", "text", "base64"}) in (["commit"], ["salt", "text"], ["base64", "salt"]),
         "a slot has salt and text, salt and base64, or commit")
    if "commit" in v:
        return SimpleNamespace(commit=digest(v["commit"]), salt=None, content=None)
    content = text(v["text"]).encode() if "text" in v else strict_base64(text(v["base64"]))
    return SimpleNamespace(commit=None, salt=digest(v["salt"]), content=content)


def tlog_proof(b):
    """The bundle's proof as c2sp.org/tlog-proof has it: the record of such a log is the row_hash, its extra data."""
    if b.checkpoint is None:
        return None
    encode = lambda raw: base64.b64encode(raw).decode()
    lines = ["c2sp.org/tlog-proof@v1", f"extra {encode(b.row.rowHash)}", f"index {b.row.seq}", *map(encode, b.path), ""]
    return "\n".join(lines) + "\n" + b.checkpoint
