"""Which products BLAS computes, how it is told where they lie, and that it gives the same."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from smelt.native.kernels.blas import GEMM, Matrix, matrices
from smelt.native.kernels.instance import Instance
from smelt.native.rewrite import call_blas
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import Instruction, Program, Slot
from smelt.runtime.jit import blas
from smelt.targets.host import static_programs

Shape = tuple[int, ...]
MATMUL = DotDims((1,), (0,))
PLAIN, TRANSPOSED = 111, 112


def product(
    lhs: Shape, rhs: Shape, dims: DotDims, dtype: ir.DataType = ir.DataType.FLOAT
) -> Program:
    """One DotGeneral."""
    batch = [lhs[dim] for dim in dims.lhs_batch]
    free = [lhs[dim] for dim in dims.lhs_free(len(lhs))]
    free += [rhs[dim] for dim in dims.rhs_free(len(rhs))]
    slots = [Slot(dtype, shape, "s") for shape in (lhs, rhs, (*batch, *free))]
    step = Instruction("DotGeneral", (0, 1), (2,), {"dims": dims, "semiring": "sum_product"})
    return Program("p", slots, (0, 1), (2,), {}, [step])


LAYOUTS = {
    "as they lie": ((3, 4), (4, 5), MATMUL, Matrix(PLAIN, 4), Matrix(PLAIN, 5)),
    "left transposed": (
        (4, 3),
        (4, 5),
        DotDims((0,), (0,)),
        Matrix(TRANSPOSED, 3),
        Matrix(PLAIN, 5),
    ),
    "right transposed": (
        (3, 4),
        (5, 4),
        DotDims((1,), (1,)),
        Matrix(PLAIN, 4),
        Matrix(TRANSPOSED, 4),
    ),
    "one row": ((1, 4), (4, 5), MATMUL, Matrix(PLAIN, 4), Matrix(PLAIN, 5)),
    "one column": ((3, 4), (4, 1), MATMUL, Matrix(PLAIN, 4), Matrix(PLAIN, 1)),
    "an outer product": ((3, 1), (1, 5), MATMUL, Matrix(PLAIN, 1), Matrix(PLAIN, 5)),
    "a batch between": (
        (3, 2, 4),
        (2, 4, 5),
        DotDims((2,), (1,), (1,), (0,)),
        Matrix(PLAIN, 8),
        Matrix(PLAIN, 5),
    ),
}


@pytest.mark.parametrize(("lhs", "rhs", "dims", "left", "right"), LAYOUTS.values(), ids=LAYOUTS)
def test_how_operands_lie(
    lhs: Shape, rhs: Shape, dims: DotDims, left: Matrix, right: Matrix
) -> None:
    program = product(lhs, rhs, dims)
    found = matrices(Instance(program, program.instructions[0]))
    assert found is not None
    assert found[1:] == (left, right)


UNREADABLE = {
    "no dim is contiguous": (
        (3, 4, 2),
        (2, 4, 5),
        DotDims((1,), (1,), (2,), (0,)),
        ir.DataType.FLOAT,
    ),
    "nothing is summed": ((3, 0), (0, 5), MATMUL, ir.DataType.FLOAT),
    "integers": ((3, 4), (4, 5), MATMUL, ir.DataType.INT32),
}


@pytest.mark.parametrize(("lhs", "rhs", "dims", "dtype"), UNREADABLE.values(), ids=UNREADABLE)
def test_products_that_blas_cannot_read_stay(
    lhs: Shape, rhs: Shape, dims: DotDims, dtype: ir.DataType
) -> None:
    program = product(lhs, rhs, dims, dtype)
    assert matrices(Instance(program, program.instructions[0])) is None
    call_blas.call_blas(program)
    assert program.instructions[0].op == "DotGeneral"


TURNED = DotDims((0,), (0,))
FLOAT, DOUBLE = ir.DataType.FLOAT, ir.DataType.DOUBLE


@pytest.mark.parametrize(
    ("lhs", "rhs", "dims", "dtype", "called"),
    [
        ((128, 256), (256, 256), MATMUL, FLOAT, False),
        ((64, 64), (64, 64), MATMUL, DOUBLE, True),
        ((4, 4096), (4096, 4096), MATMUL, FLOAT, False),
        ((4096, 2048), (2048, 64), MATMUL, FLOAT, True),
        ((64, 16384), (16384, 64), MATMUL, FLOAT, True),
        ((1024, 64), (1024, 128), TURNED, FLOAT, True),
        ((128, 256), (128, 256), TURNED, FLOAT, False),
    ],
)
def test_blas_is_called_where_micro_kernels_are_slower(
    lhs: Shape, rhs: Shape, dims: DotDims, dtype: ir.DataType, called: bool
) -> None:
    program = product(lhs, rhs, dims, dtype)
    call_blas.call_blas(program)
    assert (program.instructions[0].op == GEMM) is called


def test_long_sums_with_a_constant_are_not() -> None:
    program = product((64, 16384), (16384, 64), MATMUL)
    program.constants[1] = np.zeros((16384, 64), np.float32)
    call_blas.call_blas(program)
    assert program.instructions[0].op == "DotGeneral"


@pytest.mark.slow  # compiles C
@pytest.mark.skipif(blas.table() is None, reason="scipy-openblas32 is not installed")
@pytest.mark.parametrize(("lhs", "rhs", "dims", "left", "right"), LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("dtype", [ir.DataType.FLOAT, ir.DataType.DOUBLE])
def test_it_computes_the_same(lhs, rhs, dims, left, right, dtype, monkeypatch) -> None:
    monkeypatch.setattr(call_blas, "WORTH", {"float": 0, "double": 0})
    monkeypatch.setattr(call_blas, "FEWEST", 0)
    monkeypatch.setattr(call_blas, "LARGEST_LEFT", 0)
    program = product(lhs, rhs, dims, dtype)
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape).astype(dtype.numpy()) for shape in (lhs, rhs))
    x[..., 0] = np.inf
    results = static_programs.compile_program(program)(x, y)
    assert results is not None
    axes = (list(dims.lhs_contracting), list(dims.rhs_contracting))
    with np.errstate(invalid="ignore"):
        batched = bool(dims.lhs_batch)
        expected = np.einsum("ibk,bkj->bij", x, y) if batched else np.tensordot(x, y, axes)
    np.testing.assert_allclose(results[0], expected, rtol=1e-4)
