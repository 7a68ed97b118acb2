# Each target creates the environment it needs: Python 3.11 or newer, pip and make are enough.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	if command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	then echo $$p; break; fi; done)
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
# Several tests at a time; each has one thread.
PARALLEL := -q -n auto --dist worksteal

# Python brings a pip that may not know dependency groups, which began with 25.1.
PIP := -m pip install --quiet --disable-pip-version-check
NEW_PIP := $(PIP) --upgrade 'pip>=25.1'

.PHONY: docs docs-links release-check help demo test test-slow test-browser test-versions test-processors test-paper paper lint format build bench bench-peers clean

help:
	@echo "make demo           fit a model to data that ships with scikit-learn and show the result"
	@echo "make test           run the tests"
	@echo "make test-slow      run the tests that take minutes"
	@echo "make test-browser   open reports, and the site if it is built, in a Chromium on the PATH"
	@echo "make test-versions  run the tests on every Python found, and with the oldest dependencies;"
	@echo "                    TESTS=tests/test_cli.py runs a part of them"
	@echo "make test-processors"
	@echo "                    run the tests with the arithmetic of several processors, each with one"
	@echo "                    thread and two; TESTS=tests/engines runs a part of them"
	@echo "make test-paper     run the paper's experiments quickly, as a test (needs KOFA_DATA)"
	@echo "make paper          run the paper's experiments in full, in results/; takes hours"
	@echo "make lint           check style and types"
	@echo "make build          build wheel and sdist, and try the wheel in a new environment"
	@echo "make docs           build the site in build/docs, running every example; takes minutes"
	@echo "make docs-links     build it, and check its links, also those to other sites"
	@echo "make release-check  all that has to hold before a release"
	@echo "make bench          measure speed, memory and accuracy; prints a table"
	@echo "make bench-peers    compare with other packages (installs them in $(PEERS))"

$(VENV)/.ready: pyproject.toml
	@test -n "$(PYTHON)" || { echo "kofa needs Python 3.11 or newer on the PATH"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(NEW_PIP)
	$(BIN)/python $(PIP) -e '.[all]' --group dev
	@touch $@

$(PEERS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python $(NEW_PIP)
	$(PEERS)/bin/python $(PIP) -e . --group peers
	@touch $@

$(VENV)/.docs: $(VENV)/.ready
	$(BIN)/python $(PIP) --group docs
	@touch $@

demo: $(VENV)/.ready
	@$(BIN)/python examples/demo.py

test: $(VENV)/.ready
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(PARALLEL)

test-slow: $(VENV)/.ready
	$(BIN)/python -m pytest -q -m slow

$(VENV)/.browser: $(VENV)/.ready
	$(BIN)/python $(PIP) --group browser
	@touch $@

test-browser: $(VENV)/.browser
	@$(BIN)/python -m experiments.browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m browser tests/report tests/test_site.py

# OTHERS=yes: only on other Pythons than that of `make test`.
test-versions:
	@test -n "$(PYTHON)" || { echo "kofa needs Python 3.11 or newer on the PATH"; exit 1; }
	$(PYTHON) tests/versions.py $(if $(OTHERS),--others) $(PARALLEL) $(TESTS)

# OTHERS=yes: only two that `make test` did not have, with one thread.
test-processors: $(VENV)/.ready
	$(BIN)/python tests/processors.py $(if $(OTHERS),--others) $(PARALLEL) $(TESTS)

test-paper: $(VENV)/.ready
	$(BIN)/python -m pytest -q -m paper

paper: $(VENV)/.ready
	$(BIN)/python -m experiments paper

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32

format: $(VENV)/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

build: $(VENV)/.ready
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python tests/wheel.py

# Warnings are errors, links and references that lead nowhere among them.
SPHINX := OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q
docs: $(VENV)/.docs
	$(SPHINX) -b html docs build/docs
	@echo "open build/docs/index.html"

docs-links: docs
	$(BIN)/python tests/links.py build/docs

release-check: $(VENV)/.docs
	$(BIN)/python tests/release.py
	$(MAKE) lint test build
	$(BIN)/python tests/wheel.py --every
	$(MAKE) docs-links

bench: $(VENV)/.ready
	$(BIN)/python -m experiments bench

bench-peers: $(PEERS)/.ready
	$(PEERS)/bin/python -m experiments peers

clean:
	rm -rf $(VENV) $(VENV)-* build dist docs/generated .mypy_cache .ruff_cache .pytest_cache .hypothesis
