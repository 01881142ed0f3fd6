# Every target makes its own .venv; nothing is needed before but Python 3.11 (with venv) and make.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
TESTS ?= tests
# For pytest: make quick ARGS="-x -k acknowledgement"
ARGS ?=
.DEFAULT_GOAL := help

.PHONY: help demo test quick campaign check docs fix bench record lock clean

help:  ## show the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1|/' | column -t -s '|'

# The stamp changes when the locked packages or the project's own file do. Bytecode is written here, once: without it, and
# with PYTHONDONTWRITEBYTECODE in the environment, each of the many processes of the tests would compile what it imports.
$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --python $(BIN)/python --require-hashes -r requirements.lock
	$(BIN)/uv pip install --python $(BIN)/python --no-deps -e .
	$(BIN)/python -m compileall -q -j 0 $(VENV)/lib ottla
	@touch $@

demo: $(VENV)/.installed  ## real flights through broker and Spark into a table and a plot
	$(BIN)/python -m demo.flights

# Two processes: tests wait for other programs much of the time. Which stay together, tests/conftest.py says.
PARALLEL := -n 2 --dist loadscope --no-loadscope-reorder
# Write the bytecode of changed modules and of the tests, as Python does by default: collecting takes a third of the time.
test quick: export PYTHONDONTWRITEBYTECODE :=

test: $(VENV)/.installed  ## every test (Java is found, or taken from PyPI); ARGS=… for pytest
	$(BIN)/python -m pytest $(PARALLEL) $(TESTS) $(ARGS)

quick: $(VENV)/.installed  ## the tests that need seconds, not minutes; ARGS=… for pytest
	$(BIN)/python -m pytest -m "not slow and not spark and not compat" $(TESTS) $(ARGS)

SEEDS ?= 300
campaign: $(VENV)/.installed  ## clusters under faults: SEEDS=… simulated runs (5000 take about an hour), then real processes
	$(BIN)/python -m tests.sim.campaign run $(SEEDS)
	OTTLA_CAMPAIGN=1 $(BIN)/python -m pytest -q tests/sim/test_planted_bugs.py tests/sim/test_cluster_criteria.py tests/process \
		tests/client/test_chaos.py

check: $(VENV)/.installed  ## format, lint, types, layers, generated documents
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m docs.generate --check

docs: $(VENV)/.installed  ## build the documentation site under out/site; a broken link is an error
	$(BIN)/sphinx-build -W --keep-going -q -b html docs out/site

fix: $(VENV)/.installed  ## format, mend what can be mended, regenerate documents
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python -m docs.generate

bench: $(VENV)/.installed  ## Ottla beside Apache Kafka, interleaved; results under bench/results/
	$(BIN)/python -m bench.compare

record: $(VENV)/.installed  ## play the scripted conversations to Apache Kafka again (needs Java and Maven)
	$(BIN)/python -m tests.compat.recorded.record

lock: $(VENV)/.installed  ## lock the development packages anew
	$(BIN)/uv pip compile --quiet --upgrade --generate-hashes --python-version 3.11 --extra dev \
		--no-header pyproject.toml -o requirements.lock

clean:  ## forget the environment and the caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis out
