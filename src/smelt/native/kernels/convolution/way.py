"""The interface of a convolution method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext

Takes: TypeAlias = Callable[[Instance, Window], bool]


def anything(instance: Instance, window: Window) -> bool:
    """Return True, for a method that takes every convolution."""
    return True


@dataclass(frozen=True)
class Way:
    """One method to compute a convolution.

    ``emit`` writes the function's body and uses ``workspace`` bytes of scratch space, for
    convolutions that ``takes`` accepts. ``epilogue``: the method applies ``finish_of`` before it
    stores a result; without it, no steps are fused. Every method computes the Relu of ConvRelu, by
    ``finish_of`` or ``ends_in_relu``; one that does not is refused (E964).
    """

    emit: Callable[[KernelContext, Window], None]
    workspace: Callable[[Instance, Window], int]
    supports: Takes = anything
    epilogue: bool = False
