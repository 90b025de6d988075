# make help lists the targets. Everything is built by go itself; tools/go.mod
# pins the linters.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
GOFLAGS_BUILD := -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$(VERSION)"
FUZZTIME ?= 10s
SEEDS ?= 300
MINUTES ?= 5
ROWS ?= 2000000

# The folders of the modules that go.work joins.
MODULES = $(shell go list -m -f '{{.Dir}}')

TOOL = $$(GOWORK=off go -C tools tool -n $(1))

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

BINARIES := bin/ledgerlake-ingest bin/ledgerlake-compact bin/ledgerlake-export bin/ledgerlake-verify bin/ledgerlake-devstack

.PHONY: build
build: $(BINARIES) ## build the binaries into bin/

# The product is built from its own go.mod, and not with what other modules of
# the workspace ask for.
bin/ledgerlake-ingest bin/ledgerlake-compact bin/ledgerlake-export bin/ledgerlake-verify: export GOWORK = off

.PHONY: FORCE
$(BINARIES): bin/ledgerlake-%: FORCE
	CGO_ENABLED=0 go build $(GOFLAGS_BUILD) -o $@ ./cmd/$*

.PHONY: test
test: ## run the tests that need Go alone, and with a C compiler those against DuckDB
	@for m in $(MODULES); do echo "go -C $$m test ./..."; go -C $$m test ./...; done

.PHONY: vet
vet: ## run go vet
	@for m in $(MODULES); do go -C $$m vet -tags it ./...; done

.PHONY: lint
lint: ## run staticcheck (staticcheck.conf) and see that gofumpt would change nothing
	@staticcheck=$(call TOOL,staticcheck); for m in $(MODULES); do (cd $$m && $$staticcheck -tags it ./...); done
	@diff=$$($(call TOOL,gofumpt) -l $$(git ls-files '*.go')); test -z "$$diff" || { echo "make fmt would change: $$diff"; exit 1; }

.PHONY: fmt
fmt: ## format the code with gofumpt
	@$(call TOOL,gofumpt) -w $$(git ls-files '*.go')

.PHONY: sim
sim: ## run the engine in SEEDS (300) simulated worlds, or SEED alone with its trace (docs/simulation.md)
	@go run ./pipeline/sim/run $(if $(SEED),-seed $(SEED),-seeds $(SEEDS))

.PHONY: sim-variants
sim-variants: ## require that broken variants of the engine are caught by the simulation; THIRD=1, 2 or 3: a third of them
	@go run ./pipeline/sim/run -variants $(if $(THIRD),-third $(THIRD))

.PHONY: it
it: ## run the tests against Apache Kafka and a separate S3 server
	it/run.sh

.PHONY: torture
torture: ## kill, stop, cut and fill real components under load, for MINUTES (5) (docs/torture.md)
	it/run.sh torture -minutes $(MINUTES)

.PHONY: torture-weed
torture-weed: ## the same on SeaweedFS, which takes some ten minutes of CPU time to build
	it/run.sh torture -minutes $(MINUTES) -store seaweedfs

.PHONY: trial
trial: ## compaction, erasures, holds, kills and readers at once on real components, then every byte; ROWS, ERASURES, KILLS, GRACE, SEED (docs/trial.md)
	it/run.sh trial $(if $(filter command line environment,$(origin ROWS)),-rows $(ROWS)) $(if $(ERASURES),-erasures $(ERASURES)) $(if $(KILLS),-kills $(KILLS)) $(if $(GRACE),-grace $(GRACE)) $(if $(SEED),-seed $(SEED))

.PHONY: demo
demo: build ## see all of it in half a minute: produce, ingest, verify, flip a byte
	bin/ledgerlake-devstack demo

.PHONY: bench
bench: build ## measure decode, stamp, encode, and the whole ingest
	go test -run '^$$' -bench . -benchmem ./audit ./chain ./redact ./parquet
	bin/ledgerlake-devstack bench

.PHONY: bench-verify
bench-verify: ## measure verify on ROWS (2,000,000) rows, beside the SQL of proof/offline in DuckDB on the same files
	it/run.sh bench-verify -rows $(ROWS)

.PHONY: bench-anchors
bench-anchors: ## measure what share of the CPU anchors take at full load
	@mkdir -p bin
	go test ./pipeline -run '^$$' -bench BenchmarkAnchors -benchtime 400000x -cpuprofile bin/anchors.prof -o bin/anchors.test
	go tool pprof -top -cum -ignore recordsOf bin/anchors.test bin/anchors.prof | grep -E 'samples|flyAnchor|landAnchor|settleAnchor'

.PHONY: bench-compact
bench-compact: ## measure compact on ROWS (1,000,000) rows in small segments, beside DuckDB's COPY of the same files
	it/run.sh bench-compact -rows $(if $(filter command line environment,$(origin ROWS)),$(ROWS),1000000)

.PHONY: bench-lookup
bench-lookup: ## measure GETs and bytes of looking up turns, records, sessions and people on ROWS (5,000,000) rows
	it/run.sh bench-lookup -rows $(if $(filter command line environment,$(origin ROWS)),$(ROWS),5000000)

.PHONY: bench-all
bench-all: ## measure everything, each number beside a floor or a peer, in one table (docs/benchmarks.md); ROWS (200,000), SHORT=1 a tenth of it, WRITE=1 puts the table into the page
	it/run.sh bench-all $(if $(filter command line environment,$(origin ROWS)),-rows $(ROWS)) $(if $(SHORT),-short) $(if $(WRITE),-write docs/benchmarks.md)

.PHONY: stream-trial
stream-trial: ## an exporter that is killed streams to VictoriaLogs, rsyslog, NATS and Kafka through foul weather, then every receiver is read back; ROWS, LASTS, SEED (docs/stream-trial.md)
	it/run.sh stream-trial $(if $(filter command line environment,$(origin ROWS)),-rows $(ROWS)) $(if $(LASTS),-lasts $(LASTS)) $(if $(SEED),-seed $(SEED))

.PHONY: emit-trial
emit-trial: ## calls from 8 goroutines of Go producers while the broker is away, then every record is read back: nothing lost but what is told of; EMITS (1,000,000), AWAY (20s), HOW=cut|stop|kill (docs/emit.md)
	it/run.sh emit-trial $(if $(EMITS),-emits $(EMITS)) $(if $(AWAY),-away $(AWAY)) $(if $(HOW),-how $(HOW))

.PHONY: quickstart
quickstart: ## type docs/quickstart.md as a newcomer would, and try the examples in Go, TypeScript and Python on its stack
	it/run.sh -v -run TestQuickstart

.PHONY: screenshot
screenshot: ## make the picture of the timeline page, docs/img/timeline.png (Debian: apt-get install chromium)
	go -C it/browser test -tags it -count=1 -run TestPicture -picture ../../docs/img/timeline.png .

.PHONY: it-spark
it-spark: ## Apache Spark reads what is written (PyPI's pyspark, 455 MB, Java 17)
	it/run.sh spark

.PHONY: tamper
tamper: build ## tamper with small archives in every way that is known, and require that verify sees each; SAMPLE flips that many bits of each archive instead of one in every byte (docs/tamper.md)
	@go run ./proof/tamper -verify bin/ledgerlake-verify $(if $(SAMPLE),-sample $(SAMPLE))

.PHONY: offline
offline: ## check the demo's archive by the programs that share nothing with the product, and broken copies of it (docs/verify-without-ledgerlake.md)
	it/offline.sh

# promtool without service discovery: 175 CPU seconds from an empty cache, 5 from a warm one.
bin/promtool: it/promtool/go.mod
	GOWORK=off go -C it/promtool build -tags remove_all_sd -trimpath -o ../../bin/promtool github.com/prometheus/prometheus/cmd/promtool

.PHONY: alerts
alerts: bin/promtool ## hold alert rules and dashboards against the metrics of the code, and try each alert by promtool
	GOWORK=off go -C it/promtool vet ./...
	GOWORK=off go -C it/promtool test ./...
	bin/promtool check rules --lint=all --lint-fatal deploy/prometheus/ledgerlake.rules.yaml
	bin/promtool test rules deploy/prometheus/ledgerlake.rules.test.yaml

.PHONY: dist
dist: ## make the archives of a release in dist/: reproducible, with a bill of materials and all licences; TARGETS (linux/amd64 linux/arm64 darwin/arm64 windows/amd64)
	go run ./tools/dist -version $(VERSION) -out dist $(TARGETS)

.PHONY: image
image: ## build the container image with docker, podman or buildah; GO_IMAGE and BASE_IMAGE take the place of the Dockerfile's
	GO_IMAGE="$(GO_IMAGE)" BASE_IMAGE="$(BASE_IMAGE)" tools/image.sh $(VERSION)

.PHONY: kubectl-validate
kubectl-validate: ## hold what the chart renders to against kubectl-validate itself (some three minutes of CPU time to build)
	@validate=$$(GOWORK=off go -C it/kubevalidate tool -n kubectl-validate); for v in 1.27 1.28 1.29 1.30; do \
		$$validate --version $$v --local-crds it/helm/testdata/crd it/helm/testdata/golden/*.yaml; done

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (10s)
	tools/fuzz.sh $(FUZZTIME)

.PHONY: nightly
nightly: build ## run what takes long: the race detector, the whole tamper corpus, fuzzing for 5 minutes a target, 20,000 simulated worlds, the long forms of it, an hour of torture
	go test -race ./...
	LEDGERLAKE_LONG=1 go test -count=1 ./pipeline
	go run ./proof/tamper -verify bin/ledgerlake-verify
	tools/fuzz.sh 5m
	go run ./pipeline/sim/run -seeds 20000
	go run ./pipeline/sim/run -variants
	IT_LONG=1 it/run.sh
	it/run.sh torture -minutes 60
	it/run.sh trial
	it/run.sh stream-trial
	$(MAKE) emit-trial
	$(MAKE) emit-trial HOW=kill
	$(MAKE) emit-trial HOW=stop
	$(MAKE) kubectl-validate

.PHONY: generate
generate: ## write the golden files and generated docs anew
	@for p in $$(git grep -lE 'flag\.Bool\("update"' -- '*_test.go' | xargs -n1 dirname | sort -u); do \
		echo "go -C $$p test -update"; go -C $$p test -update; done

.PHONY: tidy
tidy: ## tidy all go.mod files
	@for m in $(MODULES) tools it/promtool it/kubevalidate; do GOWORK=off go -C $$m mod tidy; done
	go work sync

.PHONY: clean
clean: ## remove what was built, and data/
	rm -rf bin dist data
