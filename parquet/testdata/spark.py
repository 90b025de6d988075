"""Reads Parquet objects with Apache Spark, and prints what it found as one line of JSON.

    spark.py SPEC      SPEC is JSON: {"objects": [path, …], "looked": [column, …], "folder": path}

    {"version": Spark's, "objects": [{"rows": [row, …], "missed": {column: how many rows an equality with their own
     value did not find}, "strays": {column: how many rows are found by a value that is not there}}, …],
     "folder": {"rows": count, "tokens": exclusive or of input_tokens, "offsets": of kafka_offset}}

A row is {column: null | text | integer | [text, …]}: times are microseconds since 1970, binary values are hex.
"""

import json
import sys

from pyspark.sql import SparkSession, functions as F

with open(sys.argv[1], encoding="utf-8") as f:
    spec = json.load(f)
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.session.timeZone", "Asia/Tehran")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")


def plain(frame):
    """The frame's columns in the form of an answer."""
    columns = []
    for name, kind in frame.dtypes:
        column = F.col(name)
        if kind == "timestamp":
            column = F.unix_micros(column).alias(name)
        elif kind == "binary":
            column = F.lower(F.hex(column)).alias(name)
        columns.append(column)
    return frame.select(columns)


def read(path):
    frame = spark.read.parquet(path)
    rows = [row.asDict() for row in plain(frame).toLocalIterator()]
    missed, strays = {}, {}
    for name in spec["looked"]:
        counts = {}
        for row in rows:
            if row[name] is not None:
                counts[row[name]] = counts.get(row[name], 0) + 1
        for value, want in list(counts.items())[:2]:
            missed[name] = missed.get(name, 0) + want - frame.filter(F.col(name) == value).count()
        absent = "nobody has this" if rows and isinstance(next(iter(counts), ""), str) else -7
        strays[name] = frame.filter(F.col(name) == absent).count()
    return {"rows": rows, "missed": missed, "strays": strays}


def sums(folder):
    frame = spark.read.option("recursiveFileLookup", "true").parquet(folder)
    row = frame.agg(F.count("*"), F.bit_xor("input_tokens"), F.bit_xor("kafka_offset")).first()
    return {"rows": row[0], "tokens": row[1], "offsets": row[2]}


json.dump({"version": spark.version, "objects": [read(path) for path in spec["objects"]], "folder": sums(spec["folder"])}, sys.stdout)
