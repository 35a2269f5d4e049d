"""The largest or smallest elements along an axis."""

from __future__ import annotations

import numpy as np

from smelt.targets.host.kernels.kernel import Array, Call, Step, kernel


@kernel("TopK")
def top_k(call: Call) -> Step:
    """Return the step of a TopK by a stable sort: equal elements in order of index, NaN largest."""
    axis, largest = call.integer("axis"), bool(call.integer("largest"))
    count, selected = call.input(0).shape[axis], call.outputs[0].shape[axis]

    def run(x: Array, values: Array, indices: Array) -> None:
        """Write the best elements and their indices; of equal ones, the first."""
        if largest:  # a stable sort of the flipped row puts the last of equal elements first
            order = count - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
        else:
            order = np.argsort(x, axis, kind="stable")
        np.copyto(indices, np.take(order, range(selected), axis))
        np.copyto(values, np.take_along_axis(x, indices, axis))

    return Step(run)
