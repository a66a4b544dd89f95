# Targets for people and for .ci/run; `make help` lists them. GNU make 4.3, no other tool than Go, git and bash.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

export CGO_ENABLED := 0

VERSION := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
BUILD   := go build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)'

# What the tests start, as program:package. `make test` installs what is missing, where it may.
TEST_PROGRAMS := curl:curl redis-server:redis-server memcached:memcached php:php-cli python3:python3 node:nodejs tmux:tmux chromium-headless-shell:chromium-headless-shell
# The race detector needs a C compiler; nothing else here does.
RACE_PROGRAMS := gcc:gcc

# RACE=1 makes `make test` use the race detector.
RACE      ?= 0
PKG       ?= ./...
TESTFLAGS ?=
FUZZTIME  ?= 30s
# The commit with which `make verify` compares the protocol; found by .ci/breaking when empty.
AGAINST   ?=

ifeq ($(RACE),1)
GOTEST := CGO_ENABLED=1 go test -race -timeout 15m
NEEDED := $(TEST_PROGRAMS) $(RACE_PROGRAMS)
else
GOTEST := go test -timeout 10m
NEEDED := $(TEST_PROGRAMS)
endif

TOOLS := bin/tools
# buf finds the generators, which are tools as well, on the path.
BUF       := PATH="$(CURDIR)/$(TOOLS):$$PATH" buf
TEMPLATES := $(notdir $(wildcard protocol/buf.gen.*.yaml))

# The folders of plugins/, of which those with a program are built: not the SDK, not what the workers share.
PLUGIN_FOLDERS = $(patsubst %/,./%,$(wildcard plugins/*/))

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## build bin/droverd, bin/drover and bin/plugins/*
	@mkdir -p bin/plugins
	$(BUILD) -o bin/droverd ./orchestrator/cmd/droverd
	$(BUILD) -o bin/drover ./console/cmd/drover
	@plugins=$$(go list -e -f '{{if eq .Name "main"}}{{.ImportPath}}{{end}}' $(PLUGIN_FOLDERS)); \
	for old in bin/plugins/*; do grep -q "/$${old##*/}$$" <<<"$$plugins" || rm -rf "$$old"; done; \
	[ -z "$$plugins" ] || { echo "build bin/plugins:" $$(xargs -n1 basename <<<"$$plugins"); $(BUILD) -o bin/plugins/ $$plugins; }

.PHONY: run
run: build ## build, then run a manager with configs/dev.yaml (everything embedded) until Ctrl-C
	@exec bin/droverd --config configs/dev.yaml

.PHONY: demo
demo: build ## build, then show the whole path on a small site of its own; exits 0 when all went well
	@go run ./console/cmd/drover-demo

.PHONY: test
test: test-programs ## run all tests (PKG=./folder/... for some, RACE=1 for the race detector, TESTFLAGS=-v)
	$(GOTEST) $(TESTFLAGS) $(PKG)

.PHONY: race
race: ## run all tests with the race detector
	@$(MAKE) --no-print-directory test RACE=1

.PHONY: test-programs
test-programs:
	@.ci/install $(NEEDED)

.PHONY: verify
verify: verify-generated verify-proto verify-tidy verify-format verify-vet lint verify-layout ## check all but behaviour: generated code, protocol, go.mod, format, vet, lint, layout

.PHONY: verify-generated
verify-generated: $(TOOLS)/.built
	@echo "verify: generated code is current"
	@fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	cd protocol; for template in $(TEMPLATES); do $(BUF) generate --template "$$template" -o "$$fresh"; done; cd ..; \
	diff -r -x '*.proto' -x doc.go -x '*_test.go' protocol/drover "$$fresh/drover" && diff protocol/openapi/openapi.json "$$fresh/openapi/openapi.json" \
		|| { echo "the generated code differs from what the .proto files say: run \`make generate\` and commit it"; exit 1; }

.PHONY: verify-proto
verify-proto: $(TOOLS)/.built
	@echo "verify: buf lint, buf breaking"
	@cd protocol && $(BUF) lint
	@PATH="$(CURDIR)/$(TOOLS):$$PATH" .ci/breaking $(AGAINST)

.PHONY: verify-tidy
verify-tidy:
	@echo "verify: go mod tidy"
	@go mod tidy -diff

.PHONY: verify-format
verify-format:
	@echo "verify: gofmt"
	@unformatted=$$(gofmt -l orchestrator plugins protocol console); \
	[ -z "$$unformatted" ] || { echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; }

.PHONY: verify-vet
verify-vet:
	@echo "verify: go vet"
	@go vet ./...

.PHONY: verify-layout
verify-layout:
	@echo "verify: layout and dependencies"
	@go test -run '^TestLayout' ./orchestrator

.PHONY: lint
lint: $(TOOLS)/.built ## run golangci-lint with .golangci.yaml
	@echo "lint: golangci-lint"
	@$(TOOLS)/golangci-lint run --allow-parallel-runners ./...

.PHONY: generate
generate: $(TOOLS)/.built ## generate the Go code of the protocol and the OpenAPI document anew
	@cd protocol; for template in $(TEMPLATES); do $(BUF) generate --template "$$template"; done

# BENCH holds flags, such as "-parts latency,submit" or "-rounds 9".
BENCH ?=
.PHONY: bench
bench: test-programs ## compare throughput, latency, submits and depth with asynq, and with others that are installed (BENCH="-parts latency")
	@go run ./orchestrator/cmd/drover-bench $(BENCH)

# CHAOS holds further flags, such as "--seed 7 --keep".
CHAOS ?=
.PHONY: chaos
chaos: test-programs ## strike managers, workers, Redis and memcached with faults for three minutes and prove that nothing is lost (CHAOS="--seed 7")
	@mkdir -p bin/chaos
	@go build -trimpath -o bin/chaos/ ./orchestrator/cmd/droverd ./plugins/sdk/sdktest/misbehave ./orchestrator/cmd/drover-chaos
	@bin/chaos/drover-chaos $(CHAOS)

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (30s)
	@.ci/fuzz $(FUZZTIME) $(PKG)

.PHONY: clean
clean: ## remove what was built and what a development manager kept (bin/, var/)
	rm -rf bin var

# Tools come from a module of their own, so that they are no dependency of Drover. Building takes minutes once.
$(TOOLS)/.built: .tools/go.mod .tools/go.sum
	@mkdir -p $(TOOLS)
	@echo "building the tools of .tools/go.mod (some minutes, once)"
	@cd .tools && go build -trimpath -buildvcs=false -o ../$(TOOLS)/ tool
	@touch $@
