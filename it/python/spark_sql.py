"""Runs SQL in Apache Spark for a test: statements, each ended by a NUL, come on stdin.

The answer is a line of JSON: an array of the rows of each statement that begins with a comment and gives some. A cell is
null or text.
"""

import json
import os
import sys
import time

os.environ["TZ"] = "UTC"
time.tzset()

from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.log.level", "ERROR")
    .getOrCreate()
)
answers = []
for statement in sys.stdin.buffer.read().decode().split("\0"):
    if statement.strip():
        frame = spark.sql(statement)
        if frame.columns:
            answers.append([[None if v is None else str(v) for v in row] for row in frame.collect()])
print(json.dumps(answers[-int(sys.argv[1]):]))
