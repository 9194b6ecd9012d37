# Needs nothing but make and a Python >= 3.11. Every target sets up what it needs first.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
SHELL := /bin/sh

VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.ready
LOCK  := requirements.lock

# With a user's own PYTHONPATH or activated environment, tests would run against other versions than the locked ones.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV

# The one that was named, or the first of those given and known that is there. `python -c` asks the interpreter itself: a shim named python3.13
# may exist for a version that is not installed.
FIND_PYTHON = python=; for candidate in "$$PENSTOCK_PYTHON" $(1) python3.12 python3.11 python3 python; do \
	  [ -n "$$candidate" ] || continue; \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then python="$$candidate"; break; fi; \
	done

.PHONY: help setup demo test test-fast lint format bench bench-setup bench-join bench-feedback bench-speculation bench-shedding docs lock clean \
  fuzz fuzz-texts fuzz-semantics fuzz-sql fuzz-plans fuzz-shedding fuzz-engine fuzz-power fuzz-crashes fuzz-kills

help: ## Show this list
	@echo "Penstock: data streams on Spark. Targets:"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

setup: $(READY) ## Create .venv with the locked dependencies (every other target does this by itself)

demo: $(READY) ## A continuous query over real flight data, live, under a minute
	@$(BIN)/penstock demo

test: lint ## Lint, then all tests; those without a JVM come first
	@echo "== tests without a JVM, on all cores"
	@$(BIN)/python -m pytest -m "not spark and not fuzz" -n auto --dist loadfile
	@echo "== tests on Spark"
	@$(BIN)/python -m pytest -m "spark and not fuzz"

test-fast: $(READY) ## Tests that need no JVM
	@$(BIN)/python -m pytest -q -m "not spark and not fuzz" -n auto --dist loadfile

lint: $(READY) ## ruff, mypy strict, layers
	@echo "== ruff check";    $(BIN)/ruff check .
	@echo "== ruff format";   $(BIN)/ruff format --check .
	@echo "== mypy --strict"; $(BIN)/mypy
	@echo "== layers";        $(BIN)/lint-imports --no-cache

format: $(READY) ## Rewrite the sources in the house format
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

bench: bench-setup ## Penstock against everybody else, in half an hour; ARGS='--only big-1k', --resume, --quick, --list
	@$(BIN)/python -m benchmarks.bench $(ARGS)

bench-join: $(READY) ## More about joins: shares of partners, state that grows, punctuation on keys
	@$(BIN)/python -m benchmarks.join

# Contestants that want other versions than Penstock does. One that cannot be installed is left out, and the table says so.
OTHERS := pyflink pathway polars
bench-setup: $(READY) $(OTHERS:%=.venv-bench/%/.ready) ## Environments for PyFlink, Pathway and Polars, in .venv-bench

.venv-bench/%/.ready: benchmarks/requirements-%.txt
	@echo "== environment of $*"; $(call FIND_PYTHON,); rm -rf .venv-bench/$*; \
	  "$$python" -m venv .venv-bench/$* && .venv-bench/$*/bin/python -m pip install --quiet -r $< && touch $@ \
	  || echo "$* will not take part: it could not be installed"

bench-feedback: $(READY) ## What feedback costs and saves: six experiments, an hour and a half
	@$(BIN)/python -m benchmarks.feedback

bench-speculation: bench-setup ## What answers now, corrections later cost and gain, against Structured Streaming and Pathway
	@$(BIN)/python -m benchmarks.speculation $(ARGS)

bench-shedding: $(READY) ## What ways of giving up cost under overload, simulated, against the published shapes
	@$(BIN)/python -m benchmarks.shedding $(ARGS)

fuzz: fuzz-texts fuzz-semantics fuzz-sql fuzz-plans fuzz-shedding fuzz-engine fuzz-power fuzz-crashes fuzz-kills ## Long random search: all of the parts below, one after the other; EXAMPLES=3000 searches longer

# Each part ends within the hour on two cores and says at its end what it tried. Those that need no JVM take all cores.
# Hypothesis tries others every time; EXAMPLES is how many of each kind.
EXAMPLES := 1000
FUZZ := HYPOTHESIS_PROFILE=fuzz PENSTOCK_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -m fuzz -q --timeout=3600
ON_ALL_CORES := -n auto --dist worksteal

fuzz-texts: $(READY) ## 100,000 texts of all kinds: no error but a user's, no hang, bounded memory
	@echo "== fuzz: texts";     $(FUZZ) $(ON_ALL_CORES) tests/fuzz

fuzz-semantics: $(READY) ## Random queries, streams and cuts on kernels against the reference; feedback on top
	@echo "== fuzz: semantics"; $(FUZZ) $(ON_ALL_CORES) tests/semantics

fuzz-sql: $(READY) ## Random values, expressions and groups against Spark
	@echo "== fuzz: sql";       $(FUZZ) tests/sql

fuzz-plans: $(READY) ## Random plans: does the engine hold what the check says
	@echo "== fuzz: plans";     $(FUZZ) $(ON_ALL_CORES) tests/analysis

fuzz-shedding: $(READY) ## Dropped windows of 10,000 networks: what is kept is what would have been
	@echo "== fuzz: shedding";  $(FUZZ) tests/shedding

fuzz-engine: $(READY) ## Messages at any step, two writers, runs that do not end
	@echo "== fuzz: engine";    $(FUZZ) $(ON_ALL_CORES) tests/engine

fuzz-power: $(READY) ## 3,000 power cuts on a disk that forgets what nobody waited for
	@echo "== fuzz: power";     $(FUZZ) $(ON_ALL_CORES) tests/spark/test_power_loss.py

fuzz-crashes: $(READY) ## 1,000 crashes at steps of the commit protocol, on Spark
	@echo "== fuzz: crashes";   $(FUZZ) tests/spark/test_crash.py

fuzz-kills: $(READY) ## kill -9 at random moments; the check of Spark queries
	@echo "== fuzz: kills";     $(FUZZ) tests/spark --deselect tests/spark/test_crash.py --deselect tests/spark/test_power_loss.py

docs: $(READY) ## Check that links in the docs lead somewhere and that their examples run
	@$(BIN)/python -m pytest -q --doctest-glob='*.md' tests/test_docs.py $(wildcard README.md docs)

lock: $(READY) ## Choose the newest allowed versions anew and write requirements.lock
	@$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes --upgrade \
	  --no-annotate --no-header --no-emit-index-url --no-emit-find-links --quiet --output-file $(LOCK)
	@if grep -nE '^-|://' $(LOCK); then echo "$(LOCK) names a host: see above" >&2; exit 1; fi
	@echo "wrote $(LOCK); 'make test' installs it"

clean: ## Remove the environment, caches and build products
	rm -rf $(VENV) .venv-bench build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is written last, so an interrupted set-up is taken up again.
$(READY): $(LOCK) pyproject.toml
	@$(call FIND_PYTHON,python3.13); \
	if [ -z "$$python" ]; then \
	  echo "Penstock needs Python 3.11 or newer and found none on PATH." >&2; \
	  echo "Install one (Debian, Ubuntu: apt install python3 python3-venv; macOS: brew install python@3.13)" >&2; \
	  echo "or name it: make PENSTOCK_PYTHON=/path/to/python3.11 setup" >&2; exit 1; fi; \
	if ! $(BIN)/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	  if ! "$$python" -c 'import venv, ensurepip' >/dev/null 2>&1; then \
	    echo "$$($$python --version) has no venv or ensurepip, so no virtual environment can be made." >&2; \
	    echo "Debian, Ubuntu: apt install $$($$python -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')" >&2; exit 1; fi; \
	  echo "== virtual environment in $(VENV) ($$($$python --version))"; \
	  rm -rf $(VENV) && "$$python" -m venv $(VENV) || exit 1; \
	fi
	@echo "== dependencies from $(LOCK) (the first time this downloads Spark: some minutes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $(LOCK)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@
