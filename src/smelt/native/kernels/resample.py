"""Resample: each row along one axis is a weighted sum of a few source rows."""

from __future__ import annotations

import math

import numpy as np

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import ANY, KernelContext, kernel
from smelt.native.kernels.resample_tables import (
    Tables,
    is_runtime_sized,
    make_tables,
    refusal,
    table_bytes,
)
from smelt.native.types import INDEX
from smelt.program.resampling import Sampling, taps
from smelt.program.run_sizes import is_empty, same
from smelt.program.storage import Needs

UNROLLED = 8
"""The most taps that are one expression; more are a loop."""


def _refuse(instance: Instance) -> str | None:
    """Return why the instruction is refused, None if it is supported."""
    axis = instance.int("axis")
    if same(instance.shape(0)[axis], 0) and not is_empty(instance.output_shape()):
        return "an axis of size 0"
    sampling = Sampling.of(instance.attributes)
    if sampling.mode != "nearest" and instance.type(0).kind != "float":
        return "weighted sums of integers"
    return refusal(sampling) if is_runtime_sized(instance) else None


def _needs(instance: Instance) -> Needs:
    """Return the scratch space of tables for run-time sizes."""
    return Needs(workspace=table_bytes(instance) if is_runtime_sized(instance) else 0)


@kernel("Resample", kinds=ANY, refuse=_refuse, needs=_needs)
def resample(cx: KernelContext) -> None:
    """Write loops over rows, by tables of source rows and weights, constant or computed at run
    time.
    """
    source, output, axis, type_ = cx.input(0), cx.output(), cx.int("axis"), cx.type(0)
    size, count, inner = source.shape[axis], output.shape[axis], math.prod(output.shape[axis + 1 :])
    sampling = Sampling.of(cx.attributes)
    if same(inner, 1) and not is_runtime_sized(cx) and _emit_last(cx, sampling, size, count):
        return
    tables = make_tables(cx) if is_runtime_sized(cx) else _constants(cx, sampling, size, count)
    with cx.body.loops(("o", "i"), (math.prod(output.shape[:axis]), count)):
        cx.body.line(f"const {type_.name} *from = {source.name} + o * {size * inner};")
        cx.body.line(f"{type_.name} *to = {output.name} + (o * {count} + i) * {inner};")
        if tables.outside:
            fill = type_.literal(sampling.extrapolation)
            with cx.body.block(f"if ({tables.outside}[i])"):
                with cx.body.loop("k", inner):
                    cx.body.line(f"to[k] = {fill};")
                cx.body.line("continue;")
        if sampling.mode == "nearest":
            with cx.body.loop("k", inner):
                cx.body.line(f"to[k] = from[{tables.rows}[i] * {inner} + k];")
            return
        _sums(cx, tables.rows, tables.weights, tables.width, inner)


def _emit_last(cx: KernelContext, sampling: Sampling, size: int, count: int) -> bool:
    """Write the resampling of contiguous elements with a table per tap, and return True.

    Returns False, and writes nothing, with more than ``UNROLLED`` taps, or if some result rows lie
    outside of the source.
    """
    source, output, type_, body = cx.input(0), cx.output(), cx.type(0), cx.body
    read = taps(sampling, size, count)
    width = read.rows.shape[1]
    if read.outside.any() or width > UNROLLED:
        return False
    outer = math.prod(output.shape[: cx.int("axis")])
    repeats = count // max(size, 1)
    with body.loop("o", outer):
        body.line(f"const {type_.name} *from = {source.name} + o * {size};")
        body.line(f"{type_.name} *to = {output.name} + o * {count};")
        nearest = sampling.mode == "nearest"
        if nearest and 2 <= repeats <= UNROLLED and _repeats(read.rows[:, 0], size, repeats):
            with body.loop("i", size), body.loop("j", repeats):
                body.line(f"to[i * {repeats} + j] = from[i];")
            return True
        terms = []
        for tap in range(width):
            rows = cx.constant(np.ascontiguousarray(read.rows[:, tap], np.int32), INDEX)
            weight = ""
            if not nearest:
                column = np.ascontiguousarray(read.weights[:, tap], f"f{type_.size}")
                weight = f"{cx.constant(column, type_)}[i] * "
            terms.append(f"{weight}from[{rows}[i]]")
        with body.loop("i", count):
            body.line(f"to[i] = {' + '.join(terms)};")
    return True


def _repeats(rows: np.ndarray, size: int, times: int) -> bool:
    """True if ``rows`` are 0, 1, ..., size - 1, each ``times`` times in sequence."""
    return np.array_equal(rows, np.repeat(np.arange(size), times))


def _constants(cx: KernelContext, sampling: Sampling, size: int, count: int) -> Tables:
    """Return constant tables of source rows, weights, and flags of rows outside."""
    read = taps(sampling, size, count)
    rows = cx.constant(read.rows.astype(np.int32), INDEX)
    outside, weights, type_ = "", "", cx.type(0)
    if read.outside.any():
        outside = cx.constant(read.outside.astype(np.int32), INDEX)
    if sampling.mode != "nearest":
        weights = cx.constant(read.weights.astype(f"f{type_.size}"), type_)
    return Tables(rows, weights, outside, read.rows.shape[1])


def _sums(cx: KernelContext, rows: str, weights: str, width: int, inner: int) -> None:
    """Write ``to[k]`` for each k: the weighted sum of the taps of result row ``i``.

    ```
    const float w0 = p1[i * 2 + 0];
    const float *f0 = from + p0[i * 2 + 0] * 4;
    for (ptrdiff_t k = 0; k < 4; ++k)
        to[k] = w0 * f0[k] + w1 * f1[k];
    ```
    """
    c_type = cx.type(0).name
    if width <= UNROLLED:
        terms = []
        for tap in range(width):
            cx.body.line(f"const {c_type} w{tap} = {weights}[i * {width} + {tap}];")
            cx.body.line(f"const {c_type} *f{tap} = from + {rows}[i * {width} + {tap}] * {inner};")
            terms.append(f"w{tap} * f{tap}[k]")
        with cx.body.loop("k", inner):
            cx.body.line(f"to[k] = {' + '.join(terms)};")
        return
    with cx.body.loop("k", inner):
        cx.body.line(f"{c_type} sum = 0;")
        with cx.body.loop("j", width, start=0):
            at = f"i * {width} + j"
            cx.body.line(f"sum += {weights}[{at}] * from[{rows}[{at}] * {inner} + k];")
        cx.body.line("to[k] = sum;")
