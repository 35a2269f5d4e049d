"""Reductions, arg-reductions and cumulative sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import TypeAlias

import numpy as np

from smelt.errors import UsageError
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import DYNAMIC_CUMULATIVE, DYNAMIC_REDUCE, AttributeValue
from smelt.targets.host.kernels.kernel import KERNELS, Array, Call, Step, kernel

IDENTITIES = {"ReduceMax": -np.inf, "ReduceMin": np.inf}


@kernel("ReduceSum", "ReduceProd", wide=True)
def add_up(call: Call) -> Step:
    """Return the step of a sum or product in the dtype of the output; integers wrap around."""
    reduce = np.add.reduce if call.op == "ReduceSum" else np.multiply.reduce
    axes, keep, dtype = call.ints("axes"), bool(call.integer("keepdims")), call.outputs[0].dtype
    return Step(lambda x, out: reduce(x, axis=axes, dtype=dtype, out=out, keepdims=keep))


@kernel("ReduceMax", "ReduceMin")
def extreme(call: Call) -> Step:
    """Return the step of a maximum or minimum; it is NaN if any element is.

    Over no elements, the maximum is the lowest value of the type, the minimum the highest.
    """
    largest = call.op == "ReduceMax"
    reduce = np.maximum.reduce if largest else np.minimum.reduce
    dtype = call.outputs[0].dtype
    initial: object = None
    if dtype.kind in "iu":
        initial = np.iinfo(dtype).min if largest else np.iinfo(dtype).max
    elif dtype.kind == "b":
        initial = not largest
    else:
        initial = np.asarray(IDENTITIES[call.op]).astype(dtype)[()]
    axes, keep = call.ints("axes"), bool(call.integer("keepdims"))
    return Step(lambda x, out: reduce(x, axis=axes, out=out, keepdims=keep, initial=initial))


Reduction: TypeAlias = Callable[[Array, tuple[int, ...], bool], Array]


def _log_sum_exp(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    """Return log(sum(exp(x))), as max + log(sum(exp(x - max))), which does not overflow."""
    top = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    total = np.log(np.sum(np.exp(x - top), axis=axes, keepdims=True)) + top
    return np.asarray(total if keep else np.squeeze(total, axis=axes))


REDUCTIONS: Mapping[str, Reduction] = {
    "ReduceL1": lambda x, axes, keep: np.sum(np.abs(x), axis=axes, keepdims=keep),
    "ReduceL2": lambda x, axes, keep: np.sqrt(np.sum(x * x, axis=axes, keepdims=keep)),
    "ReduceLogSum": lambda x, axes, keep: np.log(np.sum(x, axis=axes, keepdims=keep)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceSumSquare": lambda x, axes, keep: np.sum(x * x, axis=axes, keepdims=keep),
}


@kernel(*REDUCTIONS, wide=True)
def composed(call: Call) -> Step:
    """Return the step of a reduction that is a NumPy expression in ``REDUCTIONS``.

    Roots and logarithms of integers are computed in float64.
    """
    reduce = REDUCTIONS[call.op]
    axes, keep = call.ints("axes"), bool(call.integer("keepdims"))
    real = "L2" in call.op or "Log" in call.op
    dtype = np.dtype(np.float64) if real and call.input(0).dtype.kind in "iu" else None

    def run(x: Array, out: Array) -> None:
        """Write the reduction of ``x``, computed in a wider type if needed."""
        source = x if dtype is None else x.astype(dtype)
        np.copyto(out, reduce(source, axes, keep), casting="unsafe")

    return Step(run)


@kernel("ReduceMean", wide=True)
def mean(call: Call) -> Step:
    """Return the step of a mean; the mean of integers is rounded towards zero."""
    source, out_type = call.input(0), call.outputs[0].dtype
    axes, keep = call.ints("axes"), bool(call.integer("keepdims"))
    count = prod(source.shape[axis] for axis in axes)
    if out_type.kind == "f":

        def run(x: Array, out: Array) -> None:
            """Write the mean."""
            np.add.reduce(x, axis=axes, out=out, keepdims=keep)
            np.divide(out, count, out)

        return Step(run)

    def truncate(x: Array, out: Array) -> None:
        """Write the mean of integers, rounded towards zero."""
        np.add.reduce(x, axis=axes, dtype=out_type, out=out, keepdims=keep)
        np.copyto(out, (out - np.fmod(out, count)) // count, casting="unsafe")

    return Step(truncate)


@kernel("ArgMax", "ArgMin")
def arg_extreme(call: Call) -> Step:
    """Return the step that finds the index of the extreme.

    Among equal elements, it is the first, or with ``select_last_index`` the last.
    """
    find = np.argmax if call.op == "ArgMax" else np.argmin
    axis, keep = call.integer("axis"), bool(call.integer("keepdims"))
    last = call.integer("select_last_index")
    size = call.input(0).shape[axis] if call.input(0).ndim else 1

    def run(x: Array, out: Array) -> None:
        """Write the first or last index of the extreme."""
        if not out.size:
            return
        if not size:
            raise _empty_axis_error(call)
        index = find(np.flip(x, axis) if last else x, axis=axis, keepdims=keep)
        np.copyto(out, size - 1 - index if last else index)

    return Step(run)


def _empty_axis_error(call: Call) -> UsageError:
    """Return UsageError E670: an ArgMax or ArgMin over an empty axis has no result."""
    return UsageError(
        "E670",
        f"{call.op} searches axis {call.integer('axis')}, which has size 0",
        why="an empty axis has no largest or smallest element",
        fix="give inputs with at least one element there",
    )


@kernel("CumSum", "CumProd")
def cumulative(call: Call) -> Step:
    """Return the step of a running sum or product.

    With ``reverse`` it starts at the end. With ``exclusive`` an element's own value is not in its
    result, which then starts with 0 or 1.
    """
    axis = call.integer("axis")
    reverse, exclusive = call.integer("reverse"), call.integer("exclusive")
    dtype = call.outputs[0].dtype
    accumulate, neutral = (np.cumsum, 0) if call.op == "CumSum" else (np.cumprod, 1)

    def run(x: Array, out: Array) -> None:
        """Write the running sum or product along the axis."""
        source, target = (np.flip(a, axis) if reverse else a for a in (x, out))
        source, target = np.moveaxis(source, axis, 0), np.moveaxis(target, axis, 0)
        if not exclusive:
            accumulate(source, axis=0, dtype=dtype, out=target)
            return
        target[:1] = neutral
        accumulate(source[:-1], axis=0, dtype=dtype, out=target[1:])

    return Step(run)


@kernel(DYNAMIC_CUMULATIVE)
def dynamic_cumulative(call: Call) -> Step:
    """Return the step of a running sum or product whose axis is an operand.

    A run raises UsageError E670 if the axis is out of range.
    """
    op, rank = call.text("running"), call.input(0).ndim or 1

    def run(x: Array, axis: Array, out: Array) -> None:
        """Accumulate along the axis that ``axis`` holds."""
        requested = int(axis.reshape(-1)[0])
        if not -rank <= requested < rank:
            raise UsageError(
                "E670",
                f"axis {requested} of {op} is out of range",
                why=f"its operand has {rank} axes",
                fix=f"give an axis from {-rank} to {rank - 1}",
            )
        attributes = {**call.attributes, "axis": requested % rank}
        cumulative(replace(call, op=op, attributes=attributes, inputs=(x,))).run(x, out)

    return Step(run)


@kernel(DYNAMIC_REDUCE)
def dynamic_reduce(call: Call) -> Step:
    """Return the step of a reduction whose axes are an operand.

    A run raises UsageError E670 if the axes lead to other sizes than planned.
    """
    op, rank, keep = call.text("reduction"), call.input(0).ndim, call.integer("keepdims")
    planned, noop = call.outputs[0].shape, bool(call.integer("noop"))

    def run(x: Array, axes: Array, out: Array) -> None:
        """Reduce over the axes that ``axes`` holds."""
        requested = tuple(int(axis) for axis in axes)
        if not requested and not noop:
            requested = tuple(range(rank))
        fits = all(-rank <= axis < rank for axis in requested)
        reduced = tuple(sorted({axis % rank for axis in requested})) if fits else ()
        if not fits or _reduced_shape(x.shape, reduced, bool(keep)) != planned:
            raise UsageError(
                "E670",
                f"{op} over the axes {list(requested)} does not give {list(planned)}",
                why="the model declares these sizes of the output, and memory is planned for them",
                fix="give axes that lead to them",
            )
        attributes: dict[str, AttributeValue | DotDims] = {"axes": reduced, "keepdims": keep}
        KERNELS[op](replace(call, op=op, attributes=attributes, inputs=(x,))).run(x, out)

    return Step(run)


def _reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...], keep: bool) -> tuple[int, ...]:
    """Return ``shape`` without the axes, or with size 1 for them if ``keep``."""
    if keep:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)
