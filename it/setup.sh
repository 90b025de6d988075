#!/bin/sh
# Fetches and builds the real parts that the integration tests run against, into
# it/.build: an Apache Kafka broker, an S3 server, a VictoriaLogs, a NATS server,
# two Pythons with DuckDB, what checks the formats of SIEMs, axe-core; and kcat,
# rsyslog and Chromium, which come from the system.
#
#   it/setup.sh         all but SeaweedFS
#   it/setup.sh spark   that too: a Python with Apache Spark, 455 MB
#   it/setup.sh weed    that too: a second S3 server, which takes some ten minutes of CPU time to build
#
# Each part is made once, and again only when its pin changes. Nothing outside
# it/.build is written but the usual caches (~/.m2, Go's, pip's, npm's), and what
# comes from the system where it is not installed and we are root.
set -eu
cd "$(dirname "$0")"
build=$PWD/.build
mkdir -p "$build/bin"

say() { printf 'it: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
need() { command -v "$1" >/dev/null 2>&1 || die "$1 is missing: $2"; }

# quietly NAME COMMAND...: shows what the command printed only if it fails.
quietly() {
	name=$1
	shift
	"$@" >"$build/$name.log" 2>&1 || { cat "$build/$name.log" >&2; die "$name could not be made"; }
}

# once NAME STAMP COMMAND...: runs COMMAND unless it ran before with this stamp.
once() {
	stamped=$build/$1.stamp stamp=$2 part=$1
	shift 2
	[ "$(cat "$stamped" 2>/dev/null)" = "$stamp" ] && return 0
	say "making $part"
	rm -f "$stamped"
	quietly "$part" "$@"
	printf '%s' "$stamp" >"$stamped"
}

make_kafka() {
	rm -rf "$build/kafka"
	mvn -q -B -f kafka/pom.xml dependency:copy-dependencies -DoutputDirectory="$build/kafka/lib"
}

# Trino's parser: what is printed for Trino is held against it.
make_trino() {
	rm -rf "$build/trino"
	mvn -q -B -f trino/pom.xml dependency:copy-dependencies -DoutputDirectory="$build/trino/lib"
}

# A module of its own by way of pkg@version: a hundred modules stay out of ours.
make_versitygw() {
	GOWORK=off GOFLAGS= GOBIN="$build/bin" go install "github.com/versity/versitygw/cmd/versitygw@$1"
}

# VictoriaLogs: what events are delivered to, and read back from.
make_victoria() {
	GOWORK=off GOFLAGS= GOBIN="$build/bin" go install "github.com/VictoriaMetrics/VictoriaLogs/app/victoria-logs@$1"
}

make_nats() {
	GOWORK=off GOFLAGS= GOBIN="$build/bin" go install "github.com/nats-io/nats-server/v2@$1"
}

make_weed() {
	GOWORK=off GOFLAGS= go -C weed build -o "$build/bin/weed" github.com/seaweedfs/seaweedfs/weed
}

make_python() {
	rm -rf "${build:?}/$1"
	python3 -m venv "$build/$1"
	"$build/$1/bin/pip" install -q --disable-pip-version-check --only-binary :all: -r "python/$2"
}

# Checkers of the formats of SIEMs. cefp comes as source: it is one file.
make_schemas() {
	rm -rf "$build/schemas"
	python3 -m venv "$build/schemas"
	"$build/schemas/bin/pip" install -q --disable-pip-version-check -r python/schemas.txt
}

# The fields of the Elastic Common Schema, without what the package builds with.
make_ecs() {
	rm -rf "$build/ecs"
	mkdir -p "$build/ecs"
	npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$build/ecs" "@elastic/ecs@$1"
}

# What looks for faults of accessibility in the timeline page.
make_axe() {
	rm -rf "$build/axe"
	npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$build/axe" "axe-core@$1"
}

# Spark comes as source: it is Python and jars.
make_spark() {
	rm -rf "$build/spark"
	python3 -m venv "$build/spark"
	"$build/spark/bin/pip" install -q --disable-pip-version-check -r python/spark.txt
}

install_system() {
	DEBIAN_FRONTEND=noninteractive
	export DEBIAN_FRONTEND
	apt-get install -y -q "$@" || { apt-get update -q && apt-get install -y -q "$@"; }
}

# system NAME PACKAGE...: installs what is missing.
system() {
	name=$1
	shift
	{ [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; } ||
		die "$name is missing: install it (Debian: apt-get install $*), or run this as root"
	say "installing $name"
	quietly "$name" install_system "$@"
}

need go "install the version that go.mod names"
need java "Kafka needs Java 17 or later"
need mvn "Kafka comes from Maven Central"
need python3 "DuckDB and a Kafka client come from PyPI"
need npm "the fields of the Elastic Common Schema come from npm"

command -v kcat >/dev/null 2>&1 || system kcat kcat
{ [ -x /usr/sbin/rsyslogd ] && ls /usr/lib/*/rsyslog/lmnsd_ossl.so >/dev/null 2>&1; } || system rsyslog rsyslog rsyslog-openssl
command -v chromium >/dev/null 2>&1 || [ -n "${LEDGERLAKE_IT_CHROMIUM-}" ] || system chromium chromium
once kafka "$(cksum <kafka/pom.xml)" make_kafka
once trino "$(cksum <trino/pom.xml)" make_trino
once versitygw "v1.8.0 $(go env GOVERSION)" make_versitygw v1.8.0
once victoria "v1.52.1 $(go env GOVERSION)" make_victoria v1.52.1
once nats "v2.15.3 $(go env GOVERSION)" make_nats v2.15.3
once py15 "$PWD $(python3 --version) $(cksum <python/duckdb15.txt)" make_python py15 duckdb15.txt
once py20 "$PWD $(python3 --version) $(cksum <python/duckdb20.txt)" make_python py20 duckdb20.txt
once schemas "$PWD $(python3 --version) $(cksum <python/schemas.txt)" make_schemas
once ecs 9.4.0 make_ecs 9.4.0
once axe 4.14.1 make_axe 4.14.1
[ "${1-}" != spark ] || once spark "$PWD $(python3 --version) $(cksum <python/spark.txt)" make_spark
[ "${1-}" != weed ] || once weed "$(cksum <weed/go.sum) $(go env GOVERSION)" make_weed
