"""Convolutions of images with run-time sizes: one weight at a time along a row.

    out[c, h, :] += weight * image[c', row of h, :]

Each weight applies to the columns inside of the image, so nothing is padded or copied.
"""

from __future__ import annotations

from smelt.native.kernels.convolution.algorithm import Algorithm
from smelt.native.kernels.convolution.window import Window, channels_of
from smelt.native.kernels.epilogue import ends_in_relu
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext


def workspace(instance: Instance, window: Window) -> int:
    """Return 0: each weight reads the image in place, so no scratch space is needed."""
    return 0


def emit(cx: KernelContext, window: Window) -> None:
    """Write loops over rows of results, channels and window positions.

    Kernel rows that read only padding are skipped.

    ```
    float *const out = y + (((n * 4 + filter) * 1 + o0) * 3 + o1) * 3;
    …
    const ptrdiff_t at0 = o0 * 1 + k0 * 1 - 0;
    const ptrdiff_t at1 = o1 * 1 + k1 * 1 - 1;
    if (at0 < 0 || at0 >= 1 || at1 < 0 || at1 >= 3)
        continue;
    const float *const image = x + ((…) * 3 + at1) * 3;
    const float *const weights = w + (…) * 3;
    ```
    """
    source, weight, output = cx.input(0), cx.input(1), cx.output()
    body, c_type = cx.body, cx.type(0).name
    bias = cx.optional(2)
    channels, filters = channels_of(cx)
    groups = cx.int("group")
    kernel_d, kernel_h, kernel_w = window.kernel
    _, out_height, out_width = window.output
    with body.loops(
        ("n", "g", "f", "o0", "o1"), (output.shape[0], groups, filters, *window.output[:2])
    ):
        body.line(f"const ptrdiff_t filter = g * {filters} + f;")
        row = f"((n * {groups * filters} + filter) * {window.output[0]} + o0) * {out_height} + o1"
        body.line(f"{c_type} *const out = {output.name} + ({row}) * {out_width};")
        with body.loop("o2", out_width):
            body.line(f"out[o2] = {f'{bias.name}[filter]' if bias is not None else 0};")
        with body.loops(("c", "k0", "k1"), (channels, kernel_d, kernel_h)):
            for dim in range(2):
                at = f"o{dim} * {window.strides[dim]} + k{dim} * {window.dilations[dim]}"
                body.line(f"const ptrdiff_t at{dim} = {at} - {window.begin[dim]};")
            inside = " || ".join(f"at{d} < 0 || at{d} >= {window.input[d]}" for d in range(2))
            body.line(f"if ({inside})")
            body.line("    continue;")
            image = f"(n * {groups * channels} + g * {channels} + c) * {window.input[0]} + at0"
            line = f"{source.name} + (({image}) * {window.input[1]} + at1) * {window.input[2]}"
            body.line(f"const {c_type} *const image = {line};")
            weights = f"((filter * {channels} + c) * {kernel_d} + k0) * {kernel_h} + k1"
            body.line(f"const {c_type} *const weights = {weight.name} + ({weights}) * {kernel_w};")
            with body.loop("k2", kernel_w):
                _emit_columns(cx, window)
        if ends_in_relu(cx):
            with body.loop("o2", out_width):
                body.line("out[o2] = out[o2] < 0 ? 0 : out[o2];")


def _emit_columns(cx: KernelContext, window: Window) -> None:
    """Write the product with weight ``k2``, for the result columns whose input is in the image."""
    body, step, (width, out_width) = cx.body, window.strides[2], (window.input[2], window.output[2])
    body.line(f"const ptrdiff_t from = k2 * {window.dilations[2]} - {window.begin[2]};")
    body.line(f"const ptrdiff_t first = from < 0 ? (-from + {step - 1}) / {step} : 0;")
    body.line(
        f"const ptrdiff_t seen = {width} > from ? ({width} - from + {step - 1}) / {step} : 0;"
    )
    body.line(f"const ptrdiff_t end = seen < {out_width} ? seen : {out_width};")
    with body.loop("o2", "end", "first"):
        body.line(f"out[o2] += weights[k2] * image[o2 * {step} + from];")


ALGORITHM = Algorithm(emit, workspace)
