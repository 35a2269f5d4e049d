# Everything sets up .venv by itself, pinned by constraints.txt.
PYTHON ?= python3
BIN := .venv/bin

# Modules stay compiled, also where the environment says otherwise: tests start many processes, and
# each would compile the compiler first.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test test-all coverage mutants check collected format bench docs picture site clean

help:
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

setup: .venv/.installed ## install smelt and its tools into .venv

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup ## nine real models in one table; a second call takes seconds
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m examples.demo

test: setup ## format, lint, types, layers, then the tests that CI runs
	$(MAKE) --no-print-directory -j 2 check collected
	$(BIN)/python -m pytest -n 2 --dist worksteal -rs -m 'not slow' --one-of 3 --cpu-times 20

.venv/.ray .venv/.docs: .venv/.%: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$*]'
	@touch $@

test-all: check .venv/.ray .venv/.docs ## the same with the slow tests, and what those need
	$(BIN)/python -m pytest -n 2 --dist worksteal -rs

# Apart from `make test`, because counting lines takes a third more time.
coverage: setup ## the lines of src/ that the tests of CI do not run, by file; fails below 96 %
	$(BIN)/python -m slipcover --skip-covered \
		-m pytest -n 2 --dist worksteal -m 'not slow' --coverage-floor 96

mutants: setup ## one-line mistakes in what differs from main, or in src/ by SEED=7, that no test notices
	PYTHONPATH=tests $(BIN)/python -m mutants $(if $(SEED),--seed $(SEED)) $(if $(COUNT),--count $(COUNT)) \
		$(if $(IN),--inside $(IN)) $(if $(ROOM),--room)

check: setup
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

# Beside mypy, which uses one core: pytest compiles the tests, which two workers would do twice.
collected: setup
	@mkdir -p build
	@$(BIN)/python -m pytest --collect-only -qq >build/collected.txt || (cat build/collected.txt; false)

format: setup ## format and fix what can be fixed
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: setup ## smelt beside other optimizers in one run: speed, nodes left, latency, wrong results
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(BIN)/python -m bench.optimizers
	OMP_NUM_THREADS=1 $(BIN)/python -m bench.exports

docs: setup ## write the generated pages of docs/
	$(BIN)/python -m smelt.cli.docs

picture: setup ## make docs/report.png and docs/layer.svg again (needs Chromium)
	PYTHONPATH=tests $(BIN)/python -m examples.report_picture

site: .venv/.docs ## the documentation as a site in build/site, which loads nothing from elsewhere
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

clean: ## remove everything that was built
	rm -rf .venv build
