"""ConvTranspose: as a matrix product, or by adding a scaled kernel for each input pixel."""

from __future__ import annotations

import math

from smelt.native.kernels.convolution import transposed
from smelt.native.kernels.convolution.parts import side_operand_strides
from smelt.native.kernels.convolution.window import refuse_window, window_of
from smelt.native.kernels.epilogue import overwritable
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import FLOAT, KernelContext, kernel
from smelt.program.storage import Needs


def _refuse(instance: Instance) -> str | None:
    """Return why the weights or the window are refused, None if they fit."""
    group, channels = instance.int("group"), instance.shape(0)[1]
    if group < 1 or channels % group or instance.shape(1)[0] != channels:
        return "weights that do not fit the group"
    return refuse_window(instance)


def _needs(instance: Instance) -> Needs:
    """Return the storage needs of the matrix product, none for the direct loop."""
    if not transposed.supports(instance):
        return Needs()
    return Needs(in_place=overwritable(instance), workspace=transposed.workspace(instance))


def _supports_side_operand(instance: Instance, shape: tuple[int, ...]) -> bool:
    """True for the matrix product, if the strides of the side operand merge."""
    return transposed.supports(instance) and side_operand_strides(instance, shape) is not None


@kernel(
    "ConvTranspose",
    kinds=FLOAT,
    needs=_needs,
    refuse=_refuse,
    supports_side_operand=_supports_side_operand,
    shared=True,
)
def conv_transpose(cx: KernelContext) -> None:
    """Write a matrix product where ``transposed`` supports it, else a direct loop."""
    if transposed.supports(cx):
        transposed.emit(cx)
    else:
        _scatter(cx)


def _scatter(cx: KernelContext) -> None:
    """Write the direct loop: each input pixel adds its product with the kernel to the output.

    Output starts as the bias. Products that fall outside of the output are skipped.

    ```
    const float v = x0[...], *k = x1 + ((ig * 12 + ic) * 7 + im) * 9;
    const ptrdiff_t o1 = iy * 1 + k1 * 1 - 0;
    if (o0 >= 0 && o0 < 1 && o1 >= 0 && o1 < 3 && ...)
        out[(o0 * 3 + o1) * 3 + o2] += v * k[(k0 * 3 + k1) * 3 + k2];
    ```
    """
    operand, w, output, body = cx.input(0), cx.input(1), cx.output(), cx.body
    bias, window, group = cx.optional(2), window_of(cx), cx.int("group")
    filters, channels = w.shape[1], operand.shape[1] // group
    image = math.prod(window.input)
    pixels = math.prod(window.output)
    positions = math.prod(window.kernel)
    with body.loops(("i", "m", "j"), (output.shape[0], output.shape[1], pixels)):
        start = f"{bias.name}[m]" if bias else "0"
        body.line(f"{output.name}[(i * {output.shape[1]} + m) * {pixels} + j] = {start};")
    names = ("n", "g", "c", "m", "z", "y", "x")
    sizes = (operand.shape[0], group, channels, filters, *window.input)
    _, in_height, in_width = window.input
    _, out_height, out_width = window.output
    with body.loops([f"i{name}" for name in names], sizes):
        channel = f"(ig * {channels} + ic)"
        source = f"((in * {operand.shape[1]} + {channel}) * {image})"
        pixel = f"(iz * {in_height} + iy) * {in_width} + ix"
        body.line(f"const {operand.type.name} v = {operand.name}[{source} + {pixel}];")
        body.line(
            f"const {w.type.name} *k = {w.name} + ({channel} * {filters} + im) * {positions};"
        )
        target = f"(in * {output.shape[1]} + ig * {filters} + im) * {pixels}"
        body.line(f"{output.type.name} *out = {output.name} + {target};")
        with body.loops(("k0", "k1", "k2"), window.kernel):
            for dim, name in enumerate(names[4:]):
                at = f"i{name} * {window.strides[dim]} + k{dim} * {window.dilations[dim]}"
                body.line(f"const ptrdiff_t o{dim} = {at} - {window.begin[dim]};")
            inside = [f"o{i} >= 0 && o{i} < {size}" for i, size in enumerate(window.output)]
            weight = f"k[(k0 * {window.kernel[1]} + k1) * {window.kernel[2]} + k2]"
            with body.block(f"if ({' && '.join(inside)})"):
                body.line(f"out[(o0 * {out_height} + o1) * {out_width} + o2] += v * {weight};")
