"""Read convolutions."""

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

    A larger ``output_shape`` lengthens the end of each dim.
    """
    weight = call.like("weight", call.x)
    bias = call.like("bias", call.x) if call.has("bias") else None
    kernel = kernel_of(call, weight)
    count = len(kernel)
    strides = call.integers("strides", [1] * count)
    dilations = call.integers("dilations", [1] * count)
    reaches = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    before, after = _crops(call, reaches, strides)
    longer = [0] * count
    if call.has("output_shape"):
        wanted, sizes = call.integers("output_shape")[-count:], call.sizes(call.x)
        if sizes is None:
            raise call.refused("it has an output_shape and open sizes")
        made = [
            (size - 1) * stride + reach - first - last
            for size, stride, reach, first, last in zip(
                sizes[2:], strides, reaches, before, after, strict=True
            )
        ]
        longer = [a - b for a, b in zip(wanted, made, strict=True)]
    for axis, more in enumerate(longer):
        if more < 0:
            raise call.refused(f"its output_shape is shorter than its result in dim {axis + 2}")
    # A negative crop lengthens the end.
    longer = [more + max(-last, 0) for more, last in zip(longer, after, strict=True)]
    after = [max(last, 0) for last in after]
    limits = [max(s, d) for s, d in zip(strides, dilations, strict=True)]
    if any(more >= most for more, most in zip(longer, limits, strict=True)):
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
        output_padding=longer if any(longer) else None,
    )


def _crops(call: Call, reaches: list[int], strides: list[int]) -> tuple[list[int], list[int]]:
    """Return what is cut off before and behind each dim; ``same`` leaves size times stride."""
    count, kind = len(reaches), call.word("pad_type", "valid")
    if kind == "valid":
        return [0] * count, [0] * count
    if kind == "custom":
        pads = call.integers("pad", [0] * 2 * count)
        if len(pads) != 2 * count:
            raise call.refused(f"it has {len(pads)} pads for {count} dims")
        return pads[::2], pads[1::2]
    if kind not in ("same", "same_lower"):
        raise call.refused(f"there is no pad_type {kind!r}")
    totals = [reach - stride for reach, stride in zip(reaches, strides, strict=True)]
    small = [max(total, 0) // 2 for total in totals]
    large = [total - less for total, less in zip(totals, small, strict=True)]
    if kind == "same_lower" and all(total >= 0 for total in totals):
        return large, small
    return small, large
