# Everything is built and tested from here; `make` alone lists the targets.
#
# Needs Go 1.26. The race detector also needs a C compiler; the tests on Apache Kafka also need Java 17 and Maven, those with other
# clients kcat and Python besides. Beyond the download of Go modules (and, for Apache Kafka, of its jars by Maven, and for Python of its
# client by pip) no target uses the network: brokers and receivers run on the loopback address.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The product is pure Go, so that one static binary runs everywhere; only the race detector turns this on again.
export CGO_ENABLED := 0

GO ?= go
GOLANGCI_LINT := $(GO) tool -modfile=tools/go.mod golangci-lint
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
FUZZTIME ?= 10s
# Directories of all Go modules of this repository.
MODULES = $(patsubst %/go.mod,%,$(shell find . -name go.mod -not -path './.*/*' | sort))
# The crash tests and the chaos suite start and kill processes of their own and take minutes, and the tests with other clients start what Go does
# not bring along: `make test-crash`, `make chaos` and `make test-clients` run them.
PACKAGES = $(shell $(GO) list ./... | grep -v -e /e2e/crash -e /e2e/chaos -e /e2e/clients)
MINUTES ?= 10
SEED := $(or $(SEED),$(shell date +%s))
# A Python with the Kafka client that e2e/clients/requirements.txt names.
CLIENTS_VENV := .cache/clients-venv

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

## Building and running

.PHONY: build
build: ## build bin/reenvio
	$(GO) build -trimpath -ldflags '-s -w -X main.release=$(VERSION)' -o bin/reenvio ./cmd/reenvio

# With job control (set -m) the program has the terminal to itself: Ctrl-C reaches it alone and it ends in good order, where make would
# call the run a failure.
.PHONY: run
run: build ## everything in one process: broker, dispatcher, sample receiver (Ctrl-C ends it)
	@set -m; bin/reenvio dev || exit

## Tests

.PHONY: test
test: ## unit and end-to-end tests on the embedded broker; Go alone, no child processes
	$(GO) test -timeout 5m $(PACKAGES)

# One P a package (-cpu 1): the timers of a synctest bubble share one race context and may fire on two threads at once, which crashes the
# detector itself (golang/go#78156). It compares by happens-before, not by what ran at the same moment, so one P finds the same races, and
# -short, with fewer seeds of what is random, nearly all of them.
.PHONY: test-race
test-race: ## the same under the race detector (needs gcc)
	@command -v "$$($(GO) env CC)" >/dev/null || { \
	  echo "make test-race: the race detector needs a C compiler, and '$$($(GO) env CC)' is not there." >&2; \
	  echo "On Debian and Ubuntu: apt-get install gcc libc6-dev" >&2; exit 1; }
	CGO_ENABLED=1 $(GO) test -race -short -cpu 1 -timeout 9m $(PACKAGES)

# REENVIO_TEST_KAFKA_VERSION=3.9.1 runs it on another version.
.PHONY: test-kafka
test-kafka: kafka-tools ## the end-to-end tests on three Apache Kafka brokers (needs Java 17 and Maven)
	REENVIO_TEST_KAFKA=apache $(GO) test -count=1 -timeout 4m $(filter %/e2e %/e2e/%,$(PACKAGES))

.PHONY: test-crash
test-crash: kafka-tools ## dispatchers killed at random moments, on the embedded broker and on Apache Kafka
	REENVIO_TEST_KAFKA=fake $(GO) test -count=1 -timeout 6m ./e2e/crash/...
	REENVIO_TEST_KAFKA=apache $(GO) test -count=1 -timeout 6m ./e2e/crash/...

# A run that fails names its seed, and keeps the dispatchers' logs. The totals of every run are a line of .cache/chaos-totals.jsonl.
.PHONY: chaos
chaos: kafka-tools ## random faults for MINUTES (default 10) on Apache Kafka, drawn from SEED (default: another each time)
	@rm -rf .cache/chaos; mkdir -p .cache/chaos
	REENVIO_TEST_MINUTES=$(MINUTES) REENVIO_TEST_SEED=$(SEED) REENVIO_TEST_TOTALS=$(CURDIR)/.cache/chaos-totals.jsonl $(GO) test -count=1 -v -timeout 0 -artifacts -outputdir $(CURDIR)/.cache/chaos ./e2e/chaos || { \
	  echo "make chaos: failed; again: make chaos MINUTES=$(MINUTES) SEED=$(SEED); logs: .cache/chaos" >&2; exit 1; }

.PHONY: mutants
mutants: ## break each promise in the code, and see that a test notices (MUTANT=name for some)
	$(GO) run ./e2e/mutants -only '$(MUTANT)'

.PHONY: test-clients
test-clients: $(CLIENTS_VENV)/ready ## events from kcat, Python and Java, on the embedded broker and on Apache Kafka
	REENVIO_TEST_KAFKA=fake $(GO) test -count=1 -timeout 4m ./e2e/clients
	REENVIO_TEST_KAFKA=apache $(GO) test -count=1 -timeout 4m ./e2e/clients

$(CLIENTS_VENV)/ready: e2e/clients/requirements.txt | client-tools
	python3 -m venv --clear $(CLIENTS_VENV)
	$(CLIENTS_VENV)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

.PHONY: client-tools
client-tools:
	@missing=0; need() { \
	  echo "make test-clients sends events with clients in C, Python and Java: $$1" >&2; \
	  echo "  On Debian and Ubuntu: apt-get install $$2" >&2; missing=1; \
	}; \
	command -v kcat >/dev/null || need "there is no 'kcat'." kcat; \
	python3 -c 'import ensurepip, venv' 2>/dev/null || need "there is no 'python3' that makes virtual environments." "python3 python3-venv"; \
	version=$$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1) || true; \
	[ "$${version:-0}" -ge 17 ] || need "there is no 'java' of version 17 or newer." openjdk-17-jdk-headless; \
	[ "$${version:-0}" -lt 17 ] || java --list-modules | grep '^jdk.compiler@' >/dev/null || need "'java' runs no source files, it has no compiler." openjdk-17-jdk-headless; \
	command -v mvn >/dev/null || need "there is no 'mvn', which gets the jars of the Java client." maven; \
	exit "$$missing"

# Brokers that REENVIO_TEST_BROKERS names are used as they are: then nothing is started and nothing is needed.
.PHONY: kafka-tools
kafka-tools:
	@[ -z "$${REENVIO_TEST_BROKERS:-}" ] || exit 0; \
	missing=0; \
	version=$$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1) || true; \
	if [ -z "$$version" ]; then \
	  echo "These tests start Apache Kafka and need Java 17 or newer: there is no 'java'." >&2; \
	  echo "  On Debian and Ubuntu: apt-get install openjdk-17-jre-headless" >&2; missing=1; \
	elif [ "$$version" -lt 17 ]; then \
	  echo "These tests start Apache Kafka and need Java 17 or newer: 'java' is version $$version." >&2; \
	  echo "  On Debian and Ubuntu: apt-get install openjdk-17-jre-headless" >&2; missing=1; \
	fi; \
	if ! command -v mvn >/dev/null; then \
	  echo "These tests get the jars of Apache Kafka through Maven: there is no 'mvn'." >&2; \
	  echo "  On Debian and Ubuntu: apt-get install maven" >&2; missing=1; \
	fi; \
	if [ "$$missing" = 1 ]; then \
	  echo "Or name brokers that run on this machine: REENVIO_TEST_BROKERS=127.0.0.1:9092" >&2; exit 1; \
	fi

.PHONY: fuzz
fuzz: ## each fuzz test for FUZZTIME (default 10s)
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -r -n 1 dirname | sort -u); do \
	  for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$dir/*_test.go); do \
	    echo "$$dir $$name"; \
	    $(GO) test "$$dir" -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME); \
	  done; \
	done

.PHONY: bench
bench: ## benchmarks: deliveries a second beside a bare consume-and-POST loop
	$(GO) test -run '^$$' -bench . -benchmem -timeout 10m ./bench/...

.PHONY: cover
cover: ## test coverage of all packages, as cover.html
	$(GO) test -timeout 10m -coverpkg=./... -coverprofile=cover.out $(PACKAGES)
	$(GO) tool cover -html=cover.out -o cover.html
	$(GO) tool cover -func=cover.out | tail -n 1

## Rules

.PHONY: lint
lint: ## import directions, faults, wording (.golangci.yaml)
	$(GOLANGCI_LINT) run ./...
	@dirs=$$(grep -rl --include='*_test.go' 'time\.Sleep(' . | xargs -r -n 1 dirname | sort -u | while read -r dir; do \
	  grep -qs '"testing/synctest"' "$$dir"/*_test.go || echo "$$dir"; done); \
	[ -z "$$dirs" ] || { \
	  echo "Tests here sleep in real time. Wait for the thing itself, or run them in a synctest bubble:" >&2; echo "$$dirs" >&2; exit 1; }

.PHONY: fmt
fmt: ## format all Go files
	$(GOLANGCI_LINT) fmt ./...

.PHONY: generate
generate: ## make what is generated anew: docs/configuration.md, deploy/completions, the output in README.md
	$(GO) run ./cmd/reenvio config reference > docs/configuration.md.new
	mv docs/configuration.md.new docs/configuration.md
	for shell in bash zsh fish; do $(GO) run ./cmd/reenvio completion $$shell > deploy/completions/reenvio.$$shell.new; \
	  mv deploy/completions/reenvio.$$shell.new deploy/completions/reenvio.$$shell; done
	$(GO) test -count=1 ./cmd/reenvio -run '^TestTheTour$$' -args -update-tour

.PHONY: verify
verify: verify-format verify-modules verify-dependencies verify-generated ## formatted, modules tidy, dependencies explained, generated files current

.PHONY: verify-format
verify-format:
	@files=$$(find . -name '*.go' -not -path './.*/*' -print0 | xargs -0 gofmt -s -l); \
	[ -z "$$files" ] || { echo "Not formatted (make fmt mends it):" >&2; echo "$$files" >&2; exit 1; }

.PHONY: verify-modules
verify-modules:
	@for dir in $(MODULES); do \
	  echo "go mod tidy -diff in $$dir"; \
	  (cd $$dir && $(GO) mod tidy -diff) || { echo "$$dir/go.mod is not tidy (go mod tidy mends it)" >&2; exit 1; }; \
	done

# Every direct dependency and every tool has its line, with a reason and a licence.
.PHONY: verify-dependencies
verify-dependencies:
	@missing=0; for dir in $(MODULES); do \
	  for module in $$(cd $$dir && { $(GO) list -m -f '{{if not (or .Main .Indirect)}}{{.Path}}{{end}}' all; $(GO) list -f '{{.Module.Path}}' tool 2>/dev/null; } | sort -u); do \
	    grep -qF "\`$$module\`" docs/dependencies.md || { echo "docs/dependencies.md does not explain $$module (of $$dir/go.mod)" >&2; missing=1; }; \
	  done; \
	done; exit "$$missing"

.PHONY: verify-generated
verify-generated:
	@$(GO) run ./cmd/reenvio config reference | diff docs/configuration.md - || { \
	  echo "docs/configuration.md is not what the code says (make generate mends it)" >&2; exit 1; }
	@for shell in bash zsh fish; do $(GO) run ./cmd/reenvio completion $$shell | diff deploy/completions/reenvio.$$shell - || { \
	  echo "deploy/completions/reenvio.$$shell is not what the code says (make generate mends it)" >&2; exit 1; }; done
	$(GO) test -count=1 ./cmd/reenvio -run '^TestTheTour$$'

.PHONY: clean
clean: ## remove what was built; keeps .reenvio, the data of make run
	rm -rf bin cover.out cover.html
