# ActionPulse. `make` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO       ?= go
DATA     ?= data
LISTEN   ?= 127.0.0.1:8080
VERSION  ?=
FUZZTIME ?= 20s
TORTURE  ?= 5m
SEED     ?= 0
BENCH    ?=
ONLY     ?=

binary := bin/actionpulse
tool   := $(GO) tool -modfile=tools/go.mod

.PHONY: help run demo build test lint generate bench race-report sdk browser lab-report torture fuzz fmt clean setup

help: ## list the targets
	@echo "ActionPulse: make TARGET"
	@echo
	@sed -nE 's/^([a-z-]+):.*## (.*)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14
	@echo
	@echo "Variables: DATA=$(DATA) LISTEN=$(LISTEN) FUZZTIME=$(FUZZTIME) TORTURE=$(TORTURE) SEED=$(SEED) BENCH=$(BENCH) ONLY=$(ONLY)"

run: build ## build, make a demo data folder if there is none, and serve it
	@exec scripts/run "$(binary)" "$(DATA)" "$(LISTEN)"

demo: build ## a shop's events, orders and flow runs through a broken network and two kill -9s, counted at the end
	$(GO) run ./test/demo -binary "$(binary)"

build: ## build bin/actionpulse
	@scripts/setup compiler
	@echo "Building $(binary); the first time takes a few minutes."
	$(GO) build -ldflags "-s -w $(if $(VERSION),-X main.version=$(VERSION))" -o $(binary) ./cmd/actionpulse

test: setup ## run every test: vet, architecture, race detector, a short torture run
	@GO="$(GO)" scripts/test

lint: ## check style: golangci-lint, go fix, go.mod, generated code (the first time builds the tools)
	@GO="$(GO)" scripts/lint

generate: ## generate the database code from the SQL in internal/storage, then api/openapi.yaml and api/errors.md
	$(tool) sqlc generate -f internal/storage/sqlc.yaml
	$(GO) test -count=1 -run 'File$$' ./internal/httpapi -update

bench: ## measure the real server, and what keys cost, into docs/benchmarks*.md (BENCH=full: with 20 M ids; ONLY=batches: just print)
	@scripts/setup compiler postgres
	$(GO) run ./test/load $(if $(filter full,$(BENCH)),-full) $(if $(ONLY),-only "$(ONLY)",-out docs/benchmarks.md)
	$(if $(ONLY),,cd test/compare && $(GO) run . -out ../../docs/benchmarks-keys.md)

race-report: ## count wrong answers of the ledger, and of the textbook form, when equal requests race
	@scripts/setup compiler postgres
	cd test/compare && $(GO) run . -races

sdk: ## compare our client of models with OpenAI's own (needs node)
	@scripts/setup compiler node
	@GO="$(GO)" scripts/sdk

lab-report: ## judge analytics clients of others into docs/lab-report.md (needs node; eight minutes)
	@scripts/setup compiler node
	test/lab/thirdparty/run

browser: ## build and test the browser client (needs node and Chromium)
	@scripts/setup compiler node chromium
	@GO="$(GO)" scripts/browser

torture: setup ## kill, damage and repair a server under load for TORTURE=5m, and count every event
	$(GO) test -count=1 -v -timeout 0 ./test/torture -duration "$(TORTURE)" -seed "$(SEED)"

fuzz: ## fuzz every decoder for FUZZTIME=20s each
	@GO="$(GO)" scripts/fuzz "$(FUZZTIME)"

fmt: ## format the code
	$(tool) golangci-lint fmt

clean: ## remove what was built; data folders stay
	rm -rf bin

setup: ## check that compilers, PostgreSQL, node and Chromium are there; install them where possible
	@scripts/setup compiler postgres node chromium
