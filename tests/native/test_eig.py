"""Eigenvalues and forms of Schur in C: as LAPACK finds them, with vectors of both sides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import smelt
from smelt import operators
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
def test_non_finite_matrices_give_nan_and_empty_ones_give_empty_results() -> None:
    a = np.stack([np.eye(3), np.full((3, 3), np.inf)])
    a[1, 0, 1] = np.nan
    assert all(np.isfinite(each[0]).all() and np.isnan(each[1]).all() for each in eig(a))
    assert [each.shape for each in eig(np.zeros((2, 0, 0)))] == [(2, 0), (2, 0, 0), (2, 0, 0)]


def test_its_type_has_a_name_of_its_own_where_the_file_includes_itself() -> None:
    source = "g (float[2,2] a) => (x, y, l, m, r, s) { x, y, l, m, r, s = smelt.Eig(a) }"
    written = smelt.compile(text.parse(source), target="c").files["model.c"].decode()
    assert "#define eig_number eig_number_wide" in written
    assert "#undef eig_number" in written


def lapack(operator: str, *arrays: np.ndarray) -> list[np.ndarray]:
    """What the reference of an operator, which is LAPACK, makes of it, parts joined."""
    declared = operators.find("smelt", operator)
    assert declared is not None
    return joined(declared.reference(arrays, {}))


def joined(parts: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [re + 1j * im for re, im in zip(parts[::2], parts[1::2], strict=True)]


def in_c(operator: str, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    count = {"Schur": 2, "ComplexSchur": 4}.get(operator, 6)
    kinds = [{"float32": "float", "float64": "double"}[str(a.dtype)] for a in arrays]
    given = ", ".join(
        f"{kind}[{','.join(map(str, a.shape))}] x{i}"
        for i, (kind, a) in enumerate(zip(kinds, arrays, strict=True))
    )
    names = ", ".join(f"y{i}" for i in range(count))
    read = ", ".join(f"x{i}" for i in range(len(arrays)))
    source = f"g ({given}) => ({names}) {{ {names} = smelt.{operator}({read}) }}"
    found: tuple[np.ndarray, ...] = smelt.compile(text.parse(source), target="c")(*arrays)
    return found


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(2).standard_normal(shape)


@pytest.mark.parametrize("n", [4, *(pytest.param(n, marks=pytest.mark.slow) for n in (7, 12))])
def test_values_come_in_the_order_of_lapack(n: int) -> None:
    """LAPACK itself finds another vector of one pair in twenty if the last bits differ."""
    a = draw(50, n, n)
    found, expected = joined(in_c("Eig", a)), lapack("Eig", a)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-11)
    is_real = expected[0].imag == 0
    for ours, theirs in zip(found[1:], expected[1:], strict=True):
        same = (np.abs(ours - theirs) < 1e-9).all(axis=-2)
        assert same[is_real].all()
        assert same[~is_real].mean() > 0.9


@pytest.mark.parametrize("n", [4, pytest.param(9, marks=pytest.mark.slow)])
def test_complex_values_and_vectors_are_those_of_lapack(n: int) -> None:
    found = joined(in_c("ComplexEig", draw(20, n, n), draw(20, n + 1, n)[:, 1:]))
    expected = lapack("ComplexEig", draw(20, n, n), draw(20, n + 1, n)[:, 1:])
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


@pytest.mark.slow
def test_forms_of_schur() -> None:
    """Their diagonal is LAPACK's; its phases of complex vectors hang on the last bits."""
    re, im = draw(2, 3, 6, 6)
    im[1, 2, 3] = np.nan
    (form, vectors), (expected, _) = in_c("Schur", re), lapack_schur(re)
    np.testing.assert_allclose(vectors @ form @ vectors.swapaxes(-1, -2), re, atol=1e-13)
    np.testing.assert_allclose(diagonal(form), diagonal(expected), atol=1e-12)
    form, vectors = joined(in_c("ComplexSchur", re, im))
    expected = lapack("ComplexSchur", re, im)[0]
    whole = vectors @ form @ vectors.conj().swapaxes(-1, -2)
    np.testing.assert_allclose(whole[::2], (re + 1j * im)[::2], atol=1e-13)
    np.testing.assert_allclose(diagonal(form), diagonal(expected), atol=1e-12)
    assert not np.tril(form[::2], -1).any()
    assert np.isnan(form[1]).all()
    assert np.isnan(vectors[1]).all()


def lapack_schur(a: np.ndarray) -> Sequence[np.ndarray]:
    declared = operators.find("smelt", "Schur")
    assert declared is not None
    return tuple(declared.reference((a,), {}))


def diagonal(a: np.ndarray) -> np.ndarray:
    return np.diagonal(a, 0, -2, -1)


ISOLATED = {
    "upper": np.triu(draw(5, 5)),
    "lower": np.tril(draw(5, 5)),
    "rows of zeros": draw(5, 5) * np.array([1, 0, 1, 1, 0])[:, None],
    "roots at zero": np.eye(5, k=-1) + np.outer([1, 0, 0, 0, 0], [3.0, -2, 1, 0, 0]),
    "of blocks": np.kron(np.diag([1.0, 0, 2]), [[0.0, -1], [3, 0]]),
    "of Jordan": 2 * np.eye(4) + np.eye(4, k=1),
    "of Jordan, of zeros": np.eye(4, k=1),
    "scaled": np.outer([1, 1e6, 1e-6], [1, 1e-6, 1e6]) * (np.ones((3, 3)) + np.diag([3, 1, 0])),
}


@pytest.mark.slow  # compiles C
@pytest.mark.parametrize("name", ISOLATED)
def test_rows_that_are_set_off_first_come_as_lapack_sets_them_off(name: str) -> None:
    a = ISOLATED[name]
    found, expected = joined(in_c("Eig", a)), lapack("Eig", a)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)
    found, expected = joined(in_c("ComplexEig", a, 0 * a)), lapack("ComplexEig", a, 0 * a)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)
