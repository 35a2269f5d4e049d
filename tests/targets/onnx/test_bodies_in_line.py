"""What JAX functions become for the target ``onnx`` holds standard operators and no function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from fixpoint import difference, optimized

import smelt
from smelt.ir import scope

jax = pytest.importorskip("jax")
jnp, linalg = jax.numpy, jax.numpy.linalg
A = np.eye(3, dtype=np.float32) * 4 + np.arange(9, dtype=np.float32).reshape(3, 3) / 9
KEY = np.array([1, 2], np.uint32)


def in_a_loop(x: Any) -> Any:
    return jax.lax.fori_loop(0, 3, lambda i, a: jnp.tril(linalg.cholesky(a @ a.T + 1 * i)) + 1, x)


@smelt.function
def block(x: Any) -> Any:
    return linalg.solve(x, x[:, 0])


FUNCTIONS: dict[str, tuple[Callable[..., Any], str, np.ndarray, list[str]]] = {
    "an inverse": (linalg.inv, "f32[3,3]", A, []),
    "eigenvalues": (lambda x: linalg.eigh(x + x.T)[0], "f32[3,3]", A, []),
    "a draw": (lambda k: jax.random.normal(k, (4,)), "u32[2]", KEY, []),
    "a special function": (jax.scipy.special.gammaln, "f32[N,3]", A, []),
    "in a loop": (in_a_loop, "f32[3,3]", A, []),
    "in a branch": (lambda x: jax.lax.cond(x[0, 0] > 0, linalg.inv, jnp.sin, x), "f32[3,3]", A, []),
    "in a block": (lambda x: block(x) + block(x + 1), "f32[3,3]", A, ["block"]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_operator_and_no_function_beyond_onnx(name: str) -> None:
    fn, spec, x, functions = FUNCTIONS[name]
    artifact = smelt.compile(fn, spec, target="onnx")
    (data,) = artifact.files.values()
    proto = onnx.load_from_string(data)
    assert [function.name for function in proto.functions] == functions
    assert "smelt" not in {item.domain for item in proto.opset_import}
    assert all(node.domain != "smelt" for node in scope.nodes(artifact.model))
    np.testing.assert_allclose(artifact(x)[0], fn(x), rtol=2e-5, atol=2e-6)
    assert not difference(smelt.to_proto(artifact.model), optimized(artifact.model))


def test_functions_are_kept_on_request() -> None:
    """A file with functions has the operators again when it is loaded, for kernels of ``host``."""
    artifact = smelt.compile(linalg.inv, "f32[3,3]", target="onnx", functions=True)
    (data,) = artifact.files.values()
    assert {f.domain for f in onnx.load_from_string(data).functions} == {"smelt"}
    assert {"LU", "TriangularSolve"} <= {node.op_type for node in smelt.load(data).graph}
    np.testing.assert_allclose(artifact(A)[0], linalg.inv(A), rtol=2e-5, atol=2e-6)


def test_host_computes_the_operators_of_a_function_by_its_kernels() -> None:
    artifact = smelt.compile(linalg.inv, "f32[3,3]", target="host")
    assert {"LU", "TriangularSolve"} <= {node.op_type for node in artifact.model.graph}
