"""Results that share memory, or that callers could not use as their own, are copied."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.targets.host.any_sizes.runner import _unshared

DATA = np.arange(12.0).reshape(3, 4)


def locked(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


@pytest.mark.parametrize(
    ("result", "is_kept"),
    [
        (np.zeros((3, 4)), True),
        (locked(np.zeros((3, 4))), False),
        (np.zeros((4, 3)).T, False),
        (locked(np.zeros((4, 3)).T), False),
        (DATA, False),
        (DATA[1:], False),
    ],
)
def test_results_are_the_callers_own(result: np.ndarray, is_kept: bool) -> None:
    (made,) = _unshared([result], [DATA])
    assert (made is result) is is_kept
    assert np.array_equal(made, result)
    assert made.flags.writeable
    assert made.flags.c_contiguous
    assert not np.may_share_memory(made, DATA)


def test_results_share_nothing_with_each_other() -> None:
    result = np.zeros(4)
    first, second = _unshared([result, result[:2]], [])
    assert first is result
    assert not np.may_share_memory(first, second)
