# `make run`, `make test`: everything they need is installed by them, into .venv. Python 3.11 or newer, and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: run test bench lint clean

run: $(READY) ## crawl the demonstration web: no internet, no servers
	$(BIN)/spiderduck demo

test: $(VENV)/ready-test ## lint, types and all tests
	$(MAKE) lint
	$(BIN)/python -m pytest -q

lint: $(VENV)/ready-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/ready-bench ## ours, Scrapy and a bare loop, side by side; see tests/bench/run.py --help
	$(BIN)/python -m tests.bench.run $(ARGS)

clean:
	rm -rf $(VENV) build data

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(READY): $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/ready-test: $(READY)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

$(VENV)/ready-bench: $(VENV)/ready-test
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[bench]'
	touch $@
