"""Special functions on the host: by SciPy, or by the reference of their operator."""

from __future__ import annotations

import numpy as np
import pytest

from smelt import operators


@pytest.mark.parametrize("name", ["Erf", "Erfc", "Lgamma", "Digamma", "BesselI1e"])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_agrees_with_the_reference(compile_host, name: str, dtype: str) -> None:
    kind = {"float": np.float32, "double": np.float64}[dtype]
    x = np.array([0, -0.0, 0.5, -0.5, 1, 2.5, -7.3, 9, np.inf, -np.inf, np.nan], kind)
    artifact = compile_host(f"g ({dtype}[N] x) => (y) {{ y = smelt.{name}(x) }}")
    (expected,) = operators.find("smelt", name).reference((x,), {})
    (got,) = artifact(x)
    assert got.dtype == kind
    np.testing.assert_allclose(got, expected, rtol=1e-6 if dtype == "float" else 1e-14)


def test_operands_broadcast(compile_host) -> None:
    artifact = compile_host("g (double[M,1] a, double[N] x) => (y) { y = smelt.Igamma(a, x) }")
    a, x = np.array([[0.5], [2.0]]), np.array([0.1, 1.0, 3.0])
    (expected,) = operators.find("smelt", "Igamma").reference((a, x), {})
    np.testing.assert_array_equal(artifact(a, x)[0], expected)
