# Every target creates .venv if it is missing; only Python 3.11 (with venv) and make are required.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
TESTS ?= tests
# For pytest: make quick ARGS="-x -k acknowledgement"
ARGS ?=
.DEFAULT_GOAL := help

.PHONY: help demo test quick nightly campaign check docs fix bench record lock clean portable test-python release

help:  ## show the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1|/' | column -t -s '|'

# The stamp changes when the locked packages or the project's own file do. Bytecode is written here, once: without it, and
# with PYTHONDONTWRITEBYTECODE in the environment, each of the many processes of the tests would compile what it imports.
# The editable installation has the root of the repository on the path, and so the package ottla_scripts.
# PyPI has only the source of pyspark, of which uv builds a wheel and unpacks it: 400 MB need not be compressed in between.
$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --python $(BIN)/python --require-hashes -r requirements.lock \
		--config-settings-package 'pyspark:--build-option=--compression=stored'
	$(BIN)/uv pip install --python $(BIN)/python --no-deps -e .
	$(BIN)/python -m compileall -q -j 0 -x '/(tests|pip|setuptools)/' $(VENV)/lib ottla ottla_scripts
	@touch $@

demo: $(VENV)/.installed  ## run real flights through broker and Spark into a table and a plot
	$(BIN)/python -m demo.flights

# Three processes on two cores: tests wait for other programs much of the time. tests/runs/scheduler.py assigns files to them.
PARALLEL := -n 3 --dist loadscope --no-loadscope-reorder
# The budgets of folders hold for whole runs.
WHOLE := $(if $(filter tests,$(TESTS)),$(if $(ARGS),,--budgets))
# Write the bytecode of changed modules and of the tests, as Python does by default: collecting takes a third of the time.
test quick nightly portable: export PYTHONDONTWRITEBYTECODE :=

test: $(VENV)/.installed  ## run every test (Java is installed from PyPI if it is missing); ARGS=… for pytest
	$(BIN)/python -m tests.run $(PARALLEL) --durations-table $(WHOLE) $(TESTS) $(ARGS)

quick: $(VENV)/.installed  ## run the tests that take seconds, not minutes; ARGS=… for pytest
	$(BIN)/python -m tests.run $(PARALLEL) -m "not slow and not spark and not compat" $(TESTS) $(ARGS)

# Each command runs although another one has failed.
# Its environment is .venv-python3.13, beside that of the other targets.
test-python:  ## run the quick tests with another Python: make test-python PYTHON=python3.13
	$(MAKE) quick PYTHON=$(PYTHON) VENV=$(VENV)-$(notdir $(PYTHON))

portable: $(VENV)/.installed  ## run quick tests without the names that Linux has and macOS lacks; ARGS=… for pytest
	$(BIN)/python -m tests.portable $(ARGS)

nightly: $(VENV)/.installed  ## run what `make test` leaves out, then look for flaky tests under load: hours
	status=0; \
	$(BIN)/python -m tests.run $(PARALLEL) --durations-table --nightly -m nightly $(TESTS) $(ARGS) || status=1; \
	$(BIN)/python -m tests.flaky --runs 3 --load 2 $(FLAKY) $(PARALLEL) || status=1; \
	exit $$status
# The folders whose tests start programs, and take less than two minutes.
FLAKY ?= tests/client tests/robustness tests/process

SEEDS ?= 300
campaign: $(VENV)/.installed  ## test clusters under faults: SEEDS=… simulated runs (5000 take about an hour), a virtual day, then real processes
	$(BIN)/python -m tests.sim.campaign run $(SEEDS)
	$(BIN)/python -m tests.sim.long_run 24
	OTTLA_CAMPAIGN=1 $(BIN)/python -m pytest -q --nightly tests/sim/test_planted_bugs.py tests/sim/test_cluster_criteria.py tests/process \
		tests/robustness/test_topic_churn.py tests/client/test_chaos.py tests/spark/test_instances.py tests/spark/test_killed.py tests/spark/test_equality.py \
		tests/streams/test_any_micro_batches.py

check: $(VENV)/.installed  ## check format, lint, types, layers, generated documents
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m docs.generate --check

docs: $(VENV)/.installed  ## build the documentation site under out/site; a broken link is an error
	$(BIN)/sphinx-build -W --keep-going -q -b html docs out/site

fix: $(VENV)/.installed  ## format, apply automatic fixes, regenerate documents
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python -m docs.generate

bench: $(VENV)/.installed  ## compare Ottla with Apache Kafka, interleaved; results under bench/results/
	$(BIN)/python -m bench.compare

record: $(VENV)/.installed  ## record the scripted conversations with Apache Kafka again (needs Java and Maven)
	$(BIN)/python -m tests.compat.recorded.record

lock: $(VENV)/.installed  ## update the locked versions of the development packages
	$(BIN)/uv pip compile --quiet --upgrade --generate-hashes --python-version 3.11 --extra dev \
		--no-header pyproject.toml -o requirements.lock
	$(BIN)/python -m docs.platforms

release: $(VENV)/.installed  ## build the wheels twice, try them with each extra, write SBOM and sums: out/release
	$(BIN)/python -m deploy.release $(ARGS)

clean:  ## remove the environment and the caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis out
