# Everything from a clean checkout: Python 3.11 or newer and make are all that is needed.
#
#   make demo     install into .venv and run the demonstration
#   make test     install with development tools; lint, types, import order, tests (four to eight minutes on two cores)
#   make test-all the same, and the long tests: every page in a browser, networks, the paper's figures, clusters of Dask,
#                 Spark (where there is Java) and Ray on this machine, policies of torch, Stable-Baselines3 and d3rlpy
#   make fuzz     a million drawn and damaged inputs, about an hour of two cores (INPUTS=… SEED=… for other runs)
#   make kills    commands that are killed and interrupted at random moments: KILLS of them (500)
#   make soak     random questions on random logs for MINUTES (an hour), under a ceiling of memory
#   make bench    run the benchmarks        make docs     build the documentation
#   make lowest   the tests that touch every dependency, on the lowest versions that pyproject.toml allows
#   make newest   the same on the newest versions and the newest Python there are
#   make format   format the code           make clean    remove what these targets made (the environment too)
#   make audit    look up known weaknesses of everything that is installed

VENV := .venv
BIN := $(VENV)/bin
AUDIT := .venv-audit
MODELS := .venv-models
MODEL_TESTS := $(patsubst %,tests/policies/test_%_adapter.py,torch sb3 d3rlpy) tests/logs/test_buffers.py
LOWEST := .venv-lowest
NEWEST := .venv-newest
JOBS ?= auto
LIMIT ?= 600
MINUTES ?= 60

INPUTS ?= 1000000
KILLS ?= 500
SEED ?= 0

# One thread for linear algebra in each process; and a test that waits for ever fails, with the place where it waits.
ALONE := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
SPREAD := -n $(JOBS) --dist loadgroup --timeout $(LIMIT)

# A handful of files that touch every dependency of the package, in less than a minute.
TOUCHING := tests/distribution/test_every_dependency.py tests/distribution/test_metadata.py

.PHONY: demo test test-all lowest newest fuzz kills soak bench docs format clean audit

demo: $(VENV)/.installed
	$(BIN)/mixope demo

test: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(ALONE) $(BIN)/pytest $(SPREAD) -m "not long"

test-all: test $(VENV)/.installed-all $(MODELS)/.installed
	$(ALONE) $(BIN)/pytest $(SPREAD) -m long
	$(ALONE) $(MODELS)/bin/python -m pytest -m long $(MODEL_TESTS)

lowest: $(LOWEST)/.installed
	$(ALONE) $(LOWEST)/bin/pytest -p no:cacheprovider $(TOUCHING)

newest: $(NEWEST)/.installed
	$(ALONE) $(NEWEST)/bin/pytest -p no:cacheprovider $(TOUCHING)

fuzz: $(VENV)/.installed-dev
	$(ALONE) $(BIN)/python -m tests.adversarial.fuzzing --inputs $(INPUTS) --seed $(SEED) --watch

kills: $(VENV)/.installed-all
	$(ALONE) $(BIN)/python -m tests.adversarial.kills --kills $(KILLS) --seed $(SEED)

soak: $(VENV)/.installed-dev
	$(ALONE) $(BIN)/python -m tests.adversarial.soak --minutes $(MINUTES)

# The quick sizes; each benchmark's own --help says how to run it at the size that docs/benchmarks.md shows.
bench: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/efficiency.py --quick

# The site with the API reference, and the notebooks of the gallery from its pages.
docs: $(VENV)/.installed-docs
	$(BIN)/python docs/gallery/notebooks.py
	$(BIN)/mkdocs build --strict

# Known weaknesses in what is installed, looked up by pip-audit in an environment of its own: it needs the network.
audit: $(VENV)/.installed-dev
	@test -x $(AUDIT)/bin/pip-audit || { $(BIN)/python -m venv $(AUDIT) && \
	  $(AUDIT)/bin/python -m pip install -q --disable-pip-version-check pip-audit; }
	$(BIN)/python -m pip freeze --disable-pip-version-check --exclude-editable > $(AUDIT)/frozen.txt
	$(AUDIT)/bin/pip-audit --no-deps --disable-pip -r $(AUDIT)/frozen.txt

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(AUDIT) $(MODELS) $(LOWEST) $(NEWEST) demo-output site build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps depend on pyproject.toml, so an install is repeated only when what it installs has changed.

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-all: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev,clusters]'
	@touch $@ $(VENV)/.installed-dev $(VENV)/.installed

# Models of other libraries in an environment of their own: d3rlpy wants an older gymnasium than the rest is tested with.
$(MODELS)/.installed: pyproject.toml .ci/models.txt | $(BIN)/python
	$(BIN)/python -m venv $(MODELS)
	$(MODELS)/bin/python -m pip install -q --disable-pip-version-check -c .ci/models.txt -e '.[torch,sb3,d3rlpy,pandas]' \
	  pytest pytest-xdist hypothesis
	@touch $@

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[docs]'
	@touch $@

$(LOWEST)/.installed: pyproject.toml .ci/lowest.txt | $(LOWEST)/bin/python
	$(LOWEST)/bin/python -m pip install -q --disable-pip-version-check -c .ci/lowest.txt -e . pytest pytest-xdist hypothesis
	@touch $@

$(NEWEST)/.installed: pyproject.toml | $(NEWEST)/bin/python
	$(NEWEST)/bin/python -m pip install -q --disable-pip-version-check -U --upgrade-strategy eager -e . \
	  pytest pytest-xdist hypothesis
	@touch $@

# Environments differ in which Python they like best; each must be 3.11 or newer.
$(BIN)/python: PREFERRED := python3 python3.13 python3.12 python3.11
$(LOWEST)/bin/python: PREFERRED := python3.11 python3.12
$(NEWEST)/bin/python: PREFERRED := python3.13 python3.12 python3.11 python3

$(BIN)/python $(LOWEST)/bin/python $(NEWEST)/bin/python:
	@for name in $(PREFERRED); do \
	  if command -v $$name >/dev/null 2>&1 && \
	     $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "making $(@D:/bin=) with $$name"; exec $$name -m venv $(@D:/bin=); \
	  fi; \
	done; \
	echo "mixope needs Python 3.11 or newer; none of these is that here: $(PREFERRED)" >&2; exit 1
