#!/usr/bin/env bash
# Runs the commands of docs/verify-without-ledgerlake.md, as they stand there, on
# the archive that make demo left, and the two programs on broken copies of it,
# where they must fail.
#
# It takes Python with pyarrow and DuckDB's own program, from it/.build (it/setup.sh).
set -euo pipefail
cd "$(dirname "$0")/.."

page=docs/verify-without-ledgerlake.md archive=data/demo/s3/audit
bin=$PWD/it/.build/py15/bin
vkey=data/demo/anchors.vkey
work=$(mktemp -d)
trap 'rm -rf "$work" data/check' EXIT

say() { printf 'offline: %s\n' "$*"; }
die() { say "$*"; exit 1; }

# The page makes a venv; here one that has pyarrow is borrowed.
mkdir -p data/check
ln -sfn "$bin" data/check/bin

# commands prints the page's commands, without those that make the venv.
commands() { awk '/^```sh$/ { on = 1; text = ""; next } /^```$/ && on { on = 0; if (text !~ /venv/) printf "%s%c", text, 0; next } on { text = text $0 "\n" }' "$page"; }

ran=0
while IFS= read -r -d '' command; do
	say "$command"
	PATH=$bin:$PATH bash -euo pipefail -c "$command" || [ $? = 4 ] || die "fails on a good archive"
	ran=$((ran + 1))
done < <(commands)
[ "$ran" -ge 3 ] || die "$page has $ran commands"

check_py() { "$bin/python" -B proof/offline/check.py archive "$1" --key "$vkey" >"$work/py" 2>&1; }
check_sql() { "$bin/duckdb" -bail -c "SET VARIABLE archive = '$1'" -f proof/offline/check.sql >"$work/sql" 2>&1; }

# one_line copies the archive with one of its lines, to $copy.
one_line() {
	copy=$work/copy
	rm -rf "$copy"
	mkdir "$copy"
	cp -r "$archive"/{ledgerlake.json,anchor,log} "$copy"
	rm -r "$copy"/{anchor,log}/*/*/0000[023]
}

# broken NAME COMMAND: lets a command change a copy, which neither program may
# then accept.
broken() {
	one_line
	"${@:2}"
	code=0
	check_py "$copy" || code=$?
	[ "$code" = 1 ] || { cat "$work/py"; die "$1: check.py ends with $code, want 1"; }
	! check_sql "$copy" || { cat "$work/sql"; die "$1: check.sql finds nothing"; }
	say "both see: $1"
}

segment() { find "$copy/log" -name '*.parquet' | LC_ALL=C sort | sed -n "$1p"; }
anchor() { find "$copy/anchor" -name '*.note' | LC_ALL=C sort | sed -n "$1p"; }
flip() { "$bin/python" -c 'import sys; p, at = sys.argv[1], int(sys.argv[2]); b = bytearray(open(p, "rb").read()); b[at] ^= 16; open(p, "wb").write(b)' "$@"; }

flipped() { flip "$(segment 3)" 1000; }
gone() { rm "$(segment 4)"; }
cut() { truncate -s -20 "$(segment 2)"; }
longer() { printf more >>"$(segment 5)"; }
swapped() { mv "$(segment 1)" "$work/one" && mv "$(segment 2)" "$(dirname "$(segment 1)")/00000000000000000000.parquet" && mv "$work/one" "$(dirname "$(segment 1)")/00000000000000000001.parquet"; }
said() { sed -i '2s/"rows":[0-9]/"rows":9/' "$(anchor 1)"; }
renamed() { sed -i 's/"graceSeconds":3600/"graceSeconds":3601/' "$copy/ledgerlake.json"; }

one_line
check_py "$copy" || [ $? = 4 ] || { cat "$work/py"; die "check.py does not accept the copy"; }
check_sql "$copy" || { cat "$work/sql"; die "check.sql does not accept the copy"; }
broken "one bit of a segment" flipped
broken "a segment that is gone" gone
broken "a segment cut short" cut
broken "bytes behind a segment" longer
broken "two segments swapped" swapped
broken "a number in an anchor" said
broken "a setting in ledgerlake.json" renamed
