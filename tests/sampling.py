"""Which of many like cases a run without slow tests tries: a part, chosen by name.

For checks that thousands of tests repeat for their own graphs, and for long lists of cases. A run
without ``-m 'not slow'``, such as one of a single file, tries all.

``--one-of N`` leaves out more: of each test with more than ``FEW`` cases, about one case in N runs.
Rows of tables all run, since a table is read when an entry changes; so do the tests of passes, whose
graphs must need each numbered guard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any
from zlib import crc32

import pytest
from mutants.guarding import OWN

OPTION = "--one-of"

FEW = 6
"""A test with this many cases or fewer runs all of them."""

_RUN = {"tries all": True}


def register(config: pytest.Config) -> None:
    """Try all cases unless slow tests are left out; leave out like cases if ``--one-of`` is given."""
    _RUN["tries all"] = "not slow" not in config.option.markexpr
    one_of = config.getoption(OPTION)
    if one_of is not None:
        config.pluginmanager.register(FewerCases(one_of))


class FewerCases:
    """A plugin: deselect cases of tests that have many."""

    def __init__(self, one_of: int) -> None:
        self.one_of = one_of

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        counts = Counter(map(_test_of, items))
        kept: list[pytest.Item] = []
        left_out: list[pytest.Item] = []
        for item in items:
            has_few = counts[_test_of(item)] <= FEW or _is_row(item) or OWN.match(item.nodeid)
            stays = has_few or crc32(item.nodeid.encode()) % self.one_of == 0
            (kept if stays else left_out).append(item)
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def _test_of(item: pytest.Item) -> str:
    """Return the name of the test whose case ``item`` is, with its file."""
    return item.nodeid.partition("[")[0]


def _is_row(item: pytest.Item) -> bool:
    """True for a row of a table, which has the parameter ``row``."""
    case = getattr(item, "callspec", None)
    return case is not None and "row" in case.params


def is_tried(case: str, one_of: int) -> bool:
    """Whether this run tries ``case``; of many cases about every ``one_of``-th, in CI the same."""
    return _RUN["tries all"] or crc32(case.encode()) % one_of == 0


def sampled(cases: Iterable[Any], one_of: int) -> list[Any]:
    """Return ``cases`` as parameters of a test, with all but every ``one_of``-th marked slow."""
    return [
        case if index % one_of == 0 else pytest.param(case, marks=pytest.mark.slow)
        for index, case in enumerate(cases)
    ]
