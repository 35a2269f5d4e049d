"""Operators that a formula defines, as C functions, against the same formula in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import STRICT, Library, compile_text

from smelt.native.kernels.formula import function_of
from smelt.operators import all_operators
from smelt.operators.formula import Elementwise

FORMULAS = {
    operator.name: operator for operator in all_operators() if isinstance(operator, Elementwise)
}
EDGES = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5)
UNOPTIMIZED = tuple("-O0" if flag == "-Og" else flag for flag in STRICT)


def graph(name: str, kind: str) -> str:
    inputs = FORMULAS[name].inputs
    listed = ", ".join(f"{kind}[N] {x}".replace("N", "208") for x in inputs)
    return f"g ({listed}) => ({kind}[208] y) {{ y = smelt.{name}({', '.join(inputs)}) }}"


@pytest.fixture(scope="module")
def library() -> Library:
    graphs = {f"{name} double": graph(name, "double") for name in FORMULAS}
    graphs |= {f"{name} float": graph(name, "float") for name in ("Digamma", "Igamma")}
    return Library(graphs, flags=UNOPTIMIZED)


def operands(name: str, kind: type) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    near, far = rng.uniform(-2, 2, 100), rng.uniform(-30, 60, 100)
    arrays = [rng.permutation(np.concatenate([near, far, EDGES])) for _ in FORMULAS[name].inputs]
    if name == "Polygamma":
        arrays[0] = np.round(rng.uniform(0, 20, 208))
    return [array.astype(kind) for array in arrays]


@pytest.mark.parametrize("name", FORMULAS)
def test_computes_what_the_formula_says(library: Library, name: str) -> None:
    check(library, name, "double", 2e-14)


@pytest.mark.parametrize("name", ["Digamma", "Igamma"])
def test_floats_are_computed_in_double_precision(library: Library, name: str) -> None:
    check(library, name, "float", 2e-7)


def check(library: Library, name: str, kind: str, rtol: float) -> None:
    given = operands(name, {"double": np.float64, "float": np.float32}[kind])
    (expected,) = FORMULAS[name].reference(given, {})
    (got,) = library.run(f"{name} {kind}", given)
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=rtol)


def test_calls_of_one_operator_share_a_function_and_broadcast() -> None:
    artifact = compile_text(
        "g (double[3,1] a, double[4] x) => (double[3,4] y) "
        "{ p = smelt.Igamma(a, x) q = smelt.Igamma(x, a) y = Add(p, q) }"
    )
    (source,) = (data for name, data in artifact.files.items() if name == "model.c")
    assert source.count(b"static double smelt_Igamma(") == 1
    a, x = np.array([[0.5], [2.0], [7.0]]), np.array([0.1, 1.0, 3.0, 20.0])
    reference = FORMULAS["Igamma"].reference
    expected = reference((a, x), {})[0] + reference((x, a), {})[0]
    np.testing.assert_allclose(artifact(a, x)[0], expected, rtol=1e-13)


def test_unused_terms_are_not_written() -> None:
    def formula(m, x):
        m.exp(x) + 1.0
        return x * 2.0

    assert function_of("f", formula, 1).count("exp") == 0


def test_loops_swap_and_nest() -> None:
    def formula(m, x):
        def inner(total, left):
            return total + 1.0, left - 1.0

        def step(a, b, k):
            total, _ = m.loop(lambda _, left: left > 0.0, inner, (x * 0.0, k))
            return b, a + total, k - 1.0

        return m.loop(lambda a, b, k: k > 0.0, step, (x, x * 0.0, x))[0]

    text = function_of("f", formula, 1)
    assert text.count("for (;;)") == 2
    assert text.count("{") == text.count("}")
