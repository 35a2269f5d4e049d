"""Resample: rows along one axis are weighted sums of a few rows of the source."""

from __future__ import annotations

import math

import numpy as np

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import ANY, KernelContext, kernel
from smelt.native.types import INDEX
from smelt.program.resampling import Sampling, taps

UNROLLED = 8
"""Taps that are written out in one expression; more are a loop."""


def _refuse(instance: Instance) -> str | None:
    axis = instance.int("axis")
    if instance.shape(0)[axis] == 0 and 0 not in instance.output_shape():
        return "an axis without rows to read"
    nearest = instance.attributes["mode"] == "nearest"
    return None if nearest or instance.type(0).kind == "float" else "weighted sums of integers"


@kernel("Resample", kinds=ANY, refuse=_refuse)
def resample(cx: KernelContext) -> None:
    """Which rows and their weights are tables, made when the code is."""
    x, y, axis, t = cx.input(0), cx.output(), cx.int("axis"), cx.type(0)
    size, count, inner = x.shape[axis], y.shape[axis], math.prod(y.shape[axis + 1 :])
    sampling = Sampling.of(cx.attributes)
    read = taps(sampling, size, count)
    width = read.rows.shape[1]
    rows = cx.constant(read.rows.astype(np.int32), INDEX)
    with cx.body.loops(("o", "i"), (math.prod(y.shape[:axis]), count)):
        cx.body.line(f"const {t.name} *from = {x.name} + o * {size * inner};")
        cx.body.line(f"{t.name} *to = {y.name} + (o * {count} + i) * {inner};")
        if read.outside.any():
            flags = cx.constant(read.outside.astype(np.int32), INDEX)
            fill = t.literal(sampling.extrapolation)
            with cx.body.block(f"if ({flags}[i])"):
                with cx.body.loop("k", inner):
                    cx.body.line(f"to[k] = {fill};")
                cx.body.line("continue;")
        if sampling.mode == "nearest":
            with cx.body.loop("k", inner):
                cx.body.line(f"to[k] = from[{rows}[i] * {inner} + k];")
            return
        weights = cx.constant(read.weights.astype(f"f{t.size}"), t)
        _sums(cx, rows, weights, width, inner)


def _sums(cx: KernelContext, rows: str, weights: str, width: int, inner: int) -> None:
    """``to[k]`` for each k: the weighted sum over the taps of row ``i``."""
    t = cx.type(0).name
    if width <= UNROLLED:
        parts = []
        for tap in range(width):
            cx.body.line(f"const {t} w{tap} = {weights}[i * {width} + {tap}];")
            cx.body.line(f"const {t} *f{tap} = from + {rows}[i * {width} + {tap}] * {inner};")
            parts.append(f"w{tap} * f{tap}[k]")
        with cx.body.loop("k", inner):
            cx.body.line(f"to[k] = {' + '.join(parts)};")
        return
    with cx.body.loop("k", inner):
        cx.body.line(f"{t} sum = 0;")
        with cx.body.loop("j", width, start=0):
            at = f"i * {width} + j"
            cx.body.line(f"sum += {weights}[{at}] * from[{rows}[{at}] * {inner} + k];")
        cx.body.line("to[k] = sum;")
