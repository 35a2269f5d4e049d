"""Which of many like cases a run without slow tests tries: a part, chosen by name.

For checks that thousands of tests repeat for their own graphs, and for long lists of cases. A run
without ``-m 'not slow'``, such as one of a single file, tries all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from zlib import crc32

import pytest

_RUN = {"tries all": True}


def register(config: pytest.Config) -> None:
    """Try all cases unless slow tests are left out."""
    _RUN["tries all"] = "not slow" not in config.option.markexpr


def is_tried(case: str, one_of: int) -> bool:
    """Whether this run tries ``case``; of many cases about every ``one_of``-th, in CI the same."""
    return _RUN["tries all"] or crc32(case.encode()) % one_of == 0


def sampled(cases: Iterable[Any], one_of: int) -> list[Any]:
    """Return ``cases`` as parameters of a test, with all but every ``one_of``-th marked slow."""
    return [
        case if index % one_of == 0 else pytest.param(case, marks=pytest.mark.slow)
        for index, case in enumerate(cases)
    ]
