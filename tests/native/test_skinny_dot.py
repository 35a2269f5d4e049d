"""Products with few columns are summed along rows, of both sides, by any steps."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.native.kernels.skinny_dot import SKINNY_DOT
from smelt.native.memory import needs_of
from smelt.native.rewrite.choose_skinny_dot import choose_skinny_dot
from smelt.native.schedule import planned
from smelt.program.lower import lower
from smelt.targets.base import Artifact

CASES = {
    "matrix by vector": ("ab,b->a", [(9, 37), (37,)]),
    "vector by rows": ("b,ab->a", [(64,), (5, 64)]),
    "two columns that lie apart": ("ab,bc->ac", [(7, 50), (50, 2)]),
    "three rows of the left": ("cb,ab->ca", [(3, 41), (11, 41)]),
    "four columns": ("ab,cb->ac", [(6, 32), (4, 32)]),
    "in a batch": ("nab,nb->na", [(3, 5, 40), (3, 40)]),
    "in a trailing batch of rows": ("anb,nb->na", [(5, 3, 40), (3, 40)]),
    "over two dims": ("abc,bc->a", [(8, 5, 9), (5, 9)]),
}
OTHERS = {
    "five columns": ("ab,bc->ac", [(7, 50), (50, 5)]),
    "columns that are read across": ("ba,b->a", [(50, 9), (50,)]),
    "short sums": ("ab,b->a", [(9, 15), (15,)]),
}


def ops(artifact: Artifact) -> list[str]:
    program = planned(lower(artifact.model), "host", (choose_skinny_dot,))
    return [step.op for step in program.instructions]


def compiled(equation: str, shapes: list[tuple[int, ...]], dtype: str) -> Artifact:
    return smelt.compile_einsum(equation, shapes, dtype, engine="native")


def agrees(artifact: Artifact, equation: str, arrays: list[np.ndarray]) -> None:
    wide = [array.astype(np.complex128) for array in arrays]
    expected = np.einsum(equation, *wide)
    (found,) = artifact(*arrays)
    assert artifact.opened().compiled.why == ""
    single = arrays[0].dtype in (np.float32, np.complex64)
    np.testing.assert_allclose(found, expected, rtol=1e-5 if single else 1e-13, atol=1e-5)


@pytest.mark.parametrize(
    "name",
    [
        name if name == "in a batch" else pytest.param(name, marks=pytest.mark.slow)
        for name in CASES
    ],
)
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_rows_are_summed(name: str, dtype: str) -> None:
    equation, shapes = CASES[name]
    artifact, rng = compiled(equation, shapes, dtype), np.random.default_rng(0)
    assert SKINNY_DOT in ops(artifact)
    agrees(artifact, equation, [rng.standard_normal(s).astype(dtype) for s in shapes])


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_left_to_tiles(name: str) -> None:
    assert SKINNY_DOT not in ops(compiled(*OTHERS[name], "float32"))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_complex_vector_is_two_columns(dtype: str) -> None:
    artifact, rng = compiled("ab,b->a", [(9, 30), (30,)], dtype), np.random.default_rng(0)
    assert SKINNY_DOT in ops(artifact)
    pairs = [rng.standard_normal((2, *shape)) for shape in ((9, 30), (30,))]
    agrees(artifact, "ab,b->a", [(re + 1j * im).astype(dtype) for re, im in pairs])


@pytest.mark.slow
def test_nan_and_infinities_stay_in_their_row() -> None:
    a = np.ones((6, 70), np.float32)
    a[1, 69], a[2, 3], a[4, 0] = np.nan, np.inf, -np.inf
    (y,) = compiled("ab,b->a", [(6, 70), (70,)], "float32")(a, np.ones(70, np.float32))
    np.testing.assert_array_equal(y, [70, np.nan, np.inf, 70, -np.inf, 70])


PACKED = {
    "a vector, read as it is": ("ab,b->a", [(9, 37), (37,)], 0),
    "columns that lie apart": ("ab,bc->ac", [(7, 50), (50, 2)], 2 * 50 * 4),
    "columns that are rows": ("ab,cb->ac", [(6, 32), (4, 32)], 0),
}


@pytest.mark.parametrize(("equation", "shapes", "scratch"), PACKED.values(), ids=PACKED)
def test_columns_that_lie_apart_are_packed_into_scratch(
    equation: str, shapes: list[tuple[int, ...]], scratch: int
) -> None:
    model = compiled(equation, shapes, "float32").model
    program = planned(lower(model), "host", (choose_skinny_dot,))
    needs = [needs_of(program, step) for step in program.instructions if step.op == SKINNY_DOT]
    assert [each.workspace for each in needs] == [scratch]
