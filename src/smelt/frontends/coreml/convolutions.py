"""Readers of convolutions."""

from __future__ import annotations

import onnx_ir as ir

from smelt.frontends.coreml.call import Call
from smelt.frontends.coreml.registry import reads
from smelt.frontends.coreml.windows import kernel_of, windows_of


@reads("conv")
def _conv(call: Call) -> ir.Value:
    """Return the convolution of ``x`` with ``weight``."""
    weight = call.like("weight", call.x)
    bias = call.like("bias", call.x) if call.has("bias") else None
    kernel = kernel_of(call, weight)
    windows = windows_of(call, kernel)
    return call.op(
        "Conv",
        call.x,
        weight,
        bias,
        group=call.integer("groups", 1),
        kernel_shape=kernel,
        dilations=windows.dilations,
        strides=windows.strides,
        pads=windows.pads,
        auto_pad=windows.auto_pad,
    )


@reads("conv_transpose")
def _conv_transpose(call: Call) -> ir.Value:
    """Return the transposed convolution of ``x`` with ``weight``.

    An ``output_shape`` beyond the result of the windows becomes ``output_padding``.
    """
    weight = call.like("weight", call.x)
    bias = call.like("bias", call.x) if call.has("bias") else None
    kernel = kernel_of(call, weight)
    count = len(kernel)
    strides = call.integers("strides", [1] * count)
    dilations = call.integers("dilations", [1] * count)
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    before, after = _crops(call, extents, strides)
    added = _added_sizes(call, extents, strides, before, after)
    # ONNX has no negative pad at the end; a negative crop adds to the size instead.
    added = [more + max(-last, 0) for more, last in zip(added, after, strict=True)]
    after = [max(last, 0) for last in after]
    limits = [max(s, d) for s, d in zip(strides, dilations, strict=True)]
    if any(more >= most for more, most in zip(added, limits, strict=True)):
        raise call.refused("its output_shape is longer than a stride allows")
    return call.op(
        "ConvTranspose",
        call.x,
        weight,
        bias,
        group=call.integer("groups", 1),
        kernel_shape=kernel,
        strides=strides,
        dilations=dilations,
        pads=before + after,
        output_padding=added if any(added) else None,
    )


def _added_sizes(
    call: Call, extents: list[int], strides: list[int], before: list[int], after: list[int]
) -> list[int]:
    """Return, for each spatial dim, output_shape minus ``(size - 1) * stride + extent - crops``.

    ``extents`` are the sizes of the dilated kernel. Raises E121 if output_shape is smaller.
    """
    count = len(extents)
    if not call.has("output_shape"):
        return [0] * count
    out_sizes, sizes = call.integers("output_shape")[-count:], call.sizes(call.x)
    if sizes is None:
        raise call.refused("it has an output_shape and open sizes")
    added = []
    for axis in range(count):
        full = (sizes[2 + axis] - 1) * strides[axis] + extents[axis]
        added.append(out_sizes[axis] - (full - before[axis] - after[axis]))
        if added[axis] < 0:
            raise call.refused(f"its output_shape is shorter than its result in dim {axis + 2}")
    return added


def _crops(call: Call, extents: list[int], strides: list[int]) -> tuple[list[int], list[int]]:
    """Return how many elements are cropped at the start and at the end of each spatial dim.

    ``same`` crops so that a result has size * stride elements. The crop at the end may be negative.
    """
    count, kind = len(extents), call.word("pad_type", "valid")
    if kind == "valid":
        return [0] * count, [0] * count
    if kind == "custom":
        pads = call.integers("pad", [0] * 2 * count)
        if len(pads) != 2 * count:
            raise call.refused(f"it has {len(pads)} pads for {count} dims")
        return pads[::2], pads[1::2]
    if kind not in ("same", "same_lower"):
        raise call.refused(f"there is no pad_type {kind!r}")
    totals = [extent - stride for extent, stride in zip(extents, strides, strict=True)]
    small = [max(total, 0) // 2 for total in totals]
    large = [total - less for total, less in zip(totals, small, strict=True)]
    if kind == "same_lower" and all(total >= 0 for total in totals):
        return large, small
    return small, large
