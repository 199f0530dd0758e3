# Everything a developer or a curious person runs. `make help` tells.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
MINUTES ?= 3
SPEED ?= 2.5
CHAOS ?= 0
SEED ?= 1
FAULTS ?= 10
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help assignor-jar demo test test-kubernetes test-compose test-images test-node check model chaos bench bench-handover bench-deaths bench-landing bench-controller bench-groups bench-scaled-groups bench-scaling bench-takeover bench-packing bench-brokers bench-simulation bench-timings bench-sweep bench-monitor bench-moves bench-kubernetes bench-page page-images clean

help: ## Say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

# What runs binwright, and what develops it; each is made once and again when the versions change.
$(VENV)/.run: pyproject.toml requirements/lock.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements/lock.txt -e '.[all]'
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements/lock.txt -e '.[dev]'
	@touch $@

demo: $(VENV)/.run ## Play a recorded load through the real thing, and audit it (MINUTES=3 SPEED=2.5 CHAOS=1)
	@$(BIN)/binwright demo --minutes $(MINUTES) --speed $(SPEED) $(if $(filter-out 0,$(CHAOS)),--chaos) $(ARGS)

assignor-jar: $(VENV)/.dev ## The assignor for Java consumers, build/binwright-assignor.jar (needs a JDK)
	@$(BIN)/python -m tools.assignor_jar --output build

check: $(VENV)/.dev ## Lint, types, layers, spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy shared services tests
	$(BIN)/lint-imports
	$(BIN)/codespell

test: $(VENV)/.dev ## Core (every branch), simulation (virtual time), then the real broker and Spark
	$(BIN)/python -m pytest tests/core --cov --cov-report=term --cov-fail-under=100
	$(BIN)/python -m pytest tests --ignore=tests/core --ignore=tests/deploy/kubernetes --ignore=tests/deploy/compose --ignore=tests/deploy/images --ignore=tests/deploy/node

model: $(VENV)/.dev ## Explore the protocol state by state (ARGS="holds breaks --states N"; a quarter of an hour)
	$(BIN)/python -m tests.model $(ARGS)

test-kubernetes: $(VENV)/.dev ## The Kubernetes half on a real control plane, pods as processes
	$(BIN)/python -m pytest tests/deploy/kubernetes

test-images: $(VENV)/.dev ## The images from their Dockerfiles, looked into; needs a container engine (five minutes)
	$(BIN)/python -m pytest tests/deploy/images

test-node: $(VENV)/.dev ## The images and manifests on a real kubelet with containerd; needs root and an engine
	$(BIN)/python -m pytest tests/deploy/node

test-compose: $(VENV)/.dev ## The compose file as it is under load (needs a container engine)
	$(BIN)/python -m pytest $(or $(ARGS),tests/deploy/compose)

chaos: $(VENV)/.dev ## Break the real thing on purpose under load, and audit it (SEED=1 FAULTS=10)
	@$(BIN)/python -m tests.chaos --seed $(SEED) --faults $(FAULTS) $(ARGS)

bench: $(VENV)/.dev ## Run every bench and refresh docs/figures.md (three hours; ARGS="--only packing groups")
	$(BIN)/python -m bench $(ARGS)

bench-handover: $(VENV)/.dev ## A rolling bounce and a growth, beside today's consumer groups (ten minutes)
	@$(BIN)/python -m bench.handover $(ARGS)

bench-deaths: $(VENV)/.dev ## From kill -9 of a consumer, or of it and the leader, until others read (six minutes)
	@$(BIN)/python -m bench.handover.deaths $(ARGS)

bench-landing: $(VENV)/.dev ## A backlog, a live load, many and old tables beside Structured Streaming (an hour)
	@$(BIN)/python -m bench.landing $(ARGS)

bench-controller: $(VENV)/.dev ## What a controller's machine costs, from 1,000 to 100,000 partitions (a minute)
	@$(BIN)/python -m bench.controller $(ARGS)

bench-groups: $(VENV)/.dev ## What a controller of many small groups costs, on a real broker (ten minutes)
	@$(BIN)/python -m bench.groups $(ARGS)

bench-scaled-groups: $(VENV)/.dev ## What passes over 500 ordinary groups cost, and how soon one at zero wakes (five minutes; ARGS=--api-server)
	@$(BIN)/python -m bench.scaled_groups $(ARGS)

bench-scaling: $(VENV)/.dev ## An SLA workload in groups that binwright, KEDA's rule or nobody scales (seven minutes; ARGS="--only w2 --speed 1")
	@$(BIN)/python -m bench.scaling $(ARGS)

bench-takeover: $(VENV)/.dev ## How soon a new controller acts, after a day of 200 consumers' reports (five minutes)
	@$(BIN)/python -m bench.takeover $(ARGS)

bench-packing: $(VENV)/.dev ## What a decision takes, from 32 to a million partitions (five minutes)
	@$(BIN)/python -m bench.packing $(ARGS)

bench-brokers: $(VENV)/.dev ## Plans for brokers beside the optimum and a greedy plan; 100,000 replicas (five minutes)
	@$(BIN)/python -m bench.brokers $(ARGS)

bench-simulation: $(VENV)/.dev ## A live run beside its simulation, and a week under every policy (six minutes)
	@$(BIN)/python -m bench.simulation $(ARGS)

bench-sweep: $(VENV)/.dev ## The same sweep as a Spark job on one executor, and on two (three minutes)
	@$(BIN)/python -m bench.sweep $(ARGS)

bench-timings: $(VENV)/.dev ## How fast a live system reacts: binwright lab timings (seven minutes or more)
	@$(BIN)/python -m bench.timings $(ARGS)

bench-monitor: $(VENV)/.dev ## What a monitor costs, beside other clients (ten minutes)
	@$(BIN)/python -m bench.monitor $(ARGS)

bench-moves: $(VENV)/.dev ## Leaders and replicas that move under load, and 20 kills of `brokers apply` (six minutes)
	@$(BIN)/python -m bench.moves $(ARGS)

bench-kubernetes: $(VENV)/.dev ## Fifty Deployments at once, a slot's way to ready, fifty idle slots (three minutes)
	@$(BIN)/python -m bench.kubernetes $(ARGS)

bench-page: $(VENV)/.dev ## What the live page costs its server and a browser, up to 100,000 partitions (two minutes)
	@$(BIN)/python -m bench.page

page-images: $(VENV)/.dev ## The pictures of the page in the README anew, in Chromium (seconds)
	@$(BIN)/python -m tools.page_images

clean: ## Remove what was made here (not the cache of jars and Java)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
