"""Strides, dilations and pads of convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import onnx_ir as ir

from smelt.frontends.coreml.call import Call


class Windows(NamedTuple):
    """The attributes of an ONNX convolution or pooling; ``pads`` has all starts, then all ends.

    If the pads depend on open sizes, ``auto_pad`` is set and ``pads`` is None.
    """

    strides: list[int]
    dilations: list[int]
    pads: list[int] | None
    auto_pad: str | None


def windows_of(call: Call, kernel: Sequence[int], default: str | None = "valid") -> Windows:
    """Return the attributes for windows of the sizes ``kernel`` over the spatial dims of ``x``.

    ``same`` pads so that a result has ceil(size / stride) elements. If the total pad is odd, the
    larger part is at the end, with ``same_lower`` at the start.
    """
    count = len(kernel)
    strides = call.integers("strides", [1] * count)
    dilations = call.integers("dilations", [1] * count)
    if len(strides) != count or len(dilations) != count:
        raise call.refused(
            f"its strides or dilations do not have one number for each of {count} dims"
        )
    kind = call.word("pad_type", default)
    if kind == "valid":
        return Windows(strides, dilations, [0] * 2 * count, None)
    if kind == "custom":
        pads = call.integers("pad", [0] * 2 * count)
        if len(pads) != 2 * count:
            raise call.refused(f"it has {len(pads)} pads for {count} dims")
        return Windows(strides, dilations, pads[::2] + pads[1::2], None)
    if kind not in ("same", "same_lower"):
        raise call.refused(f"there is no pad_type {kind!r}")
    sizes = call.sizes(call.x, range(2, 2 + count))
    if sizes is None:
        upper = "SAME_UPPER" if kind == "same" else "SAME_LOWER"
        return Windows(strides, dilations, None, upper)
    before, after = [], []
    for size, stride, reach, dilation in zip(sizes, strides, kernel, dilations, strict=True):
        total = max((-(-size // stride) - 1) * stride + (reach - 1) * dilation + 1 - size, 0)
        small, large = total // 2, total - total // 2
        before.append(small if kind == "same" else large)
        after.append(large if kind == "same" else small)
    return Windows(strides, dilations, before + after, None)


def kernel_of(call: Call, weight: ir.Value) -> list[int]:
    """Return the sizes of the spatial dims of a weight."""
    sizes = call.sizes(weight, range(2, call.rank(weight)))
    if sizes is None:
        raise call.refused("the sizes of its kernel are open")
    return sizes
