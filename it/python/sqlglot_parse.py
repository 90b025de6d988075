"""Parses SQL by sqlglot for a test: sqlglot_parse.py DIALECT < statements, each ended by a NUL.

The answer is a line of JSON: {"kinds": what each statement was parsed as, "literals": every string literal}. What sqlglot
only passes on, without understanding it, is a Command.
"""

import json
import logging
import sys

import sqlglot
from sqlglot import expressions

logging.disable(logging.WARNING)
kinds, literals = [], set()
for text in sys.stdin.buffer.read().decode().split("\0"):
    if not text.strip():
        continue
    parsed = sqlglot.parse(text, dialect=sys.argv[1])
    kinds.append("+".join(type(p).__name__ for p in parsed if p is not None))
    for p in parsed:
        if p is not None:
            literals.update(l.this for l in p.find_all(expressions.Literal) if l.is_string)
print(json.dumps({"kinds": kinds, "literals": sorted(literals)}))
