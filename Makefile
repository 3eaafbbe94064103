# `make help` says what there is. Everything happens below .venv/ and var/; root is never needed.
.DEFAULT_GOAL := help
.PHONY: help setup setup-dev setup-llama run demo-llama lint test bench chaos node

PORT ?= 8000
HOST ?= 127.0.0.1
VAR ?= var
DEMO ?= 1
POOL ?= default
ARGS ?=
SEED ?= 1
MINUTES ?= 5
ONLY ?=

export LLMGW_VAR := $(abspath $(VAR))
PY := .venv/bin/python

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "settings:      PORT=$(PORT) HOST=$(HOST) VAR=$(VAR) DEMO=$(DEMO) PYTHON=python3.11"

setup: ## make .venv and install what the product needs (only when it changed)
	@PYTHON="$(PYTHON)" sh scripts/setup requirements.txt

setup-dev: ## the same with what the tests need
	@PYTHON="$(PYTHON)" sh scripts/setup requirements-dev.txt

run: setup ## start everything; Ctrl-C ends it. DEMO=0 starts empty
	@exec $(PY) -m llmgw_site.supervisor --port "$(PORT)" --host "$(HOST)" $(if $(filter 0 no false,$(DEMO)),--no-demo,--demo)

setup-llama: setup ## install a small real engine, llama.cpp with a model, for demo-llama and its test
	@PYTHON="$(PYTHON)" sh scripts/setup requirements-llama.txt

demo-llama: setup-llama ## the example with real engines in place of simulators, sized for two cores; Ctrl-C ends it
	@exec $(PY) -m llmgw_site.supervisor --port "$(PORT)" --host "$(HOST)" --no-demo --llama

node: setup ## start this host's node worker: make node NAME=host-1 [POOL=default] [ARGS="--resource sim=4"]
	@test -n "$(NAME)" || { echo "Say which node this is: make node NAME=host-1 [POOL=default]" >&2; exit 2; }
	@exec $(PY) manage.py node "$(NAME)" --pool "$(POOL)" $(ARGS)

lint: setup-dev ## style, types, direction of imports, migrations, system checks
	@$(PY) scripts/lint

test: lint ## lint, then the tests on SQLite, then those of the database once more on PostgreSQL where it is installed
	@$(PY) scripts/test $(ARGS)

bench: setup ## print the figures of speed and write var/bench.json
	@$(PY) -m llmgw_site.benchmarks

chaos: setup-dev ## hurt a fleet of real processes and watch: make chaos [SEED=1] [MINUTES=5] [ONLY=schedule]
	@$(PY) -m llmgw_site.tests.chaos --seed "$(SEED)" --minutes "$(MINUTES)" $(if $(ONLY),--only "$(ONLY)")
