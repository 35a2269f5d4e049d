"""Conv and ConvRelu: choose an algorithm by window, sizes and weights."""

from __future__ import annotations

from collections.abc import Sequence

from smelt.native.kernels.convolution import (
    depthwise,
    direct,
    gather,
    plain,
    pointwise,
    runtime_sized,
    shared,
)
from smelt.native.kernels.convolution.algorithm import Algorithm
from smelt.native.kernels.convolution.parts import side_operand_strides
from smelt.native.kernels.convolution.window import Window, channels_of, refuse_window, window_of
from smelt.native.kernels.epilogue import overwritable
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import FLOAT, KernelContext, kernel
from smelt.native.kernels.register_blocks import machine
from smelt.program.run_sizes import highest
from smelt.program.storage import Needs

ALGORITHMS = (pointwise.ALGORITHM, depthwise.ALGORITHM, direct.ALGORITHM, gather.ALGORITHM)
RUNTIME_SIZED_ALGORITHMS = (depthwise.ALGORITHM, runtime_sized.ALGORITHM, plain.ALGORITHM)
SMALL_ALGORITHMS = (shared.ALGORITHM, plain.ALGORITHM)
"""Algorithms in order of preference, for static sizes, for run-time sizes, and for static sizes in
small code. The last of each list supports every convolution."""


def _algorithm(instance: Instance, window: Window) -> Algorithm:
    """Return the first algorithm that supports the convolution."""
    algorithms: Sequence[Algorithm] = SMALL_ALGORITHMS if machine().small else ALGORITHMS
    if runtime_sized.is_runtime_sized(window):
        algorithms = RUNTIME_SIZED_ALGORITHMS
    return next(algorithm for algorithm in algorithms if algorithm.supports(instance, window))


def _needs(instance: Instance) -> Needs:
    """Return the storage needs of the chosen algorithm.

    A depthwise convolution may overwrite its image if no result plane is larger than its image
    plane: a plane is copied before its results are written, which begin at or before it.
    """
    window = window_of(instance)
    algorithm = _algorithm(instance, window)
    shrinks = highest(window.pixels - window.plane) <= 0
    overwrites_image = (
        algorithm is depthwise.ALGORITHM and channels_of(instance)[1] == 1 and shrinks
    )
    return Needs(
        in_place=overwritable(instance),
        over=(0,) if overwrites_image else (),
        workspace=algorithm.workspace(instance, window),
    )


def _supports_side_operand(instance: Instance, shape: tuple[int, ...]) -> bool:
    """True if the chosen algorithm has an epilogue and the strides of the side operand merge."""
    epilogue = _algorithm(instance, window_of(instance)).epilogue
    return epilogue and side_operand_strides(instance, shape) is not None


def _refuse(instance: Instance) -> str | None:
    """Return why weights or window do not fit, None if they do."""
    reason = refuse_window(instance)
    if reason:
        return reason
    group, weights, channels = instance.int("group"), instance.shape(1), instance.shape(0)[1]
    if group < 1 or weights[0] % group or weights[1] * group != channels:
        return "weights that do not fit the group"
    if tuple(weights[2:]) != instance.ints("kernel_shape"):
        return "a kernel_shape that is not that of the weights"
    return None


@kernel(
    "Conv",
    "smelt.c::ConvRelu",
    kinds=FLOAT,
    needs=_needs,
    refuse=_refuse,
    supports_side_operand=_supports_side_operand,
    shared=True,
)
def conv(cx: KernelContext) -> None:
    """Write sums of products over channels and window, plus the bias; ConvRelu clamps at 0."""
    window = window_of(cx)
    _algorithm(cx, window).emit(cx, window)
