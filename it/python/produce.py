"""Sends records to a Kafka topic with kafka-python, a client that shares no code with ours.

Arguments: broker, topic. On stdin a record a line: {"key", "value", "headers": [[name, value]], "time": ms},
all values base64 or null. Partitions are the client's own choice, by key. Ends when all are acknowledged.
"""

import base64
import json
import sys

from kafka import KafkaProducer


def raw(text):
    return None if text is None else base64.b64decode(text)


producer = KafkaProducer(bootstrap_servers=sys.argv[1], acks="all", enable_idempotence=True, linger_ms=20)
sent = []
for line in sys.stdin:
    record = json.loads(line)
    headers = [(name, raw(value)) for name, value in record["headers"]]
    sent.append(
        producer.send(
            sys.argv[2], key=raw(record["key"]), value=raw(record["value"]), headers=headers, timestamp_ms=record["time"]
        )
    )
producer.flush()
for future in sent:
    future.get(timeout=60)
producer.close()
