"""Arrays of any layout give the results of dense ones; other types are refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from smelt.errors import UsageError

GRAPH = "g (float[3,4] x, float[4,5] w) => (float[3,5] y) { y = MatMul(x, w) }"
X = np.arange(12, dtype=np.float32).reshape(3, 4)
W = np.arange(20, dtype=np.float32).reshape(4, 5)


def unaligned(array: np.ndarray) -> np.ndarray:
    behind = np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:]
    moved = behind.view(array.dtype).reshape(array.shape)
    assert not moved.flags.aligned
    return moved


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


TAKEN: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "column by column": np.asfortranarray,
    "backwards": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "with gaps": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    "repeated": lambda a: np.broadcast_to(a[:1], a.shape),
    "unaligned": unaligned,
    "read-only": read_only,
    "of a subclass": lambda a: a.view(np.recarray),
}


@pytest.mark.parametrize("engine", ["numpy", "native"], indirect=True)
def test_any_layout(compile_host) -> None:
    artifact = compile_host(GRAPH)
    for what, of in TAKEN.items():
        x, w = of(X), of(W)
        kept = x.copy(), w.copy()
        for _ in range(2):
            (found,) = artifact(x, w)
            np.testing.assert_array_equal(found, np.asarray(x) @ np.asarray(w), err_msg=what)
            assert type(found) is np.ndarray
        np.testing.assert_array_equal((*x.ravel(), *w.ravel()), np.append(*kept), err_msg=what)


@pytest.mark.parametrize("engine", ["numpy", "native"], indirect=True)
def test_other_types_are_refused(compile_host) -> None:
    artifact = compile_host(GRAPH)
    artifact(X, W)
    wrong = (X.astype(">f4"), X.astype(np.float64), X.tolist(), X.astype(object), "x", None)
    for given in wrong:
        with pytest.raises(UsageError, match="'x'") as caught:
            artifact(given, W)
        assert caught.value.code == "E671"


@pytest.mark.parametrize("engine", ["numpy", "native"], indirect=True)
def test_sums_over_nothing_and_results_of_nothing(compile_host) -> None:
    artifact = compile_host("g (float[M,K] x, float[K,N] w) => (float[M,N] y) { y = MatMul(x, w) }")
    for m, k, n in ((3, 0, 5), (0, 4, 5), (3, 4, 0), (0, 0, 0)):
        for _ in range(3):  # what comes again is compiled
            (found,) = artifact(np.ones((m, k), np.float32), np.ones((k, n), np.float32))
            np.testing.assert_array_equal(found, np.zeros((m, n)))
