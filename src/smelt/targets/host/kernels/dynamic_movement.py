"""Slice, Pad, Tile, Reshape and TopK whose starts, pads, repeats or counts are run-time inputs.

The result sizes must be those the model declares; other sizes raise UsageError E670.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from smelt.errors import UsageError
from smelt.ir.rows import rows_taken
from smelt.program.instruction import (
    DYNAMIC_PAD,
    DYNAMIC_RESHAPE,
    DYNAMIC_SLICE,
    DYNAMIC_TILE,
    DYNAMIC_TOP_K,
)
from smelt.targets.host.kernels.kernel import Array, Call, Step, kernel
from smelt.targets.host.kernels.movement import MODES
from smelt.targets.host.kernels.selected import checked
from smelt.targets.host.kernels.top_k import top_k


def _axes(axes: Array | None, count: int, rank: int) -> Sequence[int]:
    """Return the axes as non-negative numbers: the first ``count`` if none are given."""
    return range(count) if axes is None else [int(axis) % rank for axis in axes]


@kernel(DYNAMIC_SLICE)
def dynamic_slice(call: Call) -> Step:
    """Return the step of a Slice whose starts, ends, axes and steps are run-time inputs."""

    def run(
        x: Array, starts: Array, ends: Array, axes: Array | None, steps: Array | None, out: Array
    ) -> None:
        """Slice ``x``; raises UsageError E670 for a step of 0."""
        rows = [range(size) for size in x.shape]
        step_of = np.ones(len(starts), np.int64) if steps is None else steps
        named = _axes(axes, len(starts), x.ndim)
        for axis, *cut in zip(named, starts, ends, step_of, strict=True):
            start, end, step = map(int, cut)
            if step == 0:
                raise UsageError(
                    "E670",
                    "a step of a Slice is 0, or the sizes of a Split are wrong",
                    why="steps are not 0; sizes of a Split are 0 or more and sum up to the axis",
                    fix="correct the inputs that give the steps or sizes",
                )
            rows[axis] = rows_taken(x.shape[axis], (start, end, step))
        checked("Slice", tuple(map(len, rows)), out.shape)
        np.copyto(out, x[np.ix_(*rows)] if rows else x)

    return Step(run)


@kernel(DYNAMIC_PAD)
def dynamic_pad(call: Call) -> Step:
    """Return the step of a Pad with run-time widths: it crops negative pads, then pads."""
    mode = call.text("mode")

    def run(x: Array, pads: Array, value: Array | None, axes: Array | None, out: Array) -> None:
        """Crop and pad ``x``."""
        widths = np.zeros((x.ndim, 2), np.int64)
        axis_count = len(pads) // 2
        for i, axis in enumerate(_axes(axes, axis_count, x.ndim)):
            widths[axis] = pads[i], pads[axis_count + i]
        pairs = zip(x.shape, widths, strict=True)
        kept = tuple(
            slice(max(0, -begin), max(0, size + min(end, 0))) for size, (begin, end) in pairs
        )
        cropped, added = x[kept], np.maximum(widths, 0)
        pairs = zip(x.shape, widths, strict=True)
        checked("Pad", tuple(int(size + begin + end) for size, (begin, end) in pairs), out.shape)
        if mode == "constant":
            fill = 0 if value is None else value.reshape(())
            np.copyto(out, np.pad(cropped, added, constant_values=fill))
        else:
            np.copyto(out, np.pad(cropped, added, mode=MODES[mode]))

    return Step(run)


@kernel(DYNAMIC_TILE)
def dynamic_tile(call: Call) -> Step:
    """Return the step of a Tile with run-time repeats, one for each dim."""

    def run(x: Array, repeats: Array, out: Array) -> None:
        """Write the repeated ``x`` to ``out``, after a check of its sizes."""
        sizes = zip(x.shape, repeats, strict=True)
        checked("Tile", tuple(size * int(times) for size, times in sizes), out.shape)
        np.copyto(out, np.tile(x, [int(times) for times in repeats]))

    return Step(run)


@kernel(DYNAMIC_RESHAPE)
def dynamic_reshape(call: Call) -> Step:
    """Return the step of a Reshape to a run-time shape.

    A 0 stands for the size of the same axis of ``x``, or for 0 if ``allowzero`` is set.
    """
    zero_is_size = bool(call.integer("allowzero"))

    def run(x: Array, shape: Array, out: Array) -> None:
        """Copy ``x`` in its new shape."""
        sizes = [int(size) for size in shape]
        if not zero_is_size and 0 in sizes[x.ndim :]:
            checked("Reshape", sizes, out.shape)  # such a 0 has no axis to copy: E670
        elif not zero_is_size:
            sizes = [x.shape[i] if size == 0 else size for i, size in enumerate(sizes)]
        known_product = math.prod(size for size in sizes if size != -1)
        resolved = [x.size // max(known_product, 1) if size == -1 else size for size in sizes]
        checked("Reshape", resolved, out.shape)
        np.copyto(out, x.reshape(out.shape))

    return Step(run)


@kernel(DYNAMIC_TOP_K)
def dynamic_top_k(call: Call) -> Step:
    """Return the step of a TopK with the declared k, which the run-time k must equal."""
    axis, selected = call.integer("axis"), call.outputs[0].shape[call.integer("axis")]
    step = top_k(replace(call, op="TopK", inputs=call.inputs[:1]))

    def run(x: Array, k: Array, values: Array, indices: Array) -> None:
        """Write the best k elements and their indices, after a check of k."""
        shape = list(x.shape)
        shape[axis] = int(k.reshape(-1)[0])
        checked("TopK", tuple(shape), (*x.shape[:axis], selected, *x.shape[axis + 1 :]))
        step.run(x, values, indices)

    return Step(run)
