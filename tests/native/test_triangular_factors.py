"""Triangular factors and systems in C, against the references of their operators."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from c_library import Library, assert_same

from smelt.runtime.reference import Reference

SHAPES = {"one": "1,1", "small": "5,5", "batch": "2,3,4,4", "empty": "0,0", "no batch": "0,3,3"}


def _factors(shape: str) -> dict[str, str]:
    batch = "".join(f"{dim}," for dim in shape.split(",")[:-2])
    n = shape.rpartition(",")[2]
    return {
        "lower": f"g (float[{shape}] a) => (float[{shape}] y) {{ y = smelt.Cholesky(a) }}",
        "upper": f"g (double[{shape}] a) => (double[{shape}] y)"
        " { y = smelt.Cholesky<lower = 0>(a) }",
        "lu": f"g (float[{shape}] a) => (float[{shape}] y, int32[{batch}{n}] p, int32[{batch}{n}] q)"
        " { y, p, q = smelt.LU(a) }",
    }


OPTIONS = ("left_side", "lower", "transpose_a", "unit_diagonal")
GRAPHS = {
    f"{kind} {name}": graph
    for name, shape in SHAPES.items()
    for kind, graph in _factors(shape).items()
}
GRAPHS |= {
    "lu tall": "g (double[2,5,3] a) => (double[2,5,3] y, int32[2,3] p, int32[2,5] q)"
    " { y, p, q = smelt.LU(a) }",
    "lu wide": "g (float[3,5] a) => (float[3,5] y, int32[3] p, int32[3] q)"
    " { y, p, q = smelt.LU(a) }",
    "swaps": "g (float[2,3,4] a) => (int32[2,5] y)"
    " <int32[2,3] p = {2, 2, 4, 0, 3, 3}> { y = smelt.PivotsToPermutation<permutation_size = 5>(p) }",
}
GRAPHS |= {
    f"solve {values}": (
        "g (float[2,4,4] a, float[2,{}] b) => (float[2,{}] y) {{ y = smelt.TriangularSolve<{}>(a, b) }}"
    ).format(
        *["4,3" if values[0] else "3,4"] * 2,
        ", ".join(f"{name} = {value}" for name, value in zip(OPTIONS, values, strict=True)),
    )
    for values in itertools.product((1, 0), repeat=4)
}
GRAPHS |= {
    f"complex lu {name}": (
        f"g (double[{shape}] a, double[{shape}] b) => (double[{shape}] x, double[{shape}] y,"
        f" int32[{batch}{least}] p, int32[{batch}{rows}] q) {{ x, y, p, q = smelt.ComplexLU(a, b) }}"
    )
    for name, shape, batch, rows, least in (
        ("tall", "2,5,3", "2,", 5, 3),
        ("wide", "3,5", "", 3, 3),
        ("small", "5,5", "", 5, 5),
        ("empty", "0,3,3", "0,", 3, 3),
    )
}
GRAPHS |= {
    f"complex solve {values}": (
        "g (float[2,4,4] a, float[2,4,4] c, float[2,{0}] b, float[2,{0}] d) =>"
        " (float[2,{0}] y, float[2,{0}] z) {{ y, z = smelt.ComplexTriangularSolve<{1}>(a, c, b, d) }}"
    ).format(
        "4,3" if values[0] else "3,4",
        ", ".join(
            f"{name} = {value}"
            for name, value in zip((*OPTIONS, "conjugate_a"), values, strict=True)
        ),
    )
    for values in [
        *((*each, 0) for each in itertools.product((1, 0), repeat=4)),
        (1, 1, 0, 0, 1),
        (0, 0, 1, 0, 1),
    ]
}


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(GRAPHS)


def matrices(name: str, library: Library) -> list[np.ndarray]:
    random = np.random.default_rng(3)
    found = []
    for value in library.models[name].source.graph.inputs:
        shape = tuple(int(dim) for dim in value.shape)
        array = random.standard_normal(shape)
        if name.startswith(("lower", "upper")):
            array = array @ np.swapaxes(array, -1, -2) + np.eye(shape[-1])
        found.append(array.astype(value.dtype.numpy()))
    return found


def check(library: Library, name: str, inputs: list[np.ndarray]) -> None:
    wanted = Reference(library.models[name].source)(*inputs)
    for got, want in zip(library.run(name, inputs), wanted, strict=True):
        assert_same(got, np.asarray(want), 1e-4, 1e-4)


@pytest.mark.parametrize("name", GRAPHS)
def test_as_the_reference(library: Library, name: str) -> None:
    check(library, name, matrices(name, library))


@pytest.mark.parametrize("name", ["lower batch", "upper small"])
def test_a_matrix_that_is_not_positive_gives_nan_alone(library: Library, name: str) -> None:
    (a,) = matrices(name, library)
    a.reshape(-1, *a.shape[-2:])[-1] *= -1
    check(library, name, [a])


def test_a_pivot_of_0_leaves_its_column(library: Library) -> None:
    a = np.zeros((5, 5), np.float32)
    a[1, 2] = a[3, 4] = 2
    check(library, "lu small", [a])
    check(library, "complex lu small", [a.astype(np.float64), 2 * a.astype(np.float64)])


def test_quotients_of_very_large_numbers_and_very_small_ones(library: Library) -> None:
    for scale in (1e300, 1e-300):
        given = [scale * a for a in matrices("complex lu small", library)]
        check(library, "complex lu small", given)


def test_nan_spreads_as_in_the_reference(library: Library) -> None:
    (a, b) = matrices("solve (1, 1, 0, 0)", library)
    a[0, 2, 0] = np.nan
    b[1, 1, 1] = np.inf
    check(library, "solve (1, 1, 0, 0)", [a, b])
