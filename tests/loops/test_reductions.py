"""The schedules of reductions compute what the empty schedule and NumPy do."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest
from drawn_pools import image

from smelt.loops.algorithm import Algorithm, Apply, Buffer, Epilogue, Load, Reduce, Stage
from smelt.loops.interpreter import numpy_type, run
from smelt.loops.lower import lower
from smelt.loops.operators import SQUARE, SUBTRACT, SUM
from smelt.loops.schedule import Outermost, Partial, RowFunction, Schedule, Unroll
from smelt.native.kernels.dynamic_reduce import nest_of
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.nest import Access, broadcast_strides
from smelt.native.kernels.reduce import loops_of, reduction_of
from smelt.native.kernels.reduced_map import schedule_of
from smelt.native.kernels.reduction_table import TABLES
from smelt.native.types import C_TYPES
from smelt.program.instruction import DYNAMIC_REDUCE, Instruction, Program, Slot
from smelt.program.run_sizes import Dim, Size


def _mean(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The mean; of integers, the sum in their type, divided and truncated."""
    count = math.prod(x.shape[axis] for axis in axes)
    total = x.sum(axes, x.dtype)
    if x.dtype.kind == "f":
        return total / x.dtype.type(count)
    exact = total.astype(object)
    return np.sign(total).astype(object) * (abs(exact) // count)


FLOAT, DOUBLE, INT32 = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32
TYPES = (FLOAT, DOUBLE, INT32, ir.DataType.INT8, ir.DataType.UINT16, ir.DataType.INT64)
OPS = {
    "ReduceSum": lambda x, a: x.sum(a, x.dtype),
    "ReduceMean": _mean,
    "ReduceMax": lambda x, a: x.max(a),
    "ReduceMin": lambda x, a: x.min(a),
    "ReduceProd": lambda x, a: x.prod(a, x.dtype),
    "ReduceL1": lambda x, a: np.abs(x).sum(a),
    "ReduceL2": lambda x, a: np.sqrt(np.square(x).sum(a)),
    "ReduceSumSquare": lambda x, a: np.square(x).sum(a, x.dtype),
    "ReduceLogSum": lambda x, a: np.log(x.sum(a)),
    "ReduceLogSumExp": lambda x, a: np.log(np.exp(x).sum(a)),
}
SHAPES = (
    ((3, 41), (1,), Partial),
    ((2, 3, 32), (0, 2), Partial),
    ((3, 40), (0,), Outermost),
    ((2, 5, 3), (1,), Outermost),
    ((2, 11, 4), (1,), Partial),
    ((3, 5), (1,), type(None)),
    ((5, 1), (1,), type(None)),
    ((4, 3), (0, 1), type(None)),
)


def context(op: str, shape: tuple[Dim, ...], axes: tuple[int, ...], dtype: ir.DataType):
    """The reduction of a tensor of ``shape``."""
    kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    slots = [Slot(dtype, shape, "x"), Slot(dtype, kept, "y")]
    step = Instruction(op, (0,), (1,), {"axes": axes})
    return KernelContext(Program("g", slots, (0,), (1,), {}, [step]), step)


def computed(nest: tuple, x: np.ndarray, count: int, sizes: dict[str, int]) -> np.ndarray:
    """The results of a nest; wrapping sums are in unsigned memory."""
    y = np.full(count, 99, x.dtype)
    arrays = {"x0": x.reshape(-1), "y0": y}
    if x.dtype.kind == "i":
        word = x.dtype.str.replace("i", "u")
        arrays |= {"words": x.reshape(-1).view(word), "sums": y.view(word)}
    run(nest, arrays, sizes)
    return y


def check(cx: KernelContext, x: np.ndarray, axes: tuple[int, ...], **sizes: int) -> Schedule:
    """Compare the schedule of the kernel with the empty one, and this with NumPy."""
    algorithm, schedule = reduction_of(cx)
    with np.errstate(all="ignore"):
        expected = np.asarray(OPS[cx.instruction.op](x, axes)).reshape(-1).astype(x.dtype)
    for each in (), schedule:
        got = computed(lower(algorithm, each), x, expected.size, sizes)
        if x.dtype.kind == "f":
            np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)
        else:
            np.testing.assert_array_equal(got, expected)
    return schedule


def drawn(seed: int, op: str, shape: tuple[int, ...], dtype: ir.DataType) -> np.ndarray:
    """Random elements, some of which are NaN, infinite, or zeros; positive for a logarithm."""
    x = image(np.random.default_rng(seed), math.prod(shape), numpy_type(C_TYPES[dtype]))
    return (np.abs(x) if op == "ReduceLogSum" else x).reshape(shape)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_schedules(op: str, number: int) -> None:
    shape, axes, kind = SHAPES[number]
    for seed, dtype in enumerate(TYPES):
        type_kind = C_TYPES[dtype].kind
        if op not in TABLES[type_kind] and (op != "ReduceLogSumExp" or type_kind != "float"):
            continue
        x = drawn(number + 10 * seed, op, shape, dtype)
        schedule = check(context(op, shape, axes, dtype), x, axes)
        if type_kind == "float" and op not in ("ReduceLogSumExp", "ReduceMax", "ReduceMin"):
            assert isinstance(schedule[0] if schedule else None, kind)


def test_the_largest_of_a_long_row_is_a_function_of_it() -> None:
    cx = context("ReduceMax", (3, 40), (1,), FLOAT)
    _, schedule = reduction_of(cx)
    assert isinstance(schedule[0], RowFunction)
    assert "largest_float" in cx.support


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceMean", "ReduceLogSumExp"])
@pytest.mark.parametrize("dtype", [FLOAT, INT32])
def test_run_time_sizes(op: str, dtype: ir.DataType) -> None:
    if op == "ReduceLogSumExp" and dtype == INT32:
        return
    names = [Size.named(f"dim{i}", 1, 64) for i in range(2)]
    for axes in (0,), (1,), (2,), (0, 2), (1, 2):
        for dims in (2, 3), (1, 37):
            x = drawn(sum(dims), op, (*dims, 5), dtype)
            cx = context(op, (*names, 5), axes, dtype)
            check(cx, x, axes, dim0=dims[0], dim1=dims[1])


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceProd"])
def test_nothing_is_the_identity(op: str) -> None:
    identity = {"ReduceSum": 0, "ReduceMax": -np.inf, "ReduceProd": 1}[op]
    for shape, axes in (((3, 0), (1,)), ((0, 3), (0,)), ((0,), (0,))):
        algorithm, schedule = reduction_of(context(op, shape, axes, FLOAT))
        count = math.prod(size for axis, size in enumerate(shape) if axis not in axes)
        y = computed(lower(algorithm, schedule), np.zeros(0, np.float32), count, {})
        np.testing.assert_array_equal(y, np.full(count, identity, np.float32))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", [FLOAT, INT32])
def test_axes_that_a_run_tells(op: str, dtype: ir.DataType) -> None:
    if op not in TABLES[C_TYPES[dtype].kind] and (op != "ReduceLogSumExp" or dtype == INT32):
        return
    shape = (2, 3, 5)
    for kept in (0, 1, 1), (1, 0, 1), (1, 1, 0), (0, 0, 1), (0, 0, 0), (1, 1, 1):
        axes = tuple(axis for axis, each in enumerate(kept) if not each)
        result = tuple(size for size, each in zip(shape, kept, strict=True) if each)
        slots = [
            Slot(dtype, shape, "x"),
            Slot(ir.DataType.INT64, (len(axes),), "a"),
            Slot(dtype, result, "y"),
        ]
        step = Instruction(DYNAMIC_REDUCE, (0, 1), (2,), {"reduction": op, "keepdims": 0})
        cx = KernelContext(Program("g", slots, (0, 1), (2,), {}, [step]), step)
        x = drawn(len(axes), op, shape, dtype)
        pairs = list(zip(shape, kept, strict=True))
        sizes = {f"kept{i}": size if k else 1 for i, (size, k) in enumerate(pairs)}
        sizes |= {f"reduced{i}": 1 if k else size for i, (size, k) in enumerate(pairs)}
        (choice,) = nest_of(cx)
        nest = choice.then if kept[-1] else choice.otherwise
        with np.errstate(all="ignore"):
            expected = np.asarray(OPS[op](x, axes)).reshape(-1).astype(x.dtype)
        got = computed(nest, x, expected.size, sizes)
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("shape", "other", "axes", "kind"),
    [
        ((3, 37), (37,), (1,), Partial),
        ((2, 3, 17), (3, 1), (0, 2), Partial),
        ((20, 3), (3,), (1,), Unroll),
        ((4, 9), (9,), (0,), Outermost),
    ],
)
def test_reductions_of_elementwise_values(
    shape: tuple[int, ...], other: tuple[int, ...], axes: tuple[int, ...], kind: type
) -> None:
    type_ = C_TYPES[FLOAT]
    strides = (broadcast_strides(shape, shape), broadcast_strides(other, shape))
    reads = [Access(name, type_, each) for name, each in zip(("x0", "x1"), strides, strict=True)]
    loops = loops_of(shape, axes, reads)
    schedule = schedule_of(loops, "y0")
    assert schedule is not None
    assert isinstance(schedule[-1], kind)
    difference = Apply(SUBTRACT, tuple(loops.loads()))
    kept = loops.where(False)
    to = Buffer("y0", type_, tuple(axis.extent for axis in kept))
    value = Reduce(SUM, loops.where(True), Apply(SQUARE, (difference,)))
    algorithm = Algorithm((Stage(to, kept, value),))
    rng = np.random.default_rng(0)
    x, z = (rng.standard_normal(each).astype(np.float32) for each in (shape, other))
    y = np.zeros(math.prod(axis.extent for axis in kept), np.float32)
    run(lower(algorithm, schedule), {"x0": x.reshape(-1), "x1": z.reshape(-1), "y0": y})
    np.testing.assert_allclose(y, np.square(x - z).sum(axes).reshape(-1), rtol=1e-5)


@pytest.mark.parametrize(
    ("shape", "axes", "kind"), [((3, 41), (1,), Partial), ((3, 40), (0,), Outermost)]
)
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean"])
def test_each_store_applies_the_epilogue(
    op: str, shape: tuple[int, ...], axes: tuple[int, ...], kind: type
) -> None:
    algorithm, schedule = reduction_of(context(op, shape, axes, FLOAT))
    assert isinstance(schedule[0], kind)
    side = Load(Buffer("side", C_TYPES[FLOAT], (1,)), (0,))
    stage = replace(algorithm.result, epilogue=Epilogue(SUBTRACT, (side,)))
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    expected = (OPS[op](x, axes) - np.float32(3)).reshape(-1)
    for each in (), schedule:
        y = np.zeros(expected.size, np.float32)
        arrays = {"x0": x.reshape(-1), "y0": y, "side": np.float32([3])}
        run(lower(Algorithm((stage,)), each), arrays)
        np.testing.assert_allclose(y, expected, rtol=2e-5, atol=2e-5)
