#!/usr/bin/env bash
# Runs every fuzz target of the module for a while: tools/fuzz.sh 10s
# Without a fault it leaves nothing behind; a fault leaves its input under
# testdata/fuzz of the package, to be committed with the repair.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${1:-10s}
git grep -lE '^func Fuzz' -- '*_test.go' | while read -r file; do
	package=./$(dirname "$file")
	grep -oE '^func Fuzz[A-Za-z0-9_]*' "$file" | cut -d' ' -f2 | while read -r target; do
		echo "fuzz $package $target for $time"
		go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$time" </dev/null | grep -vE '^fuzz: elapsed|^PASS$' || exit 1
	done
done
