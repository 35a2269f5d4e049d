"""Matrix products against NumPy, whatever the layout of the operands."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import Library, assert_same, compile_text, ops, random_inputs

from smelt.native.kernels.float_panels import panel_for
from smelt.native.kernels.vector_dot import panel_workspace, vectors_for

TILES = {1: (8, 64), 2: (4, 64), 3: (4, 64), 4: (2, 32), 64: (2, 32)}
"""Vectors of a micro-kernel and columns of a packed panel, by rows of the left side."""


@pytest.mark.parametrize("rows", TILES)
def test_few_rows_have_more_vectors_and_wider_panels(rows: int) -> None:
    assert (vectors_for(rows), panel_for(rows)) == TILES[rows]


COPIES = [(31, 999, 1, 0), (32, 65, 1, 896), (32, 64, 1, 0), (1, 32, 1, 0), (1, 31, 1, 896),
          (1, 32, 2, 896)]  # fmt: skip
"""Rows, columns and stride of a right side of 7 rows, and bytes of scratch for its copy."""


@pytest.mark.parametrize(("rows", "columns", "stride", "scratch"), COPIES)
def test_a_right_side_is_copied_for_many_rows(
    rows: int, columns: int, stride: int, scratch: int
) -> None:
    assert panel_workspace(rows, columns, 7, stride) == scratch


EINSUMS = {
    "matrices": ("ij,jk->ik", "[5,6]", "[6,7]", "[5,7]"),
    "wide": ("ij,jk->ik", "[9,33]", "[33,130]", "[9,130]"),
    "right transposed": ("ij,kj->ik", "[5,6]", "[40,6]", "[5,40]"),
    "left transposed": ("ji,jk->ik", "[6,5]", "[6,7]", "[5,7]"),
    "attention scores": ("bhqd,bhkd->bhqk", "[2,3,5,8]", "[2,3,37,8]", "[2,3,5,37]"),
    "heads inside": ("bqhd,bkhd->bhqk", "[2,5,3,8]", "[2,37,3,8]", "[2,3,5,37]"),
    "vector": ("i,ij->j", "[6]", "[6,200]", "[200]"),
    "matrix and vector": ("ij,j->i", "[7,6]", "[6]", "[7]"),
    "inner": ("i,i->", "[40]", "[40]", ""),
    "outer": ("i,j->ij", "[4]", "[5]", "[4,5]"),
    "two contracted": ("ijk,jkl->il", "[3,4,5]", "[4,5,6]", "[3,6]"),
    "two contracted, crossed": ("ijk,kjl->il", "[3,4,5]", "[5,4,6]", "[3,6]"),
    "two free": ("ijk,kl->ijl", "[3,4,5]", "[5,6]", "[3,4,6]"),
    "result transposed": ("ij,jk->ki", "[5,6]", "[6,7]", "[7,5]"),
    "direct columns": ("ij,jk->ik", "[3,11]", "[11,45]", "[3,45]"),
    "one row, many columns": ("ij,jk->ik", "[1,9]", "[9,301]", "[1,301]"),
    "values of heads": ("bhqk,bkhd->bhqd", "[2,3,5,8]", "[2,8,3,40]", "[2,3,5,40]"),
    "rows that clash in a cache": ("ij,jk->ik", "[66,65]", "[65,256]", "[66,256]"),
    "free size 1": ("ij,jk->ik", "[1,6]", "[6,1]", "[1,1]"),
    "diagonal": ("iij,jk->ik", "[5,5,3]", "[3,4]", "[5,4]"),
    "diagonals in and out of the batch": ("biaib,ba->b", "[2,3,4,3,2]", "[2,4]", "[2]"),
    "nothing to sum": ("ij,jk->ik", "[3,0]", "[0,4]", "[3,4]"),
    "nothing to sum, right transposed": ("ij,kj->ik", "[3,0]", "[4,0]", "[3,4]"),
    "nothing to keep": ("ij,jk->ik", "[0,3]", "[3,4]", "[0,4]"),
}
TYPES = ("float", "double", "int32")
GRAPHS = {
    f"{name} {t}": f'g ({t}{a} x, {t}{b} z) => ({t}{y} y) {{ y = Einsum<equation = "{equation}">(x, z) }}'
    for number, (name, (equation, a, b, y)) in enumerate(EINSUMS.items())
    for t in ("float", TYPES[number % 3])
}


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(GRAPHS)


@pytest.mark.parametrize("name", GRAPHS)
def test_agrees_with_numpy(library: Library, name: str) -> None:
    inputs = random_inputs(library.models[name].source)
    equation = EINSUMS[name.rpartition(" ")[0]][0]
    want = np.asarray(np.einsum(equation, *inputs)).astype(inputs[0].dtype)
    assert_same(library.run(name, inputs)[0], want)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 8, 11])
def test_a_constant_right_side_is_packed_for_any_number_of_rows(rows: int) -> None:
    graphs = {
        str(
            n
        ): f"g (float[{rows},7] x, float[7,{n}] w) => (float[{rows},{n}] y) {{ y = MatMul(x, w) }}"
        for n in (1, 4, 16, 31, 33, 64, 150)
    }
    library = Library(graphs, constant="w")
    for name, built in library.models.items():
        library.check(name, random_inputs(built.source))


MATMULS = {
    "broadcast left": ("[4,3,5,6]", "[6,7]", "[4,3,5,7]"),
    "broadcast right": ("[5,6]", "[4,3,6,7]", "[4,3,5,7]"),
    "broadcast batch": ("[4,1,5,6]", "[1,3,6,7]", "[4,3,5,7]"),
    "vector left": ("[6]", "[3,6,7]", "[3,7]"),
    "vector right": ("[3,5,6]", "[6]", "[3,5]"),
}


def test_matmul_broadcasts_like_numpy() -> None:
    graphs = {
        name: f"g (float{a} x, float{b} z) => (float{y} y) {{ y = MatMul(x, z) }}"
        for name, (a, b, y) in MATMULS.items()
    }
    library = Library(graphs)
    for name, built in library.models.items():
        x, z = random_inputs(built.source)
        assert_same(library.run(name, [x, z])[0], x @ z)


def test_gemm_with_everything() -> None:
    graph = (
        "g (float[6,5] a, float[7,6] b, float[7] c) => (float[5,7] y) "
        "{ y = Gemm<alpha = 0.5, beta = 2.0, transA = 1, transB = 1>(a, b, c) }"
    )
    library = Library({"g": graph})
    library.check("g", random_inputs(library.models["g"].source))


def test_infinities_are_not_lost() -> None:
    library = Library(
        {"g": "g (float[2,2] x, float[2,2] z) => (float[2,2] y) { y = MatMul(x, z) }"}
    )
    x = np.array([[np.inf, 0], [1, np.nan]], np.float32)
    z = np.array([[1, 0], [0, 1]], np.float32)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(library.run("g", [x, z])[0], x @ z)


def test_a_transposed_constant_is_transposed_before_the_model_runs() -> None:
    artifact = compile_text(
        "g (float[2,3] x) => (float[2,2] y) "
        "{ w = Constant<value = float[2,3] {1,2,3,4,5,6}>() t = Transpose(w) y = MatMul(x, t) }"
    )
    assert ops(artifact) == ["DotGeneral"]
