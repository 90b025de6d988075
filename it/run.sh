#!/bin/sh
# make it, it-spark, torture, trial, stream-trial, bench-all, bench-verify, bench-compact, bench-lookup, emit-trial, quickstart: everything that needs real components. Arguments go to
# go test, or with torture first to it/torture.
#
#   it/run.sh                        all tests
#   it/run.sh -run TestKills -v      one test
#   IT_LONG=1 it/run.sh              200,000 records a test instead of 40,000, and longer faults
#   IT_SEED=n it/run.sh              the random choices of an earlier run, which printed n
#   it/run.sh torture -minutes 20    real kills under load (docs/torture.md)
#   it/run.sh bench-all              every number in one table (docs/benchmarks.md)
#   it/run.sh bench-verify -rows 2000000  verify beside DuckDB on an archive of so many rows
#   it/run.sh bench-compact -rows 1000000 compact on an archive of so many rows, beside DuckDB's COPY of the same files
#   it/run.sh bench-lookup -rows 5000000  GETs and bytes of looking up turns in an archive of so many rows
#   it/run.sh spark                  Apache Spark reads what is written
#   it/run.sh trial -rows 1000000   compaction, erasures, holds and readers at once, then every byte (docs/trial.md)
#   it/run.sh stream-trial -rows 500000  rows streamed to five receivers under kills and faults (docs/stream-trial.md)
#   it/run.sh emit-trial -how kill   producers while the broker is away (docs/emit.md)
#   it/run.sh quickstart             docs/quickstart.md, typed as it stands
#   TORTURE_SEED=n it/run.sh torture the random choices of an earlier run, which printed n
set -eu
cd "$(dirname "$0")/.."

case "$*" in
*seaweedfs*) ./it/setup.sh weed ;;
spark*) ./it/setup.sh spark ;;
*) ./it/setup.sh ;;
esac

bin=$PWD/it/.build/bin
for name in ingest compact verify export devstack; do
	go build -o "$bin/ledgerlake-$name" "./cmd/$name"
done

LEDGERLAKE_IT_PYTHON15=$PWD/it/.build/py15/bin/python
LEDGERLAKE_IT_PYTHON20=$PWD/it/.build/py20/bin/python
LEDGERLAKE_IT_SCHEMAS=$PWD/it/.build/schemas/bin/python
export LEDGERLAKE_IT_PYTHON15 LEDGERLAKE_IT_PYTHON20 LEDGERLAKE_IT_SCHEMAS

if [ "${1-}" = spark ]; then
	shift
	LEDGERLAKE_IT_SPARK=$PWD/it/.build/spark/bin/python
	export LEDGERLAKE_IT_SPARK
	exec go test -tags it,spark -count=1 -timeout 20m -run 'Spark' "$@" ./parquet ./it/readers ./it/sql
fi

if [ "${1-}" = torture ]; then
	shift
	go build -tags it -o "$bin/torture" ./it/torture
	# A mount namespace of its own, where that is allowed, for a disk that can be
	# full: it is gone with the process, however that ends.
	for private in "unshare --mount" "unshare --map-root-user --mount"; do
		if $private true 2>/dev/null; then
			LEDGERLAKE_IT_PRIVATE=1 exec $private "$bin/torture" "$@"
		fi
	done
	exec "$bin/torture" "$@"
fi

if [ "${1-}" = bench-all ]; then
	shift
	go build -tags it -o "$bin/benchall" ./it/benchall
	exec "$bin/benchall" -bin "$bin" -commit "$(git describe --always --dirty)" "$@"
fi

if [ "${1-}" = bench-verify ]; then
	shift
	go build -tags it -o "$bin/benchverify" ./it/benchverify
	exec "$bin/benchverify" -bin "$bin" "$@"
fi

if [ "${1-}" = bench-compact ]; then
	shift
	go build -tags it -o "$bin/benchcompact" ./it/benchcompact
	exec "$bin/benchcompact" -bin "$bin" "$@"
fi

if [ "${1-}" = bench-lookup ]; then
	shift
	go build -tags it -o "$bin/benchlookup" ./it/benchlookup
	exec "$bin/benchlookup" -bin "$bin" "$@"
fi

if [ "${1-}" = trial ]; then
	shift
	go build -tags it -o "$bin/trial" ./it/trial
	exec "$bin/trial" "$@"
fi

if [ "${1-}" = emit-trial ]; then
	shift
	go build -tags it -o "$bin/emit" ./it/emit
	exec "$bin/emit" "$@"
fi

if [ "${1-}" = quickstart ]; then
	shift
	exec go test -tags it -count=1 -timeout 20m -v "$@" ./it/quickstart
fi

if [ "${1-}" = stream-trial ]; then
	shift
	go build -tags it -o "$bin/stream" ./it/stream
	exec "$bin/stream" "$@"
fi

go build -tags it -o "$bin/with" ./it/with
"$bin/with" go test -tags it -count=1 -timeout 40m "$@" ./it/... ./parquet/... ./s3sink/...
go -C it/browser test -tags it -count=1 -timeout 10m .
