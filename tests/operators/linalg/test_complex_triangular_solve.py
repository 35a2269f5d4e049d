"""``smelt.ComplexTriangularSolve``: its body beside the reference."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

FLAGS = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")


def parts(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    re, im = np.random.default_rng(0).normal(size=(2, *shape))
    return re, im


@pytest.mark.parametrize(
    "flags",
    [
        *((1, 1, 0, 0, 0), (1, 0, 1, 1, 0), (0, 1, 0, 1, 1)),
        *(
            pytest.param(flags, marks=pytest.mark.slow)
            for flags in itertools.product((0, 1), repeat=5)
        ),
    ],
    ids=str,
)
def test_the_matrix_times_the_solution_is_the_right_hand_side(both, flags: tuple[int, ...]) -> None:
    given = dict(zip(FLAGS, flags, strict=True))
    a, b = parts(2, 4, 4), parts(2, 4, 3) if given["left_side"] else parts(2, 3, 4)
    matrix = (np.tril if given["lower"] else np.triu)(a[0] + 1j * a[1])
    if given["unit_diagonal"]:
        matrix[:, range(4), range(4)] = 1
    matrix = matrix.conj() if given["conjugate_a"] else matrix
    matrix = matrix.swapaxes(-1, -2) if given["transpose_a"] else matrix
    for re, im in both("ComplexTriangularSolve", *a, *b, **given):
        x = re + 1j * im
        found = matrix @ x if given["left_side"] else x @ matrix
        np.testing.assert_allclose(found, b[0] + 1j * b[1], atol=1e-9)


@pytest.mark.parametrize("shape", [(1, 1), (2, 0, 0), (0, 2, 2)], ids=str)
def test_small_and_empty(both, shape: tuple[int, ...]) -> None:
    got, expected = both("ComplexTriangularSolve", *parts(*shape), *parts(*shape))
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_numbers_whose_squares_leave_the_range(both) -> None:
    a, b = np.array([[1e200]]), np.array([[1e200]])
    for re, im in both("ComplexTriangularSolve", a, a, b, -b):
        np.testing.assert_allclose([re[0, 0], im[0, 0]], [0, -1], atol=1e-12)
