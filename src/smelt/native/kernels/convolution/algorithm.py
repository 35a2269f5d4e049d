"""The interface of a convolution algorithm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext

Supports: TypeAlias = Callable[[Instance, Window], bool]


def anything(instance: Instance, window: Window) -> bool:
    """Return True, for an algorithm that supports every convolution."""
    return True


@dataclass(frozen=True)
class Algorithm:
    """One algorithm for convolutions.

    ``emit`` writes the function's body, for convolutions that ``supports`` accepts. The C uses
    ``workspace`` bytes of scratch space. ``epilogue`` is True if the algorithm applies
    ``epilogue_of`` before it stores a result; otherwise no steps are fused into the convolution.
    Every algorithm computes the Relu of ConvRelu, by ``epilogue_of`` or ``ends_in_relu``; an
    algorithm that does not is refused (E964).
    """

    emit: Callable[[KernelContext, Window], None]
    workspace: Callable[[Instance, Window], int]
    supports: Supports = anything
    epilogue: bool = False
