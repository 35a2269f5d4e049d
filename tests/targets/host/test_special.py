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


def words(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**32, shape, np.uint32)


@pytest.mark.parametrize("shapes", [((1,), (1,), (1,), (33,)), ((3, 1), (3, 1), (5,), (3, 5))])
def test_random_bits_are_compiled(compile_host, shapes: tuple[tuple, ...]) -> None:
    given = [words(shape, seed) for seed, shape in enumerate(shapes)]
    inputs = ", ".join(
        f"uint32[{','.join(map(str, shape))}] {name}"
        for name, shape in zip("abcd", shapes, strict=True)
    )
    artifact = compile_host(f"g ({inputs}) => (y, z) {{ y, z = smelt.Threefry2x32(a, b, c, d) }}")
    expected = operators.find("smelt", "Threefry2x32").reference(given, {})
    for result, wanted in zip(artifact(*given), expected, strict=True):
        np.testing.assert_array_equal(result, wanted)
    compiled = artifact.opened().compiled
    assert compiled is None or compiled.why == ""


def test_the_inverse_of_the_error_function_is_that_of_doubles_rounded(compile_host) -> None:
    """For floats, the series has fewer terms."""
    x = np.array([0, -0.0, 1, -1, 2, np.nan, 1e-30, 0.3, -0.99, 0.999999, -0.9999999], np.float32)
    artifact = compile_host("g (float[N] x) => (y) { y = smelt.ErfInv(x) }")
    (expected,) = operators.find("smelt", "ErfInv").reference((x.astype(np.float64),), {})
    np.testing.assert_allclose(artifact(x)[0], expected, rtol=1.5e-7)
