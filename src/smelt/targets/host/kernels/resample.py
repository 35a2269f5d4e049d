"""Resample: resize one axis; each result row is a weighted sum of a few source rows (taps)."""

from __future__ import annotations

import numpy as np

from smelt.program.resampling import Sampling, taps
from smelt.targets.host.kernels.kernel import Array, Call, Step, kernel


@kernel("Resample", wide=True)
def resample(call: Call) -> Step:
    """Return the step that resizes ``axis``; the mode ``nearest`` copies one row each."""
    axis, out = call.integer("axis"), call.outputs[0]
    size, count = call.input(0).shape[axis], out.shape[axis]
    if size == 0 and 0 not in out.shape:
        raise call.refuse("an axis of size 0")
    sampling = Sampling.of(call.attributes)
    read = taps(sampling, max(size, 1), count)
    beyond = (slice(None),) * axis + (read.outside,)

    def fill(target: Array) -> None:
        """Write the extrapolation value into rows outside of the source."""
        if read.outside.any():
            target[beyond] = sampling.extrapolation

    if sampling.mode == "nearest":

        def pick(x: Array, target: Array) -> None:
            """Write the nearest source row of each result row."""
            np.take(x, read.rows[:, 0], axis=axis, out=target, mode="clip")
            fill(target)

        return Step(pick)
    rows = np.ascontiguousarray(read.rows.T)
    column = (len(rows), count, *[1] * (out.ndim - axis - 1))
    weights = read.weights.astype(out.dtype).T.reshape(column)

    def run(x: Array, target: Array, part: Array) -> None:
        """Write the weighted sum of the taps of each row; ``part`` is scratch."""
        np.take(x, rows[0], axis=axis, out=target, mode="clip")
        target *= weights[0]
        for row, weight in zip(rows[1:], weights[1:], strict=True):
            np.take(x, row, axis=axis, out=part, mode="clip")
            part *= weight
            target += part
        fill(target)

    return Step(run, scratch=[(out.shape, out.dtype)])
