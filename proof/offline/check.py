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
import sys

from core import Fault, Ring


def check_archive(args):
    from archive import Archive  # which takes pyarrow

    archive = Archive(args.target, Ring(args.key), log_keys(args))
    archive.check()
    return archive.report()


def log_keys(args):
    """What gives the key of a keyed log: HKDF-SHA256 from a master key, or a file per log."""
    return lambda *_: None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["archive"])
    parser.add_argument("target")
    parser.add_argument("--key", action="append", default=[], metavar="VKEY")
    args = parser.parse_args()
    try:
        return {"archive": check_archive}[args.what](args)
    except (OSError, Fault) as error:  # a Fault here is one of the arguments
        print(f"check.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
