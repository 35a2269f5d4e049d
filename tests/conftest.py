"""What holds for every test."""

from __future__ import annotations

import os
from collections.abc import Iterator

import coverage_floor
import cpu_times
import made_once
import pytest
import run_status
import sampling
from mutants import guarding

# JAX computes what models are compared with. Most of its tests' time was spent in optimizing
# that, one operator at a time; it is read as JAX is imported, in child processes, too.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

# Loops as XLA emits them without MLIR take half as long to compile, and modules in one part less than
# in several. By the first, XLA reduces several axes in another order, and keeps other bits of NaN:
# tests of these ask for the default.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
)

# Tests of what is computed need no C compiler, which takes a second for each; those of engines ask
# for one.
os.environ["SMELT_HOST_ENGINE"] = "numpy"


def pytest_configure(config: pytest.Config) -> None:
    """Let commands print lines of any length, as into a pipe, whatever the terminal is.

    Python's readline, which pytest loads, sets COLUMNS for child processes, xdist's workers too,
    without a trace in ``os.environ``; so it is taken from the process itself.
    """
    os.environ.pop("COLUMNS", None)
    os.unsetenv("COLUMNS")
    for plugin in (run_status, sampling, coverage_floor, cpu_times, guarding):
        plugin.register(config)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of ``make test``: what the tests have to cover, and what they cost."""
    what = "percent of the lines of src/ that the tests have to run"
    parser.addoption(coverage_floor.OPTION, type=float, help=what)
    what = "list the seconds of CPU of this many files, the slowest, and of all tests"
    parser.addoption(cpu_times.OPTION, type=int, help=what)
    what = "of each test with many like cases, run about one in this many"
    parser.addoption(sampling.OPTION, type=int, help=what)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Once all tests and what they import are there: make once what they share."""
    made_once.share()


@pytest.fixture(scope="session", autouse=True)
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder of its own for what is compiled, not the one of the user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SMELT_CACHE", str(tmp_path_factory.mktemp("libraries")))
        yield
