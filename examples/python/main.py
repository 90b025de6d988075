"""One turn of an agent: a plan, a tool that a first model fails at, an answer.

    python main.py [TURN]     KAFKA_BROKERS (127.0.0.1:9092), AUDIT_TOPIC (audit.calls)
"""

import os
import signal
import sys

from ulid import ULID

from audit import Audit

signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that close is called then, too

# A turn is sent once: a second one of this id would be a repeat, or a conflict if it said something else.
turn_id = sys.argv[1] if len(sys.argv) > 1 else f"turn-{ULID()}"
audit = Audit(os.environ.get("KAFKA_BROKERS", "127.0.0.1:9092"), os.environ.get("AUDIT_TOPIC", "audit.calls"))
try:
    turn = audit.turn(
        "session-python",
        turn_id,
        {"tenantId": "acme", "userId": "user-1002", "actorKind": "user", "sessionAuthMethod": "api-key"},
        headers={"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
    )
    turn.record(
        "anchor-plan",
        {"callClass": "planner", "provider": "openai", "model": "gpt-5", "transport": "native"},
        {"status": "ok", "latencyMs": 912.5, "finishReason": "stop", "httpStatus": 200},
        decision={"requestedModel": None, "selectedReason": "family-lock", "rungOrdinal": 0, "fallbackChain": []},
        inputTokens=1400,
        outputTokens=90,
        planGeneration={"steps": ["look the order up", "answer"]},
    )
    turn.record(
        "tool-loop",
        {"callClass": "worker", "provider": "openai", "model": "gpt-5", "transport": "native"},
        {"status": "timeout", "latencyMs": 30000, "finishReason": None, "httpStatus": None},
        toolName="orders.lookup",
        decision={"requestedModel": "gpt-5", "selectedReason": "matrix-pick", "rungOrdinal": 0, "fallbackChain": []},
    )
    turn.record(
        "tool-loop",
        {"callClass": "worker", "provider": "openai", "model": "gpt-5-mini", "transport": "native"},
        {"status": "ok", "latencyMs": 380, "finishReason": "tool_calls", "httpStatus": 200},
        toolName="orders.lookup",
        decision={"requestedModel": "gpt-5", "selectedReason": "fallback-rung", "rungOrdinal": 1, "fallbackChain": ["gpt-5"]},
        fallbackStep={"originalModel": "gpt-5", "attemptModel": "gpt-5-mini", "attemptIndex": 1, "reason": "timeout", "inFamily": True},
    )
    turn.record(
        "synthesize",
        {"callClass": "writer", "provider": "openai", "model": "gpt-5", "transport": "native"},
        {"status": "ok", "latencyMs": 1480, "finishReason": "stop", "httpStatus": 200},
        tokenCost={"inputTokens": 2300, "outputTokens": 280, "microUsd": 5675},
    )
    # The end of a turn: what has come is archived at once.
    turn.record("post-turn", {"callClass": "housekeeping", "provider": "openai", "model": "unresolved"}, {"status": "ok", "latencyMs": 2})
finally:
    left = audit.close(10)
print(f"Kafka has 5 records of {turn_id}" if left == 0 else f"{left} records did not reach Kafka")
sys.exit(0 if left == 0 else 1)
