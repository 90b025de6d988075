"""Checks a whole archive: rows (3, 4), lines with their chains, trees, coverage and anchors (5, 6), keys (7.7).

Numbers are sections of docs/format.md. The first fault of a line ends the check of that line: what comes behind it
cannot be judged. Rows are decoded by pyarrow, after the object was hashed; all else is recomputed here.
"""

import json
import pathlib
import re
from datetime import datetime, timezone
from decimal import Decimal
from types import SimpleNamespace

from core import (
    ANCHOR, CATALOG, DATA_FILE, FILE, HEADER, RESIDUAL, SLOTS, bytes_of, checkpoint_text, count, COUNTS, digest, escape, exactly, Fault, genesis, grow, key_note, KEYED, live_commits,
    load, log_text, many, moment, note_document, null, parse_note, payload_commit, PLAIN, read, row_hash,
    segment_document, sha, slot_commit, text, tree_root, user_commit, verdict, VOIDED, want,
)
from layout import TIMES, check_bounds, check_layout, footer

CONTROL = {"redaction", "redaction-cancelled", "erasure-done", "retention-cut", "legal-hold"}
MADE = {"gap", "chain-reset"}
DATA = """call decision llm-request llm-response tool-call world-mutation policy-decision source-chain-reset
source-rotation queue-dropped""".split()
REASONS = """null_value empty_value invalid_json invalid_unicode duplicate_key missing_field wrong_type out_of_range
bad_tenant_id tenant_mismatch bad_record_id bad_timestamp unknown_kind reserved_kind unauthorised too_deep too_large
conflict""".split()
FIVE_MINUTES = 300_000_000  # microseconds


# Rows: sections 3 and 4.


def rows_of(body, bounds):
    """Yields the rows of an object as dicts: times in microseconds, text as str, raw and hashes as bytes."""
    import pyarrow
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(body))
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, use_threads=False)
            columns = {}
            for name, column in zip(table.column_names, table.columns):
                columns[name] = (column.cast(pyarrow.int64()) if name in TIMES else column).to_pylist()
            check_bounds(group, columns, bounds)
            for values in zip(*columns.values()):
                yield dict(zip(columns, values))
    except (pyarrow.ArrowException, ValueError, OSError) as error:
        raise Fault(f"cannot be decoded: {error}") from None


def valid_tenant(tenant):
    return tenant in ("_partition", "_unattributed") or (
        0 < len(tenant.encode()) <= 256 and tenant not in (".", "..") and tenant[0] != "_" and not re.search(r"[\x00-\x1f\x7f-\x9f]", tenant))


def derived(decision):
    """requested_model, selected_reason, rung_ordinal, fallback_chain, as the slot decision says them (3.4)."""
    try:
        doc = load((decision or "").encode(), Decimal)
    except Fault:
        return None, None, None, None
    doc = doc if isinstance(doc, dict) else {}
    model, reason, rung, chain = (doc.get(n) for n in ("requestedModel", "selectedReason", "rungOrdinal", "fallbackChain"))
    if isinstance(rung, Decimal) and abs(rung.adjusted()) < 20 and rung == rung.to_integral_value():
        rung = int(rung)
    rung = rung if type(rung) is int and -(2**63) <= rung < 2**63 else None
    chain = chain if isinstance(chain, list) and all(isinstance(item, str) for item in chain) else None
    return model if isinstance(model, str) else None, reason if isinstance(reason, str) else None, rung, chain


def check_live(row):
    """State (3.1), commitments and derived columns of a live row."""
    want(row["row_salt"] is not None, "the row is erased; in a segment all rows are live")
    want(all(row[n] is None for n in ("residual", "user_salt", "redaction", "redaction_id")), "a live row with traces of an erasure")
    user, payload = live_commits(row)
    want(row["payload_commit"] == payload, "payload_commit is not the commitment to the row's slots")
    want(row["user_commit"] == user, "user_commit is not the commitment to the row's user_id")
    stored = row["requested_model"], row["selected_reason"], row["rung_ordinal"], row["fallback_chain"]
    want(stored == derived(row["decision"]), "a derived column does not say what the decision slot says")


def check_erasable(row):
    """State, commitments and derived columns of a row of a data file. Reports whether it was erased hard."""
    if row["row_salt"] is not None:
        check_live(row)
        return False
    said = load(bytes_of(row["redaction"] or ""))
    slots, user, hard = said.get("slots"), said.get("user", False), said.get("hard", False)
    sentinel = {"redacted": True, "id": row["redaction_id"], "slots": slots, **({"user": True} if user else {}), **({"hard": True} if hard else {})}
    want(row["redaction"] == json.dumps(sentinel, separators=(",", ":"), ensure_ascii=False), "redaction is not the sentinel")
    want((row["user_salt"] is None) == (row["user_id"] is None), "user_salt without user_id, or the other way round")
    want(row["user_id"] is None or row["user_commit"] == user_commit(row["user_salt"], row["user_id"]), "user_commit is not the commitment to user_id")
    content = {n: row[n] for n in SLOTS if row[n] is not None}
    want(not hard or user and slots == "*" and row["user_id"] is None and all(row[n] is None for n in HEADER[9:]), "a hard erasure that left something")
    if slots == "*":
        want(row["residual"] is None and not content, "an erased row that still has content")
    else:
        r = RESIDUAL(load(bytes_of(row["residual"] or "")))
        want(slots == [n for n in SLOTS if n in slots] and slots and not set(slots) & content.keys(), "slots of the sentinel, or one of them has content")
        want(r.salts.keys() == {"*", *content} and r.commits.keys() <= set(slots), "residual is not that of the slots")
        commits = {**r.commits, **{n: slot_commit(r.salts[n], n, v) for n, v in content.items()}}
        want(row["payload_commit"] == payload_commit(r.salts["*"], commits), "payload_commit is not the commitment to the row's slots")
    stored = row["requested_model"], row["selected_reason"], row["rung_ordinal"], row["fallback_chain"]
    want(stored == derived(row["decision"]), "a derived column does not say what the decision slot says")
    return hard


def check_kind(row):
    """What a row's kind asks of its columns (4)."""
    kind = row["kind"]
    want(kind in CONTROL or kind in MADE or kind in DATA or kind == "rejected", f"kind {kind!r} is unknown")
    for name in ("kafka_offset", "kafka_timestamp"):
        want((row[name] is None) == (kind in MADE), f"{name} is null in rows that ingest made and nowhere else")
    want((row["redaction_policy"] is None) == (kind not in DATA), "redaction_policy is null in rejected, made and control rows and nowhere else")
    want(row["raw"] is None or kind == "rejected", "raw is set, which only rejected rows have")
    want(kind not in DATA or row["tenant_id"] not in ("_partition", "_unattributed"), "a producer's row in the log of a reserved tenant")
    if kind == "rejected":
        check_reject(load(bytes_of(row["context"] or "")), row["raw"])


def check_reject(doc, raw):
    r = read(doc, reason=text, detail=text, size=count, sha256=null(digest))
    want(r.reason in REASONS, f"{r.reason!r} is no known reason")
    if r.sha256 is None:
        want(raw is None and r.size == 0, "no sha256, which is so for a null value only")
    elif raw is None:
        want(r.size > 16 << 20, "raw is null, and the record was neither null nor larger than 16 MiB")
    else:
        want(len(raw) == r.size and sha(raw) == r.sha256, "raw is not the value that context describes")


# A line: one partition of one topic. Chain, tree, coverage and anchors (5, 6, 7.3).


class Log:
    """Where a log stands."""

    def __init__(self, named, kind):
        self.named, self.scheme, self.head = named, kind, genesis(kind, named)
        self.epoch = self.size = self.anchored = 0
        self.frontier, self.newest = [], -(2**63)


class Line:
    """topic, topic_id and partition are as in keys: escaped. segments and anchors are {number: path}."""

    def __init__(self, archive, topic, topic_id, partition):
        self.archive, self.place = archive, (topic, topic_id, partition)
        self.name = f"{topic}/{partition}"
        self.segments, self.anchors, self.catalogs = {}, {}, {}
        self.logs, self.entries, self.states, self.pending, self.changed, self.newest, self.totals = {}, {}, {}, [], set(), 0, None
        self.rows = self.gaps_lost = self.resets = self.voided = 0
        self.kinds = set()

    def check(self):
        """Goes through segments and anchors in order. self.entries has what anchors say of segments."""
        scanned = [self.scan(n, self.segments[n]) for n in sorted(self.segments)]
        void = self.find_void(scanned)
        self.previous = None
        self.queue = sorted(self.anchors)
        for i, number in enumerate(self.queue):
            want(number == i, f"{self.name}: anchor {i} is missing")
        self.take_anchors(-1)
        self.last_sum = None
        for i, segment in enumerate(scanned):
            with_where(segment.key, self.take_segment, i, segment, scanned[i + 1] if i + 1 < len(scanned) else None, void)
            self.take_anchors(i)
        want(not self.queue, f"{self.name}: anchor {self.queue and self.queue[0]} covers segments that are not there: the tail is missing")
        want(not self.kinds & CONTROL or not self.kinds & set(DATA), f"{self.name}: control rows and rows of producers in one line")

    def check_compacted(self):
        """Of a line that was compacted: each object has the hash that an anchor or a catalog states, and is there where it
        must be; anchors and catalogs follow each other. Not the rows."""
        watermark = self.check_catalogs()
        numbers, last, sizes = sorted(self.anchors), None, {}
        want(numbers == list(range(len(numbers))), f"{self.name}: an anchor is missing")
        sums, ordinal = [0] * 4, -1
        for number in numbers:
            a, body = self.archive.anchor(self.anchors[number])
            where = self.archive.key(self.anchors[number])
            want(self.is_here(a) and a.number == number, f"{where}: the anchor is of another place")
            want((a.archiveId, a.archiveSha256) == (self.archive.id, self.archive.sum), f"{where}: the anchor is of another archive, or ledgerlake.json was changed")
            want(a.previous == (last and last.sum) and (not last or a.time >= last.time), f"{where}: it does not follow the anchor before")
            last = SimpleNamespace(sum=sha(body.encode()), time=a.time)
            for s in a.segments:
                sums = [x + y for x, y in zip(sums, (s.rows, s.made, s.duplicates, s.gaps))]
            ordinal = max(ordinal, a.ordinal)
            sizes.update({h.tenant: h.size for h in a.heads})
            want(all(tree_root(h.frontier) == h.root for h in a.heads), f"{where}: a root is not that of its frontier")
            want(a.ordinal < 0 or sums == [a.totals.rows, a.totals.made, a.totals.duplicates, a.totals.gaps] and sum(sizes.values()) == a.totals.rows,
                 f"{where}: totals are not those of segments and heads")
        want(watermark <= ordinal + 1, f"{self.name}: the watermark lies above what anchors cover")
        self.check_hashes(watermark, ordinal)
        self.check_data(watermark)

    def check_data(self, watermark):
        """The rows of data files, log by log, and then those of the segments that were not compacted yet."""
        heads = {}
        for path in self.anchors.values():
            heads.update({(h.tenant, h.size): h for h in self.archive.anchor(path)[0].heads})
        cuts = {c.tenant: c for c in self.catalog.cuts}
        for f in sorted(self.files, key=lambda f: (f.tenant, f.firstSeq)):
            with_where(f.key, self.check_data_file, f, heads, cuts.get(f.tenant))
        entries = [self.entries[n] for n in sorted(self.entries) if n < watermark]
        if entries:
            sums = [sum(getattr(e, name) for e in entries) for name in ("rows", "made", "duplicates", "gaps")]
            self.totals = [entries[0].firstOffset, entries[-1].nextOffset, *sums]
            dropped = sum(c.size for c in cuts.values())
            want(sum(f.rows for f in self.files) + dropped == sums[0], f"{self.name}: rows of data files and cuts are not those of the segments that they replace")
        for n in sorted(self.segments):
            if n >= watermark:
                with_where(self.archive.key(self.segments[n]), Segment(self, self.segments[n].read_bytes(), n, None).check)
                for tenant, log in self.logs.items():
                    self.check_head(tenant, log, heads)

    def check_data_file(self, f, heads, cut):
        """Rows in seq order, each in a state of 3.1: what is left of it recomputes, and it follows the row before."""
        body = self.archive.compacted[f.key].read_bytes()
        m = DATA_FILE(load(footer(body)[2]))
        want(m.archiveId == self.archive.id and self.is_here(m) and (m.tenant, m.firstSeq, m.rows) == (f.tenant, f.firstSeq, f.rows), "it is of another place")
        log = self.log(m, m)
        if cut and log.size == 0:
            log.size, log.head, log.frontier, log.epoch, log.scheme = cut.size, cut.head, list(cut.frontier), m.epoch, m.scheme
        want((log.size, log.head, log.frontier) == (m.firstSeq, m.headIn, m.frontierIn) and m.headIn == f.headIn, "firstSeq, headIn or frontierIn is not the state of its log")
        for row in rows_of(body, check_layout(body)):
            with_where(f"seq {row['seq']}: record {row['record_id']}", self.check_data_row, row, f, m, log)
            self.check_head(f.tenant, log, heads)
        want((log.size, log.head, log.frontier, log.epoch) == (m.firstSeq + m.rows, m.headOut, m.frontierOut, m.epoch) and m.headOut == f.headOut, "its rows end elsewhere")
        self.rows += m.rows

    def check_head(self, tenant, log, heads):
        if head := heads.get((tenant, log.size)):
            want((head.head, head.root) == (log.head, tree_root(log.frontier)), f"{tenant}: head or root at size {log.size} is not that of an anchor")
            log.anchored = log.size

    def check_data_row(self, row, f, m, log):
        want((row["tenant_id"], row["topic"], row["topic_id"], row["partition"]) == (m.tenant, m.topic, m.topicId, m.partition), "it is of another log")
        at = datetime.fromtimestamp(row["archived_at"] // 1_000_000, timezone.utc)
        want(at.strftime("%Y-%m-%d") == f.day and row["archived_at"] >= log.newest, "archived on another day, or before the row before it")
        hard = check_erasable(row)
        if row["kind"] == "chain-reset" and row["context"] is not None:
            r = read(load(row["context"].encode()), reason=null(text), previousHead=digest, previousSize=count)
            want((r.previousHead, r.previousSize) == (log.head, log.size), "the new epoch begins behind another row")
            log.epoch, log.head = log.epoch + 1, genesis(m.scheme, log.named, log.epoch + 1, log.head, log.size, r.reason)
        want((row["prev_hash"], row["seq"], row["epoch"]) == (log.head, log.size, log.epoch), "it does not follow the row before it in its log")
        key = self.archive.log_key(log, m.tenant, m)
        if not hard and (log.scheme == PLAIN or key):
            want(row["row_hash"] == row_hash(row, key if log.scheme == KEYED else None), "row_hash is not the hash of the row")
        grow(log.frontier, log.size, sha(b"\x00", row["row_hash"]))
        log.size, log.head, log.newest = log.size + 1, row["row_hash"], row["archived_at"]

    def is_here(self, doc):
        return (escape(doc.topic), escape(doc.topicId), doc.partition) == self.place

    def check_hashes(self, watermark, ordinal):
        """Segments are missing below the watermark only, and each has the hash that an anchor or the next one states."""
        there = sorted(self.segments)
        for n in range(watermark, max([ordinal, *there]) + 1):
            want(n in self.segments or n in self.find_void([self.scan(m, self.segments[m]) for m in there]), f"{self.name}: segment {n} is missing")
        before = None
        for n in there:
            s = self.scan(n, self.segments[n])
            entry = self.entries.get(n)
            want(not entry or (entry.bytes, entry.sha256) == (s.size, s.sha), f"{s.key}: its SHA-256 is not that of anchor {entry and entry.anchor}: it was changed")
            want(not s.wrong, f"{s.key}: {s.wrong}")
            want(not before or before.ordinal + 1 != n or s.previous == before.sha, f"{s.key}: previousSha256 is not the hash of the segment before")
            before = s

    def check_catalogs(self):
        """Versions follow each other; what they list has its hash, and what the newest lists is there. Returns its watermark."""
        before, newest, self.files = None, max(self.catalogs), []
        for version in sorted(self.catalogs):
            where = self.archive.key(self.catalogs[version])
            c, body = self.archive.catalog(self.catalogs[version])
            want(self.is_here(c) and (c.archiveId, c.version) == (self.archive.id, version), f"{where}: the catalog is of another place")
            want((c.previous is None) == (version == 0), f"{where}: previous is null in version 0 and nowhere else")
            if before and before.version + 1 == version:
                want(c.previous == before.sum and c.time >= before.time and c.watermark >= before.watermark, f"{where}: it does not follow the version before")
            before = SimpleNamespace(version=version, sum=sha(body.encode()), time=c.time, watermark=c.watermark)
            self.archive.placed |= {d.key for d in c.doomed}
            self.catalog = c
            for part in c.parts:
                with_where(where, self.check_part, part, version == newest)
        return before.watermark

    def check_part(self, part, newest):
        raw = self.archive.listed(part, newest)
        if raw is None:
            return
        files = read(load(raw), files=many(FILE)).files
        want(len(files) == part.files, f"{part.key}: it lists {len(files)} files, the catalog says {part.files}")
        for f in files:
            want(f.rows == f.lastSeq - f.firstSeq + 1 and f.key.startswith(f"data/{escape(f.tenant)}/day={f.day}/"), f"{f.key}: its place or its rows")
            self.archive.listed(f, newest)
        self.files += files if newest else []

    def scan(self, ordinal, path):
        """Hashes a segment and reads its metadata, without a look at its pages."""
        body = path.read_bytes()
        s = SimpleNamespace(ordinal=ordinal, path=path, key=self.archive.key(path), size=len(body), sha=sha(body), previous=None, voids=[], wrong=None)
        try:
            meta = segment_document(footer(body)[2])
            s.previous, s.voids = meta.previousSha256, meta.voided
        except (Fault, KeyError, TypeError, AttributeError) as fault:
            s.wrong = str(fault)
        return s

    def find_void(self, scanned):
        """{ordinal: sha256} of the segments that a chain reset declared void."""
        void = {}
        for s in reversed(scanned):
            if s.ordinal not in void:
                void.update(s.voids)
        return void

    def take_segment(self, ordinal, s, after, void):
        want(s.ordinal == ordinal, f"segment {ordinal} is missing")
        entry = self.entries.get(ordinal)
        if entry:
            want((entry.bytes, entry.sha256) == (s.size, s.sha), f"its SHA-256 is not that of anchor {entry.anchor}: it was changed")
        if after and after.ordinal == ordinal + 1 and not after.wrong:
            want(after.previous == s.sha, f"its SHA-256 is not the previousSha256 of segment {after.ordinal}: one of them was changed")
        want(s.previous == self.last_sum or s.wrong, "previousSha256 is not the hash of the segment before")
        self.last_sum = s.sha
        if ordinal in void:
            want(not entry, f"a chain reset declared it void, but anchor {entry and entry.anchor} covers it")
            want(void[ordinal] == s.sha, "its SHA-256 is not that of the chain reset that declared it void")
            self.voided += 1
            self.pending += [] if s.wrong else [log.tenant for log in segment_document(footer(s.path.read_bytes())[2]).logs]
            return
        want(not s.wrong, s.wrong)
        Segment(self, s.path.read_bytes(), ordinal, entry).check()

    def log(self, meta, stated):
        if stated.tenant not in self.logs:
            want(valid_tenant(stated.tenant), f"{stated.tenant!r} is no tenant")
            named = log_text(meta.archiveId, stated.tenant, meta.topic, meta.topicId, meta.partition)
            self.logs[stated.tenant] = Log(named, stated.scheme)
        return self.logs[stated.tenant]

    def take_anchors(self, ordinal):
        """Compares the anchors that end with a segment with what the line gave so far."""
        while self.queue:
            path = self.anchors[self.queue[0]]
            doc, body = self.archive.anchor(path)
            if doc.ordinal > ordinal:
                return
            with_where(self.archive.key(path), self.check_anchor, self.queue.pop(0), doc, {s[:2] for s in parse_note(path.read_bytes())[1]})
            self.previous = SimpleNamespace(sum=sha(body.encode()), time=doc.time, ordinal=doc.ordinal)

    def check_anchor(self, number, a, signers):
        want((escape(a.topic), escape(a.topicId), a.partition, a.number) == (*self.place, number), "the anchor is of another place")
        want((a.archiveId, a.archiveSha256) == (self.archive.id, self.archive.sum), "the anchor is of another archive, or ledgerlake.json was changed")
        before = self.previous or SimpleNamespace(sum=None, time=0, ordinal=-1)
        want(a.previous == before.sum, "previous is not the hash of the text of the anchor before")
        want(a.time >= before.time and a.ordinal >= max(before.ordinal, -1), "it goes back behind the anchor before")
        want(a.full == (number % 100 == 0), "full is true where the number is a multiple of 100")
        listed = [s.ordinal for s in a.segments]
        want(listed == [n for n in range(before.ordinal + 1, a.ordinal + 1) if n in self.states], "segments are not those since the anchor before")
        for s in a.segments:
            stated = (s.bytes, s.firstOffset, s.nextOffset, s.rows, s.made, s.duplicates, s.gaps)
            want(self.states.pop(s.ordinal) == stated, f"size, offsets or counts of segment {s.ordinal} are others")
        if a.ordinal >= 0:
            want(self.totals == [getattr(a.totals, n) for n in COUNTS], "totals are not those of the segments so far")
            want(sum(log.size for log in self.logs.values()) == a.totals.rows, "the sizes of all heads do not sum up to totals.rows")
        want([h.tenant for h in a.heads] == sorted(self.logs if a.full else self.changed, key=str.encode), "heads are not those that changed, or not all")
        for h in a.heads:
            log = self.logs[h.tenant]
            want((h.scheme, h.epoch, h.size, h.head) == (log.scheme, log.epoch, log.size, log.head), f"head of {h.tenant} is not that of its rows")
            want((h.root, h.frontier) == (tree_root(log.frontier), log.frontier), f"root or frontier of {h.tenant} is not that of its tree")
        for c in a.checkpoints:
            self.check_checkpoint(a, c, signers)
        want(self.newest <= a.time + FIVE_MINUTES, "a row that it covers was archived more than 5 minutes after it")
        for tenant in self.changed:
            self.logs[tenant].anchored = self.logs[tenant].size
        self.changed, self.newest = set(), 0

    def check_checkpoint(self, a, c, signers):
        want(c.tenant in self.logs, f"a checkpoint of {c.tenant}, which has no rows")
        log = self.logs[c.tenant]
        named = SimpleNamespace(tenant=c.tenant, topic=a.topic, topicId=a.topicId, partition=a.partition)
        body, state = self.archive.ring.judge(c.note.encode(), "anchor", a.time)
        want(body == checkpoint_text(a.archiveId, named, log.size, tree_root(log.frontier)), f"the checkpoint of {c.tenant} is not that of its tree")
        same = {s[:2] for s in parse_note(c.note.encode())[1]} & signers
        want(state != "good" or same, f"the checkpoint of {c.tenant} is not signed by a key that signed the anchor")
        self.archive.weigh(state, f"{self.name}: the checkpoint of {c.tenant} in anchor {a.number}")


def with_where(where, do, *args):
    """Runs do, and says in a fault where it is."""
    try:
        return do(*args)
    except Fault as fault:
        raise Fault(f"{where}: {fault}") from None
    except (KeyError, IndexError, TypeError, AttributeError, UnicodeError) as error:
        raise Fault(f"{where}: malformed: {error!r}") from None


class Segment:
    """The rows of one segment against its metadata and the state of its line."""

    def __init__(self, line, body, ordinal, entry):
        self.line, self.body, self.ordinal = line, body, ordinal
        self.meta = segment_document(footer(body)[2])
        self.rows, self.made = {}, 0

    def check(self):
        m, line = self.meta, self.line
        want((escape(m.topic), escape(m.topicId), m.partition, m.ordinal) == (*line.place, self.ordinal), "it belongs elsewhere by its metadata")
        want(m.archiveId == line.archive.id, "it is of another archive")
        want([v[0] for v in m.voided] == list(range(m.ordinal - len(m.voided), m.ordinal)), "voided are not the segments just before")
        self.check_coverage()
        self.check_logs()
        for row in rows_of(self.body, check_layout(self.body)):
            with_where(f"tenant {row['tenant_id']}: seq {row['seq']}: record {row['record_id']}", self.check_row, row)
        self.finish()

    def check_coverage(self):
        m, line = self.meta, self.line
        lost = [g for g in m.gaps if g[2] == "lost"]
        want(all(to > begin and cause in ("control", "compacted", "lost") for begin, to, cause in m.gaps), "a gap that is none")
        counts = [m.rows, m.made, len(m.duplicates), sum(to - begin for begin, to, _ in m.gaps)]
        want(m.nextOffset - m.firstOffset == counts[0] - counts[1] + counts[2] + counts[3], "offsets are not accounted for (coverage)")
        if line.totals is None:
            line.totals = [m.firstOffset, m.firstOffset, 0, 0, 0, 0]
        want(m.firstOffset == line.totals[1], f"it begins at offset {m.firstOffset}, those before it end at {line.totals[1]}")
        line.totals = [line.totals[0], m.nextOffset, *map(sum, zip(line.totals[2:], counts))]
        line.states[self.ordinal] = (len(self.body), m.firstOffset, m.nextOffset, *counts)
        line.gaps_lost += sum(to - begin for begin, to, _ in lost)
        self.lost, self.cursor = {(begin, to) for begin, to, _ in lost}, m.firstOffset
        self.accounts = sorted([(d[0], d[0] + 1, d) for d in m.duplicates] + [(begin, to, None) for begin, to, _ in m.gaps], key=lambda a: a[:2])

    def check_logs(self):
        """What logs says of the state before the segment."""
        self.stated = {}
        for s in self.meta.logs:
            log = self.line.log(self.meta, s)
            want(s.tenant not in self.stated and s.rows > 0 and s.size - s.firstSeq == s.rows, f"logs: {s.tenant}: twice, or counts that do not fit")
            want((s.firstSeq, s.headIn) == (log.size, log.head), f"logs: {s.tenant}: firstSeq or headIn is not the state of its log")
            self.stated[s.tenant] = s
        want(sum(s.rows for s in self.meta.logs) == self.meta.rows, "logs do not have as many rows as the segment")

    def check_row(self, row):
        m, line, tenant = self.meta, self.line, row["tenant_id"]
        want(tenant in self.stated, "its log is not in logs")
        log, stated = line.logs[tenant], self.stated[tenant]
        want((row["topic"], row["topic_id"], row["partition"]) == (m.topic, m.topicId, m.partition), "it is of another line")
        want(row["repeat_of"] is None, "repeat_of is set, which only compaction does")
        check_live(row)
        check_kind(row)
        self.account(row)
        if row["kind"] == "gap":
            self.check_gap(row)
        if row["kind"] == "chain-reset":
            self.check_reset(row, log, stated)
        else:
            want(row["prev_hash"] == log.head, "prev_hash is not the row_hash of the row before it in its log")
            want(log.scheme == stated.scheme, "the scheme changes within an epoch")
        want((row["seq"], row["epoch"]) == (log.size, log.epoch), f"seq {log.size} of epoch {log.epoch} belongs here")
        want(row["archived_at"] >= log.newest, "archived_at is before that of the row before it in its log")
        key = line.archive.log_key(log, tenant, m)
        if log.scheme == PLAIN or key:
            want(row["row_hash"] == row_hash(row, key if log.scheme == KEYED else None), "row_hash is not the hash of the row")
        grow(log.frontier, log.size, sha(b"\x00", row["row_hash"]))
        log.size, log.head, log.newest = log.size + 1, row["row_hash"], row["archived_at"]
        self.rows[tenant] = self.rows.get(tenant, 0) + 1
        line.newest = max(line.newest, row["archived_at"])
        line.kinds.add(row["kind"])
        line.archive.control_row(row, self.ordinal in line.entries)

    def account(self, row):
        """Each offset gave a row, a duplicate or lies in a gap, once."""
        at = row["kafka_offset"]
        if at is None:
            self.made += 1
            return
        self.consume(at)
        want(at == self.cursor and at < self.meta.nextOffset, f"offset {at}, where {self.cursor} is to be accounted for")
        self.cursor += 1

    def consume(self, to):
        while self.accounts and self.accounts[0][0] < to:
            begin, end, duplicate = self.accounts.pop(0)
            want(begin == self.cursor, f"offset {begin} where {self.cursor} is to be accounted for")
            if duplicate:
                log = self.line.logs.get(duplicate[1])
                want(log and duplicate[2] < log.size, f"the duplicate at offset {begin} repeats no row before it")
            self.cursor = end

    def check_gap(self, row):
        gap = read(load(bytes_of(row["context"] or "")), **{"from": count, "to": count, "cause": text})
        want(row["tenant_id"] == "_partition", "a gap row outside of the log of _partition")
        want((vars(gap)["from"], gap.to) in self.lost, "the row tells of offsets that are no lost gap of the segment")
        self.lost.remove((vars(gap)["from"], gap.to))

    def check_reset(self, row, log, stated):
        r = read(load(bytes_of(row["context"] or "")), reason=null(text), previousHead=digest, previousSize=count, voided=VOIDED)
        want(r.voided == self.meta.voided, "row and metadata do not declare the same segments void")
        want((r.previousHead, r.previousSize) == (log.head, log.size), "the new epoch begins behind another row than the newest")
        log.epoch, log.scheme = log.epoch + 1, stated.scheme
        want(row["prev_hash"] == genesis(log.scheme, log.named, log.epoch, log.head, log.size, r.reason), "prev_hash is not the genesis of the new epoch")
        self.line.resets += 1
        self.line.pending = [tenant for tenant in self.line.pending if tenant != row["tenant_id"]]

    def finish(self):
        m, line = self.meta, self.line
        self.consume(2**63)
        want(self.cursor == m.nextOffset and self.made == m.made and not self.lost, "made, nextOffset or lost gaps are not those of the rows")
        for tenant, s in self.stated.items():
            log = line.logs[tenant]
            want((self.rows.get(tenant), log.head, log.epoch, log.size) == (s.rows, s.headOut, s.epoch, s.size), f"logs: {tenant}: its rows end elsewhere")
            want(log.frontier == s.frontier, f"logs: {tenant}: frontier is not that of its tree")
        want(not line.pending, f"segments with rows of {line.pending} were declared void, and no chain-reset row says so")
        line.changed |= self.stated.keys()
        line.rows += m.rows


# The archive: which objects there are, and what all of it proves (7.7 to 7.9).


class Archive:
    """folder is the archive as files; ring holds the keys that were given, none of which is needed where unsigned is true;
    key_of_log(text of a log, log) returns the key of a keyed log, or None."""

    def __init__(self, folder, ring, unsigned=False, key_of_log=lambda *_: None):
        self.folder, self.ring, self.allow_unsigned, self.key_of_log = pathlib.Path(folder), ring, unsigned, key_of_log
        self.faults, self.less, self.looks, self.notes = [], [], [], []
        self.lines, self.key_notes, self.unkeyed = {}, [], set()
        self.compacted, self.placed = {}, set()  # parts and data files by key, and those of them that a catalog lists or dooms
        self.unsigned, self.good, self.open_orders, self.time = [], set(), {}, 0

    def key(self, path):
        return path.relative_to(self.folder).as_posix()

    def check(self):
        """Fills faults, less, looks and notes. Raises OSError where there is no archive."""
        self.survey()
        self.attempt(self.read_root)
        self.learn_keys()
        for line in self.lines.values():
            self.attempt(self.check_line, line)
        self.looks += [f"stray: {key}: no catalog lists it" for key in sorted(self.compacted.keys() - self.placed)]
        self.conclude()

    def attempt(self, do, *args):
        try:
            return do(*args)
        except Fault as fault:
            self.faults.append(str(fault))

    def survey(self):
        number = r"(\d{20})"
        place = r"([^/]+)/([^/]+)/(\d{5,10})"
        for path in sorted(self.folder.rglob("*")):
            key = self.key(path)
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise OSError(f"{key} is neither a file nor a folder: no object")
            if path.is_dir() or key.startswith(".sgwtmp/") or key == "ledgerlake.json":
                continue
            if m := re.fullmatch(f"log/{place}/{number}\\.parquet", key, re.ASCII):
                self.line(m).segments[int(m[4])] = path
            elif m := re.fullmatch(f"anchor/{place}/{number}\\.note", key, re.ASCII):
                self.line(m).anchors[int(m[4])] = path
            elif re.fullmatch(r"key/[0-9a-f]{64}\.note", key):
                self.key_notes.append(path)
            elif m := re.fullmatch(f"catalog/{place}/{number}\\.note", key, re.ASCII):
                self.line(m).catalogs[int(m[4])] = path
            elif re.fullmatch(f"catalog/{place}/part/[0-9a-f]{{64}}\\.json|data/[^/]+/day=[^/]+/[^/]+\\.parquet", key, re.ASCII):
                self.compacted[key] = path
            elif not re.fullmatch(r"export/[^/]+/.+|sql/rows/tenant=[^/]+/line\.[^/]+\.\d{5,10}\.symlink|sql/lines/[^/]+/[^/]+/\d{5,10}\.json|sql/probe\.json", key, re.ASCII):
                self.looks.append(f"stray: {key}: no document lists it and it continues no line")
        if not self.lines and not (self.folder / "ledgerlake.json").exists():
            raise OSError(f"{self.folder}: no archive there")

    def line(self, m):
        want_key = m[1], m[2], int(m[3])
        return self.lines.setdefault(want_key, Line(self, *want_key))

    def read_root(self):
        self.id = self.sum = None
        path = self.folder / "ledgerlake.json"
        want(path.exists(), "ledgerlake.json is missing")
        body = path.read_bytes()
        root = with_where("ledgerlake.json", lambda: read(load(body), format=exactly(PLAIN), archiveId=text, createdAt=moment, graceSeconds=count))
        want(re.fullmatch("[0-7][0-9A-HJKMNP-TV-Z]{25}", root.archiveId) and root.graceSeconds > 0, "ledgerlake.json: archiveId or graceSeconds")
        self.id, self.sum = root.archiveId, sha(body)

    def anchor(self, path):
        body, _ = with_where(self.key(path), parse_note, path.read_bytes())
        return with_where(self.key(path), lambda: ANCHOR(note_document(body, "ledgerlake anchor v1"))), body

    def listed(self, f, needed):
        """The bytes of what a catalog lists, which must have its hash; None where it is gone, as it may be unless needed."""
        self.placed.add(f.key)
        want(f.key in self.compacted or not needed, f"{f.key} is missing")
        if f.key not in self.compacted:
            return None
        raw = self.compacted[f.key].read_bytes()
        want((len(raw), sha(raw)) == (f.bytes, f.sha256), f"{f.key}: its SHA-256 is not that of the catalog: it was changed")
        return raw

    def learn_keys(self):
        """Which keys are good does not depend on any order: what a good key says is taken in until nothing is new."""
        anchors = [path for line in self.lines.values() for path in line.anchors.values()]
        new = True
        while new:
            new = False
            for path in self.key_notes + anchors:
                if path not in self.good and self.attempt_once(self.learn, path):
                    self.good.add(path)
                    new = True
        for path in self.key_notes + anchors:
            self.attempt(self.weigh_note, path)
        for path in (path for line in self.lines.values() for path in line.catalogs.values()):
            self.attempt(self.weigh_catalog, path)

    def attempt_once(self, do, *args):
        try:
            return do(*args)
        except (Fault, KeyError, TypeError):
            return False  # named when the note is weighed, or its line is checked

    def learn(self, path):
        """Takes in the keys that a note of a good key makes good; reports whether it is one."""
        body, state, doc = self.judge(path)
        if state != "good":
            return False
        self.ring.take(doc)
        return True

    def judge(self, path):
        if path in self.key_notes:
            raw = path.read_bytes()
            doc = key_note(parse_note(raw)[0])
            want(path.stem == sha(doc.vkey.encode()).hex() and doc.archiveId == self.id, "a key note of another key or archive")
            return *self.ring.judge(raw, "anchor"), doc
        doc, body = self.anchor(path)
        return *self.ring.judge(path.read_bytes(), "anchor", doc.time), doc

    def weigh_note(self, path):
        _, state, doc = with_where(self.key(path), self.judge, path)
        self.time = max(self.time, getattr(doc, "time", 0))
        self.weigh(state, self.key(path))

    def weigh_catalog(self, path):
        doc, _ = self.catalog(path)
        _, state = with_where(self.key(path), self.ring.judge, path.read_bytes(), "catalog", doc.time)
        self.weigh(state, self.key(path))

    def catalog(self, path):
        body, _ = with_where(self.key(path), parse_note, path.read_bytes())
        return with_where(self.key(path), lambda: CATALOG(note_document(body, "ledgerlake catalog v1"))), body

    def weigh(self, state, name):
        """A note that is not signed by a good key, in an archive where some note is."""
        if self.good and state == "unknown":
            raise Fault(f"{name}: signed, but by no key that is good")
        if self.good and state == "unsigned":
            self.unsigned.append(name)

    def check_line(self, line):
        for path in line.anchors.values():
            doc, _ = self.anchor(path)
            for s in doc.segments:
                want(s.ordinal <= doc.ordinal and s.ordinal not in line.entries, f"{self.key(path)}: segment {s.ordinal} is listed twice, or too early")
                s.anchor = doc.number
                line.entries[s.ordinal] = s
        line.check_compacted() if line.catalogs else line.check()

    def log_key(self, log, tenant, meta):
        named = SimpleNamespace(tenant=tenant, topic=meta.topic, topicId=meta.topicId, partition=meta.partition)
        key = self.key_of_log(log.named, named) if log.scheme == KEYED else None
        if log.scheme == KEYED and not key:
            self.unkeyed.add((tenant, meta.topic, meta.partition))
        return key

    def control_row(self, row, anchored):
        """Notes orders of erasure that no receipt answers. Rows that no anchor covers do not count yet."""
        if not anchored or row["kind"] not in CONTROL:
            return
        doc = load(bytes_of(row["context"] or "{}"), Decimal)
        if row["kind"] == "redaction":
            self.open_orders[row["record_id"]] = row["archived_at"]
        elif row["kind"] in ("redaction-cancelled", "erasure-done"):
            self.open_orders.pop(doc.get("redactionId"), None)

    def conclude(self):
        lines = self.lines.values()
        add = lambda to, holds, line: to.append(line) if holds else None
        add(self.less, not any(line.segments for line in lines), "there is no segment: nothing could be verified")
        add(self.less, not self.ring.keys and not self.allow_unsigned, "no key was given: nothing shows who wrote the archive")
        for line in lines:
            signed = any(path in self.good for path in line.anchors.values())
            add(self.less, self.ring.keys and line.segments and not signed and not self.allow_unsigned, f"{line.name}: no anchor by a good key")
            add(self.less, line.catalogs, f"{line.name}: it was compacted: this program does not check that what was erased or dropped was ordered")
            add(self.looks, line.gaps_lost, f"gap: {line.name}: Kafka had lost {line.gaps_lost} offsets before they were archived")
            add(self.looks, line.resets, f"chain reset: {line.name}: {line.resets} logs begun anew, {line.voided} segments void")
            for tenant, log in sorted(line.logs.items()):
                add(self.notes, log.size > log.anchored, f"{line.name}: {log.size - log.anchored} rows of {tenant} not anchored yet")
        self.less += [f"{name}: without a signature" for name in self.unsigned if not self.allow_unsigned]
        self.less += [f"{topic}/{partition}: {tenant}: a keyed log without its key: row_hash is not checked" for tenant, topic, partition in sorted(self.unkeyed)]
        late = [id for id, at in self.open_orders.items() if at < self.time - 30 * 86400 * 1_000_000]
        self.looks += [f"redaction {id}: no receipt in 30 days" for id in late]

    def report(self):
        for line in self.lines.values():
            for tenant, log in sorted(line.logs.items()):
                print(f"log {line.name} {escape(tenant)}: {log.size} rows, head {log.head.hex()}, root {tree_root(log.frontier).hex()}")
        return verdict(self.faults, self.less, self.looks, self.notes, f"{sum(l.rows for l in self.lines.values())} rows in {sum(len(l.segments) for l in self.lines.values())} segments")
