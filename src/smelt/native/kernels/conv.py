"""Conv and ConvRelu: the way to compute it that suits its window, sizes and weights."""

from __future__ import annotations

from types import ModuleType

from smelt.native.kernels.convolution import depthwise, direct, gather, pointwise
from smelt.native.kernels.convolution.window import Window, refuse_window, window_of
from smelt.native.kernels.kernel import FLOAT, Instance, KernelContext, kernel
from smelt.program.storage import Needs

WAYS = (pointwise, depthwise, direct)
"""In order of preference; each says what it ``takes``. What none takes is gathered."""


def _way(instance: Instance, window: Window) -> ModuleType:
    return next((way for way in WAYS if way.takes(instance, window)), gather)


def _needs(instance: Instance) -> Needs:
    window = window_of(instance)
    way = _way(instance, window)
    # A plane is copied before the result is written over it, if that is no larger.
    same = way is depthwise and instance.shape(0) == instance.output_shape()
    return Needs(in_place=(0,) if same else (), workspace=way.workspace(instance, window))


def _refuse(instance: Instance) -> str | None:
    reason = refuse_window(instance)
    if reason:
        return reason
    group, weights, channels = instance.int("group"), instance.shape(1), instance.shape(0)[1]
    if group < 1 or weights[0] % group or weights[1] * group != channels:
        return "weights that do not fit the group"
    if tuple(weights[2:]) != instance.ints("kernel_shape"):
        return "a kernel_shape that is not that of the weights"
    return None


@kernel("Conv", "smelt.c::ConvRelu", kinds=FLOAT, needs=_needs, refuse=_refuse)
def conv(cx: KernelContext) -> None:
    """Sums of products over channels and window, plus the bias; ConvRelu clamps at 0."""
    window = window_of(cx)
    if 0 not in cx.output_shape():
        _way(cx, window).emit(cx, window)
