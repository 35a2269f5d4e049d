"""Softmax and normalizations compute by their schedules what NumPy does, and the empty schedule."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir
import pytest

from smelt.loops.algorithm import Algorithm
from smelt.loops.interpreter import numpy_type, run
from smelt.loops.lower import lower
from smelt.loops.schedule import ComputeAt, Schedule
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.normalization import groups_of, layers_of
from smelt.native.kernels.softmax import columns_of, rows_of
from smelt.native.types import C_TYPES
from smelt.program.instruction import Instruction, Program, Slot
from smelt.program.run_sizes import Size

FLOAT, DOUBLE = ir.DataType.FLOAT, ir.DataType.DOUBLE


def context(
    op: str, shapes: list, dtype: ir.DataType, outputs: int = 1, **attributes
) -> KernelContext:
    """An instruction on inputs of ``shapes``, the first of which is the shape of its result."""
    slots = [Slot(dtype, tuple(shape), f"x{i}") for i, shape in enumerate(shapes)]
    reads = tuple(range(len(shapes)))
    rows = math.prod(shapes[0][: attributes.get("axis", 1)])
    slots += [Slot(dtype, shape, "y") for shape in (tuple(shapes[0]), (rows,), (rows,))[:outputs]]
    writes = tuple(range(len(shapes), len(slots)))
    step = Instruction(op, reads, writes, attributes)
    return KernelContext(Program("g", slots, reads, writes, {}, [step]), step)


def computed(
    algorithm: Algorithm, schedule: Schedule, arrays: dict, lanes: int = 8, **sizes: int
) -> dict[str, np.ndarray]:
    """The arrays after a nest has run."""
    copies = {name: array.reshape(-1).copy() for name, array in arrays.items()}
    run(lower(algorithm, schedule), copies, sizes, lanes)
    return copies


def drawn(seed: int, shape: tuple[int, ...], dtype: ir.DataType) -> np.ndarray:
    """Rows of large and small numbers; of four, one has a NaN, one an infinity, one only -inf."""
    x = np.random.default_rng(seed).standard_normal(shape) * 20
    return x.astype(numpy_type(C_TYPES[dtype]))


def softmax(op: str, x: np.ndarray, axis: int) -> np.ndarray:
    with np.errstate(all="ignore"):
        less = x - x.max(axis, keepdims=True)
        total = np.exp(less).sum(axis, keepdims=True)
        return np.exp(less) / total if op == "Softmax" else less - np.log(total)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("count", [1, 7, 16, 37, 64])
def test_rows_of_softmax(count: int, op: str, in_place: bool) -> None:
    """Each row of special numbers is that of NumPy, also if the result overwrites the input."""
    x = drawn(count, (5, count), FLOAT)
    x[0, -1], x[1, 0], x[2, 0], x[3] = np.nan, np.nan, np.inf, -np.inf
    expected = softmax(op, x, 1).reshape(-1)
    for size in (count, Size.named("n", 1, 64)):
        cx = context(op, [(5, size)], FLOAT, axis=1)
        cx.in_place = frozenset({0} if in_place else ())
        name = "y0" if in_place else "x0"
        for vectors, lanes in (False, 8), (True, 8), (True, 16):
            if vectors and isinstance(size, int) and size < 16:
                continue  # these have one row per lane
            algorithm, schedule = rows_of(cx, 5, size, vectors=vectors)
            arrays = {"y0": np.zeros_like(x), name: x}
            got = computed(algorithm, schedule, arrays, lanes, n=count)["y0"]
            np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("inner", [3, 64, 70])
def test_columns_of_softmax(inner: int, op: str) -> None:
    x = drawn(inner, (2, 6, inner), DOUBLE)
    x[0, 3, 1], x[1, 0, 2], x[1, :, 0] = np.nan, np.nan, -np.inf
    expected = softmax(op, x, 1).reshape(-1)
    for size in (inner, Size.named("n", 1, 90)):
        algorithm, schedule = columns_of(context(op, [(2, 6, size)], DOUBLE, axis=1), (2, 6, size))
        got = computed(algorithm, schedule, {"x0": x, "y0": np.zeros_like(x)}, n=inner)["y0"]
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def normalized(x: np.ndarray, axes: tuple[int, ...], *, centred: bool = True) -> tuple:
    """A normalization by NumPy, the means, and the inverse deviations."""
    mean = x.mean(axes, keepdims=True) if centred else np.zeros((), x.dtype)
    f = 1 / np.sqrt(np.square(x - mean).mean(axes, keepdims=True) + x.dtype.type(1e-5))
    return (x - mean) * f, mean, f


@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization"])
@pytest.mark.parametrize(
    ("shape", "axis", "scale", "bias"),
    [
        ((6, 40), 1, (40,), (40,)),
        ((2, 3, 5), 1, (3, 5), None),
        ((2, 3, 5), 2, (2, 1, 5), (3, 1)),
        ((4, 1), 1, (1,), (1,)),
        ((33,), 0, None, None),
        ((3, 2, 24), 1, (24,), (2, 1)),
    ],
)
def test_layers(op: str, shape: tuple[int, ...], axis: int, scale, bias) -> None:
    rms = op == "RMSNormalization"
    factors = [each for each in (scale, None if rms else bias) if each is not None]
    outputs = 1 if rms else 3
    x, *others = (drawn(i, each, FLOAT) for i, each in enumerate((shape, *factors)))
    expected, mean, f = normalized(x, tuple(range(axis, len(shape))), centred=not rms)
    for apply, other in zip((np.multiply, np.add), others, strict=False):
        expected = apply(expected, other)
    for size in {shape[0], Size.named("n", 1, 64)} if axis else {shape[0]}:
        shapes = [(size, *shape[1:]), *factors]
        if isinstance(size, Size) and scale == (2, 1, 5):
            continue
        cx = context(op, shapes, FLOAT, outputs, axis=axis, epsilon=1e-5)
        cx.in_place = frozenset({0} if axis == 1 else ())
        algorithm, schedule = layers_of(cx)
        rows = math.prod(shape[:axis])
        arrays = {f"x{i}": each for i, each in enumerate((x, *others))}
        arrays |= {"y0": x if axis == 1 else np.zeros_like(x)}
        arrays |= {name: np.zeros(rows, x.dtype) for name in ("y1", "y2")}
        places = tuple(each for each in schedule if isinstance(each, ComputeAt))
        for each in places, schedule:
            got = computed(algorithm, each, arrays, n=shape[0])
            np.testing.assert_allclose(got["y0"], expected.reshape(-1), rtol=2e-4, atol=2e-4)
            if not rms:
                np.testing.assert_allclose(got["y1"], mean.reshape(-1), rtol=1e-4, atol=1e-4)
                np.testing.assert_allclose(got["y2"], f.reshape(-1), rtol=1e-4)


@pytest.mark.parametrize(("channels", "groups"), [(6, 2), (4, 4), (3, 1)])
@pytest.mark.parametrize("spatial", [(5,), (3, 7), ()])
def test_groups(channels: int, groups: int, spatial: tuple[int, ...]) -> None:
    shape = (2, channels, *spatial)
    cx = context(
        "GroupNormalization",
        [shape, (channels,), (channels,)],
        FLOAT,
        epsilon=1e-5,
        num_groups=groups,
    )
    x, scale, bias = (
        drawn(i, each, FLOAT) for i, each in enumerate((shape, (channels,), (channels,)))
    )
    expected = normalized(x.reshape(2, groups, -1), (2,))[0].reshape(2, channels, -1)
    expected = expected * scale[:, None] + bias[:, None]
    arrays = {"x0": x, "x1": scale, "x2": bias, "y0": np.zeros_like(x)}
    got = computed(*groups_of(cx), arrays)["y0"]
    np.testing.assert_allclose(got, expected.reshape(-1), rtol=2e-4, atol=2e-4)
