"""Matrices of open sizes that do not suit an operator of linear algebra end the run before it."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.errors import UsageError
from smelt.ir import text

HEAD = '<ir_version: 10, opset_import: ["" : 20, "smelt" : 1]>\n'

SQUARE = {
    "Cholesky": (1, 1),
    "ComplexCholesky": (2, 2),
    "Eig": (1, 6),
    "Eigh": (1, 2),
    "ComplexEigh": (2, 3),
    "Schur": (1, 2),
    "Hessenberg": (1, 2),
    "Tridiagonal": (1, 4),
    "TriangularSolve": (2, 1),
}
"""Operands and results of each."""

BY_PARTS = {
    "ComplexLU": (2, 4),
    "ComplexQR": (2, 4),
    "ComplexSVD": (2, 5),
    "ComplexSingularValues": (2, 1),
    "ComplexEigh": (2, 3),
}

ENGINES = pytest.mark.parametrize("engine", ["numpy", "native"])


def compiled(op: str, operands: list[str], results: int, engine: str):
    read = ", ".join(f"double[{dims}] x{i}" for i, dims in enumerate(operands))
    made = ", ".join(f"double y{i}" for i in range(results))
    call = ", ".join(f"x{i}" for i in range(len(operands)))
    names = ", ".join(f"y{i}" for i in range(results))
    source = f"{HEAD}g ({read}) => ({made}) {{ {names} = smelt.{op}({call}) }}"
    return smelt.compile(text.parse(source), target="host", engine=engine)


@ENGINES
@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (2, 4, 0)], ids=str)
@pytest.mark.parametrize("op", SQUARE)
def test_matrices_that_are_not_square_are_refused(
    op: str, shape: tuple[int, ...], engine: str
) -> None:
    operands, results = SQUARE[op]
    dims = ",".join(f"D{i}" for i in range(len(shape)))
    artifact = compiled(op, [dims] * operands, results, engine)
    with pytest.raises(UsageError, match="sizes of the inputs do not fit together"):
        artifact(*[np.ones(shape)] * operands)


@ENGINES
@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3)], ids=str)
@pytest.mark.parametrize("op", SQUARE)
def test_of_nothing_nothing_is_made(op: str, shape: tuple[int, ...], engine: str) -> None:
    operands, results = SQUARE[op]
    dims = ",".join(f"D{i}" for i in range(len(shape)))
    found = compiled(op, [dims] * operands, results, engine)(*[np.ones(shape)] * operands)
    assert all(result.size == 0 for result in found)
    assert found[0].shape in (shape, shape[:-1])


@ENGINES
@pytest.mark.parametrize("op", BY_PARTS)
def test_parts_of_two_sizes_are_refused(op: str, engine: str) -> None:
    artifact = compiled(op, ["A,B", "C,D"], BY_PARTS[op][1], engine)
    with pytest.raises(UsageError, match="sizes of the inputs do not fit together"):
        artifact(np.ones((4, 4)), np.ones((3, 3)))


@ENGINES
@pytest.mark.parametrize(
    ("matrix", "factors"), [((4, 3), (4,)), ((3, 4), (4,)), ((2, 4, 3), (3, 3))], ids=str
)
def test_more_reflections_than_a_matrix_has_sides_are_refused(
    matrix: tuple[int, ...], factors: tuple[int, ...], engine: str
) -> None:
    dims = [
        ",".join(f"{name}{i}" for i in range(len(each)))
        for name, each in zip("DE", (matrix, factors), strict=True)
    ]
    artifact = compiled("HouseholderProduct", dims, 1, engine)
    with pytest.raises(UsageError, match="sizes of the inputs do not fit together"):
        artifact(np.ones(matrix), np.ones(factors))


@ENGINES
def test_a_diagonal_of_another_length_is_refused(engine: str) -> None:
    artifact = compiled("TridiagonalSolve", ["A", "B", "C", "D,E"], 1, engine)
    good = [np.array([0.0, 1, 1]), np.full(3, 4.0), np.array([1.0, 1, 0]), np.ones((3, 2))]
    assert artifact(*good)[0].shape == (3, 2)
    with pytest.raises(UsageError, match="sizes of the inputs do not fit together"):
        artifact(good[0][:2], *good[1:])


@ENGINES
def test_a_right_side_of_another_size_is_refused(engine: str) -> None:
    source = f"""{HEAD}g (double[A,B] x, double[A,B] z, double[C,D] u, double[C,D] v) =>
        (double[C,D] y, double[C,D] w) {{ y, w = smelt.ComplexTriangularSolve<left_side = 1>(x, z, u, v) }}"""
    artifact = smelt.compile(text.parse(source), target="host", engine=engine)
    eye, nothing = np.eye(3), np.zeros((3, 3))
    assert artifact(eye, nothing, np.ones((3, 2)), np.ones((3, 2)))[0].shape == (3, 2)
    with pytest.raises(UsageError, match="sizes of the inputs do not fit together"):
        artifact(eye, nothing, np.ones((4, 2)), np.ones((4, 2)))
