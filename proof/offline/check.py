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
import zipfile
import zlib

sys.dont_write_bytecode = True  # a pack in a folder stays as it is

from core import Fault, Ring, escape, log_key, strict_base64, verdict, want  # noqa: E402
from proofs import Proof  # noqa: E402


def check_archive(args):
    from archive import Archive  # which takes pyarrow

    archive = Archive(args.target, Ring(vkeys(args)), args.allow_unsigned, keys_of_logs(args))
    archive.check()
    return archive.report()


def check_bundle(args):
    return check_proof(args, lambda proof: proof.check_bundle(pathlib.Path(args.target).read_bytes()))


def check_pack(args):
    return check_proof(args, lambda proof: proof.check_pack(pack_files(pathlib.Path(args.target))))


def pack_files(path):
    """{name: bytes} of a zip or a folder."""
    if path.is_dir():
        return {p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*") if p.is_file()}
    try:
        raw = path.read_bytes()
        size, at = (int.from_bytes(raw[-k:][:4], "little") for k in (10, 6))
        want(raw[:4] == b"PK\3\4" and raw[-22:-18] == b"PK\5\6" and raw[-2:] == b"\0\0" and at + size + 22 == len(raw),
             "it is not one zip and nothing else: another program may see other files in it")
        with zipfile.ZipFile(path) as pack:
            names = pack.namelist()
            want(len(set(names)) == len(names), "a file stands twice in the zip")
            return {name: pack.read(name) for name in names}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error) as error:
        raise Fault(f"not a zip that can be read: {error}") from None


def check_proof(args, check):
    proof, faults = Proof(Ring(vkeys(args)), keys_of_logs(args)), []
    try:
        check(proof)
    except Fault as fault:
        faults.append(str(fault))
    except (KeyError, IndexError, TypeError, AttributeError, UnicodeError) as error:
        faults.append(f"malformed: {error!r}")
    less = [] if args.allow_unsigned else proof.less
    return verdict(faults, less, proof.looks, proof.notes, f"{proof.rows} rows are shown")


def vkeys(args):
    """The keys that --key names: a vkey, or a file with one on each line."""
    for value in args.key:
        lines = pathlib.Path(value).read_text().splitlines() if pathlib.Path(value).is_file() else [value]
        yield from (line.strip() for line in lines if line.strip() and not line.startswith("#"))


def keys_of_logs(args):
    """What gives the key of a keyed log: its file in a folder, or what a master key makes."""
    master = read_key(pathlib.Path(args.master_key)) if args.master_key else None

    def key(named, log):
        file = f"{escape(log.topic)}/{escape(log.topicId)}/{log.partition:05}/{escape(log.tenant)}"
        if args.log_key_dir and (pathlib.Path(args.log_key_dir) / file).exists():
            return read_key(pathlib.Path(args.log_key_dir) / file)
        return log_key(master, named) if master else None

    return key


def read_key(path):
    """A key of 32 bytes or more, in hex or base64."""
    line = path.read_text().strip()
    bare = line.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        key = bytes.fromhex(line) if re.fullmatch("([0-9a-fA-F]{2})+", line) else strict_base64(bare + "=" * (-len(bare) % 4))
    except Fault as fault:
        raise OSError(f"{path}: neither hex nor base64: {fault}") from None
    if len(key) < 32:
        raise OSError(f"{path}: a key of {len(key)} bytes, want 32 or more")
    return key


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["archive", "bundle", "pack"])
    parser.add_argument("target")
    parser.add_argument("--key", action="append", default=[], metavar="VKEY|FILE", help="a verifier key that you got elsewhere than from the archive, or a file with one on each line; may stand several times")
    parser.add_argument("--allow-unsigned", action="store_true", help="ask for no more than that the archive is consistent in itself")
    parser.add_argument("--master-key", metavar="FILE", help="the master key of keyed logs")
    parser.add_argument("--log-key-dir", metavar="FOLDER", help="a folder with a key per log, TOPIC/TOPICID/PARTITION/TENANT")
    args = parser.parse_args()
    try:
        return {"archive": check_archive, "bundle": check_bundle, "pack": check_pack}[args.what](args)
    except (OSError, Fault) as error:  # a Fault here is one of the arguments
        print(f"check.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
