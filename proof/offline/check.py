#!/usr/bin/env python3
"""Checks a ledgerlake archive, proof bundle or evidence pack without ledgerlake.

    check.py archive FOLDER      --key VKEY [--key VKEY ...] [--master-key FILE] [--log-key-dir FOLDER]
    check.py bundle  FILE        --key VKEY [...]
    check.py pack    ZIP|FOLDER  --key VKEY [...]

It takes Python 3.9. An archive takes pyarrow too, which only decodes Parquet pages; what can be recomputed is recomputed
here. Exit codes (docs/format.md, 7.9): 0 proved, 1 tampered or damaged, 2 could not run, 3 nothing or less than asked
for could be verified, 4 proved, with something to look at.

Read core.py first (hashes, signatures, documents), then layout.py and archive.py, or proofs.py.
"""

import argparse
import pathlib
import re
import sys

from core import Fault, Ring, escape, log_key, strict_base64, want


def check_archive(args):
    from archive import Archive  # which takes pyarrow

    archive = Archive(args.target, Ring(args.key), args.allow_unsigned, keys_of_logs(args))
    archive.check()
    return archive.report()


def keys_of_logs(args):
    """What gives the key of a keyed log: its file in a folder, or what a master key makes."""
    master = read_key(pathlib.Path(args.master_key)) if args.master_key else None

    def key(log, tenant, segment):
        file = f"{escape(segment.topic)}/{escape(segment.topicId)}/{segment.partition:05}/{escape(tenant)}"
        if args.log_key_dir and (pathlib.Path(args.log_key_dir) / file).exists():
            return read_key(pathlib.Path(args.log_key_dir) / file)
        return log_key(master, log) if master else None

    return key


def read_key(path):
    """A key of 32 bytes or more, in hex or base64."""
    line = path.read_text().strip()
    if re.fullmatch("([0-9a-fA-F]{2})+", line):
        key = bytes.fromhex(line)
    else:
        bare = line.rstrip("=").replace("-", "+").replace("_", "/")
        key = strict_base64(bare + "=" * (-len(bare) % 4))
    want(len(key) >= 32, f"{path}: a key of {len(key)} bytes")
    return key


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["archive"])
    parser.add_argument("target")
    parser.add_argument("--key", action="append", default=[], metavar="VKEY", help="a verifier key that you got elsewhere than from the archive; may stand several times")
    parser.add_argument("--allow-unsigned", action="store_true", help="ask for no more than that the archive is consistent in itself")
    parser.add_argument("--master-key", metavar="FILE", help="the master key of keyed logs")
    parser.add_argument("--log-key-dir", metavar="FOLDER", help="a folder with a key per log, TOPIC/TOPICID/PARTITION/TENANT")
    args = parser.parse_args()
    try:
        return {"archive": check_archive}[args.what](args)
    except (OSError, Fault) as error:  # a Fault here is one of the arguments
        print(f"check.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
