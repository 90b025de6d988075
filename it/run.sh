#!/bin/sh
# make it: everything that needs real components. Arguments go to go test.
#
#   it/run.sh                     all of it
#   it/run.sh -run TestKills -v   one test
#   IT_LONG=1 it/run.sh           200,000 records a test instead of 40,000, and longer faults
#   IT_SEED=n it/run.sh           the random choices of an earlier run, which printed n
set -eu
cd "$(dirname "$0")/.."
./it/setup.sh

bin=$PWD/it/.build/bin
for name in ingest verify devstack; do
	go build -o "$bin/ledgerlake-$name" "./cmd/$name"
done
go build -tags it -o "$bin/with" ./it/with

LEDGERLAKE_IT_PYTHON15=$PWD/it/.build/py15/bin/python
LEDGERLAKE_IT_PYTHON20=$PWD/it/.build/py20/bin/python
export LEDGERLAKE_IT_PYTHON15 LEDGERLAKE_IT_PYTHON20
"$bin/with" go test -tags it -count=1 -timeout 40m "$@" ./it/... ./parquet/... ./s3sink/...
