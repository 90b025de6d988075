"""A producer of audit records in one file: copy it into your service.

Turn.record returns at once, does no I/O and raises nothing: an audit must not
be able to fail the work that it is about. Records wait in memory for Kafka, at
most 10,000 of them, or 64 MB; one that finds no room, or that Kafka refuses, is
dropped, and a record of kind queue-dropped says of its tenant how many were so
far.
"""

import itertools
import json
import logging
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from functools import partial

from confluent_kafka import Producer
from ulid import ULID  # ids of one millisecond are in order, too

log = logging.getLogger(__name__)


class Audit:
    """Sends records to one topic. May be used by any number of threads."""

    def __init__(self, brokers, topic, **settings):
        self._topic = topic
        self._id, self._notices = str(ULID()), itertools.count()  # of this producer: notices belong to it
        self._lock = threading.Lock()
        self._dropped, self._unsaid = Counter(), set()  # by tenant, since the start
        self._producer = Producer(
            {
                "bootstrap.servers": brokers,
                "enable.idempotence": True,  # a request that is sent again makes no second record
                "partitioner": "murmur2_random",  # by key as Kafka's own clients do it; the default here is another
                "linger.ms": 20,
                "compression.type": "zstd",
                "queue.buffering.max.messages": 10_000,
                "queue.buffering.max.kbytes": 64_000,
                "message.timeout.ms": 0,  # tried until close
                **settings,
            },
            logger=log,
        )
        self._ended = threading.Event()
        self._poller = threading.Thread(target=self._poll, daemon=True)
        self._poller.start()

    def turn(self, session_id, turn_id, principal, first_seq=0, headers=None):
        """A turn, which serves one message of a user.

        principal has tenantId, userId (or None), actorKind and sessionAuthMethod. No id of a tenant, session or turn
        may name a person; userId may. first_seq is how many records the turn has already, where another process
        began it. headers may have traceparent and ledgerlake-retain-prompts.
        """
        return Turn(self, session_id, turn_id, principal, first_seq, headers or {})

    def close(self, within=2.0):
        """Waits until Kafka has all records, for that many seconds at most, and returns how many it has not."""
        end = time.monotonic() + within
        self._producer.flush(within)
        self._ended.set()
        self._poller.join()
        self._say()
        return self._producer.flush(max(0, end - time.monotonic()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, tenant, kind, record, headers):
        try:
            # No NaN, which is not JSON; half of a surrogate pair, which is no Unicode, becomes a question mark.
            value = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(errors="replace")
            headers = list({**headers, "tenant": tenant, "ledgerlake-kind": kind}.items())
            # The tenant as the key: all of its records go to one partition, in order.
            self._producer.produce(self._topic, value, tenant, headers=headers, on_delivery=partial(self._delivered, tenant, kind))
        except BufferError:  # no room
            self._drop(tenant, kind)
        except Exception:  # a value that JSON cannot say
            log.exception("an audit record cannot be sent")
            self._drop(tenant, kind)

    def _delivered(self, tenant, kind, error, _message):
        if error is not None:
            log.error("Kafka refused an audit record: %s", error)
            if kind != "queue-dropped":  # a notice that is refused is not tried again
                self._drop(tenant, kind)

    def _drop(self, tenant, kind):
        with self._lock:
            self._dropped[tenant] += kind != "queue-dropped"
            self._unsaid.add(tenant)

    def _say(self):
        with self._lock:
            counts = {tenant: self._dropped[tenant] for tenant in self._unsaid}
            self._unsaid.clear()
        for tenant, count in counts.items():
            notice = {"kind": "queue-dropped", "tenantId": tenant, "recordId": str(ULID()), "traceId": self._id, "seq": next(self._notices)}
            detail = {"reason": "queue-full, or refused", "count": count}
            self.send(tenant, "queue-dropped", {**notice, "ts": now(), "actor": "system", "resultDetail": detail}, {})

    def _poll(self):
        while not self._ended.wait(0.1):
            self._producer.poll(0)  # calls _delivered
            self._say()


class Turn:
    def __init__(self, audit, session_id, turn_id, principal, first_seq, headers):
        self._audit, self._principal, self._headers = audit, principal, headers
        self._ids = {"sessionId": session_id, "turnId": turn_id}
        self._seq = itertools.count(first_seq)

    def record(self, stage_id, call, outcome, **members):
        """One call of a model or a tool. Slots (fallbackStep, tokenCost, …) and any other members are kept as they are.

        Session, turn, stage and seqWithinTurn are the record's coordinates: sent again, it is no second row.
        """
        record = {
            "auditRecordVersion": 19,
            "recordId": str(ULID()),
            **self._ids,
            "stageId": stage_id,
            "seqWithinTurn": next(self._seq),
            "createdAt": now(),
            "principal": self._principal,
            "call": call,
            "outcome": outcome,
            **members,
        }
        self._audit.send(self._principal["tenantId"], "call", record, self._headers)


def now():
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
