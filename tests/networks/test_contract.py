"""``smelt.einsum`` computes what ``numpy.einsum`` computes, for any equation and kind of array."""

from __future__ import annotations

import contextlib
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

import smelt
from smelt.errors import SmeltError, UsageError
from smelt.networks import contract

TYPES = ("f4", "f8", "c8", "c16", "i4", "i8", "u1", "i1", "f2", "?")
TOLERANCES = {"e": 2e-2, "f": 1e-4, "F": 1e-4}


def drawn(rng: Generator) -> tuple[str, list[np.ndarray]]:
    """An equation with repeated labels, ellipses, sizes 0 and 1, and arrays of one or more types."""
    labels = list("abcdefg"[: int(rng.integers(1, 8))])
    sizes = {n: int(rng.choice([0, 1, 2, 3, 4], p=[0.06, 0.2, 0.3, 0.3, 0.14])) for n in labels}
    hidden = [int(n) for n in rng.integers(1, 4, int(rng.integers(0, 3)))]
    with_dots = rng.random() < 0.35
    same, first = rng.random() < 0.7, rng.choice(TYPES)
    terms, arrays = [], []
    for _ in range(int(rng.integers(1, 5))):
        term = [str(n) for n in rng.choice(labels, int(rng.integers(0, 4)))]
        one = term[0] if term and rng.random() < 0.25 else None  # broadcasts
        shape = [1 if n == one else sizes[n] for n in term]
        if with_dots and rng.random() < 0.6:
            place = int(rng.integers(0, len(term) + 1))
            count = int(rng.integers(0, len(hidden) + 1))
            dims = [1 if rng.random() < 0.2 else n for n in hidden[len(hidden) - count :]]
            term[place:place], shape[place:place] = ["..."], dims
        terms.append("".join(term))
        arrays.append(numbers(rng, tuple(shape), str(first if same else rng.choice(TYPES))))
    equation = ",".join(terms)
    if rng.random() < 0.85:
        out = [n for n in sorted({*equation} - {*".,"}) if rng.random() < 0.45]
        rng.shuffle(out)
        dots = "..." if "..." in equation else ""
        equation += f"->{''.join(out)}{dots}"
    return equation, arrays


def numbers(rng: Generator, shape: tuple[int, ...], code: str) -> np.ndarray:
    kind = np.dtype(code)
    array: Any = rng.integers(-4, 5, shape) if kind.kind in "iu" else rng.standard_normal(shape)
    if kind.kind == "c":
        array = array + 1j * rng.standard_normal(shape)
    array = np.asarray(array > 0.3 if kind.kind == "b" else array).astype(kind)
    return array.T.copy().T if rng.random() < 0.2 else array  # not contiguous


def agree(seed: int, count: int, **options: Any) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        equation, arrays = drawn(rng)
        expected = np.asarray(np.einsum(equation, *arrays))
        found = np.asarray(smelt.einsum(equation, *arrays, **options))
        about = f"{equation} {[(a.shape, a.dtype) for a in arrays]}"
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), about
        tolerance = TOLERANCES.get(expected.dtype.char, 1e-9)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=about)


def test_random_equations_agree_with_numpy() -> None:
    agree(0, 100, engine="numpy")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_many_random_equations_agree_with_numpy(seed: int) -> None:
    agree(seed, 1000, engine="numpy")


@pytest.mark.slow
def test_random_equations_in_slices_agree_with_numpy() -> None:
    rng, compared = np.random.default_rng(9), 0
    for _ in range(200):
        equation, arrays = drawn(rng)
        with contextlib.suppress(SmeltError):  # some cannot be sliced that small
            found = np.asarray(smelt.einsum(equation, *arrays, memory_limit=4, engine="numpy"))
            tolerance = TOLERANCES.get(found.dtype.char, 1e-9)
            expected = np.einsum(equation, *arrays)
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
            compared += 1
    assert compared > 150


@pytest.mark.slow
def test_random_equations_compiled_to_c_agree_with_numpy() -> None:
    agree(5, 60, engine="native")


X, Y = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(3, 4)


def test_the_interleaved_form() -> None:
    for labels in ([0, 1, 2], ["row", "sum", ("col", 1)]):
        i, j, k = labels
        np.testing.assert_array_equal(smelt.einsum(X, [i, j], Y, [j, k], [i, k]), X @ Y)
    np.testing.assert_array_equal(smelt.einsum(Y, [1, 0]), Y.T)
    np.testing.assert_array_equal(smelt.einsum(X, [..., 0], Y, [0, 1], [..., 1]), X @ Y)


def test_the_result_goes_to_out() -> None:
    out = np.empty((2, 4))
    assert smelt.contract("ab,bc->ac", X, Y, out=out) is out
    np.testing.assert_array_equal(out, X @ Y)


def test_a_result_is_new_and_a_number_without_dims() -> None:
    result = smelt.einsum("ab->ba", X)
    assert result.flags.writeable
    assert not np.shares_memory(result, X)
    assert isinstance(smelt.einsum("ab,ab->", X, X), np.float32)


def test_types_follow_numpy_or_dtype() -> None:
    assert smelt.einsum("ab,bc->ac", X, Y.astype("i4")).dtype == np.float64
    assert smelt.einsum("ab,bc->ac", X, Y, dtype="c16").dtype == np.complex128
    assert smelt.einsum("ab,bc->ac", X.astype(">f4"), Y.astype(">f4")).dtype == np.float32
    np.testing.assert_array_equal(smelt.einsum(",ab->ab", 2, [[1, 2]]), [[2, 4]])


def test_the_largest_operand_may_be_the_limit() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((4, 4)) for _ in range(3)]
    found = smelt.contract("ax,bx,cx->abc", *arrays, memory_limit="max_input")
    np.testing.assert_allclose(found, np.einsum("ax,bx,cx->abc", *arrays), rtol=1e-9)


def test_a_call_with_like_arrays_is_not_compiled_again() -> None:
    smelt.einsum("ab,bc->ac", X, Y)
    before = contract._cached_contraction.cache_info()
    smelt.einsum("ab,bc->ac", X + 1, Y)
    smelt.einsum("ab,bc->ac", X.astype("f8"), Y.astype("f8"), optimize=[(0, 1)])
    after = contract._cached_contraction.cache_info()
    assert after.hits == before.hits + 1
    assert after.maxsize == contract.KEPT


WRONG: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "texts": (("ab,bc->ac", X, "no"), {}, "E671"),
    "objects": (("ab,bc->ac", X, object()), {}, "E671"),
    "out of another shape": (("ab,bc->ac", X, Y), {"out": np.empty(3)}, "E656"),
    "out that is a list": (("ab->a", X), {"out": [0.0, 0.0]}, "E656"),
    "out that is a number": (("ab->", X), {"out": np.float32(0)}, "E656"),
    "out that is read-only": (("ab->ab", X), {"out": np.broadcast_to(X, X.shape)}, "E656"),
    "a smaller type": (("ab,bc->ac", X, Y), {"dtype": "f2"}, "E656"),
    "a wide float": (("ab->a", X.astype("longdouble")), {}, "E656"),
    "labels missing": ((X, [0, 1], Y), {}, "E655"),
    "nothing": ((), {}, "E655"),
    "a number for labels": ((X, 3), {}, "E655"),
    "a result without an operand": ((X, [0, 1], [2]), {}, "E655"),
    "an unknown option": (("ab,bc->ac", X, Y), {"order": "C"}, "E660"),
    "a limit": (("ab,bc->ac", X, Y), {"memory_limit": "all"}, "E658"),
}


@pytest.mark.parametrize(("operands", "options", "code"), WRONG.values(), ids=WRONG)
def test_each_mistake_has_a_code(operands: Any, options: Any, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        smelt.einsum(*operands, **options)
    assert caught.value.code == code


def test_jax_arrays_come_back_as_such() -> None:
    jnp = pytest.importorskip("jax.numpy")
    result = smelt.einsum("ab,bc->ac", jnp.asarray(X, jnp.bfloat16), jnp.asarray(Y, jnp.bfloat16))
    assert isinstance(result, jnp.ndarray)
    assert result.dtype == jnp.bfloat16
    np.testing.assert_array_equal(smelt.einsum("ab,bc->ac", jnp.asarray(X), Y), X @ Y)


def test_tensors_come_back_as_such() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    result = smelt.einsum("ab,bc->ac", torch.from_numpy(X), torch.from_numpy(Y))
    assert isinstance(result, torch.Tensor)
    np.testing.assert_array_equal(result.numpy(), X @ Y)
    half = torch.ones(2, 2, dtype=torch.bfloat16)
    assert smelt.einsum("ab,bc->ac", half, half).dtype == torch.bfloat16
    out = torch.empty(2, 4)
    smelt.einsum("ab,bc->ac", torch.from_numpy(X), torch.from_numpy(Y), out=out)
    np.testing.assert_array_equal(out.numpy(), X @ Y)
    with pytest.raises(UsageError, match="E671"):
        smelt.einsum("ab,bc->ac", torch.eye(2).to_sparse(), half)


def test_floats_of_8_bits_go_in_and_out() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        small = torch.eye(3).to(dtype)
        result = smelt.einsum("ab,bc->ac", small, small, engine="numpy")
        assert result.dtype == dtype
        assert torch.equal(result.float(), torch.eye(3))


def test_a_tensor_counts_that_out_changed_it() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    out = torch.zeros(2, 3, dtype=torch.complex64)
    smelt.einsum("ab->ab", torch.from_numpy(X), out=out.conj(), engine="numpy")
    assert out._version == 1
    np.testing.assert_array_equal(out.numpy(), X)


def test_the_type_may_be_named_as_numpy_or_pytorch_does() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    for tensor in (torch.from_numpy(X), torch.from_numpy(X.copy()).requires_grad_()):
        for dtype in (torch.float64, np.float64, "f8"):
            assert smelt.einsum("ab->a", tensor, dtype=dtype).dtype == torch.float64


class Exporter:
    """An array of a package that has DLPack and an array namespace only."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    def __array_namespace__(self) -> Any:
        return Namespace


class Namespace:
    @staticmethod
    def from_dlpack(array: Any) -> Exporter:
        return Exporter(np.from_dlpack(array))


def test_arrays_of_other_packages_are_shared_by_dlpack() -> None:
    result = smelt.einsum("ab,bc->ac", Exporter(X), Exporter(Y))
    assert isinstance(result, Exporter)
    np.testing.assert_array_equal(result.array, X @ Y)


def test_a_call_that_cannot_record_gradients_is_refused(monkeypatch) -> None:
    """Slices and tasks of Ray compute numbers, which PyTorch cannot differentiate."""

    class Recorded(np.ndarray):
        requires_grad = True

    torch = SimpleNamespace(is_grad_enabled=lambda: True, Tensor=Recorded)
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(UsageError, match="records none"):
        contract.prepared(("ab,bc->ac", X.view(Recorded), Y))
