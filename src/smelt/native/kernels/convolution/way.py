"""What a way to compute a convolution is, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext

Takes: TypeAlias = Callable[[Instance, Window], bool]


def anything(instance: Instance, window: Window) -> bool:
    """True: a way for what no other takes."""
    return True


@dataclass(frozen=True)
class Way:
    """One way to compute a convolution.

    ``emit`` writes the body, in a scratch space of ``workspace`` bytes, for what it ``takes``.
    ``epilogue``: whether it computes fused steps before it stores a result, by ``finish_of``. A way
    that does not say so is given none. Every way computes the Relu of ConvRelu: by ``finish_of``,
    or where it asks ``ends_in_relu``. What emits C without either is refused (E964).
    """

    emit: Callable[[KernelContext, Window], None]
    workspace: Callable[[Instance, Window], int]
    takes: Takes = anything
    epilogue: bool = False
