# Everything sets up .venv by itself, pinned by constraints.txt.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help setup demo test test-all check format bench docs picture clean

help:
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

setup: .venv/.installed ## install smelt and its tools into .venv

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup ## compile real models and print what became of them
	$(BIN)/python -m examples.demo

test: check ## format, lint, types, layers, then the tests that CI runs
	$(BIN)/python -m pytest -n 2 --dist worksteal -rs -m 'not slow'

.venv/.ray: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ray]'
	@touch $@

test-all: check .venv/.ray ## the same with the slow tests, and ray for those that need it
	$(BIN)/python -m pytest -n 2 --dist worksteal -rs

check: setup
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## format and fix what can be fixed
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: setup ## smelt beside other optimizers in one run: speed, nodes left, latency, wrong results
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(BIN)/python -m bench.optimizers
	OMP_NUM_THREADS=1 $(BIN)/python -m bench.exports

docs: setup ## write the generated pages of docs/
	$(BIN)/python -m smelt.cli.docs

picture: setup ## take the picture of a report again: docs/report.png (needs Chromium)
	PYTHONPATH=tests $(BIN)/python -m examples.report_picture

clean: ## remove everything that was built
	rm -rf .venv build
