"""Products of complex arrays as one node, whose flags conjugate its operands."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import smelt


def numbers(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    return (rng.integers(-4, 5, shape) + 1j * rng.integers(-4, 5, shape)).astype(np.complex64)


A, B, V, Z = numbers(6, 4), numbers(6, 5), numbers(6), numbers(3, 6, 4)
PRODUCTS = {
    "adjoint": (lambda a, b: jnp.conj(a).T @ b, (A, B), ["lhs_conj"]),
    "conjugated after the transpose": (lambda a, b: a.T.conj() @ b, (A, B), ["lhs_conj"]),
    "the right operand": (lambda a, b: a.T @ b.conj(), (A, B), ["rhs_conj"]),
    "both": (lambda a, b: a.conj().T @ b.conj(), (A, B), ["lhs_conj", "rhs_conj"]),
    "twice": (lambda a, b: a.conj().T.conj() @ b, (A, B), []),
    "in a jitted function": (jax.jit(lambda a, b: a.conj().T @ b), (A, B), ["lhs_conj"]),
    "einsum": (lambda a, b: jnp.einsum("ab,ac->bc", a.conj(), b), (A, B), ["lhs_conj"]),
    "a batch": (lambda z: jnp.einsum("zab,zac->zbc", z.conj(), z), (Z,), ["lhs_conj"]),
    "a vector": (lambda a, v: a.conj().T @ v, (A, V), ["lhs_conj"]),
    "two dims summed": (
        lambda z, y: jnp.tensordot(z.conj(), y, ((0, 1), (0, 1))),
        (Z, Z.copy()),
        ["lhs_conj"],
    ),
    "flattened": (jnp.vdot, (A, numbers(4, 6).T.copy()), ["lhs_conj"]),
    "the result of a product": (lambda a, b: (a.T @ b).conj().T @ a.T, (A, B), ["lhs_conj"]),
    "free dims that change places": (
        lambda z, b: jnp.tensordot(z.transpose(2, 1, 0).conj(), b, ((1,), (0,))),
        (Z, B),
        ["lhs_conj"],
    ),
    "negated": (lambda a, b: (-a).T @ b, (A, B), []),
    "a conjugate with another reader": (
        lambda a, b: (a.conj().T @ b)[:, :4] + a.conj()[:4],
        (A, B),
        ["lhs_conj"],
    ),
    "no columns": (lambda a, b: a.conj().T @ b, (numbers(4, 0), numbers(4, 2)), ["lhs_conj"]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_conjugate_is_a_flag_of_the_product(name: str) -> None:
    function, arrays, flags = PRODUCTS[name]
    specs = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]
    model = smelt.trace(function, *specs, complex_dots=True)
    found = [
        flag
        for node in model.graph
        if node.op_type == "DotGeneral"
        for flag in ("lhs_conj", "rhs_conj")
        if flag in node.attributes
    ]
    assert found == flags
    (result,) = smelt.compile(model, target="host", engine="numpy")(*arrays)
    np.testing.assert_allclose(result, function(*arrays), rtol=1e-5, atol=1e-4)


FOUR = {
    "one real operand": lambda a, b: a.T @ b.real,
    "nothing summed": lambda a, b: jnp.outer(a[0], b[0].conj()),
    "a sum of no elements": lambda a, b: a[:0].conj().T @ b[:0],
}


@pytest.mark.parametrize("name", FOUR)
def test_other_products_are_products_of_parts(name: str) -> None:
    specs = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in (A, B)]
    model = smelt.trace(FOUR[name], *specs, complex_dots=True)
    assert not any("pairs" in node.attributes for node in model.graph)


def test_host_and_c_multiply_pairs_and_other_targets_parts() -> None:
    specs = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in (A, B)]

    def function(a: jax.Array, b: jax.Array) -> jax.Array:
        return a.conj().T @ b

    for target in ("host", "c"):
        artifact = smelt.compile(function, *specs, target=target)
        assert artifact.report["taken"]["smelt.DotGeneral"] == 1
    found = smelt.compile(function, *specs, target="onnx")
    assert not {"Einsum", "DotGeneral"} & {node.op_type for node in found.model.graph}
