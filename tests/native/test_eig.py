"""Eigenvalues of general matrices in C: as NumPy finds them, in pairs, with vectors of both sides."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir import text


def eig(a: np.ndarray) -> list[np.ndarray]:
    """Values, left and right vectors."""
    kind = {"float32": "float", "float64": "double"}[str(a.dtype)]
    dims = ",".join(map(str, a.shape))
    names = "wr, wi, lr, li, rr, ri"
    source = f"g ({kind}[{dims}] a) => ({names}) {{ {names} = smelt.Eig(a) }}"
    parts = smelt.compile(text.parse(source), target="c")(a)
    return [re + 1j * im for re, im in zip(parts[::2], parts[1::2], strict=True)]


def check(a: np.ndarray, tolerance: float = 1e-13) -> np.ndarray:
    """What defines vectors of both sides, their length, and the values of NumPy in some order."""
    values, left, right = eig(a)
    wide, size = a.astype(np.float64), max(np.abs(a).max(initial=0), 1e-300)
    turned = np.swapaxes(wide, -1, -2)
    for matrix, vectors, by in ((wide, right, values), (turned, left, values.conj())):
        error = matrix @ vectors - vectors * by[..., None, :]
        assert np.abs(error).max(initial=0) < tolerance * size * a.shape[-1]
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1, rtol=1e-6)
    expected = np.linalg.eigvals(wide)
    found = values.reshape(-1, a.shape[-1])
    for mine, theirs in zip(found, expected.reshape(found.shape), strict=True):
        distance = np.abs(np.sort_complex(mine) - np.sort_complex(theirs))
        assert distance.max(initial=0) < 1e3 * tolerance * size
    return values


def pairs_stand_side_by_side(values: np.ndarray) -> bool:
    k = 0
    while k < len(values):
        if values[k].imag == 0:
            k += 1
        elif values[k].imag > 0 and values[k + 1] == values[k].conj():
            k += 2
        else:
            return False
    return True


@pytest.mark.parametrize(
    "n", [5, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 9, 30))]
)
def test_a_batch_of_any_size(n: int) -> None:
    values = check(np.random.default_rng(0).standard_normal((2, 3, n, n)))
    assert all(map(pairs_stand_side_by_side, values.reshape(-1, n)))


MATRICES = {
    "symmetric": np.array([[2.0, 1, 0], [1, 2, 1], [0, 1, 2]]),
    "a turn": np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 2]]),
    "a cycle": np.roll(np.eye(6), 1, axis=0),
    "triangular": np.triu(np.arange(1.0, 17).reshape(4, 4)),
    "zero": np.zeros((3, 3)),
    "equal values": np.diag([3.0, 1, 1, -2]),
    "of rank one": np.outer(np.arange(1.0, 5), np.ones(4)),
    "large": np.array([[1.0, 2], [-3, 4]]) * 1e150,
    "small": np.array([[1.0, 2], [-3, 4]]) * 1e-150,
    "graded": np.array([[1.0, 2, 3], [1e-5, 2e-5, -1e-5], [1e-10, 1e-10, 3e-10]]),
}


@pytest.mark.slow  # compiles C
@pytest.mark.parametrize("name", MATRICES)
def test_matrices_of_a_kind(name: str) -> None:
    values = check(MATRICES[name])
    assert pairs_stand_side_by_side(values)


@pytest.mark.slow
def test_real_values_have_real_vectors() -> None:
    values, left, right = eig(MATRICES["symmetric"])
    assert not any(np.imag(each).any() for each in (values, left, right))


@pytest.mark.slow
def test_one_vector_for_a_value_that_has_no_more() -> None:
    values, _, right = eig(2 * np.eye(4) + np.eye(4, k=1))
    assert values.tolist() == [2] * 4
    np.testing.assert_allclose(np.abs(right), np.eye(4)[:, :1] * np.ones(4), atol=1e-12)


@pytest.mark.slow
def test_floats_are_computed_in_double() -> None:
    check(np.random.default_rng(1).standard_normal((2, 6, 6)).astype(np.float32), 1e-6)


@pytest.mark.slow
def test_what_is_not_finite_has_none_and_nothing_comes_of_nothing() -> None:
    a = np.stack([np.eye(3), np.full((3, 3), np.inf)])
    a[1, 0, 1] = np.nan
    assert all(np.isfinite(each[0]).all() and np.isnan(each[1]).all() for each in eig(a))
    assert [each.shape for each in eig(np.zeros((2, 0, 0)))] == [(2, 0), (2, 0, 0), (2, 0, 0)]


def test_its_type_has_a_name_of_its_own_where_the_file_includes_itself() -> None:
    source = "g (float[2,2] a) => (x, y, l, m, r, s) { x, y, l, m, r, s = smelt.Eig(a) }"
    written = smelt.compile(text.parse(source), target="c").files["model.c"].decode()
    assert "#define eig_number eig_number_wide" in written
    assert "#undef eig_number" in written
