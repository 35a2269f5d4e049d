"""Artifacts of contractions in functions of JAX, and recorded by PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smelt
from smelt.errors import SmeltError

jax = pytest.importorskip("jax")
jnp = jax.numpy
RNG = np.random.default_rng(0)
FIXED = {dtype: RNG.standard_normal((2, 4, 4)).astype(dtype) for dtype in ("f4", "c8")}
CALL = "smelt_program"


def fixed_of(x: Any) -> np.ndarray:
    return FIXED["c8" if np.iscomplexobj(x) else "f4"]


def sums(x: Any, y: Any) -> tuple[Any, ...]:
    return x @ y - 2 * (y @ x), jnp.einsum("ab,bc,ca->", x, y, y), y


Case = tuple[Callable[[str, str], Any], Callable[..., Any], list[tuple[int, ...]]]

TERMS = [
    [("ab,bc->ac", (0, 1)), ("ab,bc->ac", (1, 0), -2)],
    ("ab,bc,ca->", (0, 1, 1)),
    ("ab->ab", (1,)),
]

CASES: dict[str, Case] = {
    "chain": (
        lambda d, e: smelt.compile_einsum("ab,bc->ac", [(2, 3), (3, 4)], d, engine=e),
        lambda x, y: (x @ y,),
        [(2, 3), (3, 4)],
    ),
    "constants": (
        lambda d, e: smelt.compile_einsum(
            "ab,bc,cd->ad", [(2, 4), *FIXED[d]], d, constants=[1, 2], engine=e
        ),
        lambda x: (x @ fixed_of(x)[0] @ fixed_of(x)[1],),
        [(2, 4)],
    ),
    "slices": (
        lambda d, e: smelt.compile_einsum(
            "abcd,cdef,efab->", [(2, 3, 2, 3)] * 3, d, memory_limit=12, engine=e
        ),
        lambda *v: (jnp.einsum("abcd,cdef,efab->", *v),),
        [(2, 3, 2, 3)] * 3,
    ),
    "sums": (
        lambda d, e: smelt.compile_einsums(TERMS, [(3, 3)] * 2, d, engine=e),
        sums,
        [(3, 3)] * 2,
    ),
    "view": (
        lambda d, e: smelt.compile_einsum("ab->ba", [(2, 3)], d, engine=e),
        lambda x: (x.T,),
        [(2, 3)],
    ),
    "sizes": (
        lambda d, e: smelt.compile_einsum("ab,bc->ac", [("N", 3), (3, "M")], d, engine=e),
        lambda x, y: (x @ y,),
        [(5, 3), (3, 2)],
    ),
}


def arrays_of(shapes: list[tuple[int, ...]], dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [
        (rng.standard_normal(s) + (1j * rng.standard_normal(s) if dtype == "c8" else 0)).astype(
            dtype
        )
        for s in shapes
    ]


def close(found: Any, expected: Any) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=2e-4, atol=2e-4)


def loss(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *v: sum(jnp.sum(jnp.abs(result) ** 2) for result in function(*v))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["numpy", "native"])
@pytest.mark.parametrize("dtype", ["f4", "c8"])
@pytest.mark.parametrize("case", CASES)
def test_an_artifact_is_a_function_of_jax(case: str, dtype: str, engine: str) -> None:
    compile_, expected, shapes = CASES[case]
    artifact, arrays = compile_(dtype, engine), arrays_of(shapes, dtype)
    route = artifact.in_jax(shapes)
    assert route == ("ffi" if engine == "native" else "callback: the engine is numpy")
    compiled = jax.jit(artifact)
    assert (CALL in compiled.lower(*arrays).as_text()) == (route == "ffi")
    close(compiled(*arrays), expected(*arrays))
    numbers = tuple(range(len(arrays)))
    gradient = jax.grad(loss(expected), numbers)(*arrays)
    close(jax.grad(loss(artifact), numbers)(*arrays), gradient)
    close(jax.jit(jax.grad(loss(artifact), numbers))(*arrays), gradient)
    stacked, axes = (
        np.stack([arrays[0], 2 * arrays[0]], -1),
        (len(shapes[0]), *(None for _ in arrays[1:])),
    )
    batches = [jax.vmap(each, axes)(stacked, *arrays[1:]) for each in (artifact, expected)]
    close(*batches)


def test_a_sum_is_a_function_of_jax() -> None:
    test_an_artifact_is_a_function_of_jax("sums", "f4", "numpy")


def test_xla_calls_the_library() -> None:
    """In compiled loops, under differentiation, and from several programs."""
    x, y = arrays_of([(3, 3)] * 2, "f4")
    artifact = smelt.compile_einsum("ab,bc->ac", [(3, 3)] * 2, engine="native")
    assert artifact.in_jax() == "ffi"

    def power(x: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda i, v: artifact(v, y)[0], x)

    close([jax.jit(power)(x)], [x @ y @ y @ y])
    close([jax.jit(jax.grad(lambda x: artifact(x, y)[0].sum()))(x)], [np.ones((3, 3)) @ y.T])


WRONG: dict[str, list[Any]] = {
    "1 arrays for 2 operands": [np.ones((2, 3), "f4")],
    r"operand 1 is float32\[3, 5\], not float32\[3,4\]": [
        np.ones((2, 3), "f4"),
        np.ones((3, 5), "f4"),
    ],
    "operand 1 is int32": [np.ones((2, 3), "f4"), np.ones((3, 4), "i4")],
    "cannot be read as a": [np.ones((2, 3), "f4"), None],
}


@pytest.mark.parametrize("what", WRONG)
def test_values_that_do_not_fit_are_refused(what: str) -> None:
    artifact = smelt.compile_einsum("ab,bc->ac", [(2, 3), (3, 4)])
    first, *others = WRONG[what]
    with pytest.raises(SmeltError, match=f"E671 .*{what}"):
        jax.make_jaxpr(lambda x: artifact(x, *others))(first)
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    with pytest.raises(SmeltError, match=f"E671 .*{what}"):
        artifact(torch.from_numpy(first).requires_grad_(), *others)


def test_other_algebras_have_no_derivative() -> None:
    artifact = smelt.compile_einsum("ab,b->a", [(2, 2), (2,)], semiring="max_plus", engine="numpy")
    x, y = np.ones((2, 2), np.float32), np.zeros(2, np.float32)
    close(jax.jit(artifact)(x, y), [np.ones(2)])
    with pytest.raises(SmeltError, match="E102"):
        jax.jvp(artifact, (x, y), (x, y))


def test_artifacts_of_models_name_what_they_cannot_read() -> None:
    artifact = smelt.compile(smelt.trace(lambda x: x + 1, "f32[3]"), target="host")
    with pytest.raises(SmeltError, match=r"E671 .*cannot be read as an array"):
        jax.make_jaxpr(artifact)(np.ones(3, np.float32))


@pytest.mark.parametrize("dtype", ["f4", "c8"])
@pytest.mark.parametrize("case", CASES)
def test_pytorch_records_an_artifact(case: str, dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    compile_, expected, shapes = CASES[case]
    artifact, arrays = compile_(dtype, "numpy"), arrays_of(shapes, dtype)
    tensors = [torch.from_numpy(array.copy()).requires_grad_() for array in arrays]
    sum((result.abs() ** 2).sum() for result in artifact(*tensors)).backward()
    gradients = jax.grad(loss(expected), tuple(range(len(arrays))))(*arrays)
    close([tensor.grad.resolve_conj() for tensor in tensors], [np.conj(each) for each in gradients])
