"""MaxPool, AveragePool and LpPool: one algorithm of a window, and schedules by size and type."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from smelt.loops.algorithm import (
    Algorithm,
    Apply,
    Axis,
    Buffer,
    Expression,
    Load,
    Number,
    Reduce,
    Stage,
)
from smelt.loops.lower import lower
from smelt.loops.nest import When
from smelt.loops.operators import (
    DIVIDE,
    LARGEST,
    LARGEST_INTEGER,
    MULTIPLY,
    POWER,
    SUM,
    Monoid,
)
from smelt.loops.printer import print_nest
from smelt.loops.schedule import Schedule
from smelt.native.kernels.convolution.window import Window, refuse_window, window_of
from smelt.native.kernels.extremes import LARGER
from smelt.native.kernels.kernel import FLOAT, NUMBER, KernelContext, kernel
from smelt.native.kernels.pool_schedules import plain_schedule, vector_schedule
from smelt.native.kernels.reduce import LANES, reduction_over
from smelt.native.kernels.vector import EVENS_AND_ODDS, MOST_LANES, PRELUDE, SHORT_LOOP
from smelt.program.run_sizes import Dim, Size, ceil_div, is_empty, larger, same, smaller

WHEN = "LANES >= 8"
"""The preprocessor condition for vectors, and a stack that holds a band of rows."""


WHOLE = {"MaxPool": "ReduceMax", "AveragePool": "ReduceMean"}
"""The reductions that are poolings of one window, the image."""


@kernel("MaxPool", kinds=NUMBER, refuse=refuse_window)
def max_pool(cx: KernelContext) -> None:
    """Write the largest element of each window, NaN if it contains one, and perhaps its place."""
    _emit(cx)


@kernel("AveragePool", "LpPool", kinds=FLOAT, refuse=refuse_window)
def mean_or_norm_pool(cx: KernelContext) -> None:
    """Write the mean or the p-norm of each window, over the image or the padded image."""
    _emit(cx)


# Algorithms


def _axes(cx: KernelContext, window: Window) -> tuple[Axis, ...]:
    """Return the axes of the result: planes ``c``, and nontrivial ones of ``o``, ``h``, ``q``."""
    output = cx.output()
    planes = Axis("c", output.shape[0] * output.shape[1])
    return (planes, *(Axis(name, window.output[dim]) for dim, name in _dims(window, "ohq")))


def _dims(window: Window, names: str) -> Iterator[tuple[int, str]]:
    """Yield number and letter in ``names`` of each dim that is not trivial, and of the last dim."""
    for dim, name in enumerate(names):
        sizes = (window.input[dim], window.kernel[dim], window.begin[dim], window.end[dim])
        if dim == 2 or not same(sizes, (1, 1, 0, 0)):
            yield dim, name


def _reduce(cx: KernelContext, window: Window, monoid: Monoid, power: int = 0) -> Reduce:
    """Return a window's elements combined, or their powers."""
    dims = list(_dims(window, "ohq"))
    kernel_axes = tuple(Axis(f"k{dim}", window.kernel[dim]) for dim, _ in dims)
    planes, *axes = _axes(cx, window)
    shape = (planes.extent, *(window.input[dim] for dim, _ in dims))
    image = Buffer(cx.input(0).name, cx.type(0), shape, outside=True)
    index = [
        axis.at * window.strides[dim] + tap.at * window.dilations[dim] - window.begin[dim]
        for (dim, _), axis, tap in zip(dims, axes, kernel_axes, strict=True)
    ]
    body: Expression = Load(image, (planes.at, *index))
    if power:
        body = Apply(POWER, (body, Number(power)))
    return Reduce(monoid, kernel_axes, body)


def _stage(cx: KernelContext, window: Window, value: Expression) -> Stage:
    """Return the stage of the result."""
    axes = _axes(cx, window)
    shape = tuple(axis.extent for axis in axes)
    return Stage(Buffer(cx.output().name, cx.type(0), shape), axes, value)


def _norm(cx: KernelContext, window: Window) -> Algorithm:
    """Return the p-norm of each window."""
    power = cx.int("p")
    root = Apply(POWER, (_reduce(cx, window, SUM, power), Number(1 / power)))
    return Algorithm((_stage(cx, window, root),))


def _largest_with_places(cx: KernelContext, window: Window, monoid: Monoid) -> Algorithm:
    """Return the largest elements and their places in the tensor, row-major or column-major."""
    reduce = _reduce(cx, window, monoid)
    assert isinstance(reduce.body, Load)
    planes, *index = reduce.body.index
    sizes = reduce.body.buffer.shape[1:]
    if cx.int("storage_order"):
        index, sizes = index[::-1], sizes[::-1]
    place: Dim = planes
    for at, size in zip(index, sizes, strict=True):
        place = place * size + at
    stage = _stage(cx, window, Reduce(monoid, reduce.axes, reduce.body, place))
    places = cx.output(1)
    to = Buffer(places.name, places.type, stage.to.shape)
    return Algorithm((Stage(stage.to, stage.axes, stage.value, to),))


def _mean(cx: KernelContext, window: Window, *, stores_counts: bool) -> Algorithm:
    """Return the mean of each window.

    With ``stores_counts``, counts of columns that depend on run-time sizes are computed once.
    """
    axes, stages = _axes(cx, window), list[Stage]()
    divisor: Expression | None = None
    constant = 1
    for (dim, _), axis in zip(_dims(window, "ohq"), axes[1:], strict=True):
        count = _count(cx, window, dim, axis)
        if isinstance(count, int):
            constant *= count
            continue
        if stores_counts and dim == 2 and isinstance(count, Number):
            columns = Buffer("counted", cx.type(0), (axis.extent,))
            stages.append(Stage(columns, (axis,), count))
            count = Load(columns, (axis.at,))
        divisor = count if divisor is None else Apply(MULTIPLY, (divisor, count))
    if divisor is None:
        divisor = Number(constant)
    elif constant != 1:
        divisor = Apply(MULTIPLY, (Number(constant), divisor))
    mean = Apply(DIVIDE, (_reduce(cx, window, SUM), divisor))
    return Algorithm((*stages, _stage(cx, window, mean)))


def _count(cx: KernelContext, window: Window, dim: int, axis: Axis) -> int | Expression:
    """Return how many kernel positions count at an index of dim ``dim``.

    The numbers are a constant table unless a size is a run-time size.
    """
    size, kernel_size, step = window.input[dim], window.kernel[dim], window.dilations[dim]
    low, high = 0, size
    if cx.int("count_include_pad"):
        low, high = -window.begin[dim], size + window.end[dim]
    if isinstance(size, Size) or isinstance(window.output[dim], Size):
        if (
            same(window.begin[dim], 0)
            and same(window.end[dim], 0)
            and _reads_no_padding(window, dim)
        ):
            return kernel_size
        start = axis.at * window.strides[dim] - window.begin[dim]
        first = larger(0, ceil_div(low - start, step))
        return Number(smaller(kernel_size, ceil_div(high - start, step)) - first)
    starts = [o * window.strides[dim] - window.begin[dim] for o in range(window.output[dim])]
    counts = [sum(low <= s + k * step < high for k in range(kernel_size)) for s in starts]
    if len(set(counts)) == 1:
        return counts[0]
    type_ = cx.type(0)
    numbers = ", ".join(type_.literal(each) for each in counts)
    name = f"counts_{type_.name}_{hashlib.sha256(numbers.encode()).hexdigest()[:8]}"
    cx.call("LANES", PRELUDE)
    # A vector load at the last column reads beyond the table.
    lanes_of_ones = f"#if {WHEN}\n    , {', '.join('1' * MOST_LANES)}\n#endif\n"
    cx.call(name, f"static const {type_.name} {name}[] = {{ {numbers}\n{lanes_of_ones}}};\n")
    return Load(Buffer(name, type_, (len(counts),)), (axis.at,))


def _reads_no_padding(window: Window, dim: int) -> bool:
    """True if all windows along the dim are inside of the image: results are as many as fit."""
    reach, step = (window.kernel[dim] - 1) * window.dilations[dim] + 1, window.strides[dim]
    return same(window.output[dim], (window.input[dim] - reach + step) // step)


# Schedules


def _emit(cx: KernelContext) -> None:
    """Write the nest of a pooling, for CPUs with vectors and for others."""
    reduction, window = WHOLE.get(cx.instruction.op), window_of(cx)
    if window.whole and reduction is not None and len(cx.instruction.outputs) == 1:
        planes = cx.shape(0)[0] * cx.shape(0)[1]
        print_nest(
            lower(*reduction_over(cx, reduction, (planes, window.plane), (1,), LANES)), cx.body
        )
        return
    *by_vectors, plain = (lower(*each) for each in variants(cx))
    nest = plain
    if by_vectors:
        cx.call("LANES", PRELUDE)
        cx.call("larger", LARGER)
        cx.call("EVENS_AND_ODDS", EVENS_AND_ODDS)
        cx.call("SHORT_LOOP", SHORT_LOOP)
        nest = (When(WHEN, by_vectors[0], plain),)
    print_nest(nest, cx.body)


def variants(cx: KernelContext) -> list[tuple[Algorithm, Schedule]]:
    """Return the algorithm and schedule with vectors if there is one, then that without vectors."""
    window, type_ = window_of(cx), cx.type(0)
    if cx.instruction.op == "LpPool":
        return [(_norm(cx, window), ())]
    mean = cx.instruction.op == "AveragePool"
    monoid = SUM if mean else LARGEST if type_.kind == "float" else LARGEST_INTEGER
    if len(cx.instruction.outputs) > 1:
        return [(_largest_with_places(cx, window, monoid), ())]
    largest = Algorithm((_stage(cx, window, _reduce(cx, window, monoid)),))
    choices = [
        (_mean(cx, window, stores_counts=False) if mean else largest, plain_schedule(window))
    ]
    if type_.name == "float" and not is_empty(cx.output_shape()):
        algorithm = _mean(cx, window, stores_counts=True) if mean else largest
        schedule = vector_schedule(window, monoid, algorithm)
        choices = [(algorithm, schedule), *choices] if schedule else choices
    return choices
