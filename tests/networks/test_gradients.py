"""``smelt.einsum`` in functions of JAX, and recorded by PyTorch: equal to their own einsum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smelt
from smelt.errors import SmeltError
from smelt.operators.semiring import SEMIRINGS

CASES: dict[str, list[tuple[int, ...]]] = {
    "ab,bc,cd->ad": [(2, 3), (3, 4), (4, 2)],
    "aab,b->b": [(3, 3, 2), (2,)],
    "aaa,ab->": [(3, 3, 3), (3, 2)],
    "abx,x->x": [(2, 3, 4), (4,)],
    "...a,a...->...": [(2, 1, 3), (3, 5)],
    "a,b,->ab": [(2,), (3,), ()],
    "ab,b->a": [(2, 3), (1,)],
    "ab->ba": [(2, 3)],
    "ab,b->a ": [(2, 0), (0,)],
}


def arrays_of(equation: str, dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in CASES[equation]]
    if dtype.startswith("c"):
        arrays = [array + 1j * rng.standard_normal(array.shape) for array in arrays]
    return [np.asarray(array).astype(dtype) for array in arrays]


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f4", "c8"])
@pytest.mark.parametrize("equation", CASES)
def test_jax_differentiates_batches_and_compiles(equation: str, dtype: str) -> None:
    check_jax(equation, dtype)


def test_jax_takes_the_gradient_of_a_diagonal() -> None:
    check_jax("aab,b->b", "f4")


def check_jax(equation: str, dtype: str) -> None:
    jax = pytest.importorskip("jax")
    jnp, arrays = jax.numpy, arrays_of(equation, dtype)

    def ours(*operands: Any) -> Any:
        return smelt.einsum(equation, *operands, engine="numpy")

    def theirs(*operands: Any) -> Any:
        return jnp.einsum(equation, *operands)

    def loss(contract: Any) -> Any:
        return lambda *operands: jnp.sum(jnp.abs(contract(*operands)) ** 2)

    close(jax.jit(ours)(*arrays), theirs(*arrays))
    numbers = tuple(range(len(arrays)))
    for wrap in (
        lambda f: jax.jit(jax.grad(loss(f), numbers)),
        lambda f: jax.grad(loss(f), numbers),
    ):
        for found, expected in zip(wrap(ours)(*arrays), wrap(theirs)(*arrays), strict=True):
            close(found, expected)
    tangents = [array[::-1] if array.ndim else array for array in arrays]
    for found, expected in zip(
        jax.jvp(ours, arrays, tangents), jax.jvp(theirs, arrays, tangents), strict=True
    ):
        close(found, expected)
    stacked = np.stack([arrays[0], 2 * arrays[0]], axis=-1)
    axes = (stacked.ndim - 1, *(None for _ in arrays[1:]))
    close(jax.vmap(ours, axes)(stacked, *arrays[1:]), jax.vmap(theirs, axes)(stacked, *arrays[1:]))


@pytest.mark.slow
def test_second_derivatives_in_jax() -> None:
    jax = pytest.importorskip("jax")
    x, y = arrays_of("ab,b->a", "f4")

    def energy(contract: Any) -> Any:
        return lambda v: jax.numpy.sum(contract("ab,b->a", x, v) ** 3)

    close(jax.hessian(energy(smelt.einsum))(y), jax.hessian(energy(jax.numpy.einsum))(y))


def test_jax_gets_errors_with_codes() -> None:
    jax = pytest.importorskip("jax")
    x = np.ones((2, 2), np.float32)

    def longest(x: Any) -> Any:
        return smelt.einsum("ab,ba->", x, x, semiring="max_plus")

    close(jax.jit(longest)(x), 2)
    with pytest.raises(SmeltError, match="E102"):
        jax.grad(longest)(x)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("equation", CASES)
def test_pytorch_records_it(equation: str, dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    if equation == "ab,b->a":
        return  # torch.einsum does not broadcast a dim of size 1 that is summed
    gradients = []
    for contract in (smelt.einsum, torch.einsum):
        tensors = [torch.from_numpy(x.copy()).requires_grad_() for x in arrays_of(equation, dtype)]
        text = equation.replace(" ", "")
        contract(text, *tensors).abs().pow(2).sum().backward()
        gradients.append([tensor.grad for tensor in tensors])
    for found, expected in zip(*gradients, strict=True):
        close(found, expected.resolve_conj())


@pytest.mark.parametrize("options", [{"semiring": "max_plus"}, {"out": np.zeros(2)}])
def test_pytorch_loses_no_gradient(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    x = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(SmeltError, match="E671 a tensor needs a gradient"):
        smelt.einsum("ab->a", x, **options)
    with torch.no_grad():
        smelt.einsum("ab->a", x, **options)
    assert smelt.einsum("ab->a", x, semiring=SEMIRINGS["sum_product"]).requires_grad


def test_a_type_is_cast_by_the_rule_in_gradients_too() -> None:
    jax = pytest.importorskip("jax")
    x = np.ones((2, 2), np.float32)
    with pytest.raises(SmeltError, match="E656"):
        jax.jit(lambda x: smelt.einsum("ab->a", x, dtype="f2"))(x)
    half = jax.jit(lambda x: smelt.einsum("ab->a", x, dtype="f2", casting="unsafe"))(x)
    assert half.dtype == np.float16
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    with pytest.raises(SmeltError, match="E656"):
        smelt.einsum("ab->a", torch.from_numpy(x).requires_grad_(), dtype="f2")


def test_a_derivative_has_a_path_of_its_own() -> None:
    x, y = np.ones((2, 3, 4), np.float32), np.arange(12, dtype=np.float32).reshape(3, 4)
    expected = np.broadcast_to(y.sum(1)[:, None], x.shape)
    options: dict[str, Any] = {"optimize": [(0, 1)], "engine": "numpy"}
    jax = pytest.importorskip("jax")
    gradient = jax.grad(lambda x: smelt.einsum("abd,bc->c", x, y, **options).sum())
    np.testing.assert_array_equal(gradient(x), expected)
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    tensor = torch.from_numpy(x).requires_grad_()
    smelt.einsum("abd,bc->c", tensor, torch.from_numpy(y), **options).sum().backward()
    np.testing.assert_array_equal(tensor.grad, expected)


def test_pytorch_checks_second_derivatives() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    tensors = [torch.from_numpy(x).requires_grad_() for x in arrays_of("aab,b->b", "c16")]
    assert torch.autograd.gradgradcheck(lambda *t: smelt.einsum("aab,b->b", *t), tensors)
